//! `throng run` against HAProxy, with nginx behind it.

use std::fs;

use crate::{
    nginx::nginx,
    right::{self, LOOPS},
    server::{Server, fetch, folder, program},
};

const HELLO: &str = "keepalive_requests 1000000; location / { return 200 'Hello World!'; }";

/// HAProxy in front of a backend, with these further lines in its defaults.
pub(crate) fn haproxy(name: &str, backend: &str, lines: &str) -> Server {
    let path = folder(&format!("haproxy-{name}")).join("haproxy.cfg");
    Server::at(|address| {
        let text = format!(
            "global\n maxconn 1000\n\
             defaults\n mode http\n timeout connect 2s\n timeout client 20s\n timeout server 20s\n {lines}\n\
             frontend front\n bind {address}\n stats enable\n stats uri /stats\n default_backend back\n\
             backend back\n server one {backend}\n"
        );
        fs::write(&path, text).unwrap();
        program("haproxy", &["-db", "-f", path.to_str().unwrap()])
    })
}

/// A counter of the frontend by its name in the statistics' first line.
pub(crate) fn counted(server: &Server, name: &str) -> u64 {
    let text = fetch(&server.url("/stats;csv"));
    let mut lines = text.lines().skip_while(|line| !line.starts_with("# pxname"));
    let names = lines.next().expect("names").trim_start_matches("# ").split(',');
    let values = lines.find(|line| line.starts_with("front,FRONTEND,")).expect("the frontend").split(',');
    let value = names.zip(values).find(|(known, _)| *known == name).expect("a counter").1;
    value.parse().unwrap()
}

#[test]
fn both_ends_count_the_same() {
    let behind = nginx("behind-haproxy", HELLO);
    let server = haproxy("kept", &behind.address.to_string(), "");
    for args in LOOPS {
        let names = ["req_tot", "conn_tot"];
        let before = names.map(|name| counted(&server, name));
        let s = right::check_kept(&server.url("/"), args, 12);
        let after = names.map(|name| counted(&server, name));
        // Two requests lie between two readings of a counter, and the requests themselves are counted.
        let (requests, connections) = (after[0] - before[0] - 2, after[1] - before[1] - 2);
        assert_eq!(requests, s.count("requests.sent"), "{args:?}");
        assert_eq!(connections, s.count("connections.opened"), "{args:?}");
    }
}

/// HAProxy takes WebSocket by extended CONNECT (RFC 8441), and npm's `ws` behind it is asked to upgrade by HTTP/1.1: each stream is a
/// connection of its own there.
#[test]
fn websockets_over_http2_are_those_of_the_server_behind() {
    let behind = crate::websocket_servers::ws();
    let server = haproxy("websocket", &behind.address.to_string(), "timeout tunnel 20s");
    let target = format!("ws://{}/echo", server.address);
    let seen = |name: &str| crate::websocket_servers::counted(&behind, name);
    let (mut sockets, mut messages, mut pings) = (0, 0, 0);
    for (args, streams) in [
        (&["-d", "1s", "--ping", "100ms", "--message", "hello"][..], 1),
        (&["-d", "1s", "--ping", "100ms", "--message", ""], 1),
        (&["-d", "1s", "--ping", "100ms", "--message", "hello", "--streams", "8"], 8),
        (&["-n", "1000", "--ping", "0", "--message", "hello", "--streams", "8"], 8),
        (&["-n", "100", "--rate", "100/s", "--message", "hello", "--streams", "8"], 8),
    ] {
        let s = right::check(&target, &[&["--http2", "-c", "5"], args].concat());
        let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
        assert_eq!((answered, s.count("connections.held")), (sent, 5), "{args:?}");
        assert_eq!((s.count("handshake_us.count"), s.count("connections.closed")), (5, 0), "{args:?}");
        if args.contains(&"100ms") {
            // The first after a random part of the interval; fewer where an end waits for a processor.
            let most = (5 * streams) as f64 * (s.number("elapsed_s") / 0.1 + 1.0);
            assert!(
                sent >= 5 * streams * 2 && sent as f64 <= most,
                "{sent} messages, {most} at most, {args:?}"
            );
        } else {
            assert_eq!(sent.to_string(), args[1], "{args:?}");
        }
        sockets += 5 * streams;
        *if args.contains(&"") { &mut pings } else { &mut messages } += sent;
        assert_eq!(
            [seen("connections"), seen("messages"), seen("pings")],
            [sockets, messages, pings],
            "{args:?}"
        );
    }
    // Each echo takes 300 ms: messages of a connection that waited for each other would be 3 in a second, and one of eight late.
    let target_slow = format!("ws://{}/slow", server.address);
    let args = ["--http2", "-c", "2", "-d", "1s", "--ping", "400ms", "--streams", "8"];
    let s = right::check(&target_slow, &args);
    let sent = s.count("requests.sent");
    assert!(sent >= 2 * 8 && s.count("requests.answered") == sent, "{sent} messages");
    let p50 = s.number("latency_us.p50");
    assert!((300e3..1e6).contains(&p50), "{p50}");
    // Longer than a frame and than the window that HAProxy gives a stream.
    for length in [65_535, 65_536] {
        let args = ["--http2", "-c", "2", "-n", "12", "--ping", "50ms", "--message", &"x".repeat(length)];
        let s = right::check(&target, &args);
        assert_eq!(s.count("requests.body_bytes_in"), s.count("requests.sent") * length as u64);
    }
}

#[test]
fn a_proxy_without_keep_alive_is_reported() {
    let behind = nginx("closed-by-haproxy", HELLO);
    let server = haproxy("close", &behind.address.to_string(), "option httpclose");
    assert!(fetch(&server.url("/")).to_lowercase().contains("connection: close"));
    let s = right::check(&server.url("/"), &["-c", "5", "-n", "60", "--think", "20ms"]);
    let sent = s.count("requests.sent");
    assert_eq!((s.count("connections.closed"), s.count("requests.answered"), sent), (60, 60, 60));
    assert!(s.count("connections.redialled") > 5);
}

#[test]
fn a_proxy_without_a_backend_is_a_wrong_status() {
    // The discard port: nothing listens there.
    let server = haproxy("down", "127.200.0.1:9", "retries 0");
    let args = ["-c", "5", "-d", "300ms", "--think", "20ms"];
    let s = right::check_wrong(&server.url("/"), &args, "wrong-status");
    assert_eq!(s.count("requests.status.503"), s.count("requests.answered"));
}
