//! A run on agents that joined over a real NATS server.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    program::{DATA, Ended, Program, Serving, throng, until},
    server::{Server, fetch, folder, program},
    summary::Summary,
};

/// A search takes some seconds for each of its steps.
const PATIENCE: Duration = Duration::from_secs(180);

/// A NATS server, and agents that joined there.
pub(crate) struct Joined {
    pub(crate) nats: Server,
    /// Where that keeps its streams.
    pub(crate) folder: PathBuf,
    pub(crate) agents: Vec<Program>,
}

impl Joined {
    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.nats.address)
    }

    /// A run on the agents, not ended.
    pub(crate) fn start(&self, target: &str, args: &[&str]) -> Program {
        let run = ["run", target, "--fleet", &self.url(), "--live", "line", "--json", "-"];
        Program::start(&[&run, args].concat())
    }

    pub(crate) fn run(&self, target: &str, args: &[&str]) -> (Ended, Summary) {
        read(self.start(target, args))
    }
}

pub(crate) fn read(run: Program) -> (Ended, Summary) {
    let ended = run.end();
    let summary = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(summary))
}

/// With JetStream in this folder.
pub(crate) fn nats_at(address: SocketAddr, folder: &Path) -> Command {
    let (ip, port, folder) = (address.ip().to_string(), address.port().to_string(), folder.to_str().unwrap());
    program("nats-server", &["-a", &ip, "-p", &port, "-js", "-sd", folder])
}

fn nats(name: &str) -> Server {
    let folder = folder(&format!("nats-{name}"));
    Server::at(|address| nats_at(address, &folder))
}

pub(crate) fn joined(name: &str, agents: usize) -> Joined {
    joined_at(&folder(&format!("nats-{name}")), None, agents)
}

/// The NATS server keeps its streams in this folder, and the agents their data in the other, if it is given.
pub(crate) fn joined_at(folder: &Path, data: Option<&Path>, agents: usize) -> Joined {
    let nats = Server::at(|address| nats_at(address, folder));
    let url = format!("nats://{}", nats.address);
    let agent = || {
        let mut agent = throng(&["agent", "--nats", &url]);
        agent.envs(data.map(|data| (DATA, data)));
        Program::from(agent)
    };
    let agents: Vec<Program> = (0..agents).map(|_| agent()).collect();
    for agent in &agents {
        until("an agent", || agent.stdout().starts_with("agent "));
    }
    Joined { nats, folder: folder.to_owned(), agents }
}

/// A figure of `throng serve`, without the request that asks for it.
pub(crate) fn served(server: &Serving, figure: &str) -> u64 {
    let response = fetch(&server.url("/stats"));
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    serde_json::from_str::<Value>(body).unwrap()[figure].as_u64().unwrap() - 1
}

pub(crate) fn states(s: &Summary) -> Vec<&str> {
    let mut states: Vec<_> =
        s.at("agents").as_array().unwrap().iter().map(|agent| agent["state"].as_str().unwrap()).collect();
    states.sort_unstable();
    states
}

#[test]
fn two_agents_count_what_the_server_counts() {
    let (fleet, server) = (joined("two-agents-count", 2), Serving::start(&["--threads", "1"]));
    let (ended, s) = fleet.run(&server.url("/"), &["-c", "1001", "--think", "200ms..400ms", "-d", "3s"]);
    ended.assert_status(0);
    assert_eq!(s.count("connections.held"), 1_001, "{}", ended.stderr);
    assert_eq!(s.count("requests.answered"), s.count("requests.sent"), "{}", ended.stderr);
    // The coordinator asks the server once how many connections it has.
    assert_eq!(s.count("connections.seen_by_target"), 1_001);
    assert_eq!(s.count("requests.answered") + 1, served(&server, "requests"));
    let agents = s.at("agents").as_array().unwrap();
    let mut wanted: Vec<_> = agents.iter().map(|agent| agent["wanted"].as_u64().unwrap()).collect();
    wanted.sort_unstable();
    assert_eq!((states(&s), wanted), (vec!["done", "done"], vec![500, 501]));
    assert!(agents.iter().all(|agent| agent["held"] == agent["wanted"]), "{agents:?}");
}

#[test]
fn a_plan_that_is_bounded_by_count_gives_the_totals_of_one_process() {
    let (fleet, server) = (joined("a-plan-that", 3), Serving::start(&["--threads", "1"]));
    let args = ["--arrive", "200/s", "--total", "300", "--calls", "3"];
    let (ended, s) = fleet.run(&server.url("/"), &args);
    ended.assert_status(0);
    for (figure, count) in [("opened", 300), ("finished", 300), ("failed", 0), ("dropped", 0)] {
        assert_eq!(s.count(&format!("connections.{figure}")), count, "{figure}: {}", ended.stderr);
    }
    assert_eq!((s.count("requests.answered"), served(&server, "requests")), (900, 900));
}

/// Whatever part of a second of the agents it begins and ends in.
#[test]
fn full_load_is_as_long_and_as_large_as_was_asked_for() {
    let (fleet, server) = (joined("full-load", 2), Serving::start(&["--threads", "1"]));
    let played = |args: &[&str]| {
        let (ended, s) = fleet.run(&server.url("/"), args);
        ended.assert_status(0);
        assert!(!s.at("reasons").to_string().contains("disagree"), "{args:?}: {}", ended.stderr);
        // However fast the server is on a busy machine: as many as were due then, give or take those under way at its ends.
        let (duration_s, per_s) = (s.number("duration_s"), s.number("requests.per_s"));
        let (answered, due) = (per_s * duration_s, s.number("latency_us.count"));
        assert!((answered - due).abs() <= 20.0, "{args:?}: {answered} answered of {due}: {}", ended.stderr);
        (duration_s, due)
    };
    let is_near = |duration_s: f64, asked: f64| (duration_s - asked).abs() < 0.05;
    let (duration_s, due) = played(&["-c", "20", "--rate", "100", "-d", "3s", "--threshold", "per_s >= 90"]);
    assert!(is_near(duration_s, 3.0) && (298.0..=302.0).contains(&due), "{duration_s} {due}");
    let (duration_s, due) = played(&["-c", "20", "--think", "100ms", "-d", "3s"]);
    assert!(is_near(duration_s, 3.0) && (200.0..=620.0).contains(&due), "{duration_s} {due}");
    // The last of them comes after 1.99 s.
    let (duration_s, due) = played(&["--arrive", "100/s", "--total", "200"]);
    assert!((1.9..3.0).contains(&duration_s) && due == 200.0, "{duration_s} {due}");
}

#[test]
fn agents_get_the_messages_that_are_in_files() {
    let (fleet, server) = (joined("agents-get-messages", 2), Serving::start(&["--threads", "1"]));
    let file = folder("fleet-message").join("message.bin");
    // Field 1, two bytes.
    std::fs::write(&file, b"\x0A\x02hi").unwrap();
    let url = format!("grpc://{}/throng.Echo/Say", server.address);
    let args = ["--body-file", file.to_str().unwrap(), "-c", "10", "-d", "500ms", "--think", "20ms..60ms"];
    let (ended, s) = fleet.run(&url, &[&args[..], &["--expect", "length=4"]].concat());
    ended.assert_status(0);
    let answered = s.count("requests.answered");
    assert!(answered >= 20, "{}", ended.stderr);
    assert_eq!((s.count("requests.status.OK"), s.count("requests.body_bytes_in")), (answered, 4 * answered));
    assert_eq!(states(&s), ["done", "done"]);
    // The coordinator asks the server once how many connections it has.
    assert_eq!(answered + 1, served(&server, "requests"));
}

#[test]
fn an_agent_that_is_killed_is_named_and_the_run_does_not_pass() {
    let (fleet, server) = (joined("an-agent-that", 2), Serving::start(&["--threads", "1"]));
    let [report, rows] = ["json", "jsonl"]
        .map(|end| std::env::temp_dir().join(format!("throng-killed-{}.{end}", std::process::id())));
    let files = ["--report", report.to_str().unwrap(), "--jsonl", rows.to_str().unwrap()];
    let words = [&["-c", "400", "--think", "100ms..300ms", "-d", "9s"][..], &files].concat();
    let mut run = fleet.start(&server.url("/"), &words);
    run.wait_for("open 400 of 400");
    fleet.agents[1].signal(Signal::KILL);
    let (ended, s) = read(run);
    ended.assert_status(1);
    assert_eq!((states(&s), s.count("connections.held")), (vec!["done", "lost"], 200), "{}", ended.stderr);
    let reasons = s.at("reasons").to_string();
    assert!(reasons.contains(" was lost with 200 of its 200 connections"), "{reasons}");
    let read = |file: &Path| {
        let text = std::fs::read_to_string(file).unwrap();
        let _ = std::fs::remove_file(file);
        text
    };
    each_agent_is_in_each_second(&serde_json::from_str(&read(&report)).unwrap(), &s);
    let rows: Vec<Value> = read(&rows).lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    each_agent_has_metrics(&rows, &s);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("       agents ")).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{lines:#?}");
    for counts in ["agents 2 of 2 up  max cpu ", "agents 1 of 2 up, 1 lost  max cpu "] {
        assert!(lines.iter().any(|line| line.contains(counts)), "{counts}: {lines:#?}");
    }
    assert!(ended.stderr.contains("  coordinator cpu "), "{}", ended.stderr);
}

/// With the label `agent`: the last second has all that each did, and one is lost.
fn each_agent_has_metrics(rows: &[Value], summary: &Summary) {
    let agents = summary.at("agents").as_array().unwrap();
    let each = |row: &Value, name: &str| -> Vec<Option<f64>> {
        let of = |agent: &Value| {
            row[format!("throng_agent_{name}{{agent=\"{}\"}}", agent["id"].as_str().unwrap())].as_f64()
        };
        agents.iter().map(of).collect()
    };
    let last = rows.last().unwrap();
    let requests: f64 = each(last, "requests_total").into_iter().flatten().sum();
    assert_eq!(requests, summary.number("requests.answered"));
    let up: Vec<f64> = agents.iter().map(|agent| f64::from(u8::from(agent["state"] == "done"))).collect();
    assert_eq!(each(last, "up"), up.iter().copied().map(Some).collect::<Vec<_>>());
    let states = |row: &Value| {
        ["up", "silent", "lost"].map(|state| row[format!("throng_agents{{state=\"{state}\"}}")].as_f64())
    };
    assert_eq!(states(last)[2], Some(1.0));
    let full = rows.iter().find(|row| each(row, "connections_open") == [Some(200.0); 2]);
    let full = full.unwrap_or_else(|| panic!("no second with 200 connections on each: {last:#}"));
    assert_eq!((states(full), each(full, "up")), ([2.0, 0.0, 0.0].map(Some), vec![Some(1.0); 2]));
    let measured = |name: &str| each(full, name).into_iter().all(|n| n.is_some_and(|n| n > 0.0));
    assert!(measured("latency_p99_seconds") && measured("cpu_seconds_total"), "{full:#}");
    // Lag is that of requests at full load, and one agent may have been killed before.
    let lag = |row: &Value| each(row, "lag_p99_seconds").into_iter().flatten().any(|n| n > 0.0);
    assert!(rows.iter().any(lag), "{last:#}");
}

/// In the report: the agents' figures of each second add up to the summary's, and one is lost before the end.
fn each_agent_is_in_each_second(report: &Value, summary: &Summary) {
    let run = &report["runs"][0];
    let names = run["run"]["header"]["agents"].as_array().unwrap().iter().map(|agent| &agent["id"]);
    let named = summary.at("agents").as_array().unwrap().iter().map(|agent| &agent["id"]);
    assert!(names.eq(named), "{run:#}");
    let seconds: Vec<&Value> =
        run["ticks"].as_array().unwrap().iter().map(|one| &one["tick"]["agents"]).collect();
    let column = |second: &Value, name: &str| -> Vec<u64> {
        second[name].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
    };
    let requests: u64 = seconds.iter().flat_map(|second| column(second, "requests")).sum();
    assert_eq!(requests, summary.count("requests.answered"));
    let open = |second: &&Value| column(second, "open");
    assert!(seconds.iter().any(|second| open(second) == [200, 200]), "{seconds:#?}");
    // Agents are in the order of their names, which are drawn; columns end with the last value that is not zero.
    let agents = summary.at("agents").as_array().unwrap();
    let lost = agents.iter().position(|agent| agent["state"] == "lost").unwrap();
    let last = seconds.last().unwrap();
    let mut expected = vec![0; lost + 1];
    expected[lost] = 1;
    assert_eq!(column(last, "lost"), expected);
    assert_eq!(column(last, "open").get(lost).copied().unwrap_or(0), 0);
}

#[test]
fn agents_whose_coordinator_is_killed_end_their_load_and_take_the_next_run() {
    let (fleet, server) = (joined("agents-whose-coordinator", 1), Serving::start(&["--threads", "1"]));
    let mut run = fleet.start(&server.url("/"), &["-c", "200", "--think", "1s", "-d", "60s"]);
    run.wait_for("open 200 of 200");
    run.signal(Signal::KILL);
    until("the end of the load", || served(&server, "open") == 0);
    let (ended, s) = fleet.run(&server.url("/"), &["-c", "20", "--think", "100ms", "-d", "1s"]);
    ended.assert_status(0);
    assert_eq!(s.count("connections.held"), 20);
}

/// Ends without a summary: this machine, or its fleet, cannot do it.
fn refused(fleet: &str, target: &str, status: i32, why: &str) {
    let ended = Program::start(&["run", target, "-c", "1", "-d", "1s", "--fleet", fleet]).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(status), ""), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

#[test]
fn a_target_that_an_agent_does_not_allow_is_not_loaded() {
    let fleet = joined("a-target-that", 1);
    refused(
        &fleet.url(),
        "tcp://192.0.2.1:80",
        3,
        "192.0.2.1:80 is not allowed here; start the agent with --allow",
    );
}

#[test]
fn a_fleet_that_is_not_there_is_named_with_the_fix() {
    let nats = nats("nobody");
    let url = format!("nats://{}", nats.address);
    refused(&url, "tcp://127.0.0.1:9", 3, "no agents have joined; start some with throng agent --nats");
    refused("nats://127.0.0.1:9", "tcp://127.0.0.1:9", 3, "--fleet: nats://127.0.0.1:9: ");
    refused("nats://192.0.2.1:4222", "tcp://127.0.0.1:9", 2, "use nats://USER:PASSWORD@192.0.2.1:4222");
}

#[test]
fn a_search_goes_up_and_down_on_the_agents() {
    let (fleet, server) = (joined("search", 2), Serving::start(&["--threads", "1"]));
    let words =
        ["find", &server.url("/"), "--fleet", &fleet.url(), "--max", "600", "-d", "1s", "--json", "-"];
    let ended = Program::start(&words).end_within(PATIENCE);
    ended.assert_status(0);
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(s.count("max"), 600, "{}", ended.stderr);
    until("the end of the load", || served(&server, "open") == 0);
    let arrivals =
        ["find", &server.url("/"), "--by", "arrival", "--fleet", &fleet.url(), "--max", "150", "-d", "1s"];
    let ended = Program::start(&[&arrivals[..], &["--json", "-"]].concat()).end_within(PATIENCE);
    ended.assert_status(0);
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(s.count("max"), 150, "{}", ended.stderr);
}

#[test]
fn pauses_give_way_on_agents_too() {
    // All that it opens at first pause for longer than that.
    let (fleet, server) = (joined("search-idle", 2), Serving::start(&["--threads", "1", "--idle-cut", "5s"]));
    let words = ["find", &server.url("/"), "--fleet", &fleet.url(), "--max", "60", "-d", "6s", "--json", "-"];
    let ended = Program::start(&[&words[..], &["--max-lag", "1m"]].concat()).end_within(PATIENCE);
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert!(
        ended.stderr.contains("think 1.5s..3s: the server closes idle connections after 5."),
        "{}",
        ended.stderr
    );
    assert_eq!(s.count("max"), 60, "{}", ended.stderr);
}

/// A search by connections on three agents, one of which is killed after the step of the first load.
fn search_without_one(name: &str) -> (Joined, Serving, Program) {
    let (fleet, server) = (joined(name, 3), Serving::start(&["--threads", "1"]));
    let words = ["find", &server.url("/"), "--fleet", &fleet.url(), "--max", "4k", "-d", "3s", "--json", "-"];
    // Judged by this alone: how late throng is on a busy machine does not matter here.
    let mut search = Program::start(&[&words[..], &["--threshold", "held >= 99.9%"]].concat());
    // Not the step beside which the target is idle.
    search.wait_for(" 500 connections  pass");
    fleet.agents[1].signal(Signal::KILL);
    (fleet, server, search)
}

#[test]
fn a_search_ends_with_an_agent_that_is_lost_and_keeps_what_passed() {
    let (_fleet, server, search) = search_without_one("search-lost");
    let ended = search.end_within(Duration::from_secs(60));
    ended.assert_status(130);
    assert!(ended.stderr.contains(" was lost: no heartbeat for 4s"), "{}", ended.stderr);
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap());
    assert!(s.count("max") >= 500 && s.at("interrupted") == true, "{}", ended.stdout);
    assert!(s.at("ended").as_str().unwrap().ends_with(" was lost"), "{}", ended.stdout);
    // The target did not fail.
    assert!(s.at("limit").is_null() && s.at("failed").is_null(), "{}", ended.stdout);
    until("the end of the load", || served(&server, "open") == 0);
}

#[test]
fn a_signal_ends_a_search_at_once_also_while_an_agent_is_dead() {
    let (_fleet, server, search) = search_without_one("search-signal");
    thread::sleep(Duration::from_secs(1));
    let asked = Instant::now();
    search.signal(Signal::INT);
    let ended = search.end_within(Duration::from_secs(60));
    // Some two seconds; more on a busy machine.
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}: {}", asked.elapsed(), ended.stderr);
    ended.assert_status(130);
    until("the end of the load", || served(&server, "open") == 0);
}

#[test]
fn an_agent_that_no_run_needs_exits_and_waits_for_a_server_until_then() {
    // No other test is at this address.
    let ended = Program::start(&["agent", "--nats", "nats://127.203.1.1:9", "--idle-exit", "1s"]).end();
    ended.assert_status(0);
    assert_eq!(ended.stdout, "", "{ended:?}");
    let nats = nats("idle");
    let url = format!("nats://{}", nats.address);
    let ended = Program::start(&["agent", "--nats", &url, "--idle-exit", "1s"]).end();
    ended.assert_status(0);
    assert!(ended.stdout.starts_with("agent "), "{ended:?}");
}
