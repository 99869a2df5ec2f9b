//! `throng run --http2` with prior knowledge, against nginx and Node's `http2`; over TLS see [`crate::secured`].

use std::fs;

use serde_json::Value;

use crate::{
    program::Program,
    right,
    server::{Server, fetch, folder, program, source},
    summary::run,
};

/// nginx with HTTP/2 on the server's port; these directives are in its `server`.
pub(crate) fn nginx(name: &str, directives: &str) -> Server {
    let folder = folder(&format!("nginx-http2-{name}"));
    Server::at(|address| {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|of| format!("{of}_temp_path temporary;")).concat();
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr warn;
            events {{ worker_connections 512; }}
            http {{ access_log off; {temporary} server {{
                listen {address} http2 backlog=512; location = /status {{ stub_status; }} {directives}
                location / {{ return 200 'Hello World!'; }}
            }} }}"
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let mut command = program("nginx", &["-c", "nginx.conf", "-e", "stderr", "-p"]);
        command.arg(&folder).current_dir(&folder);
        command
    })
}

/// Connections and requests that nginx has counted, without the one that asks.
fn counted(server: &Server) -> (u64, u64) {
    let url = server.url("/status");
    let args = ["-sS", "--http2-prior-knowledge", "--max-time", "10", &url];
    let text = Program::from(program("curl", &args)).end().stdout;
    let line = text.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1).expect("counters");
    let numbers: Vec<u64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    (numbers[0] - 1, numbers[2] - 1)
}

#[test]
fn both_ends_count_the_same_over_streams() {
    let server = nginx("kept", "keepalive_requests 1000000;");
    for args in [
        &["--streams", "1", "-c", "20", "-n", "1000"][..],
        &["--streams", "10", "-c", "20", "-n", "2000"],
        &["--streams", "100", "-c", "3", "-n", "2000"],
        &["--streams", "1", "-c", "20", "-n", "200", "--think", "20ms..60ms"],
        &["--streams", "5", "-c", "4", "-n", "300", "--rate", "500/s"],
    ] {
        let before = counted(&server);
        let s = right::check_kept(&server.url("/"), &[&["--http2"], args].concat(), 12);
        let seen = (s.count("connections.opened"), s.count("requests.sent"));
        let after = counted(&server);
        // Without the request that read the counters before.
        assert_eq!((after.0 - before.0 - 1, after.1 - before.1 - 1), seen, "{args:?}");
    }
}

/// The limit is kept to, and named in the summary's text and JSON.
#[test]
fn a_server_that_allows_fewer_streams_is_named() {
    let server = nginx("few", "http2_max_concurrent_streams 8; keepalive_requests 1000000;");
    let check = |streams: &str, expected: Option<u64>| {
        let args = ["--http2", "--streams", streams, "-c", "4", "-n", "2000"];
        let (ended, s) = run(&server.url("/"), &args);
        assert!(s.faults().is_empty(), "{}", ended.stderr);
        assert_eq!(s.count("requests.answered"), 2_000, "{}", ended.stderr);
        let limit = expected.map(|wanted| serde_json::json!({ "wanted": wanted, "allowed": 8 }));
        assert_eq!(s.0.get("streams"), limit.as_ref(), "{}", ended.stderr);
        let sentence =
            format!("the server allows 8 streams on a connection; --streams {streams} was reduced to 8");
        let reasons = s.at("reasons").to_string();
        assert_eq!(reasons.contains(&format!("note: {sentence}")), expected.is_some(), "{reasons}");
        assert_eq!(ended.stderr.contains(&sentence), expected.is_some(), "{}", ended.stderr);
    };
    check("8", None);
    check("20", Some(20));
    check("1", None);
}

/// More than a frame of fields: it panicked.
#[test]
fn long_headers_are_continued() {
    let server =
        nginx("long", "large_client_header_buffers 4 64k; location = /length { return 200 $http_x_long; }");
    // Huffman's code makes nothing of it shorter.
    let long = "~".repeat(40_000);
    let header = format!("X-Long: {long}");
    let s = right::check(&server.url("/length"), &["--http2", "-c", "3", "-n", "9", "-H", &header]);
    assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (9, 9 * 40_000));
}

#[test]
fn an_announced_end_loses_no_request() {
    let server = nginx("ends", "keepalive_requests 50;");
    let before = counted(&server);
    let args = ["--http2", "--streams", "8", "-c", "4", "-n", "1000"];
    let s = right::check(&server.url("/"), &args);
    let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
    assert!(s.count("connections.closed") > 4 && answered == 1_000, "{answered}");
    // What the server did not act on is sent again.
    let after = counted(&server);
    let (connections, requests) = (after.0 - before.0 - 1, after.1 - before.1 - 1);
    assert!((answered..=sent).contains(&requests), "{answered} <= {requests} <= {sent}");
    assert_eq!(connections, s.count("connections.opened") + s.count("connections.redialled"));
}

#[test]
fn pings_are_acknowledged_and_timed() {
    let (nginx, node) = (nginx("pings", ""), node(&[]));
    let before = counted(&nginx);
    for server in [&nginx, &node.0] {
        let args = ["--http2", "-c", "10", "-d", "1s", "--ping", "100ms"];
        let s = right::check(&server.url("/"), &args);
        let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
        assert_eq!((answered, s.count("connections.held")), (sent, 10));
        // The first after a random part of the interval; fewer where both ends wait for a processor.
        let most = 10.0 * (s.number("elapsed_s") / 0.1 + 1.0);
        assert!(sent >= 10 * 4 && sent as f64 <= most, "{sent} PINGs, {most} at most");
        assert!(s.count("latency_us.count") >= 10 * 3 && s.number("latency_us.p50") > 0.0);
        assert_eq!(
            s.at("requests.status").as_object().map(serde_json::Map::len),
            Some(0),
            "they are no requests"
        );
    }
    let after = counted(&nginx);
    assert_eq!(
        (after.0 - before.0 - 1, after.1 - before.1 - 1),
        (10, 0),
        "connections and requests of nginx"
    );
    assert_eq!(node.counts()["streams"].as_u64(), Some(0));
}

/// Both servers close connections on which nothing comes for a second.
#[test]
fn pings_keep_connections_alive_beside_requests() {
    // nginx's keepalive_timeout counts requests only.
    let node = node(&["--idle=1000"]);
    let args = ["--http2", "-c", "10", "-d", "5s", "--think", "2s"];
    let (ended, s) = run(&node.0.url("/"), &args);
    assert!(s.count("connections.closed") >= 10, "{}", ended.stderr);
    assert_eq!((s.count("ping_rtt_us.count"), node.counts()["pings"].as_u64()), (0, Some(0)));
    let s = right::check_kept(&node.0.url("/"), &[&args[..], &["--ping", "250ms"]].concat(), 12);
    let acknowledged = s.count("ping_rtt_us.count");
    assert!(acknowledged >= 10 * 5 && s.number("ping_rtt_us.p50") > 0.0, "{:#}", s.at("ping_rtt_us"));
    assert!(node.counts()["pings"].as_u64() >= Some(acknowledged));
}

/// Node's server, and the URL of its counts.
pub(crate) struct Node(pub(crate) Server, String);

/// With these arguments.
pub(crate) fn node(args: &[&str]) -> Node {
    let script = source("node/http2_server.js");
    let server = Server::announcing("listening on ", program("node", &[&[script.as_str()], args].concat()));
    let output = server.program.stdout();
    let port = output.lines().find_map(|line| line.strip_prefix("counts on ")).expect("it is printed first");
    let counts = format!("http://127.0.0.1:{port}/");
    Node(server, counts)
}

/// What a server responds with, as JSON.
pub(crate) fn counts(url: &str) -> Value {
    let text = fetch(url);
    let body = text.rsplit("\r\n\r\n").next().unwrap();
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {text}"))
}

impl Node {
    pub(crate) fn counts(&self) -> Value {
        counts(&self.1)
    }
}

#[test]
fn responses_of_each_form_are_right() {
    let node = node(&[]);
    let (mut streams, mut sessions) = (0, 0);
    for (path, body, requests) in
        [("/", 12, "500"), ("/trailers", 12, "500"), ("/interim", 12, "500"), ("/large", 300_000, "100")]
    {
        let args = ["--http2", "--streams", "6", "-c", "5", "-n", requests];
        let s = right::check_kept(&node.0.url(path), &args, body);
        (streams, sessions) = (streams + s.count("requests.sent"), sessions + 5);
        let counts = node.counts();
        let seen = (counts["streams"].as_u64(), counts["sessions"].as_u64());
        assert_eq!(seen, (Some(streams), Some(sessions)), "{path}");
    }
}

#[test]
fn a_stream_that_is_reset_or_late_fails_alone() {
    for (path, kind) in [("/some-reset", "reset"), ("/some-silent", "timeout"), ("/refused", "refused")] {
        let node = node(&[]);
        // At a rate: a closed loop would wait for the silent ones.
        let args = ["--http2", "--streams", "8", "-c", "2", "--rate", "100/s", "-d", "1s", "--timeout", "1s"];
        let (ended, s) = run(&node.0.url(path), &args);
        ended.assert_status(1);
        let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
        let failed = if path == "/refused" { sent } else { sent / 10 };
        assert_eq!(s.faults(), [(format!("target·exchange·{kind}"), failed)], "{}", ended.stderr);
        assert_eq!(answered, sent - failed, "{path}: {}", ended.stderr);
        let lost = (s.count("connections.dropped"), s.count("connections.held"));
        assert_eq!(lost, (0, 2), "the connections go on: {}", ended.stderr);
        if kind == "reset" {
            let sentence = format!(
                "the target reset {failed} streams (RST_STREAM, INTERNAL_ERROR); their connections stayed open"
            );
            assert!(s.text("headline").contains(&sentence), "{}", ended.stderr);
        }
        if kind == "timeout" {
            assert_eq!(
                node.counts()["resets"].as_u64(),
                Some(failed),
                "the server is told: {}",
                ended.stderr
            );
        }
    }
}

#[test]
fn bodies_wait_for_windows() {
    let node = node(&[]);
    let folder = folder("http2-bodies");
    let file = folder.join("load.toml");
    // Three of these fill the window of a connection.
    let body = "x".repeat(30_000);
    let text = format!(
        "target = \"{}\"\nhttp2 = true\nstreams = 10\n[[population]]\nname = \"users\"\n\
        connections = 2\nrequests = 100\n[[population.step]]\nrequest = \"POST /\"\nbody = \"{body}\"\n",
        node.0.url("/")
    );
    fs::write(&file, text).unwrap();
    let s = right::check(file.to_str().unwrap(), &[]);
    let sent = s.count("requests.sent");
    assert_eq!((sent, s.count("requests.answered")), (100, 100));
    assert_eq!(node.counts()["bytes"].as_u64(), Some(sent * 30_000));
}

#[test]
fn a_server_without_http2_is_named() {
    let server = crate::nginx::nginx("no-http2", "location / { return 200 'Hello World!'; }");
    let (ended, s) = run(&server.url("/"), &["--http2", "-c", "5", "-d", "300ms"]);
    ended.assert_status(1);
    assert_eq!(s.faults(), [("target·handshake·nothing-in-common".to_owned(), 5)], "{}", ended.stderr);
}
