//! Every figure in the table of thresholds against every load, protocol and trouble: a threshold is met exactly if the ticks of the
//! shards meet it, including what never happened; and no run passes by thresholds that miss what went wrong.

use net::{Cx, Gone, Io, Key, Program};
use plan::{Plan, Threshold};
use samples::{Figure, Summary, Verdict};
use stage::{Direction, RunResult, plan, scenario};
use units::{Nanos, Unit};

use super::{
    ALL, ECHO, HTTP, Load, Target,
    Trouble::{self, NeverListens, None as Nothing, StopsAndGoesOn},
    truth::{Number, Times, Truth, WHOLES, obey_the_laws_of_times, truth},
};

const GRPC: &str = "grpc://127.0.0.1:8000/throng.Echo/Say";
const WATCH: &str = "grpc://127.0.0.1:8000/throng.Echo/Watch";
pub(super) const TCP: &str = "tcp://127.0.0.1:8000";

/// Each protocol with each of its possible loads. Arrivals over HTTP/2 have a duration: a call without a response does not count among
/// the calls of its connection, which a silent target therefore keeps for as long as the load lasts.
const HTTP1: [Load; 7] = [
    (HTTP, "connections=4 ramp=0s duration=2900ms"),
    (HTTP, "connections=40 ramp=500ms think=50ms..150ms duration=2400ms probe=20/s"),
    (HTTP, "connections=40 ramp=0s rate=300/s duration=2900ms"),
    (HTTP, "connections=2 ramp=0s rate=300/s duration=2900ms reconnect=100ms..200ms"),
    (HTTP, "connections=4 ramp=0s requests=4000 reconnect=never"),
    (HTTP, "arrive=100/s total=290 calls=2"),
    (HTTP, "connections=40 ramp=0s rate=300/s duration=2900ms expect=status=404"),
];

const HTTP2: [Load; 8] = [
    (HTTP, "http2= connections=4 streams=3 ramp=0s duration=2900ms"),
    (HTTP, "http2= connections=40 ramp=0s think=50ms..150ms duration=2900ms ping=40ms"),
    (HTTP, "http2= connections=40 ramp=0s ping=100ms duration=2900ms"),
    (HTTP, "http2= connections=20 streams=2 ramp=0s rate=300/s duration=2900ms probe=20/s"),
    (HTTP, "http2= connections=2 ramp=0s rate=300/s duration=2900ms reconnect=100ms..200ms"),
    (HTTP, "http2= connections=4 streams=2 ramp=0s requests=4000 reconnect=never"),
    (HTTP, "http2= arrive=100/s total=290 calls=2"),
    (HTTP, "http2= connections=20 ramp=0s rate=300/s duration=2900ms expect=status=404"),
];

const CALLS: [Load; 8] = [
    (GRPC, "connections=4 streams=3 ramp=0s duration=2900ms"),
    (GRPC, "connections=40 ramp=0s think=50ms..150ms duration=2900ms"),
    (GRPC, "connections=20 streams=2 ramp=0s rate=300/s duration=2900ms"),
    (GRPC, "connections=2 ramp=0s rate=300/s duration=2900ms reconnect=100ms..200ms"),
    (GRPC, "connections=4 ramp=0s requests=4000 reconnect=never"),
    (GRPC, "arrive=100/s total=290 calls=2"),
    (GRPC, "connections=20 ramp=0s rate=300/s duration=2900ms expect=status=NOT_FOUND"),
    (WATCH, "server-streaming= connections=10 ramp=0s duration=2900ms"),
];

const MESSAGES: [Load; 5] = [
    (ECHO, "connections=40 ramp=0s ping=100ms duration=2900ms"),
    (ECHO, "connections=40 ramp=0s rate=300/s message=hello duration=2900ms"),
    (ECHO, "connections=4 ramp=0s requests=2000 ping=0 message=hello reconnect=never"),
    (ECHO, "http2= connections=20 streams=2 ramp=0s ping=100ms duration=2900ms"),
    (ECHO, "http2= connections=20 streams=2 ramp=0s rate=300/s message=hello duration=2900ms"),
];

const BYTES: [Load; 4] = [
    (TCP, "connections=40 ramp=0s ping=100ms message=hello duration=2900ms"),
    (TCP, "connections=40 ramp=0s rate=300/s message=hello duration=2900ms"),
    (TCP, "connections=2 ramp=0s rate=300/s message=hello duration=2900ms reconnect=100ms..200ms"),
    (TCP, "connections=4 ramp=0s requests=2000 ping=0 message=hello reconnect=never"),
];

/// Connections that receive numbered messages, each sent to all of them.
const FEED: &str = r#"
target = "ws://127.0.0.1:8000/ws/push?every=100ms&length=100"
duration = "2900ms"
ramp = "0s"
[[population]]
name = "fan"
connections = 20
ping = "1s"
message = ""
expect = { time = "json:/ts", number = "json:/seq", receivers = "all" }
"#;

/// Echoes bytes, except those of every nth message.
pub(super) struct Echo {
    stalls_each: u64,
    messages: u64,
    accepting: u32,
}

impl Echo {
    /// The fraction of messages that is never echoed, in millionths, like the reference server's option.
    pub(super) fn new(stalls_of_million: u32) -> Echo {
        let stalls_each = 1_000_000u64.checked_div(stalls_of_million.into()).unwrap_or(u64::MAX);
        Echo { stalls_each, messages: 0, accepting: 0 }
    }
}

impl Program for Echo {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {
        self.accepting -= 1;
    }

    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {}

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        self.messages += 1;
        if !self.messages.is_multiple_of(self.stalls_each) {
            cx.send(k, input.len(), |out| {
                out[..input.len()].copy_from_slice(input);
                input.len()
            });
        }
        input.len()
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < 64 && cx.accept() {
            self.accepting += 1;
        }
        Nanos::NEVER
    }
}

/// A run, its name, and the problems found.
struct Cell<'a> {
    name: String,
    plan: &'a mut Plan,
    result: &'a RunResult,
    /// The summary without thresholds.
    summary: Summary,
    found: Vec<String>,
}

impl Cell<'_> {
    /// The summary with these thresholds.
    fn judge(&mut self, thresholds: Vec<Threshold>) -> Summary {
        self.plan.thresholds = thresholds;
        self.result.judge(self.plan)
    }

    /// Thresholds on this figure: of each kind, and with bounds near its value.
    fn thresholds(&self, figure: &Figure, value: Option<u64>) -> Vec<Threshold> {
        let bounds: Vec<String> = match figure.unit {
            Unit::Micros => vec!["0us".to_owned(), "1h".to_owned()],
            _ => {
                let near = value.map(|n| [n.saturating_sub(1), n, n + 1]).unwrap_or_default();
                near.into_iter().chain([0, 1_000_000_000_000]).map(|n| n.to_string()).collect()
            }
        };
        let shares = ["0%", "1%", "50%", "99%", "100%"].map(str::to_owned);
        let shares = shares.into_iter().filter(|_| figure.whole().is_some());
        let texts = bounds.into_iter().chain(shares).flat_map(|bound| {
            ["<", "<=", ">", ">=", "==", "!="].map(|sign| format!("{} {sign} {bound}", figure.key))
        });
        // Percentages without a meaning are rejected by the parser.
        texts.filter_map(|text| Threshold::parse(&text, &[]).ok()).collect()
    }

    /// Checks each threshold on each figure against the ticks of the shards.
    fn check_figures(&mut self, all: &[Figure]) -> usize {
        let known: Vec<Truth> =
            all.iter().map(|figure| truth(&figure.key, self.plan, self.result, &self.summary)).collect();
        let thresholds: Vec<(usize, Threshold)> = all
            .iter()
            .enumerate()
            .flat_map(|(nth, figure)| {
                let value = if let Truth::Number(number) = &known[nth] { number.value } else { None };
                self.thresholds(figure, value).into_iter().map(move |threshold| (nth, threshold))
            })
            .collect();
        let judged = self.judge(thresholds.iter().map(|(_, threshold)| threshold.clone()).collect());
        for ((nth, threshold), result) in thresholds.iter().zip(&judged.thresholds) {
            let figure = &all[*nth];
            let is_met = match &known[*nth] {
                Truth::Times(times) => meets(threshold, *times, &judged),
                Truth::Number(number) => {
                    let whole = figure.whole().map(|path| {
                        assert!(WHOLES.contains(&path), "{path} is no account of what was to happen");
                        value_of(truth(path, self.plan, self.result, &judged), path, &judged)
                    });
                    number_meets(threshold, *number, whole.flatten(), &judged)
                }
            };
            if result.pass != is_met {
                let (expr, measured) = (&result.expr, result.measured());
                self.found.push(format!("{}: {expr} is {}, with {measured}", self.name, result.outcome()));
            }
        }
        thresholds.len()
    }

    /// For each figure, a threshold that is met, as the only one: the run passes only if nothing else went wrong. A threshold that is not
    /// met fails the run.
    fn check_verdicts(&mut self, all: &[Figure]) {
        let mild = |figure: &Figure| {
            let bounds = ["<= 1000000000000", "<= 100h", ">= 0", "<= 100000TB"];
            let mut texts = bounds.iter().map(|bound| format!("{} {bound}", figure.key));
            texts.find_map(|text| Threshold::parse(&text, &[]).ok()).expect("one of these is a bound")
        };
        let milds: Vec<Threshold> = all.iter().map(mild).collect();
        let judged = self.judge(milds.clone());
        let (met, failed): (Vec<_>, Vec<_>) =
            milds.into_iter().zip(&judged.thresholds).partition(|(_, result)| result.pass);
        // Thresholds on the same distribution are met for the same reason.
        let is_one_of_many = |path: &str| path.contains("_us.p") && !path.ends_with("p99");
        let met = met.into_iter().filter(|(threshold, _)| !is_one_of_many(&threshold.figure.key));
        for (threshold, _) in met.chain(failed.into_iter().take(3)) {
            let path = threshold.figure.key.clone();
            let s = self.judge(vec![threshold]);
            if s.verdict != Verdict::Fail && (!s.thresholds[0].pass || self.misses(&path)) {
                let (verdict, reasons) = (s.verdict, s.reasons);
                self.found.push(format!("{}: {verdict:?} by {path}: {reasons:?}", self.name));
            }
        }
    }

    /// Whether something went wrong that a met threshold on this figure does not cover.
    fn misses(&self, path: &str) -> bool {
        let c = &self.result.whole.counts;
        let is_silent = c.due > c.revoked && c.answered + c.messages == 0;
        let is_on_silence = path == "requests.answered";
        let is_lost = self.summary.connections.held == 0 && c.dropped > 0 && c.finished == 0;
        let is_held = !self.plan.populations[0].comes_and_goes();
        let is_on_losses = LOSSES.contains(&path);
        c.unanswered > 0 || is_silent && !is_on_silence || is_lost && is_held && !is_on_losses
    }
}

/// Figures that limit how many connections may be lost.
const LOSSES: [&str; 5] =
    ["faults", "errors.count", "connections.held", "connections.dropped", "connections.closed"];

/// The value of the figure at this path.
fn value_of(truth: Truth, path: &str, s: &Summary) -> Option<f64> {
    let Truth::Number(number) = truth else { panic!("{path} is a time") };
    number.value.map(|n| n as f64).or_else(|| Figure::of_run(path)?.value(s))
}

/// Whether a number meets a threshold. If its account is 0, nothing was measured, and no threshold is met.
fn number_meets(threshold: &Threshold, number: Number, whole: Option<f64>, s: &Summary) -> bool {
    let value = value_of(Truth::Number(number), &threshold.figure.key, s);
    let Some(value) = value.filter(|_| number.about != Some(0)) else { return false };
    match whole {
        _ if !threshold.is_share => threshold.is_met_by(value),
        Some(whole) if whole > 0.0 => threshold.is_met_by(value * 100.0 / whole),
        _ => false,
    }
}

/// Whether a time meets a threshold: what never ended exceeds every bound.
fn meets(threshold: &Threshold, Times { ended, never }: Times, s: &Summary) -> bool {
    let (figure, path) = (&threshold.figure, &threshold.figure.key);
    let (_, name) = path.rsplit_once('.').unwrap();
    let all = ended + never;
    // How many of the times may be longer.
    let may_be_longer = |of_ten_thousand: u64| all * (10_000 - of_ten_thousand) / 10_000;
    let is_known = match name {
        "count" => {
            let count = figure.value(s);
            assert!(count.is_none_or(|n| n == ended as f64), "{path}: {count:?} instead of {ended}");
            return count.is_some_and(|n| threshold.is_met_by(n));
        }
        "min" => true,
        "mean" | "stdev" | "max" => never == 0,
        "p50" => never <= may_be_longer(5_000),
        "p75" => never <= may_be_longer(7_500),
        "p90" => never <= may_be_longer(9_000),
        "p95" => never <= may_be_longer(9_500),
        "p99" => never <= may_be_longer(9_900),
        "p999" => never <= may_be_longer(9_990),
        "p9999" => never <= may_be_longer(9_999),
        _ => panic!("{name} is new: what makes it unknown?"),
    };
    is_known && ended > 0 && figure.judged(s).is_some_and(|value| threshold.is_met_by(value))
}

/// With a fixed number of requests, those not due before the load ended on its own are missed. No shard knows of them.
fn end_the_number(plan: &Plan, result: &mut RunResult) {
    let c = &result.whole.counts;
    let due = c.due - c.revoked;
    if let (Some(number), None) = (plan.populations[0].requests, plan.hold()) {
        result.whole.never_due(number - due, !result.whole.first_byte.is_empty(), &[]);
    }
}

/// The troubles of the matrix, and one in which nothing can be measured.
fn troubles() -> impl Iterator<Item = Trouble> {
    ALL.into_iter().chain([NeverListens])
}

/// The timeout is long enough for a target that stops only for a while.
const fn timeout(trouble: Trouble) -> &'static str {
    if matches!(trouble, StopsAndGoesOn) { "8s" } else { "700ms" }
}

/// Checks each threshold on each figure, and the verdicts with and without thresholds.
fn check_plan(load: &str, trouble: Trouble, plan: &mut Plan, found: &mut Vec<String>) -> usize {
    let mut result = Target::of(plan, trouble, 6).meet(plan, Direction::default());
    end_the_number(plan, &mut result);
    obey_the_laws_of_times(&result);
    let summary = result.judge(plan);
    let (c, name) = (&result.whole.counts, format!("{load}, {trouble:?}"));
    let is_complete =
        c.due - c.revoked == c.answered - c.wrong && summary.faults.is_empty() && c.given_up == 0;
    let is_well = trouble == Nothing && !load.contains("expect=");
    if (is_well && !is_complete) || is_complete != (summary.verdict == Verdict::Pass) {
        found.push(format!("{name}: {:?}, {:?} {c:?}", summary.verdict, summary.reasons));
    }
    let all = Figure::all();
    let mut cell = Cell { name, plan, result: &result, summary, found: Vec::new() };
    let thresholds = cell.check_figures(&all);
    cell.check_verdicts(&all);
    found.append(&mut cell.found);
    thresholds
}

/// Checks these loads with all troubles.
fn check(loads: &[Load]) {
    let (mut thresholds, mut found) = (0, Vec::new());
    for (target, flags) in loads {
        for trouble in troubles() {
            let mut plan = plan(target, &format!("{flags} timeout={}", timeout(trouble)), 6);
            thresholds += check_plan(&format!("{target} {flags}"), trouble, &mut plan, &mut found);
        }
    }
    end(thresholds, loads.len(), &found);
}

fn end(thresholds: usize, loads: usize, found: &[String]) {
    assert!(found.is_empty(), "{} of {thresholds}:\n{}", found.len(), found.join("\n"));
    assert!(thresholds > 1_000 * troubles().count() * loads, "{thresholds}");
}

/// Thresholds include what never happened: none is met that the accounts deny, whatever went wrong with any load.
mod no_threshold_is_met_by_what_never_happened {
    use super::*;

    #[test]
    fn over_http1() {
        check(&HTTP1);
    }

    #[test]
    fn over_http2() {
        check(&HTTP2);
    }

    #[test]
    fn in_calls_of_grpc() {
        check(&CALLS);
    }

    #[test]
    fn in_messages_of_websockets() {
        check(&MESSAGES);
    }

    #[test]
    fn in_bytes_over_tcp() {
        check(&BYTES);
    }

    #[test]
    fn in_what_a_server_sends_by_itself() {
        let (mut thresholds, mut found) = (0, Vec::new());
        for trouble in troubles() {
            let mut plan = scenario(&format!("timeout = \"{}\"\n{FEED}", timeout(trouble)), 6);
            thresholds += check_plan("a feed", trouble, &mut plan, &mut found);
        }
        end(thresholds, 1, &found);
    }
}
