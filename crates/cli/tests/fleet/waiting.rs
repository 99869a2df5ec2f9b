//! Commands that wait for a broker or for agents, and are interrupted.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    fleet::{Joined, joined},
    folders::own_folder,
    nats::Raw,
    program::{Program, Serving, Signal, throng, until},
    runs_api::serve,
};

/// A server that says nothing is given up after five seconds, with another message.
#[test]
fn a_signal_ends_the_dial_to_the_broker() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let url = format!("nats://{}", silent.local_addr().unwrap());
    for (words, signal) in [(&["run", "-c", "1"][..], Signal::INT), (&["find"], Signal::TERM)] {
        let dialling = Program::start(&[words, &["http://127.0.0.1:9/", "--fleet", &url]].concat());
        let mut held = None;
        until("it dials", || {
            held = silent.accept().ok();
            held.is_some()
        });
        dialling.signal(signal);
        let ended = dialling.end();
        assert_eq!(ended.status, Some(130), "{words:?}: {ended:?}");
        let why = format!("--fleet: interrupted before the run began: there was no connection to {url} yet");
        assert!(ended.stderr.contains(&why), "{words:?}: {ended:?}");
    }
}

/// A NATS server that is never ready is given up after fifteen seconds, with another message.
#[test]
fn a_signal_ends_the_wait_for_a_broker_of_its_own() {
    let folder = own_folder("broker-not-ready");
    let (program, started) = (folder.join("nats-server"), folder.join("pid"));
    fs::write(&program, format!("#!/bin/sh\necho $$ > {}\nexec sleep 600\n", started.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let starts = |words: &[&str]| {
        let _ = fs::remove_file(&started);
        let mut command = throng(words);
        command.env("PATH", &path).env("XDG_STATE_HOME", &folder);
        Program::from(command)
    };
    let server = || {
        let pid = fs::read_to_string(&started).ok()?;
        pid.trim().parse::<u32>().ok()
    };
    // Whether or not somebody waits for it: a Z is the state of one that has ended.
    let is_gone = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
    };
    for (words, status, why) in [
        (
            &["run", "http://127.0.0.1:9/", "--fleet", "own:127.0.0.1:0"][..],
            130,
            "--fleet own: interrupted before the run began: the broker was not ready yet",
        ),
        (&["fleet", "broker", "--listen", "127.0.0.1:0"], 0, ""),
    ] {
        let waiting = starts(words);
        until("the server has started", || server().is_some());
        let server = server().unwrap();
        waiting.signal(Signal::INT);
        let ended = waiting.end();
        assert_eq!(ended.status, Some(status), "{words:?}: {ended:?}");
        assert!(ended.stderr.contains(why), "{words:?}: {ended:?}");
        until("its server ends with it", || is_gone(server));
    }
}

/// With `--agents`, these wait for at most two minutes, which is longer than tests wait for a process.
#[test]
fn a_signal_ends_the_wait_for_agents() {
    let fleet = joined("waiting", 1);
    let url = fleet.url();
    let more = ["http://127.0.0.1:9/", "--fleet", &url, "--agents", "3", "--json", "-"];
    for (words, signal) in [
        (&["run"][..], Signal::INT),
        (&["run", "-c", "1"], Signal::TERM),
        (&["find"], Signal::TERM),
        (&["find", "--max", "100"], Signal::INT),
    ] {
        let mut waiting = Program::start(&[words, &more].concat());
        waiting.wait_for("1 of 3 agents have joined; waiting for at most ");
        waiting.signal(signal);
        let ended = waiting.end();
        assert_eq!(ended.status, Some(130), "{words:?}: {ended:?}");
        let why = "interrupted before the run began: 1 of 3 agents have joined";
        assert!(ended.stderr.contains(why), "{words:?}: {ended:?}");
    }
    // The agent takes part in the next one.
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) = fleet.run(&server.url("/"), &["-c", "5", "--think", "50ms", "-d", "1s"]);
    ended.assert_status(0);
    assert_eq!(s.count("connections.held"), 5, "{ended:?}");
}

/// Says of itself what a real agent does, under another name, and never replies.
struct Ghost {
    raw: Raw,
    announcement: Vec<u8>,
}

impl Ghost {
    fn of(fleet: &Joined) -> Ghost {
        let mut raw = Raw::new(fleet.nats.address);
        raw.send(b"SUB throng.here 1\r\nPING\r\n");
        let (_, announced) = raw.message().expect("NATS holds the connection");
        let mut value: Value = serde_json::from_slice(&announced).unwrap();
        value["who"]["id"] = "ghost".into();
        let text = value.to_string();
        raw.send(b"UNSUB 1\r\n");
        Ghost { raw, announcement: format!("PUB throng.here {}\r\n{text}\r\n", text.len()).into_bytes() }
    }

    fn announce(&mut self) {
        self.raw.send(&self.announcement);
    }
}

#[test]
fn agents_that_took_part_are_released_by_a_signal() {
    let (fleet, server) = (joined("waiting-release", 1), Serving::start(&["--threads", "1"]));
    let agent = fleet.agents[0].stdout().split(' ').nth(1).unwrap().to_owned();
    let mut ghost = Ghost::of(&fleet);
    let mut listening = Raw::new(fleet.nats.address);
    listening.send(format!("SUB throng.run.> 1\r\nSUB throng.agent.{agent} 2\r\nPING\r\n").as_bytes());
    assert_eq!(listening.line(), "PONG");
    let mut run = fleet.start(&server.url("/"), &["-c", "5", "-d", "60s", "--agents", "2"]);
    run.wait_for("1 of 2 agents have joined");
    ghost.announce();
    let mut next = |what: &str, is: &dyn Fn(&Value) -> bool| loop {
        let message = listening.message();
        let (_, bytes) = message.unwrap_or_else(|| panic!("NATS holds the connection: {what}"));
        if is(&serde_json::from_slice(&bytes).unwrap()) {
            return;
        }
    };
    next("the agent accepts", &|up| up["report"]["Accepted"].is_object());
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stderr.contains("interrupted before the run began: not all agents are ready"), "{ended:?}");
    // At once, and not when its lease expires.
    next("it is released", &|down| down["body"] == "Release");
    let (ended, _) = fleet.run(&server.url("/"), &["-c", "5", "--think", "50ms", "-d", "1s"]);
    ended.assert_status(0);
}

#[test]
fn a_run_by_http_that_waits_for_agents_is_stopped() {
    let (fleet, server) = (joined("waiting-http", 1), Serving::start(&["--threads", "1"]));
    let api = serve(&["--nats", &fleet.url()]);
    let body = |flags: Value| json!({ "target": server.url("/"), "flags": flags }).to_string();
    let run = body(json!({ "connections": 3, "duration": "60s", "agents": 3 }));
    let url = api.post(&["--json", &run]);
    until("it waits", || api.program.stderr().contains("1 of 3 agents have joined; waiting"));
    assert_eq!(api.curl(&url, &[]).json()["state"], "preparing");
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).json()["state"], "stopping");
    let over = api.wait(&url, "it is over", |run| run["state"] == "refused");
    let reasons = json!(["interrupted before the run began: 1 of 3 agents have joined"]);
    assert_eq!(over["reasons"], reasons, "{over:#}");

    let search = body(json!({ "duration": "1s", "agents": 3 }));
    let url = api.post_to("/searches", &["--json", &search]);
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).json()["state"], "stopping");
    let over = api.wait(&url, "it is over", |search| search["state"] == "done");
    assert_eq!((&over["outcome"], &over["max"]), (&json!("interrupted"), &json!(0)), "{over:#}");

    // The end of the server does not wait for them either.
    api.post(&["--json", &run]);
    api.program.signal(Signal::TERM);
    assert_eq!(api.program.end().status, Some(0));
}
