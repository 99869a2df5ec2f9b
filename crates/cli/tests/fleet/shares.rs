//! How a plan is divided among agents of unlike capacity, and what they can do together.

use std::time::Duration;

use serde_json::Value;

use crate::{
    fleet::{Joined, joined, states},
    program::{Program, Serving, throng, until},
    server::program,
    summary::Summary,
};

/// A search takes some seconds for each of its steps.
const PATIENCE: Duration = Duration::from_secs(180);

/// With agents `a`, `b`, … that have these flags; those of `pinned` may use one processor.
fn fleet(name: &str, flags: &[&[&str]], pinned: &[usize]) -> Joined {
    let mut fleet = joined(name, 0);
    let url = fleet.url();
    for (nth, flags) in flags.iter().enumerate() {
        let name = char::from(b'a' + nth as u8).to_string();
        let agent = throng(&[&["agent", "--nats", &url, "--name", &name], *flags].concat());
        let agent = if pinned.contains(&nth) { on_one_processor(&agent) } else { agent };
        fleet.agents.push(Program::from(agent));
    }
    for agent in &fleet.agents {
        until("an agent", || agent.stdout().starts_with("agent "));
    }
    fleet
}

fn on_one_processor(command: &std::process::Command) -> std::process::Command {
    let mut pinned = program("taskset", &["-c", "0"]);
    pinned.arg(command.get_program()).args(command.get_args());
    pinned.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    pinned
}

/// Of each agent, by its name.
fn of_each(s: &Summary, figure: &str) -> Vec<u64> {
    let mut agents: Vec<&Value> = s.at("agents").as_array().unwrap().iter().collect();
    agents.sort_by_key(|agent| agent["id"].as_str());
    agents.iter().map(|agent| agent[figure].as_u64().unwrap()).collect()
}

#[test]
fn an_agent_with_a_cap_has_that_and_the_others_have_the_rest() {
    let fleet = fleet("shares-cap", &[&["--max-connections", "100"], &[]], &[]);
    let server = Serving::start(&["--threads", "1"]);
    for share in ["capacity", "equal"] {
        let plan = ["--arrive", "1k/s", "--total", "1003", "--calls", "3", "--share", share];
        let (ended, s) = fleet.run(&server.url("/"), &plan);
        ended.assert_status(0);
        assert_eq!(states(&s), ["done", "done"], "{}", ended.stderr);
        assert_eq!((of_each(&s, "wanted"), s.count("requests.answered")), (vec![100, 903], 3 * 1_003));
        // What the agent with the cap had is free again.
        let held = ["-c", "1003", "--think", "1s", "-d", "1s", "--share", share];
        let (ended, s) = fleet.run(&server.url("/"), &held);
        ended.assert_status(0);
        assert_eq!((of_each(&s, "held"), s.count("connections.held")), (vec![100, 903], 1_003));
    }
    // There is nothing left for the other.
    let (ended, s) = fleet.run(&server.url("/"), &["-c", "1", "--think", "1s", "-d", "1s"]);
    ended.assert_status(0);
    assert_eq!((of_each(&s, "held"), states(&s)), (vec![1, 0], vec!["done", "done"]));
}

#[test]
fn a_rate_is_divided_with_its_connections() {
    let fleet = fleet("shares-rate", &[&["--max-connections", "20"], &[]], &[]);
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) = fleet.run(&server.url("/"), &["-c", "100", "--rate", "500/s", "-d", "4s"]);
    ended.assert_status(0);
    assert_eq!((of_each(&s, "held"), s.count("connections.held")), (vec![20, 80], 100));
    // All slots of four seconds, each once: both have whole turns of theirs by then.
    assert_eq!(s.count("requests.sent") + s.count("requests.missed"), 2_000, "{}", ended.stdout);
}

#[test]
fn shares_follow_processors_or_are_equal() {
    let fleet = fleet("shares-equal", &[&[], &[], &[]], &[0]);
    let server = Serving::start(&["--threads", "1"]);
    let run = |share: &[&str]| {
        let plan = [&["-c", "1000", "--think", "1s", "-d", "1s"], share].concat();
        let (ended, s) = fleet.run(&server.url("/"), &plan);
        ended.assert_status(0);
        assert_eq!(of_each(&s, "held"), of_each(&s, "wanted"));
        assert_eq!(s.count("connections.held"), 1_000);
        s
    };
    assert_eq!(of_each(&run(&["--share", "equal"]), "wanted"), [334, 333, 333]);
    let s = run(&[]);
    let (cores, wanted) = (of_each(&s, "cores"), of_each(&s, "wanted"));
    assert_eq!(cores[0], 1, "it is pinned");
    let all: u64 = cores.iter().sum();
    for (cores, wanted) in cores.into_iter().zip(wanted) {
        assert!(
            (1_000 * cores / all..=1_000 * cores / all + 1).contains(&wanted),
            "{wanted} by {cores} of {all}"
        );
    }
}

#[test]
fn what_all_together_cannot_take_is_refused_before_the_start() {
    let fleet = fleet("shares-refused", &[&["--max-connections", "100"], &["--max-connections", "50"]], &[]);
    let server = Serving::start(&["--threads", "1"]);
    let run = |args: &[&str], status: i32, why: &str| {
        let ended =
            Program::start(&[&["run", &server.url("/"), "--fleet", &fleet.url()], args].concat()).end();
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
    };
    let why = "--fleet: all agents together can take 150 of 151 connections: a 100 (--max-connections), b 50 \
               (--max-connections); use less load, raise these limits (throng fleet doctor), or start more agents";
    run(&["-c", "151", "-d", "1s"], 3, why);
    run(&["-c", "10", "--share", "half"], 2, "--share: \"half\" is not known; use capacity or equal");
    // Nothing is held of what was refused.
    let (ended, s) = fleet.run(&server.url("/"), &["-c", "150", "--think", "1s", "-d", "1s"]);
    ended.assert_status(0);
    assert_eq!(of_each(&s, "held"), [100, 50]);
}

#[test]
fn a_search_on_agents_that_are_launched_for_it_has_a_largest_load() {
    let ended = Program::start(&["find", "http://127.0.0.1:1/", "--fleet", "k8s"]).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("--max: required, because agents are launched for the largest load"),
        "{ended:?}"
    );
}

#[test]
fn a_search_goes_up_to_what_the_agents_can_do_together() {
    let caps: [&[&str]; 2] = [&["--max-connections", "600"], &["--max-connections", "300"]];
    let fleet = fleet("shares-find", &caps, &[]);
    let server = Serving::start(&["--threads", "1"]);
    let find = ["find", &server.url("/"), "--fleet", &fleet.url(), "-d", "1s", "--timeout", "2s"];
    let ended = Program::start(&[&find[..], &["--json", "-"]].concat()).end_within(PATIENCE);
    ended.assert_status(0);
    // 900, without the 82 of a probe of 20 requests a second, each of which may take 2 s and twice that; and 1 % less.
    assert!(ended.stderr.contains("up to 810 connections"), "{}", ended.stderr);
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    let loads = s.at("curve").as_array().unwrap().iter().map(|point| point["load"].as_u64());
    assert_eq!(loads.max(), Some(Some(810)), "{}", ended.stderr);
    // On a busy machine the target may be late to accept the last of them.
    let is_late = s.at("limit")["side"] == "target" && s.count("max") >= 700;
    assert!(s.count("max") == 810 || is_late, "{}", ended.stderr);
}
