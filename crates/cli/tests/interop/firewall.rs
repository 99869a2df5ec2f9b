//! Firewalls that reject or drop dials, on a router and on the client's own host: what is reported.

use crate::{
    namespace::{Namespace, Routed},
    program::{Ended, Program, Serving, throng},
    summary::Summary,
};

/// `throng serve` on all addresses of a namespace.
pub(crate) fn serve(at: &Namespace, any: &str) -> Serving {
    let command = throng(&["serve", "--listen", &format!("{any}:0"), "--until-stdin-ends", "--threads", "1"]);
    Serving::from(at.enter(&command), &[])
}

/// `throng run` in a namespace, to its end.
pub(crate) fn run(at: &Namespace, target: &str, args: &[&str]) -> (Ended, Summary) {
    let args = [&["run", target, "--json", "-"], args].concat();
    let ended = Program::from(at.enter(&throng(&args))).end();
    let json = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

/// The limit of a run: side, cause, certainty, number; its detail and its fix contain all of this.
pub(crate) fn check_limit(s: &Summary, expected: (&str, &str, &str), at: u64, parts: &[&str]) {
    let limit = (s.text("limit.side"), s.text("limit.cause"), s.text("limit.certainty"));
    assert_eq!(limit, expected, "{:#}", s.at("limit"));
    assert_eq!(s.count("limit.at_connections"), at, "{:#}", s.at("limit"));
    let text = format!("{}\n{}", s.text("limit.detail"), s.text("limit.cure"));
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?}: {text}");
    assert!(!text.contains("open files"), "{text}");
}

const SYN: &str = "tcp flags & (syn|ack) == syn";

/// A router that lets 1,000 connections pass, and rejects all others like this; `rate`: its own limit on ICMP messages (0:
/// each SYN gets one).
fn check_rejected(family: &str, how: &str, rate: &str, (limit, parts): ((&str, &str, &str), &[&str])) {
    let Some(net) = Routed::new() else { return };
    net.router.set("net.ipv4.icmp_ratelimit", rate);
    net.router.set("net.ipv6.icmp.ratelimit", rate);
    let (any, to) = if family == "icmpv6" { ("[::]", "[fd88:2::2]") } else { ("0.0.0.0", "10.88.2.2") };
    let serving = serve(&net.server, any);
    net.router.forbid(&format!("{SYN} ct state new ct count over 1000 reject with {how}"));
    let target = format!("http://{to}:{}/", serving.address.port());
    let args = ["-c", "1200", "-d", "1s", "--think", "1m", "--timeout", "3s"];
    let (ended, s) = run(&net.client, &target, &args);
    ended.assert_status(1);
    assert_eq!(s.count("connections.held"), 1_000, "{}", ended.stderr);
    check_limit(&s, limit, 1_000, parts);
}

const REJECTED: (&str, &str, &str) = ("path", "unreachable", "seen");

#[test]
fn a_router_that_prohibits_is_named() {
    let parts = ["10.88.1.1 rejects with ICMP administratively prohibited: the 1,001st and all after it"];
    let parts = [&parts[..], &["limit on connections (ct count, connlimit)"]].concat();
    for rate in ["0", "1000"] {
        check_rejected("icmp", "icmp type admin-prohibited", rate, (REJECTED, &parts));
    }
}

#[test]
fn a_router_that_rejects_as_firewalls_do_by_default_is_named() {
    // errno is *refused*, as if the target had done it.
    let parts = ["10.88.1.1 rejects with ICMP port unreachable: the 1,001st and all after it"];
    check_rejected("icmp", "icmp type port-unreachable", "0", (REJECTED, &parts));
}

#[test]
fn a_router_that_reports_no_route_is_named() {
    let parts = ["10.88.1.1 rejects with ICMP host unreachable: the 1,001st", "its routes"];
    check_rejected("icmp", "icmp type host-unreachable", "0", (REJECTED, &parts));
}

#[test]
fn a_router_of_ipv6_that_prohibits_is_named() {
    // errno is *permission denied*, as if this machine had done it.
    let parts = ["fd88:1::1 rejects with ICMP administratively prohibited: the 1,001st and all after it"];
    check_rejected("icmpv6", "icmpv6 type admin-prohibited", "0", (REJECTED, &parts));
    let parts = ["fd88:1::1 rejects with ICMP port unreachable: the 1,001st and all after it"];
    check_rejected("icmpv6", "icmpv6 type port-unreachable", "0", (REJECTED, &parts));
}

#[test]
fn a_reset_is_not_more_than_a_reset() {
    let parts = ["200 dials were refused after 1,000 had been accepted: the 1,001st and all after it"];
    let parts = [&parts[..], &["a firewall that sends resets looks the same"]].concat();
    check_rejected("icmp", "tcp reset", "0", (("target", "refused", "seen"), &parts));
}

#[test]
fn a_limit_that_drops_in_silence_is_the_path_too() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.router.forbid(&format!("{SYN} ct state new ct count over 1000 drop"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let args = ["-c", "1200", "-d", "1s", "--think", "1m", "--timeout", "3s"];
    let (ended, s) = run(&net.client, &target, &args);
    ended.assert_status(1);
    let parts = ["200 dials got no SYN-ACK, no reset and no ICMP: the 1,001st and all after it", "ct count"];
    check_limit(&s, ("path", "no-syn-ack", "inferred"), 1_000, &parts);
}

/// A firewall on throng's own host.
fn check_own(rule: &str, parts: &str, certainty: &str) {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.client.filter("output", &format!("{SYN} {rule}"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let (ended, s) = run(&net.client, &target, &["-c", "20", "-d", "500ms", "--timeout", "2500ms"]);
    assert_ne!(ended.status, Some(0), "{ended:?}");
    assert_eq!(s.count("connections.opened"), 0);
    check_limit(&s, ("host", "denied", certainty), 0, &[parts, "nft list ruleset"]);
}

#[test]
fn the_clients_own_firewall_is_distinguished_from_a_routers() {
    check_own("reject with icmp type admin-prohibited", "this machine rejects them itself", "seen");
    check_own("reject", "this machine rejects them itself with ICMP port unreachable", "seen");
    check_own("drop", "this machine blocked", "inferred");
}

#[test]
fn a_limit_on_the_rate_of_syns_is_named() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.router.forbid(&format!("{SYN} limit rate over 100/second burst 5 packets drop"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let args = ["--arrive", "150/s", "--total", "600", "--threshold", "connect.p99 < 500ms"];
    let (ended, s) = run(&net.client, &target, &args);
    ended.assert_status(1);
    let limit = ["side", "cause", "certainty"].map(|field| s.text(&format!("limit.{field}")));
    assert_eq!(limit, ["path", "syn-loss", "inferred"], "{:#}", s.at("limit"));
    // From this machine a full queue of the target looks the same.
    assert!(s.text("limit.cure").contains("limit on the rate of new connections"), "{:#}", s.at("limit"));
    assert!(s.text("limit.sentence").contains("a full queue of the target"), "{:#}", s.at("limit"));
}

#[test]
fn a_limit_on_syns_is_met_at_its_rate() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.router.forbid(&format!("{SYN} limit rate over 500/second drop"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let args = ["-c", "6000", "-d", "1s", "--think", "1m"];
    let (ended, s) = run(&net.client, &target, &args);
    // To the last dial, whose SYN may be dropped again and again for 10 s.
    let (rate, failed) = (s.number("connections.open_per_s"), s.count("connections.failed"));
    assert!((150.0..=520.0).contains(&rate), "{rate}/s, {failed} failed: {}", ended.stderr);
    assert!(failed <= 120, "{failed}: {}", ended.stderr);
    // As the lowest of these rates says.
    assert!(s.number("ramp_s") < 40.0, "{}", s.number("ramp_s"));
}
