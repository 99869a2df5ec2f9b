//! Where a target is dialled instead: `--connect-to HOST1:PORT1:HOST2:PORT2`, as curl has it.

/// Requests for one host and port go to another; what they say of the host stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTo {
    /// As typed.
    pub(crate) text: String,
    /// The host and the port that it is for, each empty for any.
    from: [String; 2],
    /// The host and the port to dial, each empty for the target's own.
    to: [String; 2],
}

impl ConnectTo {
    /// `HOST1:PORT1:HOST2:PORT2`, or `HOST2:PORT2` for any host and port.
    ///
    /// # Errors
    /// It is neither.
    pub(crate) fn parse(text: &str) -> Result<ConnectTo, String> {
        let parts: Vec<String> = split(text).into_iter().map(unbracketed).collect();
        let (from, to) = match parts.as_slice() {
            [host, port] => ([String::new(), String::new()], [host.clone(), port.clone()]),
            [from, from_port, to, to_port] => {
                ([from.clone(), from_port.clone()], [to.clone(), to_port.clone()])
            }
            _ => return Err(wrong(text)),
        };
        let is_port = |port: &String| port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
        let dials = !to[0].is_empty() || !to[1].is_empty();
        match [&from[1], &to[1]].into_iter().all(is_port) && dials {
            true => Ok(ConnectTo { text: text.to_owned(), from, to }),
            false => Err(wrong(text)),
        }
    }

    /// Whether it is for this host, without brackets, and port.
    pub(crate) fn is_for(&self, host: &str, port: u16) -> bool {
        let [own_host, own_port] = &self.from;
        let is_host = own_host.is_empty() || own_host.eq_ignore_ascii_case(host);
        is_host && (own_port.is_empty() || own_port.parse() == Ok(port))
    }

    /// What is dialled for this host and port: a host without brackets, and a port as text.
    pub(crate) fn dialled<'a>(&'a self, host: &'a str, port: &'a str) -> (&'a str, &'a str) {
        let [own_host, own_port] = &self.to;
        let or = |own: &'a String, other| if own.is_empty() { other } else { own.as_str() };
        (or(own_host, host), or(own_port, port))
    }
}

fn wrong(text: &str) -> String {
    format!(
        "{text:?} is not HOST1:PORT1:HOST2:PORT2; use 127.0.0.1:8000 to dial that instead of the target's host"
    )
}

/// The parts between colons, of which those in brackets are none.
fn split(text: &str) -> Vec<&str> {
    let mut in_brackets = false;
    text.split(|c| {
        in_brackets = (in_brackets || c == '[') && c != ']';
        c == ':' && !in_brackets
    })
    .collect()
}

fn unbracketed(part: &str) -> String {
    part.strip_prefix('[').and_then(|part| part.strip_suffix(']')).unwrap_or(part).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_curl_reads() {
        for (text, host, port, expected) in [
            ("127.0.0.1:81", "h", 443, Some(("127.0.0.1", "81"))),
            ("h:443:127.0.0.1:81", "H", 443, Some(("127.0.0.1", "81"))),
            ("h:443:127.0.0.1:81", "h", 80, None),
            ("h:443:127.0.0.1:81", "g", 443, None),
            ("h::127.0.0.1:", "h", 80, Some(("127.0.0.1", "80"))),
            (":80::81", "h", 80, Some(("h", "81"))),
            ("[::1]:80:[::2]:81", "::1", 80, Some(("::2", "81"))),
            ("[::2]:81", "h", 80, Some(("::2", "81"))),
        ] {
            let read = ConnectTo::parse(text).unwrap();
            let typed = port.to_string();
            let dialled = read.is_for(host, port).then(|| read.dialled(host, &typed));
            assert_eq!(dialled, expected, "{text}");
        }
        for text in ["", "h", "h:80:g", "a:b:c:d", "h:80::", "h:0", "h:99999"] {
            assert_eq!(ConnectTo::parse(text), Err(wrong(text)), "{text}");
        }
    }
}
