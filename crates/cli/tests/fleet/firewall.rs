//! The adaptive ramp of several agents, behind a firewall that limits SYNs.

use std::time::Duration;

use crate::{
    fleet::{nats_at, states},
    namespace::{Namespace, Routed},
    program::{Ended, Program, Serving, throng, until},
    server::folder,
    summary::Summary,
};

const CONNECTIONS: u64 = 2_500;

/// `throng run` in a namespace, to its end.
fn run(at: &Namespace, target: &str, args: &[&str]) -> (Ended, Summary) {
    let connections = CONNECTIONS.to_string();
    let args =
        [&["run", target, "-c", &connections, "-d", "1s", "--think", "1m", "--json", "-"], args].concat();
    let ended = Program::from(at.enter(&throng(&args))).end_within(Duration::from_secs(180));
    let json = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

#[test]
fn four_agents_lose_no_more_dials_to_a_firewall_that_limits_syns_than_one_process() {
    let Some(net) = Routed::new() else { return };
    let serve = throng(&["serve", "--listen", "0.0.0.0:0", "--until-stdin-ends", "--threads", "1"]);
    let serving = Serving::from(net.server.enter(&serve), &[]);
    net.router.forbid("tcp flags & (syn|ack) == syn limit rate over 500/second drop");
    let target = format!("http://10.88.2.2:{}/", serving.address.port());
    let (alone, of_one) = run(&net.client, &target, &[]);

    let nats = "127.0.0.1:4222";
    let _nats = Program::from(net.client.enter(&nats_at(nats.parse().unwrap(), &folder("nats-firewall"))));
    let url = format!("nats://{nats}");
    let agent = ["agent", "--nats", &url, "--allow", "10.88.2.2"];
    let agents: Vec<Program> = (0..4).map(|_| Program::from(net.client.enter(&throng(&agent)))).collect();
    for agent in &agents {
        until("an agent", || agent.stdout().starts_with("agent "));
    }
    let (ended, of_four) = run(&net.client, &target, &["--fleet", &url, "--agents", "4"]);
    assert_eq!(states(&of_four), ["done"; 4], "{}", ended.stderr);
    // All agents together begin with as many dials as one process, most of which are lost. Were each to begin as if it were alone,
    // some 230 would fail.
    let [one, four] = [&of_one, &of_four].map(|s| s.count("connections.failed"));
    assert!(four <= one + 64, "{four} of four agents, {one} of one: {}\n{}", alone.stderr, ended.stderr);
    // A tenth of the rate that passes, at least.
    assert!(of_four.number("ramp_s") < 50.0, "{}", of_four.number("ramp_s"));
}
