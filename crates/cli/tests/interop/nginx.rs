//! `throng run` against nginx.

use std::{fs, process::Command};

use crate::{
    right::{self, LOOPS},
    server::{Server, fetch, folder, folder_path, program},
};

/// nginx as one process, with these directives in its `server`, and `page.html` (its text) and `big` (4,000 bytes)
/// in its root.
pub(crate) fn nginx(name: &str, directives: &str) -> Server {
    let folder = folder(&format!("nginx-{name}"));
    fs::write(folder.join("page.html"), PAGE).unwrap();
    fs::write(folder.join("big"), "x".repeat(4000)).unwrap();
    Server::at(|address| {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary = temporary.map(|of| format!("{of}_temp_path temporary;")).concat();
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr warn;
            events {{ worker_connections 512; }}
            http {{ access_log off; {temporary} server {{
                listen {address} backlog=512; root .; location = /status {{ stub_status; }} {directives}
            }} }}"
        );
        fs::write(folder.join("nginx.conf"), text).unwrap();
        let mut command: Command = program("nginx", &["-c", "nginx.conf", "-e", "stderr", "-p"]);
        command.arg(&folder).current_dir(&folder);
        command
    })
}

const PAGE: &str = "<!--# echo var=\"arg_x\" default=\"Hello World!\" -->";
const HELLO: &str = "location / { return 200 'Hello World!'; }";
/// By default it closes, with an announcement, after 1,000 requests.
const FOR_EVER: &str = "keepalive_requests 1000000;";

/// The counters of nginx.
#[derive(Clone, Copy, Debug)]
struct Counted {
    connections: u64,
    requests: u64,
}

fn counted(server: &Server) -> Counted {
    let text = fetch(&server.url("/status"));
    // A line of three numbers below their names: accepts, handled, requests.
    let line = text.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1).expect("counters");
    let numbers: Vec<u64> = line.split_whitespace().map(|n| n.parse().unwrap()).collect();
    Counted { connections: numbers[0], requests: numbers[2] }
}

/// What nginx has counted while `f` ran, without the request that reads the counters.
fn counted_while<T>(server: &Server, f: impl FnOnce() -> T) -> (T, Counted) {
    let before = counted(server);
    let result = f();
    let after = counted(server);
    let connections = after.connections - before.connections - 1;
    (result, Counted { connections, requests: after.requests - before.requests - 1 })
}

#[test]
fn both_ends_count_the_same() {
    let server = nginx("kept", &format!("{FOR_EVER} {HELLO}"));
    for args in LOOPS {
        let (s, seen) = counted_while(&server, || right::check_kept(&server.url("/"), args, 12));
        assert_eq!(seen.requests, s.count("requests.sent"), "{args:?}");
        assert_eq!(seen.connections, s.count("connections.opened"), "{args:?}");
    }
}

#[test]
fn a_timeout_that_it_announces_is_no_fault() {
    let server = nginx("announced", &format!("keepalive_timeout 1s 1s; {HELLO}"));
    assert!(fetch(&server.url("/")).contains("Keep-Alive: timeout=1"));
    // So much longer than its timeout that it has closed before, on a busy machine too.
    let args = ["-c", "20", "-d", "4s", "--think", "2500ms..2800ms"];
    let (s, seen) = counted_while(&server, || right::check(&server.url("/"), &args));
    // Each connection is closed after each of its responses, the last ones perhaps after the end: the next dials again.
    let (sent, closed) = (s.count("requests.sent"), s.count("connections.closed"));
    assert!((sent - 20..=sent).contains(&closed) && sent >= 40, "{closed} closed, {sent} requests");
    assert_eq!((s.count("connections.redialled"), s.count("requests.answered")), (sent - 20, sent));
    assert_eq!((seen.connections, seen.requests), (sent, sent));
}

#[test]
fn its_last_response_on_a_connection_announces_the_close() {
    const MOST: u64 = 5;
    let server = nginx("requests", &format!("keepalive_requests {MOST}; {HELLO}"));
    for args in [&["-c", "10", "-n", "500"][..], &["-c", "10", "-n", "300", "--think", "10ms..40ms"]] {
        let (s, seen) = counted_while(&server, || right::check(&server.url("/"), args));
        let (answered, closed) = (s.count("requests.answered"), s.count("connections.closed"));
        assert_eq!((s.count("requests.sent"), seen.requests), (answered, answered), "{args:?}");
        assert_eq!(seen.connections, s.count("connections.opened") + s.count("connections.redialled"));
        // Those that were not closed have had fewer.
        assert!(closed > 10 && closed * MOST <= answered, "{closed} closed, {answered} answers");
        assert!(answered <= closed * MOST + 10 * (MOST - 1), "{closed} closed, {answered} answers");
    }
}

#[test]
fn chunked_responses_are_right() {
    let server = nginx("chunked", &format!("{FOR_EVER} ssi on; ssi_types *;"));
    assert!(fetch(&server.url("/page.html")).contains("Transfer-Encoding: chunked"));
    for args in LOOPS {
        right::check_kept(&server.url("/page.html"), args, 12);
    }
    let args = ["-c", "5", "-n", "100", "--expect", "status=200,length=7"];
    right::check_kept(&server.url("/page.html?x=1234567"), &args, 7);
}

#[test]
fn responses_of_100_mib_arrive() {
    const LENGTH: u64 = 100 << 20;
    let server = nginx("large", "");
    let file = folder_path("nginx-large").join("large");
    fs::File::create(file).unwrap().set_len(LENGTH).unwrap();
    let s = right::check(&server.url("/large"), &["-c", "2", "-n", "4", "--timeout", "50s"]);
    assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (4, 4 * LENGTH));
}

#[test]
fn a_slow_body_is_no_fault() {
    let server = nginx("slow", "limit_rate 2000;");
    let s = right::check(&server.url("/big"), &["-c", "5", "-d", "500ms", "--ramp", "1k/s"]);
    assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (5, 20_000));
    let fastest = s.number("ramp_latency_us.p50");
    assert!(fastest > 900e3, "not slow at all: {fastest} us");
}

#[test]
fn its_errors_are_wrong_responses() {
    let server = nginx("errors", "location /busy { return 503; } location /moved { return 301 /; }");
    let check = |path: &str, status: u16| {
        let args = ["-c", "10", "-d", "200ms", "--think", "20ms"];
        let s = right::check_wrong(&server.url(path), &args, "wrong-status");
        assert_eq!(s.count(&format!("requests.status.{status}")), s.count("requests.answered"));
        assert_eq!(s.count("connections.held"), 10, "a wrong answer is no reason to hang up");
        let expect = format!("status={status}");
        right::check(&server.url(path), &[&args[..], &["--expect", &expect]].concat());
    };
    std::thread::scope(|all| {
        for (path, status) in [("/busy", 503), ("/moved", 301), ("/nothing", 404)] {
            let check = &check;
            all.spawn(move || check(path, status));
        }
    });
}
