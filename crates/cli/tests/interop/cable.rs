//! Failures of the path: a cable pulled, no host at the address, a router without a route.

use crate::{
    namespace::Pair,
    off_loopback::run,
    program::{Program, Serving, throng},
    summary::Summary,
};

/// Runs on the client's side; all dials fail with this fault, and `limit` names it.
fn check_dials(pair: &Pair, target: &str, args: &[&str], fault: &str, cause: &str) -> Summary {
    let (ended, s) = run(pair, target, &[&["-c", "5", "-d", "100ms"], args].concat());
    assert_eq!(s.faults(), [(fault.to_owned(), 5)], "{}", ended.stderr);
    assert_eq!((s.count("connections.failed"), s.count("connections.opened")), (5, 0));
    // If nothing at all comes back, not even a reset, the path is broken or there is no host.
    let side = if cause == "no-syn-ack" { "path" } else { fault.split('·').next().unwrap() };
    // ICMP messages are counted for the whole namespace: those of its other runs are included.
    let by_icmp = cause == "no-syn-ack" && s.text("limit.cause") == "unreachable";
    assert_eq!(s.text("limit.side"), side, "{:#}", s.at("limit"));
    assert!(by_icmp || s.text("limit.cause") == cause, "{:#}", s.at("limit"));
    assert!(!s.text("limit.cure").is_empty());
    s
}

fn url(serving: &Serving, host: &str) -> String {
    format!("http://{host}:{}/", serving.address.port())
}

#[test]
fn a_cable_pulled_in_mid_run_shows_as_timeouts() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("0.0.0.0");
    let args = ["run", &url(&serving, "10.77.0.1"), "-c", "20", "-d", "6s", "--think", "100ms..300ms"];
    let args = [&args[..], &["--timeout", "2500ms", "--json", "-"]].concat();
    let mut running = Program::from(pair.client.enter(&throng(&args)));
    running.wait_for("open 20 of 20");
    pair.server.run("ip link set cable down");
    let ended = running.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    assert_eq!(s.faults(), [("target·exchange·timeout".to_owned(), 20)], "{}", ended.stderr);
    let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
    assert_eq!(sent, answered + 20, "the last of each connection");
    assert_eq!((s.count("connections.held"), s.count("connections.dropped")), (0, 20));
    // TCP knows that nothing of it was acknowledged: the target is not the cause of the silence.
    let limit = (s.text("limit.side"), s.text("limit.cause"), s.text("limit.certainty"));
    assert_eq!(limit, ("path", "unacknowledged", "inferred"), "{:#}", s.at("limit"));
    assert_eq!(s.count("limit.at_connections"), 20);
    ended.assert_status(1);
}

#[test]
fn a_cable_that_is_put_back_in_time_is_no_fault() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("0.0.0.0");
    let args = ["run", &url(&serving, "10.77.0.1"), "-c", "20", "-d", "4s", "--think", "100ms..300ms"];
    let args = [&args[..], &["--json", "-"]].concat();
    let mut running = Program::from(pair.client.enter(&throng(&args)));
    running.wait_for("open 20 of 20");
    pair.server.run("ip link set cable down");
    // Until the run has been without a response for a second.
    running.wait_for("hold  open 20 of 20  connects 0/s  requests 0/s");
    pair.server.run("ip link set cable up");
    let ended = running.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    assert_eq!(s.faults(), [], "{}", ended.stderr);
    assert_eq!(s.count("requests.sent"), s.count("requests.answered"));
    let slowest = s.number("latency_us.max");
    assert!(slowest > 500e3, "the time without a cable is latency: {slowest} us");
}

/// The server's side becomes a router for 10.90.0.0/16. It sends each sender five errors, then one a
/// second: with 10.78.0.0/24 the client has enough senders.
fn route_to_nowhere(pair: &Pair) {
    pair.server.set("net.ipv4.ip_forward", "1");
    pair.client.run("ip route add 10.90.0.0/16 via 10.77.0.1");
    pair.client.run("ip route add local 10.78.0.0/24 dev lo");
    pair.server.run("ip route add 10.78.0.0/24 via 10.77.0.2");
}

#[test]
fn router_messages_are_reported() {
    let Some(pair) = Pair::new() else { return };
    route_to_nowhere(&pair);
    let unreachable = "path·dial·unreachable";
    let kinds = [
        ("unreachable", 1, unreachable, "unreachable"),
        ("prohibit", 2, unreachable, "unreachable"),
        ("blackhole", 3, "target·dial·timeout", "no-syn-ack"),
    ];
    std::thread::scope(|all| {
        for (kind, third, fault, cause) in kinds {
            pair.server.run(&format!("ip route add {kind} 10.90.{third}.0/24"));
            // An error during the dial is only believed when it comes again, a second later. Each
            // run has its own senders.
            let (pair, sources) = (&pair, format!("10.78.0.{}/28", third * 16));
            let target = format!("http://10.90.{third}.1:80/");
            all.spawn(move || {
                let args = ["--timeout", "2s", "--sources", &sources];
                check_dials(pair, &target, &args, fault, cause)
            });
        }
    });
}

#[test]
fn a_missing_route_is_reported_before_the_run() {
    let Some(pair) = Pair::new() else { return };
    let args = ["run", "http://10.91.0.1/", "-c", "5"];
    let ended = Program::from(pair.client.enter(&throng(&args))).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("no route to 10.91.0.1:80"), "{ended:?}");
}

#[test]
fn one_of_two_destinations_that_cannot_be_reached_has_its_share_of_faults() {
    let Some(pair) = Pair::new() else { return };
    let serving = pair.serve("0.0.0.0");
    pair.client.replace("/etc/hosts", "10.77.0.1 farm\n10.90.0.1 farm\n");
    route_to_nowhere(&pair);
    pair.server.run("ip route add unreachable 10.90.0.0/16");
    let args = ["-c", "20", "-d", "300ms", "--think", "20ms", "--sources", "10.78.0.0/24"];
    let (ended, s) = run(&pair, &url(&serving, "farm"), &args);
    assert_eq!(s.faults(), [("path·dial·unreachable".to_owned(), 10)], "{}", ended.stderr);
    assert_eq!((s.count("connections.held"), s.count("connections.failed")), (10, 10));
    assert_eq!(s.text("limit.side"), "path");
    ended.assert_status(1);
}
