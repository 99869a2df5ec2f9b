//! Silence is a failure. Every load against every way in which a target stops responding, with and without thresholds, judged like any
//! run: no combination passes that should not, and each request has exactly one outcome. `black_box/silence.rs` does the same over real
//! sockets; here the results are exact, since no machine is late in virtual time.

use std::sync::Arc;

use net::io::sim::{Net, Turn};
use plan::{Plan, Scheme};
use run::By;
use samples::{FaultCount, Kind, Requests, Stage, Summary, Verdict};
use serve::{Counters, Http, Knobs};
use stage::{
    DATE, Direction, RunResult, direct,
    fates::{Frozen, Killed},
    listening, network, plan, scenario,
};
use units::Nanos;

mod thresholds;
mod truth;

use thresholds::Echo;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// The behaviour of the target.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    /// Nothing is wrong. A load that passes here and fails with a trouble fails because of that.
    None,
    NeverAnswers,
    StopsInTheMiddle,
    StopsInTheLastSecond,
    LosesSome,
    IsKilled,
    StopsAndGoesOn,
    /// Only in the test of all thresholds: no other test has anything to judge.
    NeverListens,
}

use Trouble::*;

const ALL: [Trouble; 7] =
    [None, NeverAnswers, StopsInTheMiddle, StopsInTheLastSecond, LosesSome, IsKilled, StopsAndGoesOn];

/// Full load lasts until shortly after 3 s.
const MIDDLE: Nanos = Nanos::from_millis(1_200);
const LAST_SECOND: Nanos = Nanos::from_millis(2_500);
/// When a target continues that stops only for a while.
const AGAIN: Nanos = Nanos::from_millis(2_700);

/// Exceeds every correct response time, but not the stop.
const THRESHOLD: &str = "latency.max<500ms";

/// A load: the target's path, and its flags.
type Load = (&'static str, &'static str);

const HERE: &str = "127.0.0.1:8000";
const HTTP: &str = "http://127.0.0.1:8000/";
const ECHO: &str = "ws://127.0.0.1:8000/ws/echo";

const CLOSED: Load = (HTTP, "connections=4 ramp=0s duration=2900ms");
const THINK: Load = (HTTP, "connections=40 ramp=0s think=50ms..150ms duration=2900ms");
const RATE: Load = (HTTP, "connections=40 ramp=0s rate=300/s duration=2900ms");
const ARRIVALS: Load = (HTTP, "arrive=100/s total=290 calls=2");
const MESSAGES: Load = (ECHO, "connections=40 ramp=0s ping=100ms duration=2900ms");
const LOADS: [Load; 5] = [CLOSED, THINK, RATE, ARRIVALS, MESSAGES];

/// A target with a trouble, on its own network.
struct Target {
    net: Net,
    server: Box<dyn Turn>,
    counters: Arc<Counters>,
    trouble: Trouble,
}

impl Target {
    fn new(trouble: Trouble, seed: u64) -> Target {
        let http = |counters: Arc<Counters>, net: &Net, knobs: &Knobs| -> Box<dyn Turn> {
            let http = Http::shard(counters, 0, 2_000, knobs).starting(DATE);
            Box::new(listening(net, HERE.parse().unwrap(), 2_000, http))
        };
        Target::with(trouble, seed, http)
    }

    /// A target for the protocol of the plan.
    fn of(plan: &Plan, trouble: Trouble, seed: u64) -> Target {
        if plan.populations[0].target.scheme != Scheme::Tcp {
            return Target::new(trouble, seed);
        }
        Target::with(trouble, seed, |_, net, knobs| {
            let echo = Echo::new(knobs.stalls_of_million);
            Box::new(listening(net, HERE.parse().unwrap(), 2_000, echo))
        })
    }

    fn with(
        trouble: Trouble,
        seed: u64,
        server: impl FnOnce(Arc<Counters>, &Net, &Knobs) -> Box<dyn Turn>,
    ) -> Target {
        let net = network(seed, |f| f.delay = (MS(1), MS(3)));
        let stalls_of_million = match trouble {
            NeverAnswers => 1_000_000,
            LosesSome => 100_000,
            _ => 0,
        };
        let knobs = Knobs { stalls_of_million, ..Knobs::default() };
        let counters = Arc::new(Counters::new(1));
        let server = server(counters.clone(), &net, &knobs);
        Target { net, server, counters, trouble }
    }

    fn meet(&mut self, plan: &Plan, direction: Direction) -> RunResult {
        let (net, server) = (&self.net, &mut *self.server);
        let mut frozen = |from, until| {
            direct(net, plan, 2, &mut [&mut Frozen::new(net, server, &[(from, until)])], direction, |_, _| {})
        };
        match self.trouble {
            StopsInTheMiddle => frozen(MIDDLE, Nanos::NEVER),
            StopsInTheLastSecond => frozen(LAST_SECOND, Nanos::NEVER),
            StopsAndGoesOn => frozen(MIDDLE, AGAIN),
            IsKilled | NeverListens => {
                let at = if self.trouble == IsKilled { MIDDLE } else { Nanos::ZERO };
                direct(net, plan, 2, &mut [&mut Killed::new(net, server, at)], direction, |_, _| {})
            }
            None | NeverAnswers | LosesSome => direct(net, plan, 2, &mut [server], direction, |_, _| {}),
        }
    }
}

/// A load, its trouble, and how it is judged.
#[derive(Clone, Copy, Debug)]
struct Cell {
    load: Load,
    more: &'static str,
    trouble: Trouble,
    threshold: Option<&'static str>,
    seed: u64,
}

impl Cell {
    fn plan(&self) -> Plan {
        let (target, flags) = self.load;
        // The timeout is long enough for a target that stops only for a while.
        let timeout = if self.trouble == StopsAndGoesOn { "8s" } else { "700ms" };
        let threshold = self.threshold.map_or(String::new(), |text| format!("threshold={text}"));
        plan(target, &format!("{flags} timeout={timeout} {} {threshold}", self.more), self.seed)
    }

    /// Runs it, and checks that its accounts balance.
    fn play(&self, direction: Direction) -> (RunResult, Summary) {
        let (mut target, plan) = (Target::new(self.trouble, self.seed), self.plan());
        let result = target.meet(&plan, direction);
        let summary = result.judge(&plan);
        self.check_counts(&result, &summary);
        if matches!(self.trouble, None | StopsAndGoesOn) && plan.probe.is_none() {
            let upgrades = if target_speaks_websocket(&plan) { result.whole.counts.opened } else { 0 };
            let here = summary.requests.sent + upgrades;
            assert_eq!(here, target.counters.read().requests, "both ends count the same: {self:?}");
        }
        (result, summary)
    }

    fn check_counts(&self, result: &RunResult, s: &Summary) {
        let (c, r) = (&result.whole.counts, &s.requests);
        assert!(r.sent > 30 || self.trouble == NeverAnswers && r.sent > 3, "{self:?}: {r:?}");
        let lost: u64 = lost(&s.faults).map(|fault| fault.count).sum();
        assert_eq!(c.sent, c.answered + lost + c.withdrawn + c.unanswered, "{self:?}: {:?}", s.faults);
        assert_eq!(r.sent, r.answered + lost + r.unanswered, "{self:?}: {:?}", s.faults);
        assert_eq!((r.unanswered, s.thresholds.len()), (result.cut, self.threshold.iter().len()), "{self:?}");
        let faults: u64 = s.faults.iter().map(|fault| fault.count).sum();
        assert_eq!(faults, s.connections.failed + s.connections.dropped, "{self:?}: {:?}", s.faults);
        assert_eq!(s.probe.is_some(), self.more.contains("probe="), "{self:?}");
        if let Some(probe) = &s.probe {
            assert!(probe.sent > 0, "{self:?}");
            assert_eq!(probe.sent, probe.answered + probe.failed + probe.unanswered, "{self:?}: {probe:?}");
        }
        for fault in &s.faults {
            assert!(self.is_of_the_trouble(fault.stage, fault.kind), "{self:?}: {:?}", s.faults);
        }
    }

    /// Whether the trouble may cause this fault.
    fn is_of_the_trouble(&self, stage: Stage, kind: Kind) -> bool {
        let is_closed = matches!(kind, Kind::Closed | Kind::Reset);
        match self.trouble {
            None | StopsAndGoesOn => false,
            // A handshake fails on connections that are redialled.
            NeverAnswers | StopsInTheMiddle | StopsInTheLastSecond | LosesSome => {
                kind == Kind::Timeout && matches!(stage, Stage::Exchange | Stage::Handshake)
            }
            IsKilled if stage == Stage::Dial => kind == Kind::Refused,
            IsKilled | NeverListens => {
                is_closed && matches!(stage, Stage::Exchange | Stage::Hold | Stage::Handshake)
            }
        }
    }

    /// The expected verdict. Never invalid, since throng is never late here.
    fn verdict(&self) -> Verdict {
        match (self.trouble, self.threshold) {
            (None, _) | (StopsAndGoesOn, Option::None) => Verdict::Pass,
            _ => Verdict::Fail,
        }
    }

    /// Checks the verdict and its reason.
    fn check(&self) {
        let (result, s) = self.play(Direction::default());
        let place = format!("{self:?}: {:#?}", s.reasons);
        assert_eq!(s.verdict, self.verdict(), "{place}");
        assert_eq!(result.cut, 0, "who is waited for has an end: {place}");
        let (sent, answered) = (s.requests.sent, s.requests.answered);
        match self.trouble {
            None | StopsAndGoesOn => {
                assert_eq!((sent, s.requests.missed, s.faults.len()), (answered, 0, 0), "{place}");
                let stopped = (s.latency_us.count > 100).then_some(s.latency_us.max > 1e6);
                assert_eq!(stopped, Some(self.trouble == StopsAndGoesOn), "{place}");
            }
            NeverAnswers => assert_eq!((answered, s.latency_us.count), (0, 0), "{place}"),
            _ => assert!(answered > 30 && answered <= sent && !s.faults.is_empty(), "{place}"),
        }
        if s.verdict == Verdict::Fail {
            assert!(!s.headline.contains("every") && !s.reasons.is_empty(), "{}: {place}", s.headline);
            assert!(s.thresholds.iter().all(|result| !result.pass) || self.trouble == IsKilled, "{place}");
            assert!(s.limit.is_some(), "{place}");
        }
    }
}

/// Requests lost while outstanding. A wrong response is a response.
fn lost(faults: &[FaultCount]) -> impl Iterator<Item = &FaultCount> {
    faults.iter().filter(|fault| fault.stage == Stage::Exchange && !fault.kind.is_wrong_response())
}

fn target_speaks_websocket(plan: &Plan) -> bool {
    plan.populations[0].target.scheme == Scheme::Ws
}

/// Checks every trouble, with and without thresholds, with this many seeds. Returns the number of combinations.
fn check(load: Load, more: &'static str, seeds: u64) -> usize {
    let mut cells = 0;
    for trouble in ALL {
        for threshold in [Option::None, Some(THRESHOLD)] {
            for seed in 1..=seeds {
                Cell { load, more, trouble, threshold, seed }.check();
                cells += 1;
            }
        }
    }
    cells
}

#[test]
fn in_closed_loop() {
    assert_eq!(check(CLOSED, "", 3), 42);
}

#[test]
fn with_think_time() {
    assert_eq!(check(THINK, "", 3), 42);
}

#[test]
fn at_a_rate() {
    assert_eq!(check(RATE, "", 3), 42);
}

#[test]
fn of_connections_that_come_and_go() {
    assert_eq!(check(ARRIVALS, "", 3), 42);
    assert_eq!(check((HTTP, "arrive=100/s total=290 calls=1"), "", 1), 14);
    assert_eq!(check((HTTP, "arrive=100/s total=290 calls=5 think=20ms"), "", 1), 14);
}

#[test]
fn of_messages() {
    assert_eq!(check(MESSAGES, "", 3), 42);
}

#[test]
fn of_messages_over_bare_tcp_and_at_a_rate() {
    let flags = "connections=40 ramp=0s rate=300/s message=hello duration=2900ms";
    assert_eq!(check((ECHO, flags), "", 1), 14);
}

/// All lost connections are redialled, or none is, not even those closed as announced.
#[test]
fn every_way_of_dialling_again() {
    for load in [CLOSED, THINK, RATE, MESSAGES] {
        for more in ["reconnect=never", "reconnect=100ms..400ms"] {
            assert_eq!(check(load, more, 1), 14);
        }
    }
}

#[test]
fn beside_a_probe() {
    for load in LOADS {
        assert_eq!(check(load, "probe=20/s", 2), 28);
    }
}

/// No request is outstanding when the target dies, and all responses came in time: the run fails nevertheless.
#[test]
fn a_target_that_dies_between_two_requests_has_not_passed() {
    for (load, threshold) in [
        ((HTTP, "connections=40 ramp=0s think=2s duration=2900ms"), Option::None),
        ((HTTP, "connections=40 ramp=0s think=2s duration=2900ms"), Some("ramp_latency.max<500ms")),
        ((ECHO, "connections=40 ramp=0s ping=1h duration=2900ms"), Some("connect.max<500ms")),
    ] {
        let cell = Cell { load, more: "", trouble: IsKilled, threshold, seed: 1 };
        let plan = cell.plan();
        let result = Target::new(IsKilled, 1).meet(&plan, Direction::default());
        let s = result.judge(&plan);
        assert_eq!(result.faults(), [(Stage::Hold, Kind::Closed, 40)], "{cell:?}");
        assert!(s.thresholds.iter().all(|result| result.pass), "{cell:?}: {:?}", s.thresholds);
        assert_eq!((s.connections.opened, s.connections.held, s.verdict), (40, 0, Verdict::Fail), "{cell:?}");
    }
}

/// Requests that still wait when the drain is cut short have neither a response nor a fault: such a run never passes.
#[test]
fn where_the_drain_is_cut() {
    let mut cells = 0;
    for (path, flags) in LOADS {
        for trouble in [NeverAnswers, StopsInTheMiddle, StopsInTheLastSecond] {
            for threshold in [Option::None, Some("latency.min<10s"), Some("sent>0")] {
                // Without a duration, arriving connections continue until the last one has left.
                let load = (path, flags);
                let more =
                    if flags.starts_with("arrive") { "duration=2900ms timeout=8s" } else { "timeout=8s" };
                let cell = Cell { load, more, trouble, threshold, seed: 4 };
                let (result, s) = cell.play(Direction { patience: Some(MS(50)), ..Direction::default() });
                assert!(result.cut > 0 && s.requests.unanswered == result.cut, "{cell:?}: {:?}", s.requests);
                assert_eq!(s.verdict, Verdict::Fail, "{cell:?}: {:#?}", s.reasons);
                assert!(s.reasons.iter().any(|reason| reason.contains("had no response")), "{:?}", s.reasons);
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 45);
}

const POPULATIONS: &str = r#"
target = "http://127.0.0.1:8000/"
duration = "2900ms"
ramp = "0s"
[[population]]
name = "users"
connections = 20
think = "50ms..150ms"
[[population]]
name = "chat"
target = "ws://127.0.0.1:8000/ws/echo"
connections = 20
ping = "100ms"
"#;

/// Each population has its own totals, and one without responses makes the run fail.
#[test]
fn of_several_populations() {
    let mut cells = 0;
    for trouble in ALL {
        for (threshold, seed) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let timeout = if trouble == StopsAndGoesOn { "8s" } else { "700ms" };
            let judged = if threshold { "thresholds = [\"latency.max < 500ms\"]" } else { "" };
            let plan = scenario(&format!("timeout = \"{timeout}\"\n{judged}\n{POPULATIONS}"), seed);
            let mut target = Target::new(trouble, seed);
            let result = target.meet(&plan, Direction::default());
            let s = result.judge(&plan);
            let place = format!("{trouble:?} {threshold} {seed}: {:#?}", s.reasons);
            let passes = trouble == None || trouble == StopsAndGoesOn && !threshold;
            assert_eq!(s.verdict, if passes { Verdict::Pass } else { Verdict::Fail }, "{place}");
            assert_eq!(s.populations.len(), 2, "{place}");
            let mut sent = 0;
            for own in s.populations.values() {
                let Requests { answered, unanswered, .. } = own.requests;
                let lost: u64 = lost(&own.faults).map(|fault| fault.count).sum();
                assert_eq!(own.requests.sent, answered + lost + unanswered, "{place}");
                assert!(own.requests.sent > 10, "{place}");
                sent += own.requests.sent;
            }
            assert_eq!(s.requests.sent, sent, "{place}");
            cells += 1;
        }
    }
    assert_eq!(cells, 28);
}

/// A search step ends without a drain; it fails if a response is missing or late.
#[test]
fn in_a_step_of_a_search() {
    let dwell = MS(2_900);
    let mut cells = 0;
    for (by, load, on) in [
        (By::Connections, 4, CLOSED),
        (By::Connections, 40, THINK),
        (By::Rate, 320, RATE),
        (By::Connections, 40, MESSAGES),
    ] {
        for trouble in ALL {
            for threshold in [Option::None, Some(THRESHOLD)] {
                let cell = Cell { load: on, more: "probe=20/s", trouble, threshold, seed: 5 };
                let plan = by.plan(&cell.plan(), load, dwell);
                let direction = Direction { goes_on: true, ..Direction::default() };
                let result = Target::new(trouble, 5).meet(&plan, direction);
                let (s, reasons) = result.judge_step(&plan, by, load);
                let place = format!("{cell:?}: {reasons:#?}");
                assert!(s.requests.sent > 3 && s.probe.as_ref().unwrap().sent > 20, "{place}");
                match (trouble, threshold) {
                    (None, _) => assert!(reasons.is_empty(), "{place}"),
                    // Responses are late, and nothing else is wrong.
                    (StopsAndGoesOn, Option::None) => assert!(s.faults.is_empty(), "{place}"),
                    _ => assert!(!reasons.is_empty(), "{place}"),
                }
                assert_eq!(result.cut, 0, "what is owed is waited for: {place}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 56);
}

/// They are due by their interval, like requests by a rate.
#[test]
fn messages_at_intervals_are_due_whether_they_can_be_sent_or_not() {
    let plan = plan(ECHO, "connections=4 ramp=0s ping=100ms duration=2900ms timeout=5s", 1);
    let result = Target::new(StopsInTheMiddle, 1).meet(&plan, Direction::default());
    let (c, s) = (&result.whole.counts, result.judge(&plan));
    assert!((4 * 28..=4 * 31).contains(&c.due), "{c:?}");
    // From the middle on, each connection waits for one reply.
    assert!((4 * 15..=4 * 18).contains(&c.missed), "{c:?}");
    assert_eq!((c.due, c.sent), (c.answered + c.failed_requests + c.missed, c.due - c.missed), "{c:?}");
    assert_eq!(s.latency_us.censored.map(|censored| censored.count), Some(c.missed + c.failed_requests));
    assert_eq!(s.verdict, Verdict::Fail);
}
