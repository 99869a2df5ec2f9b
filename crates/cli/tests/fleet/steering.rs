//! `throng fleet`: agents and runs that are listed and steered, and a broker of throng's own.

use std::{fs, path::Path, process::Command};

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::Value;

use crate::{
    namespace::Pair,
    program::{Ended, Program, Serving, throng, until},
    server::{Server, fetch, folder, program},
};

/// A NATS server, and agents with names that joined it.
struct Joined {
    url: String,
    agents: Vec<Program>,
    _nats: Server,
}

impl Joined {
    fn new(folder: &Path, names: &[&str]) -> Joined {
        let store = folder.join("js").display().to_string();
        let nats = Server::at(|at| {
            program(
                "nats-server",
                &["-a", &at.ip().to_string(), "-p", &at.port().to_string(), "-js", "-sd", &store],
            )
        });
        let url = format!("nats://{}", nats.address);
        let agents =
            names.iter().map(|name| joins(agent(folder, &["--nats", &url, "--name", name]))).collect();
        Joined { url, agents, _nats: nats }
    }

    fn fleet(&self, args: &[&str]) -> Ended {
        Program::start(&[&["fleet"], args, &["--nats", &self.url]].concat()).end()
    }

    fn json(&self, args: &[&str]) -> Vec<Value> {
        let ended = self.fleet(&[args, &["--json"]].concat());
        let value: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        assert_eq!(value["schema"], "throng.fleet/1");
        value["agents"].as_array().unwrap().clone()
    }

    /// The states of the agents, by their names.
    fn states(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.json(&["ls"]).iter().map(|agent| text(&agent["id"]) + " " + &text(&agent["state"])).collect()
    }
}

fn with_state(mut command: Command, folder: &Path) -> Command {
    command.env("XDG_STATE_HOME", folder.join("state")).env("XDG_DATA_HOME", folder.join("data"));
    command
}

fn agent(folder: &Path, args: &[&str]) -> Program {
    Program::from(with_state(throng(&[&["agent"], args].concat()), folder))
}

fn joins(mut agent: Program) -> Program {
    until("an agent joins", || {
        assert!(!agent.is_ended(), "{}", agent.stderr());
        agent.stdout().starts_with("agent ")
    });
    agent
}

fn name(agent: &Program) -> String {
    agent.stdout().split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn agents_are_listed_checked_and_drained() {
    let folder = folder("steering-ls");
    let fleet = Joined::new(&folder, &["one", "two"]);
    let agents = fleet.json(&["ls"]);
    let figures = |agent: &Value, figure: &str| agent[figure].as_u64().unwrap();
    for agent in &agents {
        assert!(figures(agent, "cores") > 0 && figures(agent, "ports") > 10_000, "{agent:#}");
        assert!(figures(agent, "memory_bytes") > 0 && !agent["addresses"].as_array().unwrap().is_empty());
        assert_eq!(agent["version"], env!("CARGO_PKG_VERSION"));
    }
    assert_ne!(agents[0]["incarnation"], agents[1]["incarnation"]);
    assert_eq!(agents[0]["network"], agents[1]["network"]);
    assert_eq!(fleet.states(), ["one free", "two free"]);
    let listed = fleet.fleet(&["ls"]);
    assert!(listed.stdout.lines().nth(1).is_some_and(|line| line.starts_with("one    free ")), "{listed:?}");
    assert!(listed.stdout.contains("\n2 agents on 1 machine, "), "{listed:?}");
    let doctor = fleet.fleet(&["doctor"]);
    assert!(doctor.stdout.contains("2 agents on 1 machine can hold about "), "{doctor:?}");
    assert_eq!(fleet.json(&["doctor", "two"]).len(), 1);

    assert_eq!(fleet.fleet(&["drain", "two"]).stdout, "two: draining\n");
    assert_eq!(fleet.states(), ["one free", "two draining"]);
    let server = Serving::start(&["--threads", "1"]);
    let load = ["run", &server.url("/"), "-c", "10", "--think", "50ms", "-d", "500ms"];
    let run = [&load[..], &["--fleet", &fleet.url, "--json", "-"]].concat();
    let ended = Program::start(&run).end();
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    assert_eq!(summary["agents"].as_array().unwrap().len(), 1, "{ended:?}");
    assert_eq!(fleet.fleet(&["drain", "two", "--undo"]).stdout, "two: free\n");
    let missing = fleet.fleet(&["drain", "two", "three"]);
    assert_eq!(missing.status, Some(3), "{missing:?}");
    assert!(missing.stderr.contains("no such agent; list them with throng fleet ls: three"), "{missing:?}");
}

#[test]
fn a_name_is_kept_and_is_one_agents_alone() {
    let folder = folder("steering-names");
    let fleet = Joined::new(&folder, &["one"]);
    let taken = agent(&folder, &["--nats", &fleet.url, "--name", "one"]).end();
    assert_eq!(taken.status, Some(3), "{taken:?}");
    assert!(taken.stderr.contains("an agent named one has already joined, on "), "{taken:?}");
    let wrong = agent(&folder, &["--nats", &fleet.url, "--name", "a.b"]).end();
    assert_eq!(wrong.status, Some(2), "{wrong:?}");
    let first = joins(agent(&folder, &["--nats", &fleet.url]));
    let second = joins(agent(&folder, &["--nats", &fleet.url]));
    let names = (name(&first), name(&second));
    assert_ne!(names.0, names.1);
    first.signal(Signal::KILL);
    first.end();
    let again = joins(agent(&folder, &["--nats", &fleet.url]));
    assert_eq!(name(&again), names.0);
}

/// Connections of a server, with the one that asks for it.
fn open_at(server: &Serving) -> u64 {
    let response = fetch(&server.url("/stats"));
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()["open"].as_u64().unwrap()
}

#[test]
fn the_load_of_a_run_in_progress_is_set_paused_and_resumed() {
    let folder = folder("steering-set");
    let fleet = Joined::new(&folder, &["one", "two"]);
    let none = fleet.fleet(&["set", "connections=5"]);
    assert!(none.stderr.contains("no run is in progress on these agents"), "{none:?}");
    let server = Serving::start(&["--threads", "1"]);
    let args = ["-c", "400", "--think", "100ms..300ms", "-d", "60s", "--live", "line", "--json", "-"];
    let mut run = Program::start(&[&["run", &server.url("/"), "--fleet", &fleet.url], &args[..]].concat());
    run.wait_for("open 400 of 400");
    let id =
        run.stderr().lines().find_map(|line| line.split("run ").nth(1)?.split(' ').next().map(str::to_owned));
    let id = id.unwrap();
    let set = fleet.fleet(&["set", "connections=100"]);
    assert_eq!(
        (set.status, set.stdout),
        (Some(0), format!("run {id}: load 100 of 400 connections\n")),
        "{}",
        set.stderr
    );
    run.wait_for("open 100 of 100");
    assert_eq!(fleet.states(), ["one in run", "two in run"]);
    let more = fleet.fleet(&["set", "connections=401", "--run", &id]);
    assert_eq!(more.status, Some(3), "{more:?}");
    assert!(more.stderr.contains("connections: use 1 to 400; a run cannot exceed its plan"), "{more:?}");
    assert_eq!(fleet.fleet(&["set", "load=100%"]).status, Some(0));
    until("all are open again", || open_at(&server) > 400);
    assert_eq!(fleet.fleet(&["pause"]).stdout, format!("run {id}: paused\n"));
    // In a pause it is set for the time after it.
    let set = fleet.fleet(&["set", "connections=200"]);
    assert_eq!(set.stdout, format!("run {id}: load 200 of 400 connections when resumed\n"), "{set:?}");
    for none in ["load=0%", "connections=0"] {
        assert_eq!(fleet.fleet(&["set", none]).status, Some(2), "{none}");
    }
    assert_eq!(fleet.fleet(&["resume"]).status, Some(0));
    run.wait_for("open 200 of 200");
    run.signal(Signal::INT);
    let ended = run.end();
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    // Both are of the largest load.
    let held: Vec<u64> =
        summary["agents"].as_array().unwrap().iter().map(|agent| agent["held"].as_u64().unwrap()).collect();
    assert_eq!((&summary["connections"]["held"], held), (&Value::from(400), vec![200, 200]));
    let asks: Vec<&str> =
        summary["asks"].as_array().unwrap().iter().map(|ask| ask["what"].as_str().unwrap()).collect();
    let expected = [
        "load 100 of 400 connections (25 %)",
        "load 100 %",
        "paused",
        "load 200 of 400 connections (50 %) when resumed",
        "resumed",
    ];
    assert_eq!(asks, expected);
}

#[test]
fn agents_calibrate_themselves_when_they_are_free() {
    let folder = folder("steering-calibrate");
    let fleet = Joined::new(&folder, &["one"]);
    let mut ended = fleet.fleet(&["calibrate", "--duration", "100ms"]);
    // On a machine that does something else a calibration may fail, and says so.
    for _ in 0..5 {
        if !ended.stdout.contains("throng was late") {
            break;
        }
        ended = fleet.fleet(&["calibrate", "--duration", "100ms"]);
    }
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.starts_with("one: ") && ended.stdout.contains(" connects/s, "), "{ended:?}");
    let agents = fleet.json(&["ls"]);
    assert!(agents[0]["calibration"]["open_per_s"]["value"].as_f64().unwrap() > 0.0, "{:#}", agents[0]);
    // It is kept: the next agent on this machine has it from its start.
    let other = joins(agent(&folder, &["--nats", &fleet.url, "--name", "two"]));
    assert!(fleet.json(&["ls"])[1]["calibration"].is_object());
    drop(other);
    assert_eq!(fleet.fleet(&["calibrate", "--duration", "soon"]).status, Some(2));
    assert!(!fleet.agents.is_empty());
}

/// The target's host dials NATS itself: nothing there listens but the target.
#[test]
fn a_target_is_observed_without_a_port_of_its_own() {
    let Some(pair) = Pair::new() else { return };
    let folder = folder("steering-observe");
    let target = throng(&["serve", "--listen", "10.77.0.1:0", "--until-stdin-ends", "--threads", "1"]);
    let target = Serving::from(pair.server.enter(&target), &[]);
    let config = folder.join("nats.conf");
    fs::write(&config, "listen: \"10.77.0.2:4222\", authorization { token: secret }").unwrap();
    let nats = program("nats-server", &["-c", config.to_str().unwrap()]);
    let nats = Program::from(pair.client.enter(&nats));
    let url = "nats://secret@10.77.0.2:4222";
    let observe = |name: &str| {
        let mut observer =
            Program::from(pair.server.enter(&throng(&["observe", "--nats", url, "--name", name])));
        until("it observes", || {
            assert!(!observer.is_ended(), "{}", observer.stderr());
            observer.stdout().starts_with("observing as ")
        });
        observer
    };
    let near = observe("near");
    let run = |observer: &str| {
        let args = ["-c", "50", "-d", "2s", "--think", "100ms", "--json", "-", "--observe", observer];
        let run = throng(&[&["run", &target.url("/")], &args[..]].concat());
        Program::from(pair.client.enter(&run)).end()
    };
    let ended = run(url);
    ended.assert_status(0);
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    let observed = &summary["observed"];
    // A sample that is late on a busy machine is a failure.
    assert!(observed["observer"]["answers"].as_u64().unwrap() >= 2, "{observed:#}");
    assert!(observed["target"]["pid"].as_u64().unwrap() > 0, "{observed:#}");
    assert!(observed["target_host"]["tcp_sockets"]["max"].as_u64().unwrap() >= 50, "{observed:#}");
    let second = observe("second");
    let several = run(url);
    assert_eq!(several.status, Some(3), "{several:?}");
    assert!(several.stderr.contains("add /NAME with one of near, second"), "{several:?}");
    run(&format!("{url}/second")).assert_status(0);
    let none = run(&format!("{url}/third"));
    assert!(none.stderr.contains("no observer named third has joined"), "{none:?}");
    drop((near, second, nats));
}

/// Where a broker listens, and the file with its token.
fn announced(text: &str) -> (String, String) {
    let line = text.lines().find(|line| line.contains("broker at ")).unwrap();
    let (url, file) = line.split_once("broker at ").unwrap().1.split_once(", token in ").unwrap();
    (url.to_owned(), file.to_owned())
}

/// The `nats-server` that writes to this folder.
fn nats_of(folder: &Path) -> Option<Pid> {
    let name = fs::read_dir(folder.join("ports")).ok()?.flatten().next()?.file_name().into_string().unwrap();
    let pid = name.strip_prefix("nats-server_")?.strip_suffix(".ports")?.parse().unwrap();
    Pid::from_raw(pid)
}

fn is_gone(pid: Pid) -> bool {
    // A zombie, until its parent has seen it, is gone too.
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    test_kill_process(pid).is_err() || state.contains(") Z ")
}

#[test]
fn a_broker_of_ones_own_has_a_token_and_ends_with_its_command_however_that_ends() {
    let folder = folder("steering-broker");
    let state = folder.join("state/throng/broker");
    let start = || {
        let mut broker =
            Program::from(with_state(throng(&["fleet", "broker", "--listen", "127.0.0.1:0"]), &folder));
        until("the broker is ready", || {
            assert!(!broker.is_ended(), "{}", broker.stderr());
            broker.stdout().contains("throng run TARGET")
        });
        broker
    };
    let broker = start();
    let (url, file) = announced(&broker.stdout());
    let token = fs::read_to_string(&file).unwrap();
    assert!(!broker.stdout().contains(token.trim()) && token.trim().len() == 64);
    let member = joins(agent(&folder, &["--nats", &url, "--nats-token-file", &file]));
    let refused = agent(&folder, &["--nats", &url]).end();
    assert!(refused.status == Some(3) && refused.stderr.contains("requires credentials"), "{refused:?}");
    let second =
        Program::from(with_state(throng(&["fleet", "broker", "--listen", "127.0.0.1:0"]), &folder)).end();
    assert!(second.status == Some(3) && second.stderr.contains("a broker runs in "), "{second:?}");
    drop(member);
    let pid = nats_of(&state).unwrap();
    broker.signal(Signal::TERM);
    assert_eq!(broker.end().status, Some(0));
    assert!(is_gone(pid));
    let broker = start();
    assert_eq!(fs::read_to_string(&file).unwrap(), token, "the token stays");
    let pid = nats_of(&state).unwrap();
    broker.signal(Signal::KILL);
    until("the server is gone", || is_gone(pid));
}

#[test]
fn a_run_starts_its_own_broker_and_ends_it_however_it_ends() {
    let folder = folder("steering-own");
    let server = Serving::start(&["--threads", "1"]);
    let start = |duration: &str| {
        let (target, load) = (server.url("/"), ["-c", "10", "--think", "50ms", "-d", duration]);
        let args = ["--fleet", "own:127.0.0.1:0", "--live", "line", "--json", "-"];
        let args = [&["run", &target][..], &load, &args].concat();
        let mut run = Program::from(with_state(throng(&args), &folder));
        run.wait_for("throng agent --nats ");
        let said = run.stderr();
        let words: Vec<&str> = said.split_whitespace().collect();
        let url = words[words.iter().position(|word| *word == "--nats").unwrap() + 1].to_owned();
        let token = folder.join("state/throng/broker/token").display().to_string();
        assert!(said.contains(&token), "{said}");
        (run, joins(agent(&folder, &["--nats", &url, "--nats-token-file", &token])))
    };
    let (run, _agent) = start("1s");
    let ended = run.end();
    ended.assert_status(0);
    let state = folder.join("state/throng/broker");
    let (mut run, _agent) = start("60s");
    run.wait_for("open 10 of 10");
    let pid = nats_of(&state).unwrap();
    run.signal(Signal::KILL);
    until("the server is gone", || is_gone(pid));
}

#[test]
fn a_broker_that_cannot_start_says_why() {
    let folder = folder("steering-none");
    let args = ["fleet", "broker", "--listen", "127.0.0.1:0", "--nats-server", "no-such-program"];
    let missing = Program::from(with_state(throng(&args), &folder)).end();
    assert_eq!(missing.status, Some(3), "{missing:?}");
    assert!(missing.stderr.contains("no-such-program is not on the path; install it"), "{missing:?}");
    let wrong = Program::from(with_state(throng(&["fleet", "broker", "--listen", "here"]), &folder)).end();
    assert_eq!(wrong.status, Some(2), "{wrong:?}");
    let dir = Program::start(&["fleet", "broker", "--listen", "127.0.0.1:0", "--dir", "/proc/none"]).end();
    assert!(dir.status == Some(3) && dir.stderr.contains("--dir /proc/none: "), "{dir:?}");
}
