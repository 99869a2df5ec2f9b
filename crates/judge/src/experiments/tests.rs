use samples::{Fault, ThresholdResult};

use super::*;
use record::fixture::{fault, plan, record};

const LOAD: u64 = 100;

/// A run that failed after some of its load was served, with this limit and these faults.
fn failed(limit: Option<(Cause, Certainty)>, faults: &[FaultCount]) -> (Record, Summary) {
    let mut r = record();
    (r.totals.counts.opened, r.totals.counts.answered) = (LOAD, 500);
    let limit =
        limit.map(|(cause, certainty)| Limit { side: Side::Target, cause, certainty, ..Limit::default() });
    let summary = Summary { verdict: Verdict::Fail, limit, ..Summary::default() };
    let mut summary = summary;
    summary.figures.faults = faults.to_vec();
    (r, summary)
}

fn ids(r: &Record, s: &Summary) -> Vec<&'static str> {
    asks(&plan(&[]), r, s).iter().map(|ask| ask.experiment.id()).collect()
}

const SERIES: [&str; 4] = ["pause", "other-source", "other-address", "half"];

#[test]
fn what_was_turned_away_is_asked_about() {
    let refused = [fault(Stage::Dial, Kind::Refused, 30)];
    let check = |limit, faults: &[FaultCount], expected: &[&str]| {
        let (r, s) = failed(limit, faults);
        assert_eq!(ids(&r, &s), expected, "{limit:?} {faults:?}");
    };
    check(Some((Cause::ConnectionLimit, Certainty::Inferred)), &refused, &SERIES);
    check(Some((Cause::Unknown, Certainty::Guess)), &refused, &SERIES);
    check(None, &refused, &SERIES);
    // A guessed cause is open to experiments; one that was seen or inferred is not.
    check(Some((Cause::OpenFiles, Certainty::Guess)), &refused, &SERIES);
    check(Some((Cause::OpenFiles, Certainty::Seen)), &refused, &[]);
    check(Some((Cause::Memory, Certainty::Inferred)), &refused, &[]);
    check(None, &[], &[]);
    // Failures of throng's dials, and wrong responses, do not look like connections that are turned away.
    let ours = FaultCount::new(Fault::host(Stage::Dial, Kind::OpenFiles), 3);
    check(None, &[ours], &[]);
    check(None, &[fault(Stage::Exchange, Kind::WrongStatus, 3)], &[]);
}

#[test]
fn a_status_may_turn_away() {
    for (status, expected) in [(503, &SERIES[..]), (429, &SERIES), (404, &[])] {
        let (r, mut s) = failed(None, &[fault(Stage::Exchange, Kind::WrongStatus, 3)]);
        s.figures.requests.status = [(200, 97), (status, 3)].into();
        assert_eq!(ids(&r, &s), expected, "{status}");
    }
}

#[test]
fn nothing_is_asked_where_nothing_failed_or_was_served_or_by_a_fleet() {
    let refused = [fault(Stage::Dial, Kind::Refused, 30)];
    for verdict in [Verdict::Pass, Verdict::Interrupted, Verdict::Invalid] {
        let (r, s) = failed(None, &refused);
        assert_eq!(ids(&r, &Summary { verdict, ..s }), [""; 0], "{verdict:?}");
    }
    let (mut r, s) = failed(None, &refused);
    (r.totals.counts.answered, r.totals.counts.sent) = (0, 500);
    assert_eq!(ids(&r, &s), [""; 0]);
    let (r, s) = failed(None, &refused);
    assert_eq!(ids(&r.with_agents(vec![samples::AgentSummary::default()]), &s), [""; 0]);
}

#[test]
fn a_target_that_never_sent_a_byte_is_asked_for_tls_and_nothing_else() {
    let (mut r, s) = failed(None, &[fault(Stage::Exchange, Kind::Closed, 3)]);
    r.totals.faults.count(Fault::target(Stage::Exchange, Kind::Closed));
    assert_eq!(ids(&r, &s), ["tls"]);
    r.interrupt(Some("a signal"));
    assert!(!asks_for_tls(&r));
    (r.interrupted, r.totals.counts.bytes_in) = (None, 7);
    assert_eq!(ids(&r, &s), SERIES);
}

#[test]
fn slow_responses_are_asked_for_alone() {
    let threshold = |expr: &str| ThresholdResult { expr: expr.to_owned(), ..ThresholdResult::default() };
    let check = |expr: &str, cause, certainty, expected: &[&str]| {
        let (r, mut s) = failed(Some((cause, certainty)), &[]);
        s.thresholds = vec![threshold(expr)];
        assert_eq!(ids(&r, &s), expected, "{expr} {cause:?} {certainty:?}");
    };
    check("latency.p99 < 5ms", Cause::Unknown, Certainty::Guess, &["alone"]);
    check("first_byte.p50 < 5ms", Cause::Saturated, Certainty::Inferred, &["alone"]);
    check("latency.p99 < 5ms", Cause::Cpu, Certainty::Seen, &[]);
    check("held >= 99%", Cause::Unknown, Certainty::Guess, &[]);
    // A request that timed out was either turned away or slow.
    let (r, s) = failed(None, &[fault(Stage::Exchange, Kind::Timeout, 30)]);
    assert_eq!(ids(&r, &s), [&SERIES[..], &["alone"]].concat());
}

/// Connections that were closed after 2 s, each silent for `silent_ms` before and with `responses`.
fn closed(silent_ms: u64, responses: u64, is_one_moment: bool) -> (Record, Summary) {
    let (mut r, mut s) =
        failed(Some((Cause::Closed, Certainty::Seen)), &[fault(Stage::Hold, Kind::Closed, 50)]);
    let opens = |at: u64, opened, dropped| {
        let mut tick = samples::Tick::default();
        (tick.from, tick.until) = (Nanos::from_millis(at), Nanos::from_millis(at + 100));
        (tick.counts.opened, tick.counts.dropped) = (opened, dropped);
        tick
    };
    let times = if is_one_moment { 0..1 } else { 0..50 };
    let each = 50 / times.end;
    let all = (0..80).map(|n: u64| {
        let closes = n >= 20 && times.contains(&(n - 20));
        opens(n * 100, if times.contains(&n) { each } else { 0 }, if closes { each } else { 0 })
    });
    all.for_each(|tick| r.losses.take(&tick));
    for _ in 0..50 {
        r.totals.silence.record(Nanos::from_millis(silent_ms));
        r.totals.responses_at_close.record(responses);
    }
    (r.totals.counts.dropped, r.totals.counts.answered) = (50, 50 * responses);
    s.limit = None;
    (r, s)
}

#[test]
fn idle_cut_or_age_is_asked_of_a_busy_connection() {
    let check = |(r, s): (Record, Summary), expected: Option<(Experiment, &str)>| {
        let own = asks(&plan(&[]), &r, &s).into_iter().find(|ask| matches!(ask.experiment, Busy | Silent));
        assert_eq!(own.map(|ask| (ask.experiment, PAIRS[ask.pair].other.0)), expected);
        own
    };
    // The connections were silent since they were opened, so silence and age are equal; and then: all closed at one moment.
    let ask = check(closed(2_000, 1, false), Some((Busy, "an idle timeout"))).unwrap();
    let ms = |time: Nanos| time.millis();
    assert!((2_500..2_700).contains(&ms(ask.time)) && (480..520).contains(&ms(ask.every())), "{ask:?}");
    check(closed(2_000, 1, true), Some((Busy, "an idle timeout")));
    check(closed(300, 5, true), Some((Busy, "something that happened once")));
    // All had the same number of responses and the same age.
    check(closed(20, 5, false), Some((Silent, "a limit on the requests of each")));
}

#[test]
fn what_takes_longer_than_the_bound_is_not_asked() {
    let ask = |experiment, time| Ask { experiment, pair: 0, population: 0, time: Nanos::from_millis(time) };
    assert_eq!(ask(Half, 1_500).longest(), Nanos::from_millis(1_900));
    assert_eq!(ask(Pause, 1_500).longest(), Nanos::from_millis(2_900));
    assert!(ask(Busy, 9_700).longest() > MOST && ask(Busy, 9_600).longest() <= MOST);
    // All experiments that a target without replies may get.
    let (r, s) = failed(None, &[fault(Stage::Dial, Kind::Timeout, 30)]);
    let longest = asks(&plan(&[]), &r, &s).iter().map(|ask| ask.longest()).reduce(|sum, own| sum + own);
    assert!(longest.is_some_and(|all| all <= MOST), "{longest:?}");
}

/// The table in the reference matches the experiments: each pair of causes, and the meaning of each answer.
#[test]
fn the_reference_has_the_table() {
    let text = include_str!("../../../../docs/reference/experiments.md");
    let row = |Pair { experiment, one, other, .. }: &Pair| {
        format!("| `{}` | {} | {} | {} | {} |", experiment.id(), one.0, one.1, other.0, other.1)
    };
    let rows: Vec<String> = PAIRS.iter().map(row).collect();
    let have: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(have, rows, "the rows of docs/reference/experiments.md:\n{}", rows.join("\n"));
}
