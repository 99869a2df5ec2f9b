use super::*;
use crate::fault::{Fault, Kind, Stage};
use proptest::prelude::*;

pub(crate) fn tick(seed: u64) -> Tick {
    let mut t = Tick {
        from: Nanos(10),
        until: Nanos(20 + seed % 3),
        open: seed % 7,
        resolved: seed % 11,
        ..Tick::default()
    };
    t.waiting = seed % 5;
    t.wanted = seed % 17;
    t.open_ns = u128::from(seed) << 60;
    t.stalled = Nanos(seed % 13);
    t.longest_silence = Nanos(seed % 19);
    (0..seed % 4).for_each(|i| t.responses_at_close.record(seed + i));
    t.ramped_at = if seed.is_multiple_of(3) { Nanos::NEVER } else { Nanos(seed) };
    t.phase = if seed.is_multiple_of(2) { Phase::Ramp } else { Phase::Hold };
    t.counts = Counts {
        opened: seed,
        sent: seed * 3,
        missed: seed * 7,
        finished: seed * 13,
        answered: seed * 2,
        body_bytes_in: seed * 5,
        kept: seed * 7,
        ..Counts::default()
    };
    let mut probe = Probe { sent: seed, answered: seed * 2, failed: seed % 3, ..Probe::default() };
    let each = [&mut probe.kept, &mut probe.fresh, &mut probe.connect, &mut probe.held];
    for (n, times) in each.into_iter().enumerate() {
        times.record(Nanos(seed * 100 + n as u64));
    }
    t.probe = Some(Box::new(probe));
    let population = |n| Tick {
        from: Nanos(10),
        until: Nanos(20),
        open: n,
        phase: t.phase,
        counts: Counts { told: n, ..Counts::default() },
        ..Tick::default()
    };
    t.populations = (0..seed % 3).map(|n| population(seed + n)).collect();
    t.steps.resize_with((seed % 4) as usize, Latency::default);
    t.steps.iter_mut().for_each(|step| step.record(Nanos(seed * 20)));
    for i in 0..seed % 6 {
        t.faults.count(Fault::target(Stage::Hold, Kind::ALL[(seed + i) as usize % Kind::ALL.len()]));
        t.count_status(200 + (i as u16));
        t.latency.record(Nanos(seed * 1000 + i));
        t.lag.record(Nanos(seed * 10 + i));
        t.silence.record(Nanos(seed * 1_000_000 + i));
        t.connect.record(Nanos(seed + i));
        t.destinations.resize_with((seed % 4) as usize, Destination::default);
        for (n, own) in t.destinations.iter_mut().enumerate() {
            (own.opened, own.failed) = (seed + i, n as u64);
            own.faults.count(Fault::target(Stage::Dial, Kind::Refused));
            own.latency.record(Nanos(seed * 1000 + i));
        }
        t.ramp_latency.record(Nanos(seed * 77 + i));
        t.handshake.record(Nanos(seed * 3 + i));
        t.first_byte.record(Nanos(seed * 501 + i));
        t.ramp_first_byte.record(Nanos(seed * 33 + i));
        t.shard_rates.record(seed as f64 * 1.5);
        t.head_sizes.record(seed + 100);
        t.answer_sizes.record(seed * 9 + i);
    }
    t
}

proptest! {
    /// N shards merged in any order and grouping give the same tick.
    #[test]
    fn merging_is_associative_and_commutative(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
        let merged = |order: [u64; 3]| {
            let mut t = tick(order[0]);
            t.merge(&tick(order[1]));
            t.merge(&tick(order[2]));
            t
        };
        let mut right = tick(b);
        right.merge(&tick(c));
        let mut grouped = tick(a);
        grouped.merge(&right);
        prop_assert_eq!(&merged([a, b, c]), &grouped);
        prop_assert_eq!(&merged([c, a, b]), &grouped);
        prop_assert_eq!(grouped.counts.opened, a + b + c);
        prop_assert_eq!((grouped.counts.missed, grouped.counts.finished), (7 * (a + b + c), 13 * (a + b + c)));
        let probe = grouped.probe.expect("each had one");
        let answers = (probe.sent, probe.answered, probe.kept.count(), probe.fresh.count(), probe.connect.count());
        prop_assert_eq!(answers, (a + b + c, 2 * (a + b + c), 3, 3, 3));
        prop_assert_eq!((probe.held.count(), probe.failed), (3, a % 3 + b % 3 + c % 3));
        prop_assert_eq!(grouped.silence.count(), a % 6 + b % 6 + c % 6);
        prop_assert_eq!(grouped.stalled, Nanos((a % 13).max(b % 13).max(c % 13)));
        prop_assert_eq!(grouped.longest_silence, Nanos((a % 19).max(b % 19).max(c % 19)));
        prop_assert_eq!(grouped.responses_at_close.count(), a % 4 + b % 4 + c % 4);
        prop_assert_eq!(grouped.open, a % 7 + b % 7 + c % 7);
        let first = |seed| if seed % 3 > 0 { seed } else { 0 };
        let told = grouped.populations.first().map_or(0, |own| own.counts.told);
        prop_assert_eq!(told, first(a) + first(b) + first(c));
        let steps = grouped.steps.first().map_or(0, Latency::count);
        prop_assert_eq!(steps, [a, b, c].iter().filter(|seed| *seed % 4 > 0).count() as u64);
        prop_assert_eq!(grouped.counts.kept, 7 * (a + b + c));
        prop_assert_eq!(grouped.open_ns, u128::from(a + b + c) << 60);
        let n = a % 6 + b % 6 + c % 6;
        let counted = [grouped.handshake.count(), grouped.first_byte.count(), grouped.ramp_first_byte.count()];
        prop_assert_eq!(counted, [n; 3]);
        prop_assert_eq!((grouped.head_sizes.count(), grouped.answer_sizes.count()), (n, n));
        prop_assert_eq!(grouped.shard_rates.count(), n);
        let at_first = |seed| if seed % 4 > 0 { seed % 6 } else { 0 };
        let timed = grouped.destinations.first().map_or(0, |own| own.latency.count());
        prop_assert_eq!(timed, at_first(a) + at_first(b) + at_first(c));
    }
}

#[test]
fn extending_adds_counts_and_keeps_the_later_state() {
    let (mut sum, later) = (tick(5), tick(9));
    sum.extend(&later);
    assert_eq!((sum.open, sum.resolved, sum.waiting), (later.open, later.resolved, later.waiting));
    assert_eq!(sum.counts.sent, 14 * 3);
    assert_eq!(sum.latency.count(), 5 + 3);
}

#[test]
fn a_cleared_tick_is_a_new_one() {
    let (mut used, mut new) = (tick(17), Tick::default());
    used.clear();
    used.extend(&tick(9));
    new.extend(&tick(9));
    assert_eq!(used, new);
}
