//! The files in `scenarios/`, each at a hundredth of its load, or half of that, and for its full duration, against the server that it
//! names. The expected rates follow from the numbers in their sources: this many connections with a request every so often.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use plan::{Plan, Share};
use samples::{Kind, Stage};
use serve::{Counters, Delay, Knobs, Stats};
use stage::{RunResult, listening, measured, network, play, scenario_with, servers, turns};
use units::Nanos;

use super::{MS, S};

const SEED: u64 = 11;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The fraction of a file's load.
fn plan(name: &str, share: &str) -> Plan {
    let text = |file: &str| fs::read_to_string(folder().join(file)).map_err(|why| why.to_string());
    let whole = scenario_with(&text(name).unwrap(), &text, SEED);
    whole.scaled(Share::parse(share).unwrap())
}

/// The result.
struct Ran {
    plan: Plan,
    result: RunResult,
    server: Stats,
}

/// Against the reference server, at the port in the file.
fn run(name: &str, share: &str) -> Ran {
    let plan = plan(name, share);
    let net = network(SEED, |_| {});
    let mut at = plan.destinations()[0];
    at.set_ip("0.0.0.0".parse().unwrap());
    let (mut servers, counters) = servers(&net, at, 2, plan.places());
    let mut turns = turns(&mut servers);
    let result = play(&net, &plan, 2, &mut turns, |_, _| {});
    let ran = Ran { plan, result, server: counters.read() };
    let c = &ran.result.whole.counts;
    assert_eq!((ran.result.faults(), c.failed, c.dropped, c.closed), (vec![], 0, 0, 0), "{name}");
    assert_eq!(c.answered, c.sent, "{name}: every request has its answer, and none is wrong");
    ran
}

impl Ran {
    /// Responses per second of a population at full load.
    fn per_s(&self, population: usize) -> f64 {
        let answered = self.result.populations[population].counts.answered_at_load;
        answered as f64 / self.result.at_load[population].secs_f64()
    }

    /// Asserts the duration of full load.
    fn check_time(&self, population: usize, time: Nanos) {
        let at_load = self.result.at_load[population];
        assert!((time..=time + MS(5)).contains(&at_load), "{at_load} instead of {time}");
    }

    /// Asserts a figure with a relative tolerance.
    fn check(&self, what: &str, is: f64, expected: f64, within: f64) {
        assert!((is / expected - 1.0).abs() < within, "{what}: {is:.2} instead of {expected:.2}");
    }

    fn body_bytes(&self, population: usize) -> f64 {
        let c = &self.result.populations[population].counts;
        c.body_bytes_in as f64 / c.answered as f64
    }
}

/// Half a hundredth of the http-kit experiments: (seconds of ramp, of full load, mean idle time, mean length).
fn check_http_kit(
    name: &str,
    connections: u64,
    (ramp_s, hold_s): (u64, u64),
    (idle_s, length): (f64, f64),
) -> Ran {
    let ran = run(name, "0.5%");
    let result = &ran.result;
    // The probe keeps one too.
    let open = connections + u64::from(ran.plan.probe.is_some());
    assert_eq!((result.held, result.peak, ran.server.open), (connections, connections, open), "{name}");
    ran.check(name, result.ramped_at.secs_f64(), ramp_s as f64, 0.01);
    ran.check_time(0, S(hold_s));
    // A connection sends a request per mean idle time: tens of thousands of requests deviate by less than a hundredth.
    ran.check(name, ran.per_s(0), connections as f64 / idle_s, 0.01);
    ran.check(name, ran.body_bytes(0), length, 0.01);
    ran
}

#[test]
fn http_kit_400k() {
    check_http_kit("http-kit-400k.toml", 2_000, (80, 23 * 60), (50.0, (1_024.0 + 10_240.0) / 2.0));
}

#[test]
fn http_kit_400k_as_its_code_has_it() {
    check_http_kit("http-kit-400k-code.toml", 2_000, (80, 23 * 60), (54.5, 5_120.0));
}

#[test]
fn http_kit_600k() {
    let ran = check_http_kit("http-kit-600k.toml", 3_000, (150, 750), (25.0, 2_048.5));
    // The probe's rate is not scaled down with the load.
    let seen = ran.result.whole.probe.as_ref().unwrap();
    ran.check("probes", seen.sent as f64, 10.0 * ran.result.hold_until.secs_f64(), 0.001);
    assert_eq!((seen.failed, seen.answered), (0, seen.sent));
}

#[test]
fn http_kit_600k_as_its_code_has_it() {
    check_http_kit("http-kit-600k-code.toml", 3_000, (150, 750), (55.0, 2_048.0));
}

#[test]
fn http_kit_600k_with_ab_beside_it() {
    let ran = run("http-kit-600k-ab.toml", "0.5%");
    let Ran { result, server, .. } = &ran;
    let [desktop, ab] = [0, 1].map(|population| &result.populations[population]);
    // Ten minutes alone, ten seconds with ab, a minute afterwards, and the moves between them.
    let [(_, up), (beside, full), (after, gone)] = result.stages[..] else { panic!("three stages") };
    assert_eq!((beside.since(up), after.since(full)), (S(600), S(10)));
    ran.check_time(1, S(10));
    ran.check_time(0, Nanos(S(670).0 + full.since(beside).0 + gone.since(after).0));
    ran.check("desktop", ran.per_s(0), 3_000.0 / 25.0, 0.01);
    assert_eq!(
        (desktop.open, desktop.counts.opened, ab.open, ab.counts.opened, ab.counts.finished),
        (3_000, 3_000, 0, 1, 1)
    );
    // A closed loop: as many as possible, one after the other.
    let round = measured(&ab.latency).mean / 1e6;
    ran.check("ab", ran.per_s(1), 1.0 / round, 0.01);
    assert!(ran.per_s(1) > 4_000.0, "{}", ran.per_s(1));
    assert_eq!((server.open, ran.plan.populations[1].load.connections()), (3_000, 1));
}

#[test]
fn express_with_wrk() {
    let ran = run("express-wrk.toml", "1%");
    ran.check_time(0, S(30));
    let latency = measured(&ran.result.whole.latency);
    ran.check("closed loop", ran.per_s(0), 4.0 / (latency.mean / 1e6), 0.01);
    assert_eq!((ran.result.held, ran.body_bytes(0)), (4, 12.0));
    assert_eq!(ran.server.requests, ran.result.whole.counts.sent);
}

#[test]
fn express_with_fortio() {
    let ran = run("express-fortio.toml", "25%");
    ran.check_time(0, S(30));
    let latency = measured(&ran.result.whole.latency);
    ran.check("closed loop", ran.per_s(0), 3.0 / (latency.mean / 1e6), 0.01);
    assert_eq!((ran.result.held, ran.body_bytes(0)), (3, 12.0));
    let status = &ran.result.whole.status;
    assert_eq!(
        (status[200], status.iter().sum()),
        (ran.result.whole.counts.answered, status[200]),
        "all are 200"
    );
}

#[test]
fn play_with_100k_websockets() {
    let ran = run("play-c100k.toml", "1%");
    assert_eq!((ran.result.held, ran.server.open), (1_000, 1_000));
    ran.check_time(0, S(600));
    // Each sends a request every thirty seconds, exactly.
    ran.check("pings", ran.per_s(0), 1_000.0 / 30.0, 0.002);
    let c = &ran.result.whole.counts;
    assert_eq!((c.body_bytes_in, ran.server.requests), (4 * c.answered, c.answered + 1_000));
}

#[test]
fn play_with_200k_websockets_half_of_them_on_top() {
    let ran = run("play-c200k.toml", "1%");
    let [(began, half), (more, all)] = ran.result.stages[..] else { panic!("two stages") };
    assert_eq!((began, more.since(half), ran.result.hold_until.since(all)), (Nanos::ZERO, S(300), S(600)));
    assert_eq!((ran.result.held, ran.result.whole.counts.opened, ran.server.open), (2_000, 2_000, 2_000));
    let expected = (1_000.0 * 300.0 + 2_000.0 * 600.0) / 30.0;
    ran.check("pings", ran.result.whole.counts.answered_at_load as f64, expected, 0.005);
}

#[test]
fn mixed() {
    let ran = run("mixed.toml", "10%");
    let Ran { result, .. } = &ran;
    let [idle, users] = [0, 1].map(|population| &result.populations[population]);
    assert_eq!((idle.open, users.open, idle.counts.opened, users.counts.opened), (2_000, 20, 2_000, 20));
    let [(_, there), (then, full)] = result.stages[..] else { panic!("two stages") };
    assert!((S(4)..S(5)).contains(&there) && then == there, "{there}");
    assert!((S(9)..MS(10_400)).contains(&full.since(then)), "{}", full.since(then));
    ran.check_time(1, S(60));
    // Pings: one per thirty seconds. Users: a lookup per three seconds on average; their logins came before.
    ran.check("idle", ran.per_s(0), 2_000.0 / 30.0, 0.02);
    ran.check("users", ran.per_s(1), 20.0 / 3.0, 0.1);
    let steps: Vec<u64> = result.whole.steps.iter().map(|step| step.count()).collect();
    assert_eq!(
        (steps[1], steps[2]),
        (0, users.latency.count()),
        "{:?}",
        ran.plan.steps().collect::<Vec<_>>()
    );
    ran.check("looks", ran.body_bytes(1), 2_048.5, 0.2);
    assert_eq!(result.whole.probe.as_ref().unwrap().failed, 0);
}

#[test]
fn cl_async_and_its_second_calls() {
    let plan = plan("cl-async.toml", "5%");
    let net = network(SEED, |_| {});
    let counters = Arc::new(Counters::new(1));
    let delay = Delay::shard(counters.clone(), 0, S(5), &Knobs::default());
    let mut server = listening(&net, "0.0.0.0:9009".parse().unwrap(), 4_000, delay);
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    let c = &result.whole.counts;
    // 2,000 arrive at 300 a second; each gets one response after five seconds, and then finds the connection closed.
    assert_eq!((c.opened, c.answered, c.failed, c.finished, c.closed), (2_000, 2_000, 0, 0, 0), "{c:?}");
    assert_eq!((c.dropped, counters.read().requests), (2_000, 2_000));
    let kinds: BTreeSet<(Stage, Kind)> = result.faults().iter().map(|fault| (fault.0, fault.1)).collect();
    let ends = [(Stage::Exchange, Kind::Closed), (Stage::Exchange, Kind::Reset)];
    assert!(kinds.iter().all(|kind| ends.contains(kind)), "{kinds:?}");
    let latency = measured(&result.whole.latency);
    assert!(latency.min >= 5e6 && latency.max < 5.003e6, "{latency:?}");
    // 12,645 were open at 6,000 a second with dials of two seconds; if all are on time, five seconds' worth.
    assert!((1_498..=1_503).contains(&result.peak), "{}", result.peak);
    let end = S(5) + MS(6_663);
    assert!((end..end + MS(10)).contains(&result.hold_until), "{}", result.hold_until);
}

#[test]
fn every_file_is_run() {
    let names =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.filter(|name| name.ends_with(".toml")).collect();
    // Files with subprotocols are tested with real servers.
    let texts = [include_str!("files.rs"), include_str!("../../../../cli/tests/interop/subprotocols.rs")];
    let is_run = |name: &str| texts.iter().any(|text| text.contains(&format!("(\"{name}\"")));
    let forgotten: Vec<&String> = names.iter().filter(|name| !is_run(name)).collect();
    assert!(names.len() >= 11 && forgotten.is_empty(), "{forgotten:?}");
}
