//! `throng serve` under nghttp2's h2load: HTTP/2 with prior knowledge and by ALPN.

use std::fs;

use crate::{
    curl::stats_at,
    program::{Program, Serving},
    server::{folder, program},
};

/// Runs h2load with these arguments; returns what it printed, every request of which was answered with a 200.
fn h2load(args: &[&str], requests: u64) -> String {
    let ended = Program::from(program("h2load", args)).end();
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    let line = |start: &str| {
        let mut lines = ended.stdout.lines();
        lines.find_map(|line| line.strip_prefix(start)).unwrap_or_else(|| panic!("{start}: {}", ended.stdout))
    };
    let counts: Vec<u64> =
        line("requests: ").split(", ").map(|part| part.split(' ').next().unwrap().parse().unwrap()).collect();
    // Total, started, done, succeeded; failed, errored, timed out.
    assert_eq!(counts, [requests, requests, requests, requests, 0, 0, 0], "{}", ended.stdout);
    assert!(line("status codes: ").starts_with(&format!("{requests} 2xx, 0 3xx")), "{}", ended.stdout);
    ended.stdout
}

#[test]
fn counters_agree_over_streams() {
    const CONNECTIONS: u64 = 20;
    let file = folder("h2load").join("body");
    // More than the window of a stream.
    fs::write(&file, vec![b'x'; 100_000]).unwrap();
    let upload = ["-d", file.to_str().unwrap()];
    for tls in [&[][..], &["--tls"]] {
        let server = Serving::start(tls);
        let scheme = if tls.is_empty() { "http" } else { "https" };
        let url = |path: &str| format!("{scheme}://{}{path}", server.address);
        for (path, requests, streams, more) in [
            ("/", 4_000, "1", &[][..]),
            ("/", 8_000, "100", &[]),
            ("/?length=10240", 2_000, "10", &[]),
            ("/?length=9", 500, "4", &upload),
        ] {
            let stats = stats_at(&url("/stats"));
            let before = ["requests", "accepted"].map(&stats);
            let (total, url_) = (requests.to_string(), url(path));
            let args = ["-n", &total, "-c", &CONNECTIONS.to_string(), "-t", "1", "-m", streams];
            let output = h2load(&[&args[..], more, &[&url_]].concat(), requests);
            let protocol =
                if tls.is_empty() { "Application protocol: h2c" } else { "Application protocol: h2\n" };
            assert!(output.contains(protocol), "{output}");
            let stats = stats_at(&url("/stats"));
            // And the one that asks.
            let counted = [stats("requests") - before[0] - 1, stats("accepted") - before[1] - 1];
            assert_eq!(counted, [requests, CONNECTIONS], "{path} {streams}");
            assert_eq!(stats("errors"), 0, "{path} {streams}");
        }
    }
}
