//! `--io epoll` against the same third-party servers and clients.

use crate::{namespace::Pair, nginx::nginx, off_loopback, program::Serving, right, server::program};

const HELLO: &str = "location / { return 200 'Hello World!'; }";

#[test]
fn nginx_sees_no_difference() {
    let server = nginx("epoll", &format!("keepalive_requests 7; {HELLO}"));
    for args in right::LOOPS {
        let s = right::check(&server.url("/"), &[args, &["--io", "epoll"]].concat());
        assert_eq!(s.text("io"), "epoll");
        assert!(s.count("connections.closed") > 0, "announced after seven answers");
        assert_eq!(s.count("requests.sent"), s.count("requests.answered"));
    }
}

#[test]
fn losses_are_the_same() {
    let server = nginx("epoll-idle", &format!("keepalive_timeout 1s; {HELLO}"));
    let args = ["-c", "10", "-d", "2s", "--think", "1m", "--io", "epoll"];
    right::check_lost(&server.url("/"), &args, "target·hold·closed", "idle-cut", 10);
}

#[test]
fn wrk_sees_no_difference() {
    let server = Serving::start(&["--io", "epoll"]);
    let ended =
        crate::program::Program::from(program("wrk", &["-t1", "-c50", "-d1s", &server.url("/")])).end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!ended.stdout.contains("Socket errors"), "{}", ended.stdout);
    let requests = ended.stdout.split(" requests in ").next().and_then(|text| text.split_whitespace().last());
    assert!(requests.is_some_and(|n| n.parse::<u64>().unwrap() > 50), "{}", ended.stdout);
}

#[test]
fn across_a_cable() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("[::]");
    let url = format!("http://[fd77::1]:{}/", serving.address.port());
    let (ended, s) = off_loopback::run(&pair, &url, &["-c", "50", "-n", "2000", "--io", "epoll"]);
    assert_eq!((ended.status, s.faults()), (Some(0), vec![]), "{ended:?}");
    assert_eq!((s.text("io"), s.count("connections.held")), ("epoll", 50));
    assert_eq!(s.count("requests.answered"), 2_000, "{ended:?}");
}
