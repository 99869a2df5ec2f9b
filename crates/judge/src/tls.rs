//! Why TLS could not be set up, in the words that browsers use, and which flag helps.

use plan::Scheme;
use samples::{Kind, Stage};

use crate::{case::Case, subject::Subject};

/// The problem with most handshakes, and the fix.
pub(crate) fn failed(case: &Case) -> Option<(&'static str, &'static str)> {
    let kind = case.kind.filter(|_| case.stage == Some(Stage::Tls))?;
    if kind == Kind::NoProtocol { Some(no_protocol(&case.evidence.subject)) } else { wrong(kind) }
}

/// The fix with the scheme that this target has without TLS.
pub(crate) fn in_place_of(fix: &str, target: &str) -> String {
    Scheme::without_tls(target).map_or_else(|| fix.to_owned(), |plain| fix.replace(ANY_PLAIN, &plain))
}

/// The offered protocol, which the target does not support. Only one is offered, so that no run is measured with the other.
fn no_protocol(subject: &Subject) -> (&'static str, &'static str) {
    let no_http2 = "the target does not offer HTTP/2 (ALPN h2)";
    match (subject.is_grpc, subject.is_http2) {
        (true, _) => (no_http2, "gRPC requires HTTP/2: check the port, and that the server offers h2 there"),
        (_, true) => (no_http2, "leave out --http2"),
        (_, false) => ("the target does not offer HTTP/1.1 (ALPN http/1.1)", "use --http2"),
    }
}

/// Schemes without TLS, as they appear in fixes.
const ANY_PLAIN: &str = "http://, ws:// or tcp://";

/// The problem and the fix for one kind of fault.
pub(crate) fn wrong(kind: Kind) -> Option<(&'static str, &'static str)> {
    // A connection that is closed with unread data is reset.
    let kind = if kind == Kind::Reset { Kind::Closed } else { kind };
    WRONG.iter().find(|(own, ..)| *own == kind).map(|(_, what, fix)| (*what, *fix))
}

/// Problems with handshakes, each with its fix.
const WRONG: &[(Kind, &str, &str)] = &[
    (
        Kind::UnknownIssuer,
        "the target's certificate was not issued by a trusted CA",
        "use --cacert FILE with the certificate of its issuer, or -k to accept any",
    ),
    (
        Kind::WrongName,
        "the target's certificate is for another name",
        "use --sni NAME with one of its subject alternative names (openssl s_client -connect HOST:PORT </dev/null | openssl x509 -noout -ext subjectAltName), or -k to accept any",
    ),
    (
        Kind::Expired,
        "the target's certificate has expired",
        "renew it, check the clock of this machine, or use -k to accept any",
    ),
    (
        Kind::NotYetValid,
        "the target's certificate is not valid yet",
        "check the clock of this machine, or use -k to accept any",
    ),
    (
        Kind::BadCertificate,
        "the target's certificate cannot be used as a server's",
        "check it with openssl x509 -text, its key too (RSA of 2,048 bits or more, ECDSA P-256 or P-384, Ed25519), or, unless it is \
            the key, use -k to accept any",
    ),
    (
        Kind::CertificateRequired,
        "the target requires a client certificate, or does not accept the one it received",
        "use --cert FILE and --key FILE with a certificate that it accepts",
    ),
    (
        Kind::NothingInCommon,
        "the target has no TLS version or cipher in common with throng",
        "let it accept TLS 1.2 or 1.3 with ECDHE, an AEAD cipher, and a key of RSA, ECDSA (P-256, P-384) or Ed25519; without --tls both versions are offered",
    ),
    (
        Kind::TlsAlert,
        "the target sent a TLS alert",
        "check the target's log, and whether it expects --sni NAME",
    ),
    (
        Kind::NotTls,
        "the target does not speak TLS",
        "use http://, ws:// or tcp:// in the target, or its port for TLS",
    ),
    (
        Kind::Closed,
        "the target closed the connection",
        "check that it speaks TLS at this port (openssl s_client -connect HOST:PORT; if not, use http://, ws:// or tcp://), its \
            log, whether it expects --sni NAME, and its versions and ciphers",
    ),
    (
        Kind::BadAnswer,
        "the target violated the TLS protocol",
        "check with openssl s_client -connect HOST:PORT that it speaks TLS there",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_a_handshake_has_a_fix() {
        for (kind, expected, flag) in [
            (Kind::UnknownIssuer, "trusted CA", "--cacert"),
            (Kind::WrongName, "another name", "--sni"),
            (Kind::Expired, "expired", "renew"),
            (Kind::NotYetValid, "not valid yet", "clock"),
            (Kind::BadCertificate, "cannot be used", "openssl x509"),
            (Kind::CertificateRequired, "client certificate", "--cert"),
            (Kind::NothingInCommon, "in common", "TLS 1.2 or 1.3"),
            (Kind::TlsAlert, "alert", "log"),
            (Kind::NotTls, "does not speak TLS", "http://"),
            (Kind::Closed, "closed", "--sni"),
            (Kind::Closed, "closed", "if not, use http://"),
            (Kind::BadAnswer, "violated", "s_client"),
        ] {
            let (what, fix) = wrong(kind).expect("it has one");
            assert!(what.contains(expected) && fix.contains(flag), "{kind:?}: {what}; {fix}");
        }
        assert_eq!(wrong(Kind::Timeout), None);
    }

    #[test]
    fn a_protocol_that_is_not_offered_is_named() {
        for (is_grpc, is_http2, expected, flag) in [
            (false, true, "HTTP/2 (ALPN h2)", "leave out --http2"),
            (true, true, "HTTP/2 (ALPN h2)", "gRPC requires HTTP/2"),
            (false, false, "HTTP/1.1 (ALPN http/1.1)", "use --http2"),
        ] {
            let mut subject = Subject::default();
            (subject.is_grpc, subject.is_http2) = (is_grpc, is_http2);
            let (what, fix) = no_protocol(&subject);
            assert!(what.contains(expected) && fix.contains(flag), "{what}; {fix}");
        }
    }

    #[test]
    fn the_scheme_without_tls_is_that_of_the_target() {
        for kind in [Kind::NotTls, Kind::Closed] {
            assert!(wrong(kind).is_some_and(|(_, fix)| fix.contains(ANY_PLAIN)), "{kind:?}");
        }
        for (target, expected) in [
            ("https://h/", Some("http://")),
            ("wss://h/ws/echo", Some("ws://")),
            ("tls://h:5", Some("tcp://")),
            ("grpcs://h/a.B/C", Some("grpc://")),
            ("load.toml", None),
        ] {
            assert_eq!(Scheme::without_tls(target).as_deref(), expected, "{target}");
        }
    }
}
