//! Agents that their users stop before the end of a run, and a broker that is suspended at the end of one.

use rustix::process::Signal;

use crate::{
    fleet::{joined, read, states},
    program::Serving,
};

/// As one that is killed, but at once, and with all responses to what it sent.
#[test]
fn an_agent_that_is_stopped_is_a_lost_one_whose_part_others_take_over() {
    let (fleet, server) = (joined("agent-stopped", 3), Serving::start(&["--threads", "1"]));
    let args = ["-c", "90", "--think", "100ms", "-d", "5s", "--on-lost", "reassign", "--max-lag", "5s"];
    let mut run = fleet.start(&server.url("/delay?for=400ms"), &args);
    run.wait_for("open 90 of 90");
    fleet.agents[1].signal(Signal::TERM);
    let (ended, s) = read(run);
    ended.assert_status(0);
    assert_eq!(states(&s), ["done", "done", "lost"], "{}", ended.stderr);
    let [sent, answered, opened, held, lost] =
        ["requests.sent", "requests.answered", "connections.opened", "connections.held", "connections.lost"]
            .map(|path| s.count(path));
    assert_eq!((sent, opened, held), (answered, 90 + lost, 90), "{}", ended.stderr);
    let agents = s.at("agents").as_array().unwrap();
    let left = agents.iter().find(|agent| agent["state"] == "lost").unwrap();
    assert_eq!([&left["held"], &left["lost_with"]], [0, lost], "{left}");
    assert!(left["sealed"] == true && left["gap_s"].as_f64().unwrap() < 3.0, "{left}");
    let reasons = s.at("reasons").to_string();
    assert!(reasons.contains(" took over its part: it was stopped"), "{reasons}");
}

/// Nothing of its part is left for others.
#[test]
fn an_agent_that_is_stopped_after_its_load_has_done_its_part() {
    let (fleet, server) = (joined("agent-done", 2), Serving::start(&["--threads", "1"]));
    let args = ["-c", "20", "-d", "1s", "--on-lost", "reassign", "--max-lag", "5s"];
    let mut run = fleet.start(&server.url("/delay?for=4s"), &args);
    run.wait_for("drain open 20 of 20");
    fleet.agents[1].signal(Signal::TERM);
    let (ended, s) = read(run);
    ended.assert_status(0);
    assert_eq!(states(&s), ["done", "done"], "{}", ended.stderr);
    let counts = ["requests.sent", "requests.answered", "connections.opened", "connections.held"]
        .map(|path| s.count(path));
    assert_eq!(counts, [20; 4], "{}", ended.stderr);
}

/// Its connections stay, and nothing comes over them.
#[test]
fn a_broker_that_stands_still_at_the_end_is_waited_for() {
    for (name, goes_on) in [("broker-goes-on", true), ("broker-still", false)] {
        let (fleet, server) = (joined(name, 2), Serving::start(&["--threads", "1"]));
        let mut run = fleet.start(&server.url("/"), &["-c", "20", "--think", "500ms", "-d", "60s"]);
        run.wait_for("open 20 of 20");
        fleet.nats.program.signal(Signal::STOP);
        run.signal(Signal::INT);
        run.wait_for("waiting for the NATS server, for at most ");
        if goes_on {
            fleet.nats.program.signal(Signal::CONT);
        } else {
            run.signal(Signal::INT);
        }
        let (ended, s) = read(run);
        fleet.nats.program.signal(Signal::CONT);
        ended.assert_status(130);
        assert!(ended.stderr.contains(" does not reply\n"), "{}", ended.stderr);
        let of_agents = s.at("agents").as_array().unwrap().iter();
        let sealed = of_agents.filter(|agent| agent["sealed"] == true).count();
        let (agents, held) = if goes_on { (2, 20) } else { (0, 0) };
        assert_eq!((sealed, s.count("connections.held")), (agents, held), "{}", ended.stderr);
    }
}
