//! `throng run` against Node's `http`, with its defaults: idle connections end after five announced seconds.

use serde_json::Value;

use crate::{
    program::ASKS,
    right::{self, LOOPS},
    server::{Server, fetch, program, source},
};

fn node() -> Server {
    Server::announcing("listening on ", program("node", &[&source("node/http_server.js")]))
}

/// The server's counters: connections and requests, without the request that reads them.
pub(crate) fn counted(server: &Server) -> (u64, u64) {
    let text = fetch(&server.url("/counts"));
    let body = text.rsplit("\r\n\r\n").next().unwrap();
    let counts: Value = serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}"));
    (counts["connections"].as_u64().unwrap() - 1, counts["requests"].as_u64().unwrap() - 1)
}

#[test]
fn both_ends_count_the_same() {
    for args in LOOPS {
        let server = node();
        let s = right::check_kept(&server.url("/"), args, 12);
        let seen = (s.count("connections.opened"), s.count("requests.sent"));
        assert_eq!(counted(&server), seen, "{args:?}");
    }
}

#[test]
fn chunked_and_interim_responses_are_right() {
    let server = node();
    assert!(fetch(&server.url("/chunked")).contains("Transfer-Encoding: chunked"));
    let interim = fetch(&server.url("/interim"));
    assert!(interim.starts_with("HTTP/1.1 100 ") && interim.contains("HTTP/1.1 103 "), "{interim}");
    std::thread::scope(|both| {
        for url in ["/chunked", "/interim"].map(|path| server.url(path)) {
            both.spawn(move || LOOPS.map(|args| right::check_kept(&url, args, 12)));
        }
    });
}

#[test]
fn a_slow_body_is_no_fault() {
    let server = node();
    let s = right::check(
        &server.url("/slow"),
        &["-c", "5", "-d", "500ms", "--ramp", "1k/s", "--expect", "length=100"],
    );
    assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (5, 500));
    let fastest = s.number("ramp_latency_us.p50");
    assert!(fastest > 1e6, "until the last byte: {fastest} us");
}

#[test]
fn a_close_after_each_response_is_announced() {
    let server = node();
    let s = right::check(&server.url("/close"), &["-c", "5", "-d", "500ms", "--think", "20ms"]);
    let (sent, redialled) = (s.count("requests.sent"), s.count("connections.redialled"));
    assert_eq!((s.count("connections.closed"), s.count("requests.answered")), (sent, sent));
    assert!(redialled > 5, "{redialled}");
    assert_eq!(counted(&server), (s.count("connections.opened") + redialled, sent));
}

/// Some versions close a second later than they announce. Each takes that long: all at the same time.
#[test]
fn closes_after_its_timeout_are_no_faults() {
    std::thread::scope(|all| {
        all.spawn(idle_beyond_its_timeout_is_closed_and_dialled_again);
        all.spawn(|| check_crossing("7s", "4980ms..5020ms"));
        all.spawn(|| check_crossing("8s", "5980ms..6020ms"));
    });
}

fn idle_beyond_its_timeout_is_closed_and_dialled_again() {
    let server = node();
    assert!(fetch(&server.url("/")).contains("Keep-Alive: timeout=5"));
    let args = ["-c", "30", "-d", "10s", "--think", "6300ms..6800ms"];
    let s = right::check(&server.url("/"), &args);
    // At once, and after the think time; the next would be due after the end.
    assert_eq!((s.count("requests.sent"), s.count("requests.answered")), (60, 60));
    assert_eq!((s.count("connections.closed"), s.count("connections.redialled")), (30, 30));
    assert_eq!(counted(&server).0, 1 + 60, "the one that asked before, and each of ours twice");
}

/// Requests that are due as the server closes, the second of each connection; there is time for it wherever the first came late.
fn check_crossing(duration: &str, think: &str) {
    let server = node();
    let s = right::check(&server.url("/"), &["-c", "100", "-d", duration, "--think", think]);
    let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
    assert_eq!(answered, 200, "what crossed was asked again");
    assert!((200..=300).contains(&sent), "{sent}");
}

#[test]
fn each_misdeed_has_its_fault() {
    let server = node();
    let each = [
        ("/half", &["-d", "200ms"][..], "target·exchange·truncated", "wrong-answer"),
        ("/reset", &["-d", "200ms", ASKS], "target·exchange·reset", "closed"),
        ("/never", &["-d", "800ms", "--timeout", "500ms"], "target·exchange·timeout", "timeout"),
    ];
    std::thread::scope(|all| {
        for (path, args, fault, cause) in each {
            let url = server.url(path);
            all.spawn(move || {
                let s = right::check_lost(
                    &url,
                    &[&["-c", "7", "--ramp", "10k/s"], args].concat(),
                    fault,
                    cause,
                    7,
                );
                assert_eq!((s.count("connections.held"), s.count("requests.answered")), (0, 0), "{url}");
            });
        }
    });
    let args = ["-c", "7", "-d", "200ms", "--think", "20ms"];
    right::check_wrong(&server.url("/error"), &args, "wrong-status");
    let args = [&args[..], &["--expect", "length=11"]].concat();
    right::check_wrong(&server.url("/"), &args, "wrong-length");
}
