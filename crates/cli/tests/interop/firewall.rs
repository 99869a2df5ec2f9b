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

/// A router that lets 100 connections pass, and prohibits all others by ICMP, as `address`: who sends it, with which type and code, is
/// what the kernel keeps with the error of a dial. What follows from it is judged on the stored runs of `corpus`.
fn check_prohibited(family: &str, address: &str) {
    let Some(net) = Routed::new() else { return };
    // Each SYN gets one.
    net.router.set("net.ipv4.icmp_ratelimit", "0");
    net.router.set("net.ipv6.icmp.ratelimit", "0");
    let (any, to) = if family == "icmpv6" { ("[::]", "[fd88:2::2]") } else { ("0.0.0.0", "10.88.2.2") };
    let serving = serve(&net.server, any);
    net.router
        .forbid(&format!("{SYN} ct state new ct count over 100 reject with {family} type admin-prohibited"));
    let target = format!("http://{to}:{}/", serving.address.port());
    let args = ["-c", "120", "-d", "1s", "--think", "1m", "--timeout", "3s"];
    let (ended, s) = run(&net.client, &target, &args);
    ended.assert_status(1);
    assert_eq!(s.count("connections.held"), 100, "{}", ended.stderr);
    let rejects =
        format!("{address} rejects with ICMP administratively prohibited: the 101st and all after it");
    let parts = [&*rejects, "limit on connections (ct count, connlimit)"];
    check_limit(&s, ("path", "unreachable", "seen"), 100, &parts);
}

#[test]
fn a_router_that_prohibits_is_named() {
    check_prohibited("icmp", "10.88.1.1");
}

#[test]
fn a_router_of_ipv6_that_prohibits_is_named() {
    // errno is *permission denied*, as if this machine had done it.
    check_prohibited("icmpv6", "fd88:1::1");
}

#[test]
fn a_router_that_drops_syns_is_named() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.router.forbid(&format!("{SYN} drop"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let (ended, s) = run(&net.client, &target, &["-c", "20", "-d", "500ms", "--timeout", "1500ms"]);
    ended.assert_status(1);
    let parts = ["20 dials got no SYN-ACK, no reset and no ICMP"];
    check_limit(&s, ("path", "no-syn-ack", "inferred"), 0, &parts);
}

#[test]
fn the_clients_own_firewall_is_distinguished_from_a_routers() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.client.filter("output", &format!("{SYN} reject with icmp type admin-prohibited"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let (ended, s) = run(&net.client, &target, &["-c", "20", "-d", "500ms", "--timeout", "2500ms"]);
    assert_ne!(ended.status, Some(0), "{ended:?}");
    assert_eq!(s.count("connections.opened"), 0);
    let parts = ["this machine rejects them itself", "nft list ruleset"];
    check_limit(&s, ("host", "denied", "seen"), 0, &parts);
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
