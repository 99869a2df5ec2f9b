//! The protocol of a target, and which flags and keys apply to it.

use std::fmt;

/// The protocol of the target. Prints `http://`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// WebSocket (RFC 6455).
    Ws,
    /// Bytes; without a message, open and hold only.
    Tcp,
    /// gRPC over HTTP/2.
    Grpc,
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Http, Scheme::Ws, Scheme::Tcp, Scheme::Grpc];

    /// The text before `://`.
    fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Ws => "ws",
            Scheme::Tcp => "tcp",
            Scheme::Grpc => "grpc",
        }
    }

    /// The text before `://` where TLS is below it.
    fn secure_name(self) -> &'static str {
        match self {
            Scheme::Http => "https",
            Scheme::Ws => "wss",
            Scheme::Tcp => "tls",
            Scheme::Grpc => "grpcs",
        }
    }

    /// As targets have it: `https://`.
    pub(crate) fn text(self, secure: bool) -> String {
        format!("{}://", if secure { self.secure_name() } else { self.name() })
    }

    /// The default port; `secure`: with TLS.
    pub(crate) fn port(self, secure: bool) -> Option<u16> {
        match self {
            Scheme::Http | Scheme::Ws | Scheme::Grpc => Some(if secure { 443 } else { 80 }),
            Scheme::Tcp => None,
        }
    }

    /// Whether its targets have a path.
    pub fn has_path(self) -> bool {
        match self {
            Scheme::Http | Scheme::Ws | Scheme::Grpc => true,
            Scheme::Tcp => false,
        }
    }

    /// Whether it has requests, and responses with a status; if not, it has messages.
    pub fn has_requests(self) -> bool {
        match self {
            Scheme::Http | Scheme::Grpc => true,
            Scheme::Ws | Scheme::Tcp => false,
        }
    }

    /// Whether an empty message is a control ping.
    pub(crate) fn has_pings(self) -> bool {
        match self {
            Scheme::Ws => true,
            Scheme::Http | Scheme::Tcp | Scheme::Grpc => false,
        }
    }

    /// Header fields that throng sets itself, besides those that frame any request.
    pub(crate) fn own_fields(self) -> &'static [&'static str] {
        match self {
            // RFC 6455 section 4.1.
            Scheme::Ws => {
                &["connection", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"]
            }
            Scheme::Grpc => &["content-type", "te", "grpc-timeout"],
            Scheme::Http | Scheme::Tcp => &[],
        }
    }

    /// Whether its connections begin with HTTP/1.1, and may send requests before they are upgraded.
    pub(crate) fn is_upgraded(self) -> bool {
        match self {
            Scheme::Ws => true,
            Scheme::Http | Scheme::Tcp | Scheme::Grpc => false,
        }
    }

    /// Whether HTTP/2 can carry it.
    pub(crate) fn has_streams(self) -> bool {
        match self {
            Scheme::Http | Scheme::Ws | Scheme::Grpc => true,
            Scheme::Tcp => false,
        }
    }

    /// Whether it sends nothing unless a message is given.
    pub(crate) fn needs_message(self) -> bool {
        !self.has_requests() && !self.has_pings()
    }

    /// The scheme of a target as typed, in whatever case; `http://` where it has none.
    pub fn of_target(text: &str) -> Option<Scheme> {
        Scheme::split(text).ok().map(|(scheme, ..)| scheme)
    }

    /// The scheme, whether TLS is below it, and what follows `://`. The error has the place and the fix.
    pub(crate) fn split(text: &str) -> Result<(Scheme, bool, &str), String> {
        let is_scheme = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        let Some((name, rest)) = text.split_once("://").filter(|(name, _)| is_scheme(name)) else {
            return match text {
                _ if text.ends_with(".toml") => {
                    Err(format!("only throng run takes a scenario file; use http://host:port/: {text:?}"))
                }
                _ if is_other_file(text) => Err(format!(
                    "{text:?} is not a target; use http://host:port/, or a scenario file, whose name ends in .toml"
                )),
                _ => Ok((Scheme::Http, false, text)),
            };
        };
        for scheme in Scheme::ALL {
            for (secure, known) in [(false, scheme.name()), (true, scheme.secure_name())] {
                if name.eq_ignore_ascii_case(known) {
                    return Ok((scheme, secure, rest));
                }
            }
        }
        Err(format!(
            "{name:?} is not a scheme; use http://, https://, ws://, wss://, tcp://, tls://, grpc:// or grpcs://"
        ))
    }
}

/// Whether it is a file and no host: a path, or a script of another tool.
fn is_other_file(text: &str) -> bool {
    let is_path = ["/", "./", "../"].iter().any(|begin| text.starts_with(begin));
    is_path
        || [".js", ".ts", ".lua", ".json", ".yaml", ".yml", ".jmx"]
            .iter()
            .any(|end| text.ends_with(end) && !text.contains(':'))
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_differ_in_these_properties() {
        // (target, port, path, requests, pings, needs a message)
        for (text, scheme, port, expected) in [
            ("http://h/", Scheme::Http, Some(80), [true, true, false, false]),
            ("WS://h/", Scheme::Ws, Some(80), [true, false, true, false]),
            ("Tcp://h:9", Scheme::Tcp, None, [false, false, false, true]),
            ("grpc://h/s/m", Scheme::Grpc, Some(80), [true, true, false, false]),
        ] {
            assert_eq!(Scheme::of_target(text), Some(scheme), "{text}");
            let actual =
                [scheme.has_path(), scheme.has_requests(), scheme.has_pings(), scheme.needs_message()];
            assert_eq!((scheme.port(false), actual), (port, expected), "{text}");
            assert!(text.to_ascii_lowercase().starts_with(&scheme.to_string()), "{text}");
        }
        assert_eq!(["gopher://h/", "load.toml"].map(Scheme::of_target), [None, None]);
        for text in ["/tmp/load.py", "./load", "../x", "load.js", "tests/load.yaml"] {
            let why = Scheme::split(text).unwrap_err();
            assert!(why.ends_with("or a scenario file, whose name ends in .toml"), "{text}: {why}");
        }
        assert_eq!(Scheme::split("h:80/data.json"), Ok((Scheme::Http, false, "h:80/data.json")));
        // As curl and a browser take it.
        assert_eq!(Scheme::split("h:80/?u=ws://g/"), Ok((Scheme::Http, false, "h:80/?u=ws://g/")));
    }

    #[test]
    fn each_scheme_has_one_with_tls_below_it() {
        for (text, scheme, port) in [
            ("https://h/", Scheme::Http, Some(443)),
            ("WSS://h/", Scheme::Ws, Some(443)),
            ("tls://h:9", Scheme::Tcp, None),
            ("grpcs://h/", Scheme::Grpc, Some(443)),
        ] {
            assert_eq!(Scheme::split(text).map(|(scheme, secure, _)| (scheme, secure)), Ok((scheme, true)));
            assert_eq!(scheme.port(true), port);
            assert!(text.to_ascii_lowercase().starts_with(&scheme.text(true)), "{text}");
        }
    }
}
