//! What prevents the setup of TLS.

use super::*;

#[test]
fn what_keeps_tls_from_being_set_up_is_named() {
    let of = |kind| vec![fault(Stage::Tls, kind, 800)];
    let none = Evidence::default();
    let issuer = (
        "target",
        "tls",
        0,
        "800 TLS handshakes failed: the target's certificate was not",
        "-k to accept any",
    );
    let mut s = stopped(0, of(Kind::UnknownIssuer));
    (s.connections.opened, s.connections.peak) = (0, 0);
    check(&s, &none, issuer);
    check(&stopped(0, of(Kind::NotTls)), &none, ("target", "tls", 800, "does not speak TLS", "http://"));
    s.faults = of(Kind::Reset);
    check(&s, &none, ("target", "tls", 0, "closed the connection", "openssl"));
    // If other handshakes succeeded, neither versions nor names are the reason.
    let mut some = stopped(600, of(Kind::Reset));
    some.connections.failed = 800;
    let closed = ("target", "closed", 800, "reset by the peer", "limits on connections and on handshakes");
    check(&some, &none, closed);
    let surplus = lost(Pattern { is_surplus: true, were_old: Some(false), ..Pattern::default() });
    check(&some, &surplus, ("target", "connection-limit", 600, "600 open ones were reset", "maxconn"));
    // A few failed handshakes beside other faults are not the limit; a handshake without an end is a timeout.
    let mixed = vec![fault(Stage::Tls, Kind::Expired, 9), fault(Stage::Exchange, Kind::WrongStatus, 10)];
    check(&stopped(0, mixed), &none, ("target", "wrong-answer", 800, "10 responses were wrong: ", "curl"));
    check(&stopped(0, of(Kind::Timeout)), &none, ("target", "timeout", 800, "", ""));
}

#[test]
fn a_certificate_may_be_why_nothing_is_answered() {
    let fix = |has_certificate, answered| {
        let mut s = stopped(0, vec![fault(Stage::Exchange, Kind::Closed, 800)]);
        (s.connections.dropped, s.requests.answered) = (800, answered);
        let mut e = Evidence::default();
        e.subject.has_certificate = has_certificate;
        limit(&s, &e).expect("it is bad").fix
    };
    assert!(fix(true, 0).ends_with("perhaps it does not accept the client certificate (--cert)"));
    for other in [fix(false, 0), fix(true, 1)] {
        assert!(!other.contains("certificate"), "{other}");
    }
}
