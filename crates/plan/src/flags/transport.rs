//! What carries requests and messages: `--http2`, `--streams`, and the flags of TLS.

use super::{FlagReader, streams};
use crate::scheme::Http2;
use crate::{Pem, Scheme, Think, Tls, TlsVersions, flag, tls};
use units::Nanos;

/// Where HTTP/2 is wanted of a target that it cannot carry.
pub(crate) fn requires_http2() -> String {
    Scheme::required(Scheme::BOTH, |scheme| scheme.http2() == Http2::Optional)
}

/// Where HTTP/2 is wanted of a target that has nothing else.
pub(crate) const HAS_HTTP2: &str = "gRPC is over HTTP/2; remove it";

/// Where a target is not secured, and a flag or key is about TLS.
pub(crate) fn requires_tls() -> String {
    Scheme::required(Scheme::OVER_TLS, |_| true)
}

/// Where several requests at once are wanted, and pauses between them.
pub(crate) const ONE_AT_A_TIME: &str =
    "with a pause between requests a connection has one request at a time; use more connections instead";

impl FlagReader<'_> {
    /// HTTP/2: requests at once on a connection; `think`: the pause between them.
    pub(super) fn streams(&mut self, scheme: Option<Scheme>, think: Think) -> Option<u16> {
        match scheme.map(Scheme::http2) {
            Some(Http2::Never) => {
                for flag in [&flag::HTTP2, &flag::STREAMS] {
                    self.refuse(flag, requires_http2());
                }
                return None;
            }
            Some(Http2::Always) => self.refuse(&flag::HTTP2, HAS_HTTP2),
            Some(Http2::Optional) | None if self.get(&flag::HTTP2).is_none() => {
                self.refuse(&flag::STREAMS, "requires --http2");
                return None;
            }
            Some(Http2::Optional) | None => {}
        }
        let streams = self.read(&flag::STREAMS, 1, streams);
        // Beside a rate a think time is refused itself.
        let is_refused = self.get(&flag::RATE).is_some();
        if streams > 1 && think.max > Nanos::ZERO && !is_refused {
            self.refuse(&flag::STREAMS, format!("{ONE_AT_A_TIME}, or --think 0"));
        }
        Some(streams)
    }

    /// How connections are secured; `secure`: whether the target's are, where that is known.
    pub(super) fn tls(&mut self, secure: Option<bool>) -> Tls {
        if secure == Some(false) {
            for flag in flag::OF_TLS {
                self.refuse(flag, requires_tls());
            }
            return Tls::default();
        }
        let roots = self.given(&flag::CACERT, Pem::named);
        let (cert, key) = (self.given(&flag::CERT, Pem::named), self.given(&flag::KEY, Pem::named));
        match (self.get(&flag::CERT), self.get(&flag::KEY)) {
            (Some(_), None) => self.refuse(&flag::CERT, "requires --key FILE"),
            (None, Some(_)) => self.refuse(&flag::KEY, "requires --cert FILE"),
            _ => {}
        }
        Tls {
            insecure: self.get(&flag::INSECURE).is_some(),
            roots,
            identity: cert.zip(key),
            server_name: self.given(&flag::SNI, tls::server_name),
            versions: self.read(&flag::TLS, TlsVersions::Both, tls::versions),
            resume: self.get(&flag::NO_RESUME).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, Flag, Flags, Mistake, from_flags};

    /// The mistakes of a command line: the target, then pairs of flag and value.
    fn check(line: &[&str], expected: &[&str]) {
        let named = |name: &str| Flag::named(name).unwrap_or_else(|| panic!("no flag {name}"));
        let flags =
            line[1..].chunks(2).fold(Flags::new(line[0]), |flags, pair| flags.with(named(pair[0]), pair[1]));
        let resolve = |_: &str| Err("no such host".to_owned());
        let read = from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve });
        let found = read.err().unwrap_or_default();
        assert_eq!(found.iter().map(Mistake::to_string).collect::<Vec<_>>(), expected, "{line:?}");
    }

    const URL: &str = "http://127.0.0.1:1/";

    #[test]
    fn pings_take_nothing_of_a_request() {
        let alone = "--ping alone sends no requests; add --think or --rate for requests beside it, or remove one of the two";
        check(
            &[URL, "--http2", "", "--ping", "5s", "-X", "PUT", "--body", "a", "-H", "X-A: b", "--host", "h"],
            &[
                &format!("--header: {alone}: \"X-A: b\""),
                &format!("--method: {alone}: \"PUT\""),
                &format!("--body: {alone}: \"a\""),
                &format!("--host: {alone}: \"h\""),
            ],
        );
    }

    #[test]
    fn pings_beside_requests_take_all_of_a_request() {
        let request = ["-X", "PUT", "--body", "a", "-H", "X-A: b", "--host", "h", "--expect", "status=200"];
        for when in [["--think", "1s"], ["--rate", "9/s"], ["--think", "0"]] {
            check(&[&[URL, "--http2", "", "--ping", "5s"][..], &when, &request].concat(), &[]);
        }
        check(&["grpc://127.0.0.1:1/a.B/C", "--ping", "5s", "-H", "x-a: b", "--server-streaming", ""], &[]);
        let short = "--ping: \"9ms\" is not a time between PINGs of at least 10ms; use 30s";
        check(&[URL, "--http2", "", "--ping", "9ms", "--think", "1s"], &[short]);
        check(&["grpc://127.0.0.1:1/a.B/C", "--ping", "9ms"], &[short]);
        let no_ping =
            "--ping: HTTP/1.1 has no PING; add --http2, or use --think for the time between requests: \"5s\"";
        check(&[URL, "--ping", "5s", "--think", "1s"], &[no_ping]);
    }

    #[test]
    fn several_requests_at_once_have_no_pauses_between_them() {
        let one = "--streams: with a pause between requests a connection has one request at a time; \
            use more connections instead, or --think 0: \"2\"";
        check(&[URL, "--http2", "", "--streams", "2", "--think", "1s"], &[one]);
        check(&["grpc://127.0.0.1:1/a.B/C", "--streams", "2", "--think", "1s..2s"], &[one]);
        check(&[URL, "--http2", "", "--ping", "5s", "--streams", "2", "--think", "1s"], &[one]);
        check(&[URL, "--http2", "", "--streams", "2", "--think", "0"], &[]);
        check(&[URL, "--http2", "", "--ping", "5s", "--streams", "2", "--think", "0"], &[]);
        check(&[URL, "--http2", "", "--streams", "1", "--think", "1s"], &[]);
    }
}
