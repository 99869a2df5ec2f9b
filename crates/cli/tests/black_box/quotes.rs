//! The last line of a run quotes what the target sent: the beginning of another protocol, or the location of a redirect.

use crate::{scripted::Scripted, summary::run};

/// The last line of a run against a server contains this.
fn check(server: &Scripted, scheme: &str, args: &[&str], expected: &str) {
    let target = format!("{scheme}://{}", server.address);
    let args = [&["-c", "2", "-d", "300ms", "--timeout", "500ms", "--reconnect", "never"], args].concat();
    let (ended, summary) = run(&target, &args);
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("fail: ") && last.contains(expected), "{scheme} {args:?}: {last}");
    assert!(!ended.stderr.contains("violated the TLS protocol"), "{}", ended.stderr);
    assert!(summary.text("limit.cure").contains(expected), "{}", summary.text("limit.cure"));
}

#[test]
fn a_target_of_another_protocol_is_quoted() {
    let mail = Scripted::start(|peer| {
        peer.send("220 mail ESMTP\r\n");
        peer.wait_gone();
    });
    let redis = Scripted::start(|peer| {
        peer.wait_for_more();
        peer.send("-NOAUTH\r\n");
        peer.wait_gone();
    });
    let (greeting, error) = ("it begins with \"220 mail ESMTP\"", "it begins with \"-NOAUTH\"");
    let ping: &[&str] = &["--ping", "100ms", "--message", "a message that is longer than the reply"];
    let checks: [(&Scripted, &str, &[&str], &str); 10] = [
        (&mail, "http", &[], greeting),
        (&mail, "ws", &[], greeting),
        (&mail, "http", &["--http2"], greeting),
        (&mail, "https", &["-k"], greeting),
        (&mail, "wss", &["-k"], greeting),
        (&mail, "tls", &["-k"], greeting),
        (&mail, "tcp", ping, greeting),
        (&redis, "http", &[], error),
        (&redis, "http", &["--http2"], error),
        (&redis, "tcp", ping, error),
    ];
    // At the same time: most of it is waiting.
    std::thread::scope(|all| {
        for (server, scheme, args, quote) in checks {
            all.spawn(move || check(server, scheme, args, quote));
        }
    });
}

#[test]
fn where_it_redirects_to_is_quoted() {
    let moved = Scripted::responding(
        "HTTP/1.1 301 Moved\r\nLocation: https://shop.example/\r\nContent-Length: 0\r\n\r\n",
    );
    check(&moved, "http", &[], "it redirects to \"https://shop.example/\"");
    let refused = Scripted::responding("HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n");
    check(&refused, "ws", &[], "it redirects to \"/login\"");
}
