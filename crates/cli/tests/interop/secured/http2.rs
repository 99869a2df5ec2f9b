//! `throng run https://… --http2` against servers that agree on it by ALPN: nginx, Node, Python's hypercorn, Java's Jetty, Go;
//! and against some that do not.

use super::{
    certificates::{ECDSA, Files, RSA, key_store, self_signed},
    nginx::{HELLO, Nginx},
};
use crate::{
    go,
    http2::{counts, node},
    jvm::CHEAP,
    python::{check_log, hypercorn},
    right,
    server::{Server, folder, program, source},
    summary::{Summary, run},
};

/// Versions of TLS, and streams of each connection.
const CASES: [[&str; 2]; 3] = [["1.3", "1"], ["1.3", "10"], ["1.2", "10"]];

/// By the number of requests, whatever time they take a server that compiles itself meanwhile.
const SHORT: [&str; 4] = ["-c", "10", "-n", "500"];

/// A run of which each response has 12 bytes and keeps its connection.
fn check(target: &str, files: &Files, [version, streams]: [&str; 2]) -> Summary {
    let load = [&SHORT[..], &["--tls", version, "--cacert", &files.cert]].concat();
    right::check_kept(target, &[&["--http2", "--streams", streams][..], &load].concat(), 12)
}

#[test]
fn nginx_counts_the_same() {
    let folder = folder("secured-http2-nginx");
    let files = self_signed(&folder, ECDSA);
    let directives = format!("ssl_protocols TLSv1.2 TLSv1.3; {HELLO}");
    let nginx = Nginx::with(&folder, &files, "ssl http2", &directives);
    for case in CASES {
        let before = nginx.counted();
        let s = check(&nginx.url("/"), &files, case);
        assert_eq!(nginx.counted() - before - 1, s.count("requests.sent"), "{case:?}");
    }
}

#[test]
fn node_counts_the_same() {
    let folder = folder("secured-http2-node");
    let files = self_signed(&folder, RSA);
    for case in CASES {
        let node = node(&[&files.cert, &files.key]);
        let s = check(&format!("https://{}/", node.0.address), &files, case);
        let counts = node.counts();
        let seen = (counts["sessions"].as_u64(), counts["streams"].as_u64());
        assert_eq!(seen, (Some(10), Some(s.count("requests.sent"))), "{case:?}");
    }
}

#[test]
fn hypercorn_counts_the_same() {
    let folder = folder("secured-http2-hypercorn");
    let files = self_signed(&folder, ECDSA);
    let server =
        hypercorn("protocol %(H)s status %(s)s", &["--certfile", &files.cert, "--keyfile", &files.key]);
    let target = format!("https://{}/", server.address);
    let mut sent = 0;
    for case in CASES {
        sent += check(&target, &files, case).count("requests.sent");
        check_log(&server, || server.program.stdout(), "protocol 2 status 200", sent);
    }
    // The same over HTTP/1.1, and a WebSocket.
    let args = [&SHORT[..], &["--cacert", &files.cert]].concat();
    let sent = right::check_kept(&target, &args, 12).count("requests.sent");
    check_log(&server, || server.program.stdout(), "protocol 1.1 status 200", sent);
    let echo = ["-c", "10", "-d", "1s", "--cacert", &files.cert, "--ping", "150ms", "--message", "hello"];
    let s = right::check(&format!("wss://{}/", server.address), &echo);
    assert_eq!((s.count("requests.answered"), s.count("connections.held")), (s.count("requests.sent"), 10));
}

#[test]
fn jetty_counts_the_same() {
    let folder = folder("secured-http2-jetty");
    let files = self_signed(&folder, RSA);
    let (jars, file) = (source("java/jetty/packages/*"), source("java/jetty/Secured.java"));
    let store = key_store(&folder, &files);
    let args = [&CHEAP[..], &["-Xmx128m", "-cp", &jars, &file, &store]].concat();
    let server = Server::announcing("listening on 127.0.0.1:", program("java", &args));
    check_counting(&server, &files);
}

#[test]
fn go_counts_the_same() {
    let folder = folder("secured-http2-go");
    let files = self_signed(&folder, ECDSA);
    let args = [files.cert.as_str(), &files.key];
    let server = Server::announcing("listening on ", program(&go::program("secured"), &args));
    check_counting(&server, &files);
}

#[test]
fn a_server_without_http2_is_named() {
    let folder = folder("secured-http2-none");
    let files = self_signed(&folder, ECDSA);
    let args = ["--http2", "-c", "5", "-d", "300ms", "--cacert", &files.cert];
    // nginx refuses what is not http/1.1, Node's `https` goes on without a word.
    let directives = format!("ssl_protocols TLSv1.2 TLSv1.3; {HELLO}");
    let nginx = Nginx::with(&folder, &files, "ssl", &directives);
    let script = source("node/http_server.js");
    let node = Server::announcing("listening on ", program("node", &[&script, &files.cert, &files.key]));
    for server in [&nginx.server, &node] {
        let (ended, s) = run(&format!("https://{}/", server.address), &args);
        ended.assert_status(1);
        assert_eq!(s.faults(), [("target·tls·no-protocol".to_owned(), 5)], "{}", ended.stderr);
        let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
        assert!(
            last.contains("does not offer HTTP/2 (ALPN h2)") && last.contains("leave out --http2"),
            "{last:?}"
        );
    }
}

/// Both HTTP/2 and HTTP/1.1 on a server that counts connections and requests, and responds with that at `/counts`.
fn check_counting(server: &Server, files: &Files) {
    let target = format!("https://{}", server.address);
    let counts = || {
        let counts = counts(&format!("{target}/counts"));
        ["connections", "requests", "http2"].map(|of| counts[of].as_u64().unwrap())
    };
    let mut before = counts();
    for case in CASES {
        let s = check(&format!("{target}/"), files, case);
        let sent = s.count("requests.sent");
        let now = counts();
        // And the one that asks.
        let counted: Vec<u64> = now.iter().zip(before).map(|(now, before)| now - before - 1).collect();
        assert_eq!(counted, [s.count("connections.opened"), sent, sent], "{case:?}");
        before = now;
    }
    let args = [&SHORT[..], &["--cacert", &files.cert]].concat();
    let s = right::check_kept(&format!("{target}/"), &args, 12);
    let now = counts();
    // The one that asks speaks HTTP/2.
    assert_eq!((now[1] - before[1] - 1, now[2] - before[2]), (s.count("requests.sent"), 1));
}
