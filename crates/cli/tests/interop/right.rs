//! Servers without faults: no fault, nothing lost, exit 0.

use crate::summary::{Expected, Summary};

/// In closed loop, and with a think time: by the number of requests, whatever time they take on a busy machine.
pub(crate) const LOOPS: [&[&str]; 2] =
    [&["-c", "20", "-n", "1000"], &["-c", "20", "-n", "200", "--think", "20ms..60ms"]];

/// Runs against a server without faults.
pub(crate) fn check(target: &str, args: &[&str]) -> Summary {
    let counts = [("connections.dropped", 0), ("connections.failed", 0)];
    let s = Expected { status: 0, verdict: "pass", faults: &[], counts: &counts }.check(target, args);
    // Except for throng itself, on a busy machine.
    let late = s.text("verdict") == "invalid" && s.at("limit")["side"] == "host";
    assert!(s.at("limit").is_null() || late, "nothing has stopped it: {:#}", s.0);
    s
}

/// The same where every response keeps its connection and has `body` bytes.
pub(crate) fn check_kept(target: &str, args: &[&str], body: u64) -> Summary {
    let s = check(target, args);
    let (wanted, answered) = (s.count("connections.wanted"), s.count("requests.answered"));
    assert_eq!((s.count("connections.held"), s.count("connections.peak")), (wanted, wanted), "{target}");
    assert_eq!((s.count("connections.closed"), s.count("connections.redialled")), (0, 0), "{target}");
    assert!(answered > 2 * wanted, "no second request on a kept connection: {answered}, {target}");
    assert_eq!(s.count("requests.sent"), answered, "{target}");
    assert_eq!(s.count("requests.body_bytes_in"), answered * body, "{target}");
    s
}

/// Runs against a server with this fault in every response.
pub(crate) fn check_wrong(target: &str, args: &[&str], kind: &str) -> Summary {
    let (ended, s) = crate::summary::run(target, args);
    let answered = s.count("requests.answered");
    assert!(answered >= s.count("connections.wanted"), "{}", ended.stderr);
    assert_eq!(s.faults(), [(format!("target·exchange·{kind}"), answered)], "{}", ended.stderr);
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "wrong-answer"));
    assert!(s.text("limit.detail").contains("responses were wrong: "), "{}", s.text("limit.detail"));
    ended.assert_status(1);
    s
}

/// Runs where connections are lost, all by the same fault, this many of them.
pub(crate) fn check_lost(target: &str, args: &[&str], fault: &str, cause: &str, lost: u64) -> Summary {
    let faults = [(fault, lost)];
    let counts = [("connections.dropped", lost), ("connections.failed", 0)];
    let fail = Expected { status: 1, verdict: "fail", faults: &faults, counts: &counts };
    let s = fail.check(target, args);
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", cause));
    s
}
