//! A malicious coordinator, whose messages are written manually and sent to agents over a real NATS server.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    fleet::{joined, joined_at, served},
    nats::Raw,
    program::{Program, Serving, until},
    server::folder,
};

/// A connection that speaks as a coordinator to one agent.
struct Coordinator {
    raw: Raw,
    agent: String,
}

impl Coordinator {
    fn send(&mut self, run: &str, message: &Value) {
        let text = json!({ "run": run, "term": 0, "sent": 1, "body": message["body"] }).to_string();
        let publish = format!("PUB throng.agent.{} {}\r\n{text}\r\n", self.agent, text.len());
        self.raw.send(publish.as_bytes());
    }

    /// The next report on any run: which, and what.
    fn report(&mut self) -> (String, Value) {
        let (subject, up) = self.up();
        (subject, up["report"].clone())
    }

    /// The same with what is around it.
    fn up(&mut self) -> (String, Value) {
        let (subject, bytes) = self.raw.message().expect("NATS holds the connection");
        (subject, serde_json::from_slice(&bytes).unwrap())
    }
}

/// The messages of a run to its agent: the offer, the assignment, and one that begins it.
fn messages(listening: &mut Raw) -> [Value; 3] {
    let mut found = [const { None }; 3];
    while found.iter().any(Option::is_none) {
        let (_, bytes) = listening.message().expect("NATS holds the connection");
        let down: Value = serde_json::from_slice(&bytes).unwrap();
        let nth = match &down["body"] {
            body if body["Offer"].is_object() => 0,
            body if body["Assign"].is_object() => 1,
            body if body["Lead"]["begin"].is_u64() => 2,
            _ => continue,
        };
        found[nth] = Some(down);
    }
    found.map(|message| message.expect("the loop has ended"))
}

#[test]
fn a_coordinator_names_no_files_and_its_sums_are_checked() {
    let own = folder("hostile");
    let deep = own.join("deep");
    let server = Serving::start(&["--threads", "1"]);
    let fleet = joined_at(&folder("nats-hostile"), Some(&own.join("data")), 1);
    let agent = fleet.agents[0].stdout().split(' ').nth(1).unwrap().to_owned();
    let mut listening = Raw::new(fleet.nats.address);
    listening.send(format!("SUB throng.agent.{agent} 1\r\nPING\r\n").as_bytes());
    assert_eq!(listening.line(), "PONG");
    let (ended, _) = fleet.run(&server.url("/"), &["-c", "4", "--think", "50ms", "-d", "1s"]);
    ended.assert_status(0);
    let [offer, assign, lead] = messages(&mut listening);
    let mut raw = Raw::new(fleet.nats.address);
    raw.send(b"SUB throng.run.> 1\r\nPING\r\n");
    assert_eq!(raw.line(), "PONG");
    let mut hostile = Coordinator { raw, agent };
    // What these would become: a file elsewhere, a subject that ends the connection, another subject.
    let elsewhere = format!("{}/x y", deep.display());
    for run in [elsewhere.as_str(), "../../x", "", ">", &"x".repeat(100_000)] {
        for message in [&offer, &assign, &lead] {
            hostile.send(run, message);
        }
    }
    // They come in this order: those before were not taken.
    hostile.send("good1", &offer);
    let (subject, report) = hostile.report();
    assert_eq!(subject, "throng.run.good1");
    assert_eq!(report["Accepted"]["can"]["cap"], Value::Null, "{report}");
    assert!(report["Accepted"].is_object(), "{report}");
    // A slice that is more than the whole.
    let mut lie = assign.clone();
    let slice = &mut lie["body"]["Assign"]["slices"][0];
    slice["width"] = (slice["of"].as_u64().unwrap() + 1).into();
    hostile.send("good1", &lie);
    let (_, report) = hostile.report();
    assert_eq!(report["Refused"]["why"], "the coordinator assigned what is no part of the plan");
    // It is free, alive, and ends.
    until("it is free", || {
        hostile.send("good2", &offer);
        hostile.report().1["Accepted"].is_object()
    });
    assert!(!Path::new(&deep).exists() && !own.join("x").exists());
    let agent = fleet.agents.into_iter().next().unwrap();
    agent.signal(Signal::TERM);
    let ended = agent.end();
    ended.assert_status(0);
    assert!(!ended.stderr.contains(" lost"), "it lost no connection: {}", ended.stderr);
}

/// It offers a slow plan, and orders it to be fast.
#[test]
fn a_coordinator_orders_nothing_faster_than_the_cap() {
    let server = Serving::start(&["--threads", "1"]);
    let mut fleet = joined("hostile-rate", 0);
    let url = fleet.url();
    fleet.agents.push(Program::start(&["agent", "--nats", &url, "--name", "capped", "--max-rate", "50/s"]));
    until("an agent", || fleet.agents[0].stdout().starts_with("agent "));
    let mut listening = Raw::new(fleet.nats.address);
    listening.send(b"SUB throng.agent.capped 1\r\nPING\r\n");
    assert_eq!(listening.line(), "PONG");
    let (ended, s) =
        fleet.run(&server.url("/"), &["-c", "20", "--ramp", "50/s", "--think", "1m", "-d", "1s"]);
    assert_eq!(s.count("connections.opened"), 20, "{ended:?}");
    let [mut offer, mut assign, mut lead] = messages(&mut listening);
    for flag in offer["body"]["Offer"]["flags"].as_array_mut().unwrap() {
        if flag[0] == "connections" {
            flag[1] = "2000".into();
        }
    }
    assign["body"]["Assign"]["slices"][0] = json!({ "from": 0, "width": 2_000, "of": 2_000 });
    let mut raw = Raw::new(fleet.nats.address);
    raw.send(b"SUB throng.run.fast1 1\r\nPING\r\n");
    assert_eq!(raw.line(), "PONG");
    let mut hostile = Coordinator { raw, agent: "capped".to_owned() };
    until("it accepts", || {
        hostile.send("fast1", &offer);
        hostile.report().1["Accepted"].is_object()
    });
    let mut at = 0;
    until("it is ready", || {
        hostile.send("fast1", &assign);
        let (_, up) = hostile.up();
        at = up["at"].as_u64().unwrap();
        up["report"]["Ready"].is_object()
    });
    // All at once, since the beginning.
    let order = json!({ "Load": [0, 2_000, null, 0] });
    lead["body"]["Lead"] = json!({ "begin": at, "lease": at + 10_000_000_000, "from": 0, "orders": [order] });
    let begun = Instant::now();
    hostile.send("fast1", &lead);
    until("a hundred are open", || served(&server, "open") >= 100);
    assert!(begun.elapsed() > Duration::from_secs(1), "{:?}", begun.elapsed());
}
