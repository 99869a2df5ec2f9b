//! Tests of the window: its growth, losses, handshakes, and many shards at a simulated firewall.

use std::collections::VecDeque;

use super::{
    super::{
        DialRate,
        ramp::{APART, AT_ONCE},
    },
    *,
};

const TIMEOUT: Nanos = Nanos::from_secs(10);

/// (number of first responses, their time, size of the window afterwards)
fn check(steps: &[(u64, u64, u32)]) {
    let mut w = Window::new(1.0, 0.0);
    let mut now = Nanos::from_secs(10);
    w.begin(now);
    for &(times, took_ms, size) in steps {
        for _ in 0..times {
            now = now + Nanos::from_millis(1);
            w.learn(Nanos::from_millis(took_ms), true, now);
        }
        assert_eq!(w.size, size, "after {times} of {took_ms} ms in {steps:?}");
    }
}

#[test]
fn the_window_grows_with_responses_however_slow() {
    check(&[(4, 1, 36), (10_000, 1, MOST)]);
    check(&[(32, 1, 64), (64, 5_000, 128), (10_000, 9_000, MOST)]);
}

/// Responses come at 200 a second, from 5 ms on: 501 of them fit into a quarter of the timeout plus those 5 ms.
#[test]
fn no_more_wait_than_get_their_response_in_good_time() {
    let mut w = Window { size: MOST, ..Window::new(1.0, 0.0) };
    let begin = Nanos::from_secs(10);
    w.begin(begin);
    w.learn_dial(Nanos::ZERO, true, begin);
    assert_eq!(w.room(1, 0, TIMEOUT, begin), (3, Nanos::NEVER), "before the first one");
    w.opened = 1_000;
    (1..=400).for_each(|n| w.learn(Nanos::from_millis(5), true, begin + Nanos::from_millis(5 * n)));
    let now = begin + Nanos::from_secs(2);
    assert_eq!([400, 495, 501].map(|waiting| w.room(waiting, 0, TIMEOUT, now).0), [16, 6, 0]);
    assert!(w.is_bent, "they wait for responses");
}

/// A target with a backlog of 100, which drops other SYNs.
#[test]
fn a_window_full_of_lost_dials_is_halved_and_paced() {
    let begin = Nanos::from_secs(10);
    let met = |dials: u32, ok: bool| {
        let mut w = Window { size: 200, ..Window::new(1.0, 0.0) };
        (0..dials).for_each(|_| w.begin(begin));
        (0..100).for_each(|_| w.learn_dial(Nanos::ZERO, true, begin));
        (0..100).for_each(|_| w.learn(Nanos::ZERO, true, begin));
        (100..dials).filter(|_| !ok).for_each(|_| w.learn_dial(Nanos::ZERO, false, begin));
        w.room(dials, 0, TIMEOUT, begin + Nanos::from_millis(299));
        assert!(w.pace.is_none(), "they may still come");
        w.room(if ok { dials } else { 100 }, 0, TIMEOUT, begin + Nanos::from_millis(300));
        w
    };
    let w = met(116, true);
    assert_eq!((w.size, w.lost, w.dials, w.pace.map(|pace| pace.per_s.round())), (50, 16, 16, Some(300.0)));
    // A few SYNs lost on the path, or a few refused dials, do not mean a full backlog.
    assert_eq!([met(107, true), met(199, false)].map(|w| (w.size, w.accepted(begin))), [(300, None); 2]);
    let w = met(201, false);
    assert_eq!((w.lost, w.pace.map(|pace| pace.per_s.round())), (0, Some(300.0)));
}

#[test]
fn handshakes_that_queue_shrink_the_window() {
    let begin = || Window { size: 32, ..Window::new(1.0, 0.0) };
    let (mut w, ms) = (begin(), Nanos::from_millis);
    for _ in 0..10 {
        w.learn_handshake(ms(1), false);
    }
    assert_eq!((w.size, w.threshold), (32, MOST), "they take what they take");
    w.learn_handshake(ms(4), false);
    assert_eq!(w.size, 32, "a little longer");
    w.learn_handshake(ms(5), false);
    assert_eq!((w.size, w.threshold), (32 - 1, 32 - 1));
    for _ in 0..100 {
        w.learn_handshake(ms(50), false);
    }
    assert_eq!(w.size, LEAST);
    // At a distance of 100 ms, a tenth or a third more is no queueing.
    let mut w = begin();
    for took in [100, 110, 140] {
        w.learn_handshake(ms(took), true);
    }
    assert_eq!(w.size, 32);
    w.learn_handshake(ms(150), true);
    assert_eq!(w.size, 32 - 1);
    // In TLS 1.2 a full handshake takes a round trip more than a resumed one.
    for _ in 0..100 {
        w.learn_handshake(ms(200), false);
    }
    assert_eq!(w.size, 32 - 1);
}

/// Handshakes on one processor, one after another. Each takes its cost there, and its round trips to the target; `resumed`
/// decides which kind each one is. Returns how many were completed in four seconds, and the most under way at a time after the
/// first second.
fn handshakes(cost_us: [u64; 2], round_trips_ms: [u64; 2], resumed: impl Fn(u32) -> bool) -> (u32, u32) {
    let mut w = Window::new(1.0, 0.0);
    let begin = Nanos::from_secs(1);
    let (mut now, mut free_at, mut number, mut most) = (begin, begin, 0, 0);
    let mut under_way: VecDeque<(Nanos, Nanos, bool)> = VecDeque::new();
    let mut done = 0;
    while now < Nanos::from_secs(5) {
        now = now + Nanos::from_micros(50);
        for _ in 0..w.room(under_way.len() as u32, 0, TIMEOUT, now).0 {
            w.begin(now);
            // The listener's backlog accepts it.
            w.learn_dial(Nanos::ZERO, true, now);
            let resumed = resumed(number);
            number += 1;
            free_at = free_at.max(now) + Nanos::from_micros(cost_us[usize::from(resumed)]);
            let ends = free_at + Nanos::from_millis(round_trips_ms[usize::from(resumed)]);
            under_way.push_back((now, ends, resumed));
        }
        if now > Nanos::from_secs(2) {
            most = most.max(under_way.len() as u32);
        }
        under_way.retain(|(at, ends, resumed)| {
            if *ends <= now {
                let waited = w.learn_handshake(now.since(*at), *resumed);
                w.learn(waited, true, now);
                done += 1;
            }
            *ends > now
        });
    }
    (done, most)
}

#[test]
fn handshakes_keep_a_processor_busy_and_do_not_queue() {
    let check = |cost_us: [u64; 2], round_trips_ms, resumed: &dyn Fn(u32) -> bool, least, most| {
        let (done, under_way) = handshakes(cost_us, round_trips_ms, resumed);
        assert!(done >= least && under_way <= most, "{cost_us:?} {round_trips_ms:?}: {done}, {under_way}");
    };
    // Nearby, at 0.3 ms each: 13,333 in four seconds; what is under way completes within a few milliseconds.
    check([300, 100], [0, 0], &|_| false, 12_800, 40);
    // Resumed, 0.1 ms each.
    check([300, 100], [0, 0], &|_| true, 38_000, 80);
    // Mixed.
    check([300, 100], [0, 0], &|n| n % 2 == 0, 19_200, 80);
    // 100 ms away, and a round trip more for full ones: about as many at once as a processor handles in that time.
    check([300, 100], [200, 100], &|n| n % 10 > 0, 22_000, 1_024);
}

#[test]
fn room_is_what_is_not_outstanding() {
    let mut w = Window::new(1.0, 0.0);
    let mut room = |outstanding| w.room(outstanding, 0, TIMEOUT, Nanos::ZERO).0;
    assert_eq!((room(0), room(31), room(32), room(99)), (2, 1, 0, 0));
}

/// One of 64 shards, with 4 dials a second; its dial is undecided for longer than the interval to the next one.
#[test]
fn a_shard_that_missed_its_turn_waits_for_the_next_one() {
    let at = |s: f64| Nanos((s * 1e9) as u64);
    let mut w = Window::new(1.0 / 64.0, 0.05);
    // Dials take 1 ms.
    w.begin(at(9.5));
    w.learn_dial(Nanos::from_millis(1), true, at(9.501));
    w.limit(256.0, at(10.0));
    let mut check = |awaited, now, expected: (u32, f64)| {
        let (room, next) = w.room(awaited, 0, TIMEOUT, at(now));
        assert!(room == expected.0 && (next.secs_f64() - expected.1).abs() < 1e-6, "{now}: {room}, {next}");
        (0..room).for_each(|_| w.begin(at(now)));
    };
    check(0, 10.0, (0, 10.0125));
    check(0, 10.013, (1, 10.013));
    check(1, 10.27, (0, 10.3));
    // It is lost, as are others of shards that know it now.
    check(1, 10.3, (0, 10.5125));
    check(1, 10.513, (1, 10.513));
}

/// The outcome of dials at a firewall.
struct Met {
    /// When dials succeeded.
    opened: Vec<Nanos>,
    failed: u32,
    /// Number of dropped SYNs.
    dropped: u32,
}

/// A dialling shard.
struct Shard {
    window: Window,
    /// When each outstanding dial began, and how often its SYN was dropped.
    under_way: Vec<(Nanos, usize)>,
    to_dial: u32,
}

/// Shards that dial at a firewall which passes `per_s` SYNs a second, and `burst` at once; dropped SYNs are retransmitted after
/// 1, 3 and 7 seconds. If `shares`, what the shards meet is merged each second, and the resulting limit comes back a little
/// later.
fn dials_at_a_firewall(per_s: f64, burst: f64, n: u32, shards: u32, shares: bool) -> Met {
    const STEP: Nanos = Nanos(100_000);
    const TRIES: [u64; 4] = [0, 1_000, 3_000, 7_000];
    let share = 1.0 / f64::from(shards);
    let shard = |nth| {
        let window = Window::new(share, f64::from(nth) * share);
        Shard { window, under_way: Vec::new(), to_dial: n / shards + u32::from(nth < n % shards) }
    };
    let mut all: Vec<Shard> = (0..shards).map(shard).collect();
    let (mut now, mut tokens) = (Nanos::from_secs(1), burst);
    let mut met = Met { opened: Vec::new(), failed: 0, dropped: 0 };
    let (mut rate, mut order, mut second) = (DialRate::default(), None, Nanos::from_secs(2));
    while all.iter().any(|shard| shard.to_dial > 0 || !shard.under_way.is_empty()) {
        now = now + STEP;
        tokens = (tokens + per_s * STEP.secs_f64()).min(burst);
        if shares && now >= second {
            let mut sum = Congestion::default();
            all.iter_mut().for_each(|shard| sum.merge(&shard.window.take_met()));
            let learnt = rate.learn(&sum, Nanos::from_secs(1), now);
            order = learnt.map(|rate| (now + Nanos::from_millis(400), rate));
            second = second + Nanos::from_secs(1);
        }
        if let Some((_, rate)) = order.take_if(|(at, _)| now >= *at) {
            all.iter_mut().for_each(|shard| shard.window.limit(rate.per_s_f64(), now));
        }
        for (nth, shard) in all.iter_mut().enumerate() {
            let Shard { window: w, under_way, to_dial } = shard;
            let later = nth.saturating_sub(AT_ONCE as usize - 1) as u64;
            if now < Nanos::from_secs(1) + Nanos(APART.0 * later) {
                continue;
            }
            let (room, _) = w.room(under_way.len() as u32, 0, TIMEOUT, now);
            for _ in 0..room.min(*to_dial) {
                w.begin(now);
                under_way.push((now, 0));
                *to_dial -= 1;
            }
            let mut left = Vec::new();
            for (at, tries) in std::mem::take(under_way) {
                if now < at + Nanos::from_millis(TRIES.get(tries).copied().unwrap_or(10_000)) {
                    left.push((at, tries));
                } else if tries == TRIES.len() {
                    met.failed += 1;
                    w.learn_dial(now.since(at), false, now);
                } else if tokens >= 1.0 {
                    tokens -= 1.0;
                    met.opened.push(now);
                    w.learn_dial(now.since(at), true, now);
                    w.learn(now.since(at), true, now);
                } else {
                    met.dropped += 1;
                    left.push((at, tries + 1));
                }
            }
            *under_way = left;
        }
    }
    met
}

#[test]
fn a_firewall_that_drops_syns_is_met_at_its_rate() {
    // nft's default burst is 5; retransmissions come back together.
    for (per_s, burst, n, share) in [
        (500.0, 100.0, 10_000, 0.85),
        (500.0, 5.0, 10_000, 0.8),
        (500.0, 5.0, 2_000, 0.6),
        (100.0, 10.0, 2_000, 0.85),
    ] {
        let Met { opened, failed, .. } = dials_at_a_firewall(per_s, burst, n, 1, false);
        assert!(
            opened.len() as u32 * 2 > n && failed * 50 <= n,
            "{per_s}/s, {burst} at once: {failed} of {n} failed"
        );
        // The last ones had their SYN dropped repeatedly.
        let nearly_all = opened.len() * 95 / 100;
        let took = opened[nearly_all].since(Nanos::from_secs(1)).secs_f64();
        let rate = nearly_all as f64 / took;
        assert!(rate >= share * per_s, "{per_s}/s, {burst} at once: {rate:.0}/s, {took} s");
    }
}

/// 2 to 8 % of the SYNs are lost at a rate that is slightly too high: too few for a single shard to notice.
#[test]
fn many_shards_together_are_as_careful_as_one() {
    let n = 4_000;
    let one = dials_at_a_firewall(500.0, 5.0, n, 1, false);
    for shards in [8, 64] {
        let all = dials_at_a_firewall(500.0, 5.0, n, shards, true);
        assert!(
            all.failed <= one.failed + 40,
            "{shards} shards: {} failed, {} of one",
            all.failed,
            one.failed
        );
        assert!(
            all.dropped <= 2 * one.dropped + 2 * shards,
            "{shards} shards: {} of {}",
            all.dropped,
            one.dropped
        );
        let took = |met: &Met| met.opened[met.opened.len() * 95 / 100].secs_f64();
        assert!(took(&all) <= 2.0 * took(&one), "{shards} shards: {} s of {}", took(&all), took(&one));
    }
}
