//! Tests of the pacer: each load model, pauses, orders, and the pairing of slots with connections.

use super::*;
use plan::{Role, Slice, TupleShare};
use proptest::prelude::*;
use units::Rate;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const TIMEOUT: Nanos = Nanos::from_secs(10);

fn held() -> Load {
    Load::Held { connections: 10 }
}

fn rate() -> Load {
    Load::Rate { connections: 10, rate: Rate::per_s(100) }
}

fn arrivals() -> Load {
    Load::Arrivals { rate: Rate::per_s(100), total: Some(10) }
}

fn steady(per_s: u32) -> RateProfile {
    RateProfile::Steady(Rate::per_s(per_s))
}

fn pacer(load: Load, waits: bool) -> Pacer {
    let (role, tuple_share) = (Role::Population(0), TupleShare::ALL);
    let slice = Slice::WHOLE;
    let part = Part {
        role,
        slice,
        shard: 0,
        shards: 1,
        connections: 10,
        places: 10,
        requests: None,
        seed: 0,
        tuple_share,
    };
    Pacer::new(load, waits, &part)
}

/// The due times of the dials made by this time, in milliseconds.
fn dials(pacer: &mut Pacer, now: Nanos) -> Vec<u64> {
    let (due, _) = pacer.dials_due(now, 0, TIMEOUT, Nanos::ZERO);
    (0..due).map(|_| pacer.take_dial(now).due.millis()).collect()
}

#[test]
fn load_models_differ_in_these_properties() {
    // (load, comes and goes, open loop, closed loop, closed loop with think time, may coalesce)
    for (load, expected) in [
        (held(), [false, false, true, false, true]),
        (rate(), [false, true, false, false, false]),
        (arrivals(), [true, false, true, false, false]),
    ] {
        let [at_once, thinks] = [false, true].map(|waits| pacer(load, waits));
        let actual = [
            at_once.comes_and_goes(),
            at_once.is_open_loop(),
            at_once.is_closed_loop(),
            thinks.is_closed_loop(),
            at_once.may_coalesce(),
        ];
        assert_eq!(actual, expected, "{load:?}");
    }
}

#[test]
fn the_next_request_is_due_by_connection_or_slot() {
    // (load, due before now, due now)
    for (load, late, at_once) in [
        (held(), Next::Due, Next::Due),
        (rate(), Next::Slot, Next::Slot),
        (arrivals(), Next::Due, Next::AtOnce),
    ] {
        let pacer = pacer(load, false);
        assert_eq!((pacer.next(MS(90), MS(100)), pacer.next(MS(100), MS(100))), (late, at_once), "{load:?}");
    }
}

/// The due time of a slot that has become due, in milliseconds.
fn due_at(slot: Slot) -> Option<u64> {
    if let Slot::Due(at) = slot { Some(at.millis()) } else { None }
}

fn missed_at(slot: Slot) -> Option<u64> {
    if let Slot::Missed(at) = slot { Some(at.millis()) } else { None }
}

#[test]
fn only_held_connections_are_replaced_and_too_many() {
    // (load, there, surplus, replaced)
    for (load, there, surplus, replaced) in [
        (held(), 3, false, true),
        (held(), 4, false, false),
        (held(), 5, true, false),
        (rate(), 3, false, true),
        (rate(), 5, true, false),
        (arrivals(), 3, false, false),
        (arrivals(), 5, false, false),
    ] {
        let mut pacer = pacer(load, false);
        pacer.set_load(4, 0, Some(steady(10)), MS(0));
        assert_eq!((pacer.is_surplus(there), pacer.replaces(there)), (surplus, replaced), "{load:?} {there}");
    }
}

#[test]
fn an_order_dials_missing_connections() {
    // Seven of ten exist already, but arrivals are always new ones.
    for (load, expected) in [(held(), 3), (rate(), 3), (arrivals(), 10)] {
        let mut pacer = pacer(load, false);
        assert!(!pacer.is_ramped(0), "before an order {load:?}");
        pacer.set_load(99, 7, Some(steady(1_000)), MS(1_000));
        assert_eq!(dials(&mut pacer, MS(999)).len(), 0, "{load:?}");
        let due = dials(&mut pacer, MS(2_000));
        assert_eq!(due, (1_000..1_000 + expected).collect::<Vec<_>>(), "{load:?}");
        assert!(pacer.is_ramped(expected) && !pacer.is_ramped(expected - 1), "{load:?}");
        assert_eq!((pacer.is_through(0), pacer.is_through(1)), (pacer.comes_and_goes(), false), "{load:?}");
    }
}

#[test]
fn a_pause_postpones_the_connections_own_requests() {
    for (load, puts_off) in [(held(), true), (rate(), false), (arrivals(), true)] {
        let mut pacer = pacer(load, false);
        pacer.set_load(10, 0, Some(steady(100)), MS(0));
        pacer.pause(true, MS(0));
        assert_eq!(pacer.dials_due(MS(50), 0, TIMEOUT, Nanos::ZERO), (0, Nanos::NEVER), "{load:?}");
        assert_eq!((pacer.is_paused(), pacer.puts_off()), (true, puts_off), "{load:?}");
        pacer.pause(false, MS(50));
        assert_eq!((dials(&mut pacer, MS(100)).len(), pacer.puts_off()), (6, false), "{load:?}");
    }
}

#[test]
fn dials_that_were_due_in_a_pause_are_no_burst_after_it() {
    for load in [held(), rate(), arrivals()] {
        let mut pacer = pacer(load, false);
        pacer.set_load(10, 0, Some(steady(100)), MS(0));
        assert_eq!(dials(&mut pacer, MS(25)), [0, 10, 20], "{load:?}");
        pacer.pause(true, MS(25));
        // A repeated order changes nothing.
        pacer.pause(true, MS(60));
        pacer.pause(false, MS(10_025));
        assert_eq!(dials(&mut pacer, MS(10_045)), [10_030, 10_040], "{load:?}");
        // An order during the pause, due in it, begins at the end of the pause; a later one at its time.
        for (from, expected) in [(20_500, [21_000, 21_010]), (21_005, [21_005, 21_015])] {
            pacer.pause(true, MS(20_000));
            pacer.set_load(10, 0, Some(steady(100)), MS(from));
            pacer.pause(false, MS(21_000));
            assert_eq!(dials(&mut pacer, MS(21_015)), expected, "{load:?}");
        }
    }
}

#[test]
fn a_rate_profile_is_that_of_requests_or_of_dials() {
    for (load, of_requests) in [(held(), false), (rate(), true), (arrivals(), false)] {
        let mut pacer = pacer(load, false);
        pacer.set_load(10, 0, Some(steady(10)), MS(0));
        pacer.set_profile(steady(100), MS(200), MS(0), &mut |_| panic!("nothing was due"));
        // Two at ten per second until then; from then on at a hundred: those of 200, 210 and 220 ms.
        let dialled = if of_requests { vec![0, 100, 200] } else { vec![0, 100, 200, 210, 220] };
        let mut got = dials(&mut pacer, MS(220));
        got.extend(dials(&mut pacer, MS(220)));
        assert_eq!(got, dialled, "{load:?}");
        let mut due = Vec::new();
        pacer.collect_due(MS(220), &mut |slot| due.extend(due_at(slot)));
        assert_eq!(due, if of_requests { vec![200, 210, 220] } else { vec![] }, "{load:?}");
        assert_eq!(pacer.next_slot(), if of_requests { MS(230) } else { Nanos::NEVER }, "{load:?}");
    }
}

#[test]
fn an_end_is_exact_and_may_be_undone() {
    let mut pacer = pacer(rate(), false);
    pacer.set_profile(steady(100), MS(0), MS(0), &mut |_| panic!("nothing was due"));
    let mut seen = 0;
    for (until, now, expected, next) in [
        (MS(20), MS(15), 2, Nanos::NEVER),
        // What would be due exactly at the end is not due.
        (MS(20), MS(45), 2, Nanos::NEVER),
        (Nanos::NEVER, MS(45), 5, MS(50)),
        (MS(10), MS(70), 5, Nanos::NEVER),
    ] {
        pacer.end_at(until);
        pacer.collect_due(now, &mut |_| seen += 1);
        assert_eq!((seen, pacer.next_slot()), (expected, next), "until {until}");
    }
    pacer.end_at(MS(60));
    let (mut missed, mut due) = (0, 0);
    pacer.end_slots(MS(70), &mut |slot| *if due_at(slot).is_some() { &mut due } else { &mut missed } += 1);
    assert_eq!((seen + due, missed), (6, 6), "each was due, and is given up");
}

#[test]
fn arrivals_that_are_due_at_the_end_are_given_up() {
    let mut pacer = pacer(arrivals(), false);
    pacer.set_load(10, 0, Some(steady(100)), MS(0));
    pacer.set_profile(steady(50), MS(40), MS(0), &mut |_| panic!("nothing was due"));
    pacer.end_at(MS(100));
    assert_eq!(dials(&mut pacer, MS(25)), [0, 10, 20]);
    let mut missed = Vec::new();
    pacer.end_arrivals(MS(500), &mut |due| missed.push(due.millis()));
    assert_eq!(missed, [30, 40, 60, 80], "what is due at the end is not due");
    pacer.end_arrivals(MS(900), &mut |_| panic!("it has ended"));
    assert_eq!(dials(&mut pacer, MS(900)), [0; 0]);
    // What is due by then; held connections have no slots, and nothing is due in a pause.
    let ended = |load, is_paused| {
        let mut pacer = self::pacer(load, false);
        pacer.set_load(10, 0, Some(steady(100)), MS(0));
        pacer.pause(is_paused, MS(0));
        let mut missed = 0;
        pacer.end_arrivals(MS(25), &mut |_| missed += 1);
        missed
    };
    assert_eq!([ended(arrivals(), false), ended(arrivals(), true), ended(held(), false)], [3, 0, 0]);
}

#[test]
fn a_slot_without_a_connection_may_have_one_dialled() {
    let mut pacer = pacer(rate(), false);
    pacer.set_profile(steady(100), MS(0), MS(0), &mut |_| panic!("nothing was due"));
    assert_eq!((pacer.set_free(4), pacer.take_slot()), (None, None));
    assert_eq!(pacer.collect_due(MS(15), &mut |_| {}), Nanos::ZERO);
    assert_eq!(
        (pacer.pair(|_| true), pacer.take_slot(), pacer.take_slot()),
        (Some((4, MS(0))), Some(MS(10)), None)
    );
    assert_eq!(pacer.collect_due(MS(30), &mut |_| {}), MS(15), "the previous call");
    assert_eq!(self::pacer(held(), false).take_slot(), None, "no schedule of requests");
}

#[test]
fn a_slot_takes_the_connection_that_was_idle_longest() {
    let mut pacer = pacer(rate(), false);
    pacer.set_profile(steady(100), MS(0), MS(0), &mut |_| panic!("nothing was due"));
    assert_eq!((pacer.set_free(7), pacer.set_free(3), pacer.set_free(5)), (None, None, None));
    pacer.forget(3);
    assert_eq!(pacer.pair(|_| true), None, "nothing has been collected");
    pacer.collect_due(MS(35), &mut |_| {});
    let pairs: Vec<_> = std::iter::from_fn(|| pacer.pair(|_| true)).collect();
    assert_eq!(pairs, [(7, MS(0)), (5, MS(10))]);
    // The waiting slot is that of 20 ms; it takes the next free connection.
    assert_eq!(pacer.set_free(7), Some(MS(20)));
    let mut missed = Vec::new();
    pacer.give_up(MS(40), |_| MS(5), &mut |slot| missed.extend(missed_at(slot)));
    assert_eq!(missed, [30]);
    pacer.end_slots(MS(45), &mut |slot| missed.extend(missed_at(slot)));
    assert_eq!((missed, pacer.pair(|_| true)), (vec![30, 40], None));
}

#[test]
fn a_connection_with_several_places_waits_once_and_comes_back_after_each_slot() {
    let mut pacer = pacer(rate(), false);
    pacer.set_profile(steady(100), MS(0), MS(0), &mut |_| panic!("nothing was due"));
    assert_eq!([7, 7, 3].map(|index| pacer.set_free(index)), [None; 3]);
    pacer.collect_due(MS(25), &mut |_| {});
    // The connection that takes a slot has a place left, and queues after the other.
    assert_eq!(pacer.pair(|_| true), Some((7, MS(0))));
    assert_eq!(pacer.set_free(7), Some(MS(10)), "a slot that waits is taken at once");
    assert_eq!(pacer.pair(|_| true), Some((3, MS(20))));
    assert_eq!((pacer.pair(|_| true), pacer.set_free(7), pacer.set_free(7)), (None, None, None));
    // A connection without a place leaves the queue, but the slot stays.
    pacer.collect_due(MS(35), &mut |_| {});
    assert_eq!((pacer.pair(|_| false), pacer.pair(|_| true)), (None, None));
    assert_eq!((pacer.set_free(7), pacer.set_free(7)), (Some(MS(30)), None));
    pacer.forget(7);
    pacer.collect_due(MS(45), &mut |_| {});
    assert_eq!(pacer.pair(|_| true), None, "it is closed, however often it was offered");
}

/// Maximum number of concurrent requests on a connection.
const PLACES: u32 = 3;

/// As the client does: offers a connection with a free place, and again after each slot that it has taken.
fn fill(pacer: &mut Pacer, index: u32, under_way: &mut [Option<u32>; 4], taken: &mut Vec<u64>) {
    let under_way = &mut under_way[index as usize];
    while let Some(n) = under_way.filter(|n| *n < PLACES) {
        let Some(due) = pacer.set_free(index) else { break };
        taken.push(due.millis());
        *under_way = Some(n + 1);
    }
}

proptest! {
    /// Connections with several places, compared with a model: slots are taken in order, each once, and none has more than its
    /// places; no slot waits while a connection is free.
    #[test]
    fn places_take_slots_in_order(steps in proptest::collection::vec((0u32..4, 0u8..3, 1u64..30), 1..150)) {
        let mut pacer = pacer(rate(), false);
        pacer.set_profile(steady(100), MS(0), MS(0), &mut |_| panic!("nothing was due"));
        let (mut now, mut seen, mut under_way, mut taken) = (0, 0, [None::<u32>; 4], Vec::new());
        for (index, what, wait) in steps {
            let at = index as usize;
            match (what, under_way[at]) {
                // It arrives with all its places, or one of its requests ends.
                (0, None) => under_way[at] = Some(0),
                (1, Some(n @ 1..)) => under_way[at] = Some(n - 1),
                (2, Some(_)) if wait == 1 => {
                    pacer.forget(index);
                    under_way[at] = None;
                }
                _ => {
                    now += wait;
                    pacer.collect_due(MS(now), &mut |_| seen += 1);
                }
            }
            fill(&mut pacer, index, &mut under_way, &mut taken);
            while let Some((index, due)) = pacer.pair(|_| true) {
                let n = under_way[index as usize].expect("who is free is there");
                prop_assert!(n < PLACES, "more than its places");
                under_way[index as usize] = Some(n + 1);
                taken.push(due.millis());
                fill(&mut pacer, index, &mut under_way, &mut taken);
            }
            prop_assert_eq!(&taken, &(0..taken.len() as u64).map(|n| 10 * n).collect::<Vec<_>>());
            let is_free = under_way.iter().any(|n| n.is_some_and(|n| n < PLACES));
            prop_assert!(!is_free || taken.len() as u64 == seen, "{} of {seen} taken", taken.len());
        }
    }
}
