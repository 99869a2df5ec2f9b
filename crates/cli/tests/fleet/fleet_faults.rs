//! What goes wrong during a run on a fleet: processes that die, freeze and start again, links that are cut, disks that are full.
//! Whatever happens, what the agents counted is counted once, and the verdict says what happened.

use std::{
    collections::HashSet,
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    fleet::{Joined, joined, nats_at, read, served, states},
    hosts::Hosts,
    nats::Raw,
    program::{DATA, Ended, Program, Serving, file, skip, throng, until},
    server::{folder, program},
    summary::Summary,
};

const LOAD: [&str; 4] = ["-c", "400", "--think", "600ms..1800ms"];

fn start(fleet: &Joined, server: &Serving, seconds: u64) -> Program {
    start_with(fleet, server, seconds, &[])
}

fn start_with(fleet: &Joined, server: &Serving, seconds: u64, args: &[&str]) -> Program {
    let seconds = format!("{seconds}s");
    let mut run = fleet.start(&server.url("/"), &[&LOAD[..], &["-d", &seconds], args].concat());
    run.wait_for("open 400 of 400");
    run
}

/// All that was sent was answered, the server counts as much, and what the agents report adds up.
fn assert_exact(s: &Summary, server: &Serving) {
    assert_eq!(s.count("requests.answered"), s.count("requests.sent"));
    // The run asks the server for its count, too.
    assert_eq!(s.count("requests.answered") + 1, served(server, "requests"));
    let agents = s.at("agents").as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["sealed"] == true), "{agents:?}");
}

#[test]
fn a_coordinator_that_is_started_again_takes_up_its_run() {
    let (fleet, server) = (joined("restarted", 2), Serving::start(&["--threads", "1"]));
    let run = start(&fleet, &server, 12);
    thread::sleep(Duration::from_secs(2));
    run.signal(Signal::KILL);
    run.end();
    let again = fleet.start(&server.url("/"), &[&LOAD[..], &["-d", "12s"]].concat());
    let (ended, s) = read(again);
    ended.assert_status(0);
    assert!(ended.stderr.contains("resuming run "), "{}", ended.stderr);
    assert_eq!((s.count("connections.opened"), s.count("connections.held")), (400, 400), "{}", ended.stderr);
    assert_exact(&s, &server);
    assert_eq!(states(&s), ["done", "done"]);
}

#[test]
fn nats_that_is_killed_and_started_again_loses_nothing() {
    let (mut fleet, server) = (joined("outage", 2), Serving::start(&["--threads", "1"]));
    let run = start(&fleet, &server, 8);
    fleet.nats.program.signal(Signal::KILL);
    thread::sleep(Duration::from_secs(2));
    let again = Program::from(nats_at(fleet.nats.address, &fleet.folder));
    let before = std::mem::replace(&mut fleet.nats.program, again);
    before.end();
    let (ended, s) = read(run);
    ended.assert_status(0);
    assert_eq!((s.count("connections.held"), states(&s)), (400, vec!["done", "done"]), "{}", ended.stderr);
    assert_exact(&s, &server);
}

/// The load ends while it is away.
#[test]
fn nats_that_is_away_at_the_end_loses_nothing() {
    let (mut fleet, server) = (joined("away-at-the-end", 2), Serving::start(&["--threads", "1"]));
    let mut run = fleet.start(&server.url("/"), &["-c", "40", "--think", "500ms", "-d", "6s"]);
    run.wait_for("open 40 of 40");
    thread::sleep(Duration::from_millis(5_500));
    fleet.nats.program.signal(Signal::KILL);
    thread::sleep(Duration::from_secs(2));
    let again = Program::from(nats_at(fleet.nats.address, &fleet.folder));
    let before = std::mem::replace(&mut fleet.nats.program, again);
    before.end();
    let (ended, s) = read(run);
    ended.assert_status(0);
    assert_eq!((s.count("connections.held"), states(&s)), (40, vec!["done", "done"]), "{}", ended.stderr);
    assert_exact(&s, &server);
    // A request each half second, at most.
    assert!(s.at("requests.per_s").as_f64().unwrap() <= 80.5, "{:#}", s.at("requests"));
}

/// A coordinator that is stopped for this long at full load, and goes on: what its agents counted is counted once.
fn stopped(name: &str, span: Duration, seconds: u64) -> (Ended, Summary) {
    let (fleet, server) = (joined(name, 2), Serving::start(&["--threads", "1"]));
    let run = start(&fleet, &server, seconds);
    run.signal(Signal::STOP);
    thread::sleep(span);
    run.signal(Signal::CONT);
    let (ended, s) = read(run);
    let line = format!("the coordinator was stopped for {}", span.as_secs());
    assert!(ended.stderr.contains(&line), "{line}: {}", ended.stderr);
    assert!(!ended.stderr.contains("no heartbeat"), "{}", ended.stderr);
    assert_eq!(s.count("requests.answered"), s.count("requests.sent"), "{}", ended.stderr);
    // The run may ask the server for its count, too.
    let own = served(&server, "requests") - s.count("requests.answered");
    assert!(own <= 2, "{own}: {}", ended.stderr);
    until("the agents have closed their connections", || served(&server, "open") == 0);
    let agents = s.at("agents").as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["sealed"] == true), "{agents:?}");
    (ended, s)
}

#[test]
fn a_coordinator_that_is_stopped_for_a_while_goes_on_with_its_agents() {
    let (ended, s) = stopped("stopped", Duration::from_secs(6), 14);
    ended.assert_status(0);
    assert_eq!((s.count("connections.held"), states(&s)), (400, vec!["done", "done"]), "{}", ended.stderr);
}

/// Their leases run out after 10 s.
#[test]
fn a_coordinator_that_is_stopped_for_too_long_has_all_that_its_agents_counted() {
    let (ended, s) = stopped("stopped-too-long", Duration::from_secs(12), 40);
    assert_eq!(states(&s), ["lost", "lost"], "{}", ended.stderr);
    let reasons = s.at("reasons").to_string();
    assert!(reasons.contains("no message from its coordinator for 10s"), "{reasons}");
}

#[test]
fn full_load_without_an_agent_that_stood_still_is_no_pass() {
    let (fleet, server) = (joined("frozen-early", 2), Serving::start(&["--threads", "1"]));
    let mut run = fleet.start(&server.url("/"), &["-c", "60", "--think", "500ms", "-d", "8s"]);
    run.wait_for("run ");
    fleet.agents[1].signal(Signal::STOP);
    run.wait_for(" was lost: no heartbeat");
    run.wait_for("open 30 of 60");
    thread::sleep(Duration::from_secs(2));
    fleet.agents[1].signal(Signal::CONT);
    let (ended, s) = read(run);
    ended.assert_status(4);
    let reasons = s.at("reasons").to_string();
    assert!(
        reasons.contains("full load began with 30 of 60 connections: agent "),
        "{reasons}: {}",
        ended.stderr
    );
}

/// How a run went of whose two agents one was stopped for a time at full load.
struct Frozen {
    ended: Ended,
    s: Summary,
    /// Of the agent that was stopped.
    id: String,
    /// The histogram log.
    log: String,
}

/// Checks what is the same however long that was: it is named, and what both agents counted is counted once.
fn freeze(name: &str, stopped: Duration, seconds: u64) -> Frozen {
    let (fleet, server) = (joined(name, 2), Serving::start(&["--threads", "1"]));
    let [rows, log] = ["jsonl", "hlog"].map(|end| file(&format!("{name}.{end}")));
    let files = ["--jsonl", rows.to_str().unwrap(), "--hlog", log.to_str().unwrap()];
    let run = start_with(&fleet, &server, seconds, &files);
    let id = fleet.agents[1].stdout().split(' ').nth(1).unwrap().to_owned();
    // The load is reported at the end of a second: in the midst of the next it has counted what it cannot deliver.
    thread::sleep(Duration::from_millis(600));
    fleet.agents[1].signal(Signal::STOP);
    thread::sleep(stopped);
    fleet.agents[1].signal(Signal::CONT);
    let (ended, s) = read(run);
    let line = format!("agent {id} was lost: no heartbeat for 4s");
    assert!(ended.stderr.contains(&line), "{line}: {}", ended.stderr);
    assert_exact(&s, &server);
    agents_sum_up_to_the_run(&fs::read_to_string(rows).unwrap(), &s);
    Frozen { ended, s, id, log: fs::read_to_string(log).unwrap() }
}

/// Counters of the last second have all.
fn agents_sum_up_to_the_run(rows: &str, s: &Summary) {
    let last: Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
    let of_agents = last.as_object().unwrap().iter();
    let of_agents = of_agents.filter(|(name, _)| name.starts_with("throng_agent_requests_total{"));
    let counts: Vec<u64> = of_agents.map(|(_, n)| n.as_u64().unwrap()).collect();
    assert_eq!((counts.len(), counts.iter().sum()), (2, s.count("requests.answered")), "{counts:?}");
    assert_eq!(last["throng_answers_total"].as_u64(), Some(s.count("requests.answered")));
}

#[test]
fn an_agent_that_stands_still_is_named_and_comes_back_with_what_it_counted() {
    // From 9 s on its lease of 10 s, which is renewed each second, may have run out: then it ends its load.
    let Frozen { ended, s, id, log } = freeze("frozen", Duration::from_secs(8), 16);
    let agents = s.at("agents").as_array().unwrap();
    let line = format!("agent {id} is back; it was away for ");
    assert!(ended.stderr.contains(&line), "{line}: {}", ended.stderr);
    let away: Vec<f64> = agents.iter().filter_map(|agent| agent["away_s"].as_f64()).collect();
    assert!(matches!(away[..], [away] if (7.9..12.0).contains(&away)), "{agents:?}: {}", ended.stderr);
    assert_eq!((s.count("connections.held"), states(&s)), (400, vec!["done", "done"]), "{}", ended.stderr);
    // What was late has lines of seconds before the line above.
    let starts =
        log.lines().filter_map(|line| line.strip_prefix("Tag=latency,")?.split(',').next()?.parse().ok());
    let starts: Vec<f64> = starts.collect();
    assert!(starts.len() > 10 && !starts.is_sorted(), "{starts:?}");
}

/// Its coordinator sends each second, and what it sent after the stop is on its way when the agent goes on: a lease that ends 11 s after
/// the stop at the latest.
#[test]
fn an_agent_that_stands_still_for_longer_than_its_lease_ends_its_load_and_is_lost() {
    let Frozen { ended, s, id, .. } = freeze("frozen-beyond-its-lease", Duration::from_secs(12), 22);
    ended.assert_status(1);
    assert_eq!((s.count("connections.held"), states(&s)), (200, vec!["done", "lost"]), "{}", ended.stderr);
    let lost = s.at("agents").as_array().unwrap().iter().find(|agent| agent["state"] == "lost");
    assert_eq!(lost.map(|agent| &agent["id"]), Some(&Value::from(id.as_str())), "{:#}", s.at("agents"));
    let reasons = s.at("reasons").to_string();
    let named = reasons.contains(&format!("agent {id} was lost with "));
    assert!(named && reasons.contains("no message from its coordinator for 10s"), "{reasons}");
}

#[test]
fn three_hosts_hold_fifty_thousand_each_and_every_count_is_the_servers() {
    let Some(hosts) = Hosts::new(4) else { return };
    let _nats = hosts.nats("10.66.0.1:4222", &folder("nats-large"));
    let ports = [8000, 8001];
    // A host has 28,232 ports for one destination.
    let servers = ports.map(|port| hosts.serve(&format!("10.66.0.1:{port}")));
    let url = "nats://u:p@10.66.0.1:4222";
    let _agents: Vec<Program> = (1..4).map(|nth| hosts.agent(nth, url, "10.66.0.1")).collect();
    let target = "http://10.66.0.1:{8000..8001}/";
    let words = [
        "run", target, "-c", "150k", "--think", "10s..30s", "-d", "6s", "--fleet", url, "--live", "off",
        "--json", "-",
    ];
    let ended = Program::from(hosts.throng(0, &words)).end_within(Duration::from_secs(180));
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    assert_eq!((s.count("connections.held"), states(&s)), (150_000, vec!["done"; 3]), "{}", ended.stderr);
    let agents = s.at("agents").as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["sealed"] == true && agent["held"] == 50_000), "{agents:?}");
    // Each of the two is asked for its count, by the run and by this test.
    let counted: u64 = ports.map(|port| hosts.requests(&format!("10.66.0.1:{port}"))).iter().sum();
    let asked = counted - s.count("requests.answered");
    assert!(s.count("requests.answered") == s.count("requests.sent") && (2..=4).contains(&asked), "{asked}");
    drop(servers);
}

#[test]
fn what_a_killed_agent_did_is_done_by_the_others() {
    let (fleet, server) = (joined("reassigned", 3), Serving::start(&["--threads", "1"]));
    let args = [&LOAD[..], &["-d", "24s", "--on-lost", "reassign"]].concat();
    // Requests are under way at any time.
    let mut run = fleet.start(&server.url("/delay?for=400ms"), &args);
    run.wait_for("open 400 of 400");
    fleet.agents[1].signal(Signal::KILL);
    let (ended, s) = read(run);
    ended.assert_status(0);
    let agents = s.at("agents").as_array().unwrap();
    let lost = agents.iter().find(|agent| agent["state"] == "lost").unwrap_or_else(|| panic!("{agents:?}"));
    let [wanted, held] = ["wanted", "lost_with"].map(|figure| lost[figure].as_u64().unwrap());
    assert!(wanted == held && lost["taken_over_by"].as_array().unwrap().len() == 2, "{lost}");
    assert_eq!(
        (s.count("connections.held"), s.count("connections.opened")),
        (400, 400 + held),
        "{}",
        ended.stderr
    );
    assert_eq!(s.count("connections.seen_by_target"), 400);
    let lost = lost["requests_lost"].as_u64().unwrap();
    let ends = s.count("requests.answered") + s.count("requests.unanswered") + lost;
    assert!(lost > 0 && ends == s.count("requests.sent"), "{lost} of {}", s.at("requests"));
    let reasons = s.at("reasons").to_string();
    assert!(reasons.contains(" took over its part"), "{reasons}");
}

/// What it had not sent by its last report is sent by the others; what it sent after that, by both. They have sent their own 800 each
/// some 7 s after the beginning, and its lease runs out 10 s later: they wait for that.
#[test]
fn a_number_of_requests_is_sent_whoever_is_lost() {
    const REQUESTS: u64 = 2_400;
    let (fleet, server) = (joined("left", 3), Serving::start(&["--threads", "1"]));
    let requests = REQUESTS.to_string();
    let args = [&LOAD[..], &["-n", &requests, "--on-lost", "reassign"]].concat();
    let mut run = fleet.start(&server.url("/"), &args);
    run.wait_for("open 400 of 400");
    fleet.agents[1].signal(Signal::KILL);
    let (ended, s) = read(run);
    assert_eq!(s.count("requests.sent"), REQUESTS, "{}: {:#}", ended.stderr, s.at("agents"));
    // 134 connections with a request each 1.2 s, for three seconds.
    let seen = served(&server, "requests") - 1;
    assert!((REQUESTS..REQUESTS + 3 * 134).contains(&seen), "{seen}");
    ended.assert_status(0);
}

#[test]
fn a_run_that_is_to_end_with_an_agent_does() {
    let (fleet, server) = (joined("aborted", 2), Serving::start(&["--threads", "1"]));
    let args = [&LOAD[..], &["-d", "60s", "--on-lost", "abort"]].concat();
    let mut run = fleet.start(&server.url("/"), &args);
    run.wait_for("open 400 of 400");
    fleet.agents[1].signal(Signal::KILL);
    let (ended, s) = read(run);
    ended.assert_status(130);
    assert_eq!(states(&s), ["done", "lost"], "{}", ended.stderr);
    let reasons = s.at("reasons").to_string();
    let id = fleet.agents[1].stdout().split(' ').nth(1).unwrap().to_owned();
    assert!(reasons.contains(&format!("interrupted by the loss of agent {id}")), "{reasons}");
}

#[test]
fn an_agent_that_was_cut_off_ends_its_load_and_delivers_what_it_counted() {
    let Some(hosts) = Hosts::new(3) else { return };
    let _nats = hosts.nats("10.66.0.1:4222", &folder("nats-cut"));
    let _server = hosts.serve("10.66.0.1:8000");
    let url = "nats://u:p@10.66.0.1:4222";
    let _agents: Vec<Program> = (1..3).map(|nth| hosts.agent(nth, url, "10.66.0.1:8000")).collect();
    let words =
        ["run", "http://10.66.0.1:8000/", "--fleet", url, "--live", "line", "--json", "-", "-d", "36s"];
    let mut run = Program::from(hosts.throng(0, &[&words[..], &LOAD].concat()));
    run.wait_for("open 400 of 400");
    // To NATS only: its connections to the target stay, and it ends them when its lease has run out.
    hosts.drop_to(1, 4222);
    thread::sleep(Duration::from_secs(20));
    // TCP sends again what was lost some 25 s after the cut.
    hosts.drop_nothing(1);
    let (ended, s) = read(run);
    ended.assert_status(1);
    assert_eq!((s.count("connections.held"), states(&s)), (200, vec!["done", "lost"]), "{}", ended.stderr);
    let reasons = s.at("reasons").to_string();
    assert!(reasons.contains("no message from its coordinator for 10s"), "{reasons}");
    // What was under way when its lease ran out has had its response, and then its connections were closed; two requests are for these
    // counts.
    let (sent, answered) = (s.count("requests.sent") + 2, s.count("requests.answered") + 2);
    assert_eq!((sent, hosts.requests("10.66.0.1:8000")), (answered, answered), "{}", ended.stderr);
    // The last of thirty steps comes with the end, and the one before may be late.
    assert!(s.count("connections.finished") >= 180, "{:#}", s.at("connections"));
    let agents = s.at("agents").as_array().unwrap();
    assert!(agents.iter().all(|agent| agent["sealed"] == true), "{agents:?}");
}

#[test]
fn an_agent_whose_disk_is_full_keeps_counting() {
    let Some(hosts) = Hosts::new(1) else { return };
    let disk = folder("full-disk");
    hosts.run(0, &format!("mount -t tmpfs -o size=4k none {}", disk.display()));
    let folder = folder("nats-full");
    let nats = hosts.nats("127.0.0.1:4222", &folder);
    let _server = hosts.serve("127.0.0.1:8000");
    let url = "nats://127.0.0.1:4222";
    let mut agent = hosts.throng(0, &["agent", "--nats", url]);
    agent.env(DATA, &disk);
    let agent = Program::from(agent);
    until("an agent", || agent.stdout().starts_with("agent "));
    let words =
        ["run", "http://127.0.0.1:8000/", "--fleet", url, "--live", "line", "--json", "-", "-d", "8s"];
    let mut run = Program::from(hosts.throng(0, &[&words[..], &LOAD].concat()));
    run.wait_for("open 400 of 400");
    nats.signal(Signal::KILL);
    nats.end();
    until("it is said", || agent.stderr().contains("No space left on device"));
    let _nats = hosts.nats("127.0.0.1:4222", &folder);
    let (ended, s) = read(run);
    ended.assert_status(0);
    assert_eq!((s.count("connections.held"), states(&s)), (400, vec!["done"]), "{}", ended.stderr);
    assert_eq!(s.count("requests.answered") + 2, hosts.requests("127.0.0.1:8000"));
}

/// Stores each entry of a log again, four at a time in the opposite order, until NATS ends; how many so far.
fn repeat(fleet: &Joined) -> (Arc<AtomicUsize>, JoinHandle<()>) {
    let (mut reading, mut writing) = (Raw::new(fleet.nats.address), Raw::new(fleet.nats.address));
    reading.send(b"SUB throng.log.> 1\r\nPING\r\n");
    assert_eq!(reading.line(), "PONG");
    let count = Arc::<AtomicUsize>::default();
    let repeated = count.clone();
    let thread = thread::spawn(move || {
        let (mut seen, mut last) = (HashSet::new(), Vec::new());
        while let Some((subject, entry)) = reading.message() {
            // Those that it has stored come back.
            if seen.insert(entry.clone()) {
                last.push((subject, entry));
            }
            if last.len() < 4 {
                continue;
            }
            for (subject, entry) in last.drain(..).rev() {
                let head = format!("PUB {subject} {}\r\n", entry.len());
                writing.send(&[head.as_bytes(), &entry, b"\r\n"].concat());
                repeated.fetch_add(1, Relaxed);
            }
        }
    });
    (count, thread)
}

#[test]
fn entries_that_are_delivered_twice_and_in_another_order_count_once() {
    let (fleet, server) = (joined("delivered-twice", 2), Serving::start(&["--threads", "1"]));
    let (repeated, thread) = repeat(&fleet);
    let (ended, s) = read(start(&fleet, &server, 6));
    ended.assert_status(0);
    assert_eq!((s.count("connections.held"), states(&s)), (400, vec!["done", "done"]), "{}", ended.stderr);
    assert_exact(&s, &server);
    // Two agents store an entry each second.
    assert!(repeated.load(Relaxed) >= 8, "{repeated:?}");
    drop(fleet);
    thread.join().unwrap();
}

#[test]
fn agents_whose_clocks_are_an_hour_apart_begin_together() {
    let (mut fleet, server) = (joined("clock", 1), Serving::start(&["--threads", "1"]));
    let own = std::env::var_os("THRONG_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_throng").into());
    let url = fleet.url();
    let words = [
        "--time",
        "--monotonic",
        "3600",
        "--fork",
        "--kill-child",
        own.to_str().unwrap(),
        "agent",
        "--nats",
        &url,
    ];
    let tried = program("unshare", &[&words[..5], &["true"]].concat()).output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        return skip(format_args!("a time namespace needs root: {tried:?}"));
    }
    let mut agent = Program::from(program("unshare", &words));
    until("an agent, or none", || agent.stdout().starts_with("agent ") || agent.is_ended());
    assert!(!agent.is_ended(), "{}", agent.stderr());
    fleet.agents.push(agent);
    let (ended, s) = fleet.run(&server.url("/"), &[&LOAD[..], &["-d", "2s"]].concat());
    ended.assert_status(0);
    assert_exact(&s, &server);
    for agent in s.at("agents").as_array().unwrap() {
        let (late, error) =
            (agent["began_late_ms"].as_f64().unwrap(), agent["clock_error_ms"].as_f64().unwrap());
        assert!(late.abs() < 1_000.0 && error < 1_000.0, "{agent}");
    }
}

/// An error in throng on an agent ends its part, and it says which; the run goes on without it, and is invalid.
#[test]
fn an_agent_in_which_throng_fails_makes_the_run_invalid() {
    let (mut fleet, server) = (joined("failing", 1), Serving::start(&["--threads", "1"]));
    let mut agent = throng(&["agent", "--nats", &format!("nats://{}", fleet.nats.address)]);
    agent.env("THRONG_FAIL", "shard:900").env_remove("RUST_BACKTRACE");
    let agent = Program::from(agent);
    until("an agent", || agent.stdout().starts_with("agent "));
    fleet.agents.push(agent);
    let (ended, s) = read(fleet.start(&server.url("/"), &[&LOAD[..], &["-d", "12s"]].concat()));
    assert_eq!((ended.status, s.text("verdict")), (Some(4), "invalid"), "{ended:#?}");
    let headline = s.text("headline");
    assert!(headline.starts_with("invalid: throng failed: agent "), "{headline}");
    assert!(headline.contains(": injected in shard (crates/"), "{headline}");
    assert_eq!(states(&s), ["done", "lost"]);
    assert!(s.count("requests.answered") > 0, "{ended:#?}");
    let ended = fleet.agents.pop().unwrap().end();
    assert_eq!(ended.status, Some(4), "{ended:#?}");
    assert!(ended.stderr.contains("throng: throng failed: injected in shard ("), "{ended:#?}");
}

/// An error in the coordinator ends its run; the agents are free again.
#[test]
fn a_coordinator_that_fails_has_a_summary() {
    let (fleet, server) = (joined("failing-coordinator", 1), Serving::start(&["--threads", "1"]));
    let url = format!("nats://{}", fleet.nats.address);
    let json = file("failing-coordinator.json");
    let args = ["run", &server.url("/"), "--fleet", &url, "-d", "60s", "--json", json.to_str().unwrap()];
    let mut run = throng(&[&args[..], &LOAD].concat());
    run.env("THRONG_FAIL", "conductor:60").env_remove("RUST_BACKTRACE");
    let ended = Program::from(run).end();
    assert_eq!(ended.status, Some(4), "{ended:#?}");
    assert!(ended.took_s < 45.0, "{ended:#?}");
    let s: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert!(s["failure"].as_str().unwrap().starts_with("injected in conductor ("), "{s}");
    assert!(s["connections"]["opened"].as_u64().unwrap() > 0, "{s}");
    let (ended, _) = fleet.run(&server.url("/"), &["-c", "9", "-d", "1s"]);
    ended.assert_status(0);
}
