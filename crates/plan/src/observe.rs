//! The observer on the target's host: `http://10.0.0.7:9100`.

use crate::Target;
use crate::target::Resolve;
use std::net::SocketAddr;

/// A `throng observe` on the target's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observe {
    /// Where it listens.
    pub at: SocketAddr,
    /// The file with its token.
    pub token_file: Option<String>,
}

impl Observe {
    /// Parses `http://HOST:PORT`, without a path; uses the first address of a name. The error has the fix.
    pub(crate) fn parse(text: &str, token_file: Option<String>, resolve: Resolve) -> Result<Observe, String> {
        let target = Target::parse(text, None, &[], resolve)?;
        let authority = text.split_once("://").map_or("", |(_, rest)| rest.strip_suffix('/').unwrap_or(rest));
        if !target.scheme.has_requests() || authority.contains(['/', '?', '#', '{', ',']) {
            return Err(format!("not a host and port; use http://HOST:PORT: {text:?}"));
        }
        Ok(Observe { at: target.destinations[0], token_file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let resolve = |name: &str| match name {
            "far" => Ok(["10.0.0.7", "10.0.0.8"].map(|address| address.parse().unwrap()).to_vec()),
            _ => Err("no such host".to_owned()),
        };
        let got = Observe::parse(text, None, &resolve).map(|observe| observe.at.to_string());
        match (got, expected) {
            (Ok(at), Ok(expected)) => assert_eq!(at, expected, "{text}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
            (other, _) => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn one_host_and_its_port() {
        check("http://10.0.0.7:9100", Ok("10.0.0.7:9100"));
        check("http://10.0.0.7:9100/", Ok("10.0.0.7:9100"));
        check("http://[::1]:9100", Ok("[::1]:9100"));
        check("http://far:9100", Ok("10.0.0.7:9100"));
        check("http://near:9100", Err("no such host"));
        for wrong in ["tcp://10.0.0.7:9100", "http://10.0.0.7:9100/observe", "http://10.0.0.{1..2}:9100"] {
            check(wrong, Err("use http://HOST:PORT"));
        }
        check("10.0.0.7:9100", Err("http://"));
    }
}
