//! Firewalls that reject or drop dials, on a router and on the client's own host: what is said of them.

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
    let words = [&["run", target, "--json", "-"], args].concat();
    let ended = Program::from(at.enter(&throng(&words))).end();
    let json = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

/// What stopped a run: side, cause, how sure, at how many; and that all of this is in its detail and its fix.
pub(crate) fn check_limit(s: &Summary, expected: (&str, &str, &str), at: u64, said: &[&str]) {
    let limit = (s.word("limit.side"), s.word("limit.cause"), s.word("limit.certainty"));
    assert_eq!(limit, expected, "{:#}", s.at("limit"));
    assert_eq!(s.count("limit.at_connections"), at, "{:#}", s.at("limit"));
    let words = format!("{}\n{}", s.word("limit.detail"), s.word("limit.cure"));
    assert!(said.iter().all(|part| words.contains(part)), "{said:?}: {words}");
    assert!(!words.contains("open files"), "{words}");
}

const SYN: &str = "tcp flags & (syn|ack) == syn";

/// A router that lets 1,000 connections pass, and rejects all others like this; `rate`: its own on messages of ICMP (0:
/// each SYN is answered).
fn check_rejected(family: &str, how: &str, rate: &str, (limit, said): ((&str, &str, &str), &[&str])) {
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
    check_limit(&s, limit, 1_000, said);
}

const REJECTED: (&str, &str, &str) = ("path", "unreachable", "seen");

#[test]
fn a_router_that_prohibits_is_named() {
    let said = ["10.88.1.1 rejects with ICMP administratively prohibited: the 1,001st and all after it"];
    let said = [&said[..], &["limit on connections (ct count, connlimit)"]].concat();
    for rate in ["0", "1000"] {
        check_rejected("icmp", "icmp type admin-prohibited", rate, (REJECTED, &said));
    }
}

#[test]
fn a_router_that_rejects_as_firewalls_do_by_default_is_named() {
    // errno says *refused*, as if the target had done it.
    let said = ["10.88.1.1 rejects with ICMP port unreachable: the 1,001st and all after it"];
    check_rejected("icmp", "icmp type port-unreachable", "0", (REJECTED, &said));
}

#[test]
fn a_router_that_claims_to_know_no_way_is_named() {
    let said = ["10.88.1.1 rejects with ICMP host unreachable: the 1,001st", "its routes"];
    check_rejected("icmp", "icmp type host-unreachable", "0", (REJECTED, &said));
}

#[test]
fn a_router_of_ipv6_that_prohibits_is_named() {
    // errno says *permission denied*, as if this machine had done it.
    let said = ["fd88:1::1 rejects with ICMP administratively prohibited: the 1,001st and all after it"];
    check_rejected("icmpv6", "icmpv6 type admin-prohibited", "0", (REJECTED, &said));
    let said = ["fd88:1::1 rejects with ICMP port unreachable: the 1,001st and all after it"];
    check_rejected("icmpv6", "icmpv6 type port-unreachable", "0", (REJECTED, &said));
}

#[test]
fn a_reset_is_not_more_than_a_reset() {
    let said = ["200 dials were refused after 1,000 had been accepted: the 1,001st and all after it"];
    let said = [&said[..], &["a firewall that sends resets looks the same"]].concat();
    check_rejected("icmp", "tcp reset", "0", (("target", "refused", "seen"), &said));
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
    let said = ["200 dials got no SYN-ACK, no reset and no ICMP: the 1,001st and all after it", "ct count"];
    check_limit(&s, ("path", "no-syn-ack", "inferred"), 1_000, &said);
}

/// A firewall on throng's own host.
fn check_own(rule: &str, said: &str, certainty: &str) {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    net.client.filter("output", &format!("{SYN} {rule}"));
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let (ended, s) = run(&net.client, &target, &["-c", "20", "-d", "500ms", "--timeout", "2500ms"]);
    assert_ne!(ended.status, Some(0), "{ended:?}");
    assert_eq!(s.count("connections.opened"), 0);
    check_limit(&s, ("host", "denied", certainty), 0, &[said, "nft list ruleset"]);
}

#[test]
fn the_clients_own_firewall_is_distinguished_from_a_routers() {
    check_own("reject with icmp type admin-prohibited", "this machine rejects them itself", "seen");
    check_own("reject", "this machine rejects them itself with ICMP port unreachable", "seen");
    check_own("drop", "this machine blocked", "inferred");
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
    assert!(s.number("ramp_s") < 20.0, "{}", s.number("ramp_s"));
}
