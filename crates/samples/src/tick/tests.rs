use super::*;
use crate::books::Imbalance;
use crate::{
    error_sample::ErrorSample,
    example::{Example, Examples},
    fault::{Fault, Kind, Side, Stage},
    latency::Took,
    mark::Mark,
};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// A struct of numbers only, with a value in each field.
fn numbers<T: for<'de> Deserialize<'de>>(fields: &[&str], seed: u64) -> T {
    let number = |(n, field): (u64, &&str)| ((*field).to_owned(), Value::from(1 + seed * (n + 1)));
    let all: Map<String, Value> = (1..).zip(fields).map(number).collect();
    serde_json::from_value(Value::Object(all)).expect("a number fits each field")
}

/// A distribution with something in each field.
fn times(seed: u64) -> Latency {
    let mut times = Latency::default();
    let stalled = |n| Nanos(seed % 3 * n);
    for n in 1..2 + seed % 5 {
        times.record_seen(Took { time: Nanos((seed + n).pow((n as u32).min(4))), stalled: stalled(n) });
    }
    times.censor();
    times
}

fn faults(seed: u64) -> Faults {
    let mut faults = Faults::default();
    for n in 0..=seed % 6 {
        let kind = Kind::ALL[(seed + n) as usize % Kind::ALL.len()];
        let side = Side::ALL[seed as usize % Side::ALL.len()];
        let fault = Fault { side, ..Fault::target(Stage::Hold, kind) };
        faults.count(fault.with(crate::Detail::new((seed % 100) as i32)));
    }
    faults
}

fn moments(seed: u64) -> Moments {
    let mut moments = Moments::default();
    (0..=seed % 4).for_each(|n| moments.record(seed + n));
    moments
}

fn destination(seed: u64) -> Destination {
    let counts =
        ["opened", "failed", "dropped", "closed", "redialled", "finished", "sent", "withdrawn", "answered"];
    let mut latency = Latency::coarse();
    latency.merge(&times(seed));
    Destination { faults: faults(seed), latency, ..numbers(&counts, seed) }
}

/// Three agents.
fn agents(seed: u64) -> AgentTicks {
    let column = |nth: u64| (1..4).map(|agent| 1 + seed * agent + nth).collect::<Vec<u64>>();
    let all: Map<String, Value> =
        (1..).zip(AgentTicks::FIELDS).map(|(nth, field)| ((*field).to_owned(), column(nth).into())).collect();
    serde_json::from_value(Value::Object(all)).expect("columns")
}

fn pushes(seed: u64) -> Pushes {
    let counts: Vec<&str> = Pushes::FIELDS.iter().copied().filter(|field| *field != "receipts").collect();
    let mut pushes: Pushes = numbers(&counts, seed);
    (0..=seed % 5).for_each(|n| pushes.receipts.record(seed % 3 + n, Nanos(seed * n)));
    pushes
}

fn probe(seed: u64) -> Probe {
    let [kept, fresh, held, connect] = [1, 2, 3, 4].map(|n| times(seed * n));
    let numbers = numbers(&["sent", "answered", "failed", "unanswered"], seed);
    let mut probe = Probe { kept, fresh, held, connect, faults: faults(seed), ..numbers };
    probe.status[200 + seed as usize % 400] = 1 + seed;
    probe
}

fn error_samples(seed: u64) -> ErrorSamples {
    let of = |n: u64| {
        let kind = Kind::ALL[(seed * n) as usize % Kind::ALL.len()];
        ErrorSample::new(Fault::target(Stage::Exchange, kind), Nanos(seed + n), Some(503), b"busy", &[])
    };
    ErrorSamples::from((0..=seed % 30).map(of).collect::<Vec<_>>())
}

fn examples(seed: u64) -> Examples {
    let of = |n: u64| {
        let kind = Kind::ALL[(seed * n) as usize % Kind::ALL.len()];
        Example::new(Fault::target(Stage::Exchange, kind), Nanos(seed + n), format!("# {n}"))
    };
    Examples::from((0..=seed % 12).map(of).collect::<Vec<_>>())
}

fn marks(seed: u64) -> Marks {
    let mark = |n: u64| Mark { at: Nanos(seed + 7 * n), what: "paused".to_owned(), ..Mark::default() };
    Marks::from((0..=seed % 40).map(mark).collect::<Vec<_>>())
}

/// A tick of one population.
fn alone(seed: u64) -> Tick {
    let mut tick = Tick {
        index: 7,
        from: Nanos(10 + seed % 5),
        until: Nanos(20 + seed % 3),
        phase: Phase::ALL[1 + seed as usize % 3],
        open: 1 + seed % 7,
        most_open: 1 + seed % 29,
        wanted: 1 + seed % 17,
        resolved: 1 + seed % 11,
        waiting: 1 + seed % 5,
        unsettled: 1 + seed % 6,
        owed: 1 + seed % 4,
        ramped_at: if seed.is_multiple_of(3) { Nanos::NEVER } else { Nanos(seed) },
        open_ns: (1 + u128::from(seed)) << 60,
        counts: numbers(Counts::FIELDS, seed),
        faults: faults(seed),
        steps: (0..=seed % 3).map(times).collect(),
        ramp_steps: (0..=seed % 3).map(|n| times(seed + n)).collect(),
        step_faults: (0..=seed % 3).map(|n| faults(seed + n)).collect(),
        destinations: (0..=seed % 4).map(|n| destination(seed + n)).collect(),
        head_sizes: moments(seed + 100),
        answer_sizes: moments(seed * 9),
        responses_at_close: moments(seed),
        congestion: numbers(Congestion::FIELDS, seed),
        pushes: pushes(seed),
        streams_allowed: (!seed.is_multiple_of(3)).then_some(1 + seed % 31),
        probe: Some(Box::new(probe(seed))),
        stalled: Nanos(1 + seed % 13),
        late_dials: 1 + seed % 29,
        dial_lag: Nanos(1 + seed % 11),
        longest_silence: Nanos(1 + seed % 19),
        keep_alive_s: 1 + seed % 5,
        served: 1 + seed % 37,
        cpu_ns: 1 + seed % 23,
        imbalance: numbers(Imbalance::FIELDS, seed),
        agents: Some(Box::new(agents(seed))),
        error_samples: error_samples(seed),
        examples: examples(seed),
        marks: marks(seed),
        breakdown: crate::breakdown::drawn(seed),
        ..Tick::default()
    };
    (0..=seed % 6).for_each(|n| tick.count_status(200 + n as u16));
    tick.shard_rates.record(seed as f64 * 1.5);
    (1..).zip(Timing::ALL).for_each(|(n, timing)| tick[*timing] = times(seed * n));
    tick
}

pub(crate) fn tick(seed: u64) -> Tick {
    Tick { populations: (0..=seed % 3).map(|n| alone(seed + n)).collect(), ..alone(seed) }
}

/// Checks that each of these fields differs from its default: a field without a value would be untested.
fn is_whole<T: Default + Serialize>(what: &T, fields: &[&str]) {
    let [what, none] = [what, &T::default()].map(|it| serde_json::to_value(it).unwrap());
    for field in fields {
        assert!(!what[*field].is_null() && what[*field] != none[*field], "{field} of {what}");
    }
}

#[test]
fn a_made_up_tick_has_something_in_every_field() {
    let tick = tick(8);
    is_whole(&tick, Tick::FIELDS);
    is_whole(&tick.counts, Counts::FIELDS);
    is_whole(&tick.pushes, Pushes::FIELDS);
    is_whole(&tick.destinations[0], Destination::FIELDS);
    is_whole(&**tick.agents.as_ref().unwrap(), AgentTicks::FIELDS);
    is_whole(&**tick.probe.as_ref().unwrap(), Probe::FIELDS);
}

fn merged(ticks: &[&Tick]) -> Tick {
    let mut sum = ticks[0].clone();
    ticks[1..].iter().for_each(|tick| sum.merge(tick));
    sum
}

#[test]
fn of_a_tick_of_the_probe_no_connection_and_no_request_is_load() {
    let ms = Nanos::from_millis;
    let mut tick = Tick { until: ms(200), open: 2, resolved: 9, waiting: 3, owed: 1, ..Tick::default() };
    tick.counts = Counts {
        opened: 4,
        sent: 11,
        answered: 5,
        withdrawn: 1,
        due: 14,
        revoked: 1,
        failed_requests: 2,
        unanswered: 2,
        missed: 3,
        ..Counts::default()
    };
    for (stage, n) in [(Stage::Exchange, 2), (Stage::Dial, 3), (Stage::Hold, 1)] {
        (0..n).for_each(|_| tick.faults.count(Fault::target(stage, Kind::Reset)));
    }
    [1, 2].into_iter().for_each(|n| tick.latency.record(ms(n)));
    tick.ramp_latency.record(ms(3));
    tick.ramp_latency.censor();
    tick.connect.record(ms(4));
    tick.lag.record(ms(5));
    (0..2).for_each(|_| tick.count_status(503));
    for is_kept in [false, true] {
        let filed = tick.of_probe(|probe| if is_kept { &mut probe.kept } else { &mut probe.fresh });
        assert_eq!((filed.open, filed.resolved, filed.waiting, filed.owed), (0, 0, 3, 1));
        assert_eq!((&filed.counts, filed.faults.total()), (&Counts::default(), 0));
        assert_eq!((filed.latency.count(), filed.connect.count(), filed.lag.count()), (0, 0, 1));
        let probe = filed.probe.expect("it is one's");
        // One was sent again; three were never sent.
        let ends = (probe.sent, probe.answered, probe.failed, probe.unanswered);
        assert_eq!(ends, (13, 5, 2 + 3, 2));
        let [own, other] = if is_kept { [&probe.kept, &probe.fresh] } else { [&probe.fresh, &probe.kept] };
        assert_eq!((own.count(), own.censored(), other.count()), (3, 1, 0), "due at any time");
        assert_eq!((probe.held.count(), probe.held.censored(), probe.connect.count()), (2, 0, 1));
        assert_eq!((probe.faults.total(), probe.status[503]), (6, 2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Shards merged in any order and grouping give the same tick. A field that merging ignored would keep the first tick's value, so that
    /// the order would matter.
    #[test]
    fn merging_is_associative_and_commutative(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
        let [a, b, c] = [a, b, c].map(tick);
        let whole = merged(&[&a, &b, &c]);
        prop_assert_eq!(&merged(&[&a, &merged(&[&b, &c])]), &whole);
        prop_assert_eq!(&merged(&[&c, &a, &b]), &whole);
        prop_assert_eq!(&merged(&[&b, &a, &c]), &whole);
        for none in [merged(&[&Tick::none(), &whole]), merged(&[&whole, &Tick::none()])] {
            prop_assert_eq!(&none, &whole);
        }
    }

    /// Counts are sums, both for merging and for extending.
    #[test]
    fn counts_are_sums(a in 0u64..1000, b in 0u64..1000) {
        let (mut extended, sum) = (tick(a), merged(&[&tick(a), &tick(b)]));
        extended.extend(&tick(b));
        let [a, b] = [a, b].map(tick);
        for sum in [&sum, &extended] {
            prop_assert_eq!(sum.open_ns, a.open_ns + b.open_ns);
            let counts = |tick: &Tick| -> Vec<u64> {
                let counts = serde_json::to_value(&tick.counts).unwrap();
                Counts::FIELDS.iter().map(|field| counts[*field].as_u64().unwrap()).collect()
            };
            let each: Vec<u64> = counts(&a).iter().zip(counts(&b)).map(|(a, b)| a + b).collect();
            prop_assert_eq!(counts(sum), each);
            for timing in Timing::ALL {
                prop_assert_eq!(sum[*timing].count(), a[*timing].count() + b[*timing].count());
                prop_assert_eq!(sum[*timing].censored(), 2);
            }
            let [whole, x, y] = [sum, &a, &b].map(|tick| tick.probe.as_ref().unwrap());
            prop_assert_eq!((whole.sent, whole.held.count()), (x.sent + y.sent, x.held.count() + y.held.count()));
            prop_assert_eq!(sum.faults.total(), a.faults.total() + b.faults.total());
            prop_assert_eq!((sum.stalled, sum.most_open), (a.stalled.max(b.stalled), a.most_open.max(b.most_open)));
            prop_assert_eq!((sum.from, sum.until), (a.from.min(b.from), a.until.max(b.until)));
            let known = [a.streams_allowed, b.streams_allowed].into_iter().flatten();
            prop_assert_eq!(sum.streams_allowed, known.min(), "the fewest of those known");
        }
        prop_assert_eq!((sum.open, sum.owed), (a.open + b.open, a.owed + b.owed));
        prop_assert_eq!((sum.phase, sum.ramped_at), (a.phase.min(b.phase), a.ramped_at.max(b.ramped_at)));
        let state = |tick: &Tick| (tick.open, tick.wanted, tick.resolved, tick.waiting, tick.owed, tick.ramped_at);
        prop_assert_eq!((state(&extended), extended.phase), (state(&b), b.phase));
    }

    #[test]
    fn a_cleared_tick_is_a_new_one(before in 0u64..1000, after in 0u64..1000) {
        let (mut used, mut new) = (tick(before), Tick::default());
        used.clear();
        used.steps.truncate(tick(after).steps.len());
        used.ramp_steps.truncate(tick(after).ramp_steps.len());
        used.step_faults.truncate(tick(after).step_faults.len());
        used.destinations.truncate(tick(after).destinations.len());
        used.extend(&tick(after));
        new.extend(&tick(after));
        prop_assert_eq!(used, new);
    }
}

/// Without such a limit, or in records of earlier versions, the field is absent.
#[test]
fn a_limit_of_streams_is_written_where_there_is_one() {
    let written = |tick: &Tick| serde_json::to_value(tick).unwrap();
    let none = written(&Tick::default());
    assert_eq!(none.get("streams_allowed"), None);
    let read: Tick = serde_json::from_value(none).unwrap();
    assert_eq!(read.streams_allowed, None);
    let eight = Tick { streams_allowed: Some(8), ..Tick::default() };
    let read: Tick = serde_json::from_value(written(&eight)).unwrap();
    assert_eq!(read.streams_allowed, Some(8));
    let mut later = read;
    later.extend(&Tick::default());
    assert_eq!(later.streams_allowed, Some(8), "nothing new in a later period");
    later.extend(&Tick { streams_allowed: Some(4), ..Tick::default() });
    assert_eq!(later.streams_allowed, Some(4));
    later.clear();
    assert_eq!(later.streams_allowed, None);
}

/// A late part of a period adds to the counts, but only changes states if it covers the end of the period.
#[test]
fn what_comes_late_adds_to_a_state_only_at_its_end() {
    let at = |from: u64, until: u64, seed: u64| Tick {
        from: Nanos::from_millis(from),
        until: Nanos::from_millis(until),
        ..tick(seed)
    };
    let mut whole = at(0, 4_000, 5);
    let late = [at(1_000, 2_000, 3), at(2_990, 3_990, 2), at(3_010, 4_010, 4)];
    assert_eq!(late.each_ref().map(|late| late.is_of(whole.until)), [true; 3]);
    assert!(!at(4_000, 4_501, 1).is_of(whole.until));
    let before = whole.clone();
    late.iter().for_each(|late| whole.amend(late));
    let sum = |of: fn(&Tick) -> u64| of(&before) + late.iter().map(of).sum::<u64>();
    assert_eq!(whole.counts.sent, sum(|tick| tick.counts.sent));
    assert_eq!(whole.latency.count(), sum(|tick| tick.latency.count()));
    let reports = |tick: &Tick| tick.agents.as_ref().unwrap().reports[1];
    assert_eq!(reports(&whole), sum(reports));
    let state = |of: fn(&Tick) -> u64| of(&before) + late[1..].iter().map(of).sum::<u64>();
    assert_eq!(whole.open, state(|tick| tick.open));
    assert_eq!(whole.populations[0].open, state(|tick| tick.populations[0].open));
    let open = |tick: &Tick| tick.agents.as_ref().unwrap().open.0[1];
    assert_eq!(open(&whole), state(open));
    assert_eq!((whole.from, whole.until), (before.from, before.until), "the period stays what it was");
}

#[test]
fn a_coarse_tick_has_the_same_counts() {
    let (fine, mut coarse) = (tick(17), tick(17));
    coarse.coarsen();
    let digits = |tick: &Tick| serde_json::to_string(tick).unwrap().len();
    assert!(digits(&coarse) < digits(&fine));
    for timing in Timing::ALL {
        assert_eq!(
            (coarse[*timing].count(), coarse[*timing].max()),
            (fine[*timing].count(), fine[*timing].max())
        );
    }
}

#[test]
fn times_have_the_names_of_their_fields() {
    let names: Vec<&str> = Timing::ALL.iter().map(|timing| timing.name()).collect();
    assert_eq!(Tick::FIELDS[Tick::FIELDS.len() - names.len()..], names);
    let mut tick = Tick::default();
    tick[Timing::RampFirstByte].record(Nanos(5));
    assert_eq!((tick.ramp_first_byte.count(), tick.first_byte.count()), (1, 0));
}
