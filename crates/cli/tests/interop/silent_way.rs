//! A path that goes silent while connections are held: what is reported, with and without requests.

use crate::{
    firewall::{check_limit, serve},
    namespace::{Namespace, Routed},
    program::{Ended, Program, throng},
    summary::Summary,
};

/// A run in a namespace during which something happens once all connections are open.
fn run_while(at: &Namespace, target: &str, args: &[&str], all: &str, act: impl FnOnce()) -> (Ended, Summary) {
    let args = [&["run", target, "--json", "-"], args].concat();
    let mut running = Program::from(at.enter(&throng(&args)));
    running.wait_for(&format!("open {all} of {all}"));
    act();
    let ended = running.end();
    let json = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

const DARK: (&str, &str, &str) = ("path", "unacknowledged", "inferred");

/// Requests of which none comes through from some time on.
fn check_dark(before: &[&str], act: impl FnOnce(&Routed)) {
    let Some(net) = Routed::new() else { return };
    before.iter().for_each(|rule| net.router.forbid(rule));
    let serving = serve(&net.server, "0.0.0.0");
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let args = ["-c", "50", "-d", "5s", "--think", "200ms..400ms", "--timeout", "2500ms"];
    let (ended, s) = run_while(&net.client, &target, &args, "50", || act(&net));
    ended.assert_status(1);
    assert_eq!(s.count("connections.dropped"), 50, "{}", ended.stderr);
    check_limit(&s, DARK, 50, &["was never acknowledged", "routers and firewalls"]);
}

#[test]
fn a_router_that_drops_everything_from_one_moment_on_is_the_path() {
    check_dark(&[], |net| net.router.forbid("drop"));
}

#[test]
fn a_router_that_drops_established_connections_is_the_path() {
    check_dark(&[], |net| net.router.forbid("tcp flags & syn == 0 drop"));
}

#[test]
fn a_router_that_has_forgotten_its_connections_is_the_path() {
    // As after a restart, or with a timeout shorter than the pause between two requests.
    let rules = ["ct state invalid drop", "tcp flags & (syn|ack) != syn ct state new drop"];
    check_dark(&rules, |net| {
        net.router.run("conntrack -D");
    });
}

#[test]
fn dials_that_get_no_syn_ack_are_the_path() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    for rule in ["tcp flags & (syn|ack) == syn drop", "tcp flags & (syn|ack) == (syn|ack) drop"] {
        net.router.forbid(rule);
        let target = format!("http://10.88.2.2:{}/", serving.address.port());
        let args = ["-c", "20", "-d", "500ms", "--timeout", "2500ms"];
        let (ended, s) = crate::firewall::run(&net.client, &target, &args);
        ended.assert_status(1);
        let parts = ["20 dials got no SYN-ACK, no reset and no ICMP", "SYN retransmissions"];
        check_limit(&s, ("path", "no-syn-ack", "inferred"), 0, &parts);
        net.router.allow();
    }
}

#[test]
fn held_connections_on_a_dead_path_report_the_silence() {
    let Some(net) = Routed::new() else { return };
    let serving = serve(&net.server, "0.0.0.0");
    let target = format!("tcp://10.88.2.2:{}", serving.address.port());
    let (ended, s) =
        run_while(&net.client, &target, &["-c", "30", "-d", "5s"], "30", || net.router.forbid("drop"));
    let quiet_s = s.number("connections.quiet_s");
    assert!((4.0..ended.took_s).contains(&quiet_s), "{quiet_s}: {}", ended.stderr);
    let headline = s.text("headline");
    assert!(headline.contains("nothing") && headline.contains(&format!("{quiet_s:.0} s")), "{headline}");
}
