//! The protocols of targets: a table of their properties. Defaults and refusals of flags and keys follow from it.

use std::fmt;

/// The protocol of the target. Prints `http://`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP. A target without a scheme has this one.
    #[default]
    Http,
    /// WebSocket (RFC 6455).
    Ws,
    /// Raw bytes; without a message, connections are only opened and held.
    Tcp,
    /// gRPC over HTTP/2.
    Grpc,
}

/// The properties of a protocol. Everything in this crate that depends on the protocol asks for one of them.
struct Row {
    scheme: Scheme,
    /// Name before `://` and default port, without TLS and with it.
    names: [(&'static str, Option<u16>); 2],
    has_path: bool,
    carries: Carries,
    http2: Http2,
    is_upgraded: bool,
    own_fields: &'static [&'static str],
}

/// Unit of data on an open connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carries {
    Requests,
    /// Requests that are gRPC calls.
    Calls,
    /// Messages in frames.
    Messages,
    Bytes,
}

/// Whether HTTP/2 can carry a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http2 {
    Never,
    /// If requested.
    Optional,
    Always,
}

const TABLE: &[Row] = &[
    Row {
        scheme: Scheme::Http,
        names: [("http", Some(80)), ("https", Some(443))],
        has_path: true,
        carries: Carries::Requests,
        http2: Http2::Optional,
        is_upgraded: false,
        own_fields: &[],
    },
    Row {
        scheme: Scheme::Ws,
        names: [("ws", Some(80)), ("wss", Some(443))],
        has_path: true,
        carries: Carries::Messages,
        http2: Http2::Optional,
        is_upgraded: true,
        // RFC 6455 section 4.1.
        own_fields: &["connection", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions"],
    },
    Row {
        scheme: Scheme::Tcp,
        names: [("tcp", None), ("tls", None)],
        has_path: false,
        carries: Carries::Bytes,
        http2: Http2::Never,
        is_upgraded: false,
        own_fields: &[],
    },
    Row {
        scheme: Scheme::Grpc,
        names: [("grpc", Some(80)), ("grpcs", Some(443))],
        has_path: true,
        carries: Carries::Calls,
        http2: Http2::Always,
        is_upgraded: false,
        own_fields: &["content-type", "te", "grpc-timeout"],
    },
];

impl Scheme {
    /// Selections of scheme names for [`Scheme::list`]: without TLS, with TLS, or both.
    pub(crate) const PLAIN: &'static [bool] = &[false];
    pub(crate) const OVER_TLS: &'static [bool] = &[true];
    pub(crate) const BOTH: &'static [bool] = &[false, true];

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.scheme == self).expect("each scheme has a row")
    }

    /// Its prefix in targets: `https://`.
    pub(crate) fn text(self, secure: bool) -> String {
        format!("{}://", self.row().names[usize::from(secure)].0)
    }

    /// Default port; `secure`: with TLS.
    pub(crate) fn port(self, secure: bool) -> Option<u16> {
        self.row().names[usize::from(secure)].1
    }

    /// Whether its targets have a path, and its requests or handshakes header fields.
    pub fn has_path(self) -> bool {
        self.row().has_path
    }

    /// Whether it has requests, and responses with a status; otherwise it has messages.
    pub fn has_requests(self) -> bool {
        matches!(self.row().carries, Carries::Requests | Carries::Calls)
    }

    /// Whether its requests are plain HTTP, with any method and cookies.
    pub(crate) fn has_plain_requests(self) -> bool {
        self.row().carries == Carries::Requests
    }

    /// Whether its requests are gRPC calls: the path names a method, and the status is a gRPC status.
    pub(crate) fn has_calls(self) -> bool {
        self.row().carries == Carries::Calls
    }

    /// Whether its messages have frames: an empty message is a control ping, and the server may push messages.
    pub fn has_frames(self) -> bool {
        self.row().carries == Carries::Messages
    }

    /// Whether it carries bytes without frames: nothing is sent unless a message is given.
    pub fn has_bytes(self) -> bool {
        self.row().carries == Carries::Bytes
    }

    /// Whether HTTP/2 can carry it.
    pub(crate) fn http2(self) -> Http2 {
        self.row().http2
    }

    /// Header fields that throng sets itself, besides those that frame any request.
    pub(crate) fn own_fields(self) -> &'static [&'static str] {
        self.row().own_fields
    }

    /// Whether its connections begin with HTTP, and may send requests before the upgrade.
    pub fn is_upgraded(self) -> bool {
        self.row().is_upgraded
    }

    /// Scheme of the requests on its connections: HTTP before an upgrade.
    pub(crate) fn of_requests(self) -> Scheme {
        if self.is_upgraded() { Scheme::Http } else { self }
    }

    /// The schemes that have a property, by the selected names: `ws:// or wss://`; `last` is the word before the last one.
    pub(crate) fn list(names: &[bool], last: &str, has: impl Fn(Scheme) -> bool) -> String {
        let schemes = TABLE.iter().map(|row| row.scheme).filter(|scheme| has(*scheme));
        let all = schemes.flat_map(|scheme| names.iter().map(move |secure| scheme.text(*secure)));
        match &all.collect::<Vec<_>>()[..] {
            [before @ .., end] if !before.is_empty() => format!("{} {last} {end}", before.join(", ")),
            all => all.concat(),
        }
    }

    /// Why a flag or key is refused for targets of schemes not [listed](Scheme::list).
    pub(crate) fn required(names: &[bool], has: impl Fn(Scheme) -> bool) -> String {
        format!("requires a target with {}", Scheme::list(names, "or", has))
    }

    /// The scheme without TLS of a target that has TLS: `http://`; `None` for one without TLS.
    pub fn without_tls(target: &str) -> Option<String> {
        let (scheme, secure, _) = Scheme::split(target).ok()?;
        secure.then(|| scheme.text(false))
    }

    /// The scheme of a target as typed, in any case; HTTP if it has none.
    pub fn of_target(text: &str) -> Option<Scheme> {
        Scheme::split(text).ok().map(|(scheme, ..)| scheme)
    }

    /// Splits a target into scheme, whether it uses TLS, and the rest after `://`. The error has the place and the fix.
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
                _ => Ok((Scheme::default(), false, text)),
            };
        };
        let place = |row: &Row| row.names.iter().position(|(known, _)| name.eq_ignore_ascii_case(known));
        let known = TABLE.iter().find_map(|row| Some((row.scheme, place(row)? == 1, rest)));
        known.ok_or_else(|| {
            format!("{name:?} is not a scheme; use {}", Scheme::list(Scheme::BOTH, "or", |_| true))
        })
    }
}

/// Whether the text is a file, not a host: a path, or a script of another tool.
fn is_other_file(text: &str) -> bool {
    let is_path = ["/", "./", "../"].iter().any(|begin| text.starts_with(begin));
    is_path
        || [".js", ".ts", ".lua", ".json", ".yaml", ".yml", ".jmx"]
            .iter()
            .any(|end| text.ends_with(end) && !text.contains(':'))
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_differ_in_these_properties() {
        // (target, port, path, requests, frames, bytes)
        for (text, scheme, port, expected) in [
            ("http://h/", Scheme::Http, Some(80), [true, true, false, false]),
            ("WS://h/", Scheme::Ws, Some(80), [true, false, true, false]),
            ("Tcp://h:9", Scheme::Tcp, None, [false, false, false, true]),
            ("grpc://h/s/m", Scheme::Grpc, Some(80), [true, true, false, false]),
        ] {
            assert_eq!(Scheme::of_target(text), Some(scheme), "{text}");
            let actual = [scheme.has_path(), scheme.has_requests(), scheme.has_frames(), scheme.has_bytes()];
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
    fn lists_have_the_schemes_with_a_property() {
        for (list, expected) in [
            (Scheme::list(Scheme::OVER_TLS, "or", |_| true), "https://, wss://, tls:// or grpcs://"),
            (Scheme::list(Scheme::BOTH, "and", Scheme::has_bytes), "tcp:// and tls://"),
            (Scheme::list(Scheme::PLAIN, "or", Scheme::has_frames), "ws://"),
        ] {
            assert_eq!(list, expected);
        }
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
