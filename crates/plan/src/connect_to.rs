//! Another address to dial than the target's: `--connect-to HOST1:PORT1:HOST2:PORT2`, with the syntax of curl.

/// Sends requests for one host and port to another; Host header and TLS server name stay those of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectTo {
    /// As typed.
    pub(crate) text: String,
    /// Host and port that the rule applies to; each empty for any.
    from: [String; 2],
    /// Host and port to dial; each empty to keep the target's.
    to: [String; 2],
}

impl ConnectTo {
    /// Parses `HOST1:PORT1:HOST2:PORT2`, or `HOST2:PORT2` for any host and port.
    ///
    /// # Errors
    /// The text has neither form.
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

    /// Whether the rule applies to this host, without brackets, and port.
    pub(crate) fn is_for(&self, host: &str, port: u16) -> bool {
        let [own_host, own_port] = &self.from;
        let is_host = own_host.is_empty() || own_host.eq_ignore_ascii_case(host);
        is_host && (own_port.is_empty() || own_port.parse() == Ok(port))
    }

    /// The host, without brackets, and the port to dial in place of these.
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

/// The parts between colons; colons within brackets do not count.
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
