//! TLS failures: each is its own kind of fault at stage `tls`, and the last line names the fix.

use super::certificates::{Authority, ECDSA, Files, expired, not_yet_valid, of_another_name, self_signed};
use crate::{
    program::Serving,
    scripted::{Peer, Scripted},
    server::{Server, folder, program},
    summary::run,
};

/// OpenSSL's own server with this certificate.
fn s_server(files: &Files, args: &[&str]) -> Server {
    Server::at(|address| {
        let begin =
            ["s_server", "-www", "-accept", &address.to_string(), "-key", &files.key, "-cert", &files.cert];
        program("openssl", &[&begin, args].concat())
    })
}

/// Three connections, each with this fault at stage tls; the limit and the last line say `what`, and how to fix it.
fn check(target: &str, args: &[&str], kind: &str, what: &str, cure: &str) {
    let (ended, s) = run(target, &[&["-c", "3", "-d", "300ms"], args].concat());
    assert_eq!(s.faults(), [(format!("target·tls·{kind}"), 3)], "{target}: {}", ended.stderr);
    assert_eq!((s.count("connections.failed"), s.count("connections.opened")), (3, 0), "{target}");
    ended.assert_status(1);
    let cause = (s.text("limit.side"), s.text("limit.cause"), s.text("limit.certainty"));
    assert_eq!(cause, ("target", "tls", "seen"), "{:#}", s.at("limit"));
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(last.contains(what) && last.contains(cure), "{kind}: {last:?}");
    assert!(!last.contains("curl"), "{last:?}");
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let folder = folder("secured-faults");
    let authority = Authority::new("Tests");
    let issuer = authority.file(&folder);
    let right = authority.issue(&folder, "right", |_| {});
    let own = self_signed(&folder, ECDSA);
    let trust = ["--cacert", &issuer];
    let issue =
        |name: &str, change: fn(&mut rcgen::CertificateParams)| authority.issue(&folder, name, change);
    for (files, args, kind, what, cure) in [
        (issue("expired", expired), &trust[..], "expired-certificate", "certificate has expired", "clock"),
        (issue("early", not_yet_valid), &trust, "not-yet-valid", "is not valid yet", "clock"),
        (issue("other", of_another_name), &trust, "wrong-name", "is for another name", "--sni"),
        (
            right.clone(),
            &["--cacert", &own.cert],
            "unknown-issuer",
            "not issued by a trusted CA",
            "--cacert FILE",
        ),
        (own.clone(), &trust, "unknown-issuer", "not issued by a trusted CA", "-k"),
        // Those whom this system trusts.
        (own.clone(), &[], "unknown-issuer", "not issued by a trusted CA", "-k"),
        (
            right.clone(),
            &["--cacert", &issuer, "--sni", "example.org"],
            "wrong-name",
            "is for another name",
            "--sni",
        ),
    ] {
        for version in ["1.2", "1.3"] {
            let server = s_server(&files, &[]);
            let target = format!("https://{}/", server.address);
            check(&target, &[args, &["--tls", version]].concat(), kind, what, cure);
        }
    }
    // The same are right where they are to be accepted.
    for (files, args) in [
        (issue("expired", expired), &["-k"][..]),
        (right.clone(), &trust),
        (issue("other", of_another_name), &["--cacert", &issuer, "--sni", "example.org"]),
        (own.clone(), &["--cacert", &own.cert]),
    ] {
        let server = s_server(&files, &[]);
        let target = format!("https://{}/", server.address);
        let args = [&["-c", "1", "-d", "300ms", "--think", "100ms"], args].concat();
        crate::right::check(&target, &args);
    }
}

#[test]
fn a_server_that_wants_our_certificate_says_so() {
    let folder = folder("secured-faults-clients");
    let files = self_signed(&folder, ECDSA);
    // In TLS 1.3 our side is open before the server has seen that there is none.
    let server = s_server(&files, &["-Verify", "1", "-verify_return_error", "-tls1_2"]);
    let target = format!("https://{}/", server.address);
    let trust = ["--cacert", &files.cert];
    // OpenSSL's alert in TLS 1.2 is handshake_failure; that it has asked for a certificate tells what it is about.
    check(&target, &trust, "certificate-required", "requires a client certificate", "--cert FILE");
    let server = s_server(&files, &["-Verify", "1", "-verify_return_error", "-tls1_3"]);
    let target = format!("https://{}/", server.address);
    let (ended, s) = run(&target, &["-c", "3", "-d", "300ms", "--cacert", &files.cert]);
    ended.assert_status(1);
    assert_eq!(s.faults(), [("target·tls·certificate-required".to_owned(), 3)], "{}", ended.stderr);
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(last.contains("requires a client certificate") && last.contains("--cert FILE"), "{last:?}");
}

#[test]
fn servers_without_anything_in_common_are_told() {
    let folder = folder("secured-faults-common");
    let files = self_signed(&folder, super::certificates::RSA);
    for args in [
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"][..],
        &["-tls1_2", "-cipher", "AES128-SHA"],
        &["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
    ] {
        let server = s_server(&files, args);
        let target = format!("https://{}/", server.address);
        check(&target, &["-k"], "nothing-in-common", "in common", "TLS 1.2 or 1.3");
    }
    let server = s_server(&files, &["-tls1_2"]);
    let target = format!("https://{}/", server.address);
    check(&target, &["-k", "--tls", "1.3"], "nothing-in-common", "in common", "without --tls");
}

#[test]
fn servers_that_do_not_speak_tls_are_told() {
    let plain = Serving::start(&[]);
    for (scheme, fix) in [("https", "use http:// in"), ("wss", "use ws:// in"), ("tls", "use tcp:// in")] {
        let target = format!("{scheme}://{}/", plain.address);
        check(target.trim_end_matches('/'), &["-k"], "not-tls", "does not speak TLS", fix);
    }
    let garbage = Scripted::start(|peer: &mut Peer| {
        peer.send("\x16\x03\x03\x00\x04what");
        peer.wait_gone();
    });
    check(
        &garbage.url("/").replace("http:", "https:"),
        &["-k"],
        "bad-answer",
        "violated the TLS protocol",
        "s_client",
    );
    // One that says nothing at all, and one that goes.
    let silent = Scripted::start(Peer::wait_gone);
    let target = silent.url("/").replace("http:", "https:");
    let (ended, s) = run(&target, &["-k", "-c", "3", "-d", "300ms", "--timeout", "300ms"]);
    ended.assert_status(1);
    assert_eq!(s.faults(), [("target·tls·timeout".to_owned(), 3)], "{}", ended.stderr);
}
