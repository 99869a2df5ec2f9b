//! The open loop: as many requests as the rate implies, each at its time, whatever the target does. The target's delays show in the
//! latency.

use run::By;
use samples::{Kind, Stage, Verdict};
use stage::{
    Direction, RunResult, connections, direct,
    fates::Frozen,
    listening, measured, network, plan, play, play_frozen,
    scripted::{Act, Request, Script, Scripted, Then},
    servers, turns,
};
use units::Nanos;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const RIGHT: Act = Act { send: OK, then: Then::Stay };

/// Runs against a scripted server, which must have received every request.
fn run(flags: &str, shards: u32, script: Script) -> (RunResult, Scripted) {
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(script));
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let server = std::mem::replace(server.program(), Scripted::new(script));
    assert_eq!(server.requests, result.whole.counts.sent, "all requests have arrived");
    (result, server)
}

/// Checks that there are as many slots as the rate implies, all sent or missed, and without lag.
fn check_slots(result: &RunResult, slots: u64, missed: u64) {
    let c = &result.whole.counts;
    assert_eq!((c.sent, c.missed), (slots - missed, missed), "{c:?}");
    // In virtual time throng is never late, and waiting for a connection is not lag.
    assert_eq!((result.whole.lag.count(), measured(&result.whole.lag).max), (slots, 0.0));
    assert_eq!(result.whole.ramp_latency.count(), 0, "nothing is asked before full load");
}

#[test]
fn the_rate_is_kept_exactly() {
    for (flags, shards, slots) in [
        ("connections=1k rate=20k/s duration=5s", 4, 100_000),
        ("connections=1k rate=20k/s duration=5s", 1, 100_000),
        ("connections=100 rate=777/s duration=7s", 3, 5_439),
        ("connections=5 rate=10/s duration=10s ramp=2/s", 2, 100),
        ("connections=3 rate=7/m duration=10m", 3, 70),
    ] {
        let net = network(3, |_| {});
        let plan = plan("http://127.0.0.1:8000/", flags, 3);
        let at = plan.destinations()[0];
        let (mut servers, counters) = servers(&net, at, 2, connections(&plan));
        let mut turns = turns(&mut servers);
        let result = play(&net, &plan, shards, &mut turns, |_, _| {});
        check_slots(&result, slots, 0);
        let c = &result.whole.counts;
        assert_eq!(
            (result.faults(), c.answered, counters.read().requests),
            (vec![], slots, slots),
            "{flags}"
        );
        let time = result.hold_until.since(result.hold_from);
        let plan::Hold::For(hold) = plan.stages[0].hold else { panic!("it has an end") };
        assert_eq!(time, hold, "{flags}: full load ends at its time");
        // Requests outstanding at the end get their responses afterwards.
        assert!(slots - c.answered_at_load <= 20, "{flags}: {c:?}");
        let latency = measured(&result.whole.latency);
        assert!((latency.mean / 220.0 - 1.0).abs() < 0.1 && latency.max <= 400.0, "{flags}: {latency:?}");
    }
}

#[test]
fn connections_take_turns() {
    // A hundred connections and a thousand requests: ten on each, or more on some.
    let ten = |request: Request| {
        if request.nth < 10 { RIGHT } else { Act { send: b"HTTP/1.1 500 Oh\r\n\r\n", ..RIGHT } }
    };
    let (result, _) = run("connections=100 rate=100/s duration=10s", 1, ten);
    check_slots(&result, 1_000, 0);
    assert_eq!(result.faults(), []);
}

fn stalled(flags: &str) -> RunResult {
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:8000/", flags, 1);
    let (mut servers, _) = servers(&net, plan.destinations()[0], 1, connections(&plan));
    let span = (Nanos::from_secs(6), Nanos::from_secs(7));
    let mut stopped = Frozen::new(&net, &mut servers[0], std::slice::from_ref(&span));
    play(&net, &plan, 2, &mut [&mut stopped], |_, _| {})
}

#[test]
fn a_stall_of_the_target_shows_in_the_latency() {
    let result = stalled("connections=1k rate=5k/s duration=12s");
    check_slots(&result, 60_000, 0);
    assert_eq!((result.faults(), result.whole.counts.answered), (vec![], 60_000));
    let latency = measured(&result.whole.latency);
    // 5,000 requests were due in that second, and waited for the rest of it: one in twelve.
    assert!(latency.p90 < 500.0, "{latency:?}");
    assert!((870e3..=890e3).contains(&latency.p99), "a hundredth of all is 12 % of them: {latency:?}");
    assert!((980e3..=1_001e3).contains(&latency.p999) && latency.max < 1_003e3, "{latency:?}");
    let mean = (5_000.0 * 500e3 + 55_000.0 * 220.0) / 60_000.0;
    assert!((latency.mean / mean - 1.0).abs() < 0.01, "{latency:?}, {mean:.0} expected");

    // A closed loop sends nothing meanwhile: the same stall causes only one slow response per connection.
    let closed = measured(&stalled("connections=1k think=200ms duration=12s").whole.latency);
    assert!(closed.count > 50_000 && closed.p90 < 500.0 && closed.max > 900e3, "{closed:?}");
    assert!(latency.mean > 2.0 * closed.mean, "{latency:?} against {closed:?}");
}

/// Before the end of the load, and at its end.
#[test]
fn slots_due_in_a_stall_of_throng_are_late_or_missed() {
    for (from, until) in [(1_000, 1_300), (1_900, 2_900)] {
        let net = network(1, |_| {});
        let plan = plan("http://127.0.0.1:80/", "connections=10 rate=153/s duration=2s", 1);
        let mut server = listening(&net, plan.destinations()[0], 80, Scripted::new(|_| RIGHT));
        let span = (Nanos::from_millis(from), Nanos::from_millis(until));
        let result = play_frozen(&net, &plan, 1, &mut [&mut server], span);
        let c = &result.whole.counts;
        let is_at_end = result.hold_from + Nanos::from_secs(2) < span.1;
        assert_eq!((c.sent + c.missed, c.missed > 0), (306, is_at_end), "{from}: {c:?}");
        let lag = measured(&result.whole.lag);
        assert!(lag.count >= 306 && lag.max > 290e3, "{from}: {lag:?}");
        let s = result.judge(&plan);
        assert!(s.reasons[0].starts_with("throng was late: lag p99 "), "{from}: {:?}", s.reasons);
    }
}

#[test]
fn slots_without_an_idle_connection_are_missed_and_reported() {
    // Ten connections and 0.1 s per response: half of the two hundred requests per second that are due.
    let later = |_| Act { send: b"", then: Then::SendAfter(Nanos::from_millis(100), OK) };
    let (result, _) = run("connections=10 rate=200/s duration=10s timeout=2s", 1, later);
    let c = &result.whole.counts;
    assert_eq!((c.sent + c.missed, result.faults()), (2_000, vec![]), "{c:?}");
    assert!((985..=1_000).contains(&c.sent), "{c:?}");
    let latency = measured(&result.whole.latency);
    // A request is given up after waiting for the timeout; the time of the response is added to that.
    assert!(latency.max <= 2_102e3 && latency.max > 2_000e3 && latency.p50 > 1_000e3, "{latency:?}");
    assert_eq!((result.whole.lag.count(), measured(&result.whole.lag).max), (2_000, 0.0));
}

/// Fifty connections and 0.3 s per response: at most 166 requests per second.
#[test]
fn a_step_in_which_more_and_more_requests_wait_says_so() {
    for (per_s, falls_behind) in [(100, false), (200, true)] {
        let net = network(1, |_| {});
        let plan = plan("http://127.0.0.1:80/", &format!("connections=50 rate={per_s}/s duration=4s"), 1);
        let later = |_| Act { send: b"", then: Then::SendAfter(Nanos::from_millis(300), OK) };
        let mut server = listening(&net, plan.destinations()[0], 128, Scripted::new(later));
        let direction = Direction { goes_on: true, ..Direction::default() };
        let result = direct(&net, &plan, 1, &mut [&mut server], direction, |_, _| {});
        let s = run::judge_step(&plan, &result.record, By::Rate.judged(), true, None);
        let why = "requests come faster than the target serves them on 50 connections: ";
        assert_eq!(
            s.reasons.first().is_some_and(|own| own.starts_with(why)),
            falls_behind,
            "{:?}",
            s.reasons
        );
        assert_eq!((s.verdict == Verdict::Fail, result.faults()), (falls_behind, vec![]), "{per_s}");
        // The target serves all at once: there are too few connections.
        let limit = s.limit.or(s.suspect).map(|limit| limit.sentence).unwrap_or_default();
        assert_eq!(limit.starts_with("too few connections: 50 carried 16"), falls_behind, "{per_s}: {limit}");
    }
}

#[test]
fn a_slot_dials_again_what_was_closed_by_announcement() {
    let (result, server) =
        run("connections=20 rate=50/s duration=10s", 2, |_| Act { send: OK_AND_CLOSE, then: Then::Stay });
    check_slots(&result, 500, 0);
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.closed, c.redialled, c.dropped), (20, 500, 480, 0), "{c:?}");
    assert_eq!((result.faults(), server.accepted_at.len()), (vec![], 500));
    // Two round trips, except for the first twenty.
    let latency = measured(&result.whole.latency);
    let mean = (20.0 * 220.0 + 480.0 * 440.0) / 500.0;
    assert!((latency.mean / mean - 1.0).abs() < 0.05, "{latency:?}");
}

#[test]
fn lost_connections_are_not_idle() {
    let twice = |request: Request| match request.nth {
        0 => RIGHT,
        _ => Act { send: b"", then: Then::Close(net::Close::Reset) },
    };
    let flags = "connections=10 rate=10/s duration=10s timeout=1s";
    let (result, _) = run(&format!("{flags} reconnect=1h..2h"), 2, twice);
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Reset, 10)]);
    let c = &result.whole.counts;
    assert_eq!((c.sent, c.answered, c.dropped, c.missed, result.held), (20, 10, 10, 80, 0), "{c:?}");
    // If no connection comes back, the run ends with the last of them.
    let (result, _) = run(flags, 2, twice);
    let c = &result.whole.counts;
    assert_eq!((c.sent, c.answered, c.dropped, result.held), (20, 10, 10, 0), "{c:?}");
    assert!(c.missed <= 3 && result.hold_until < Nanos::from_millis(2_500), "{c:?} {}", result.hold_until);
}

#[test]
fn the_wait_for_a_lost_connection_is_part_of_the_latency() {
    // Each connection is lost once, at its second request, and comes back within the back-off.
    let once = |request: Request| match request {
        Request { conn: 0..10, nth: 1 } => Act { send: b"", then: Then::Close(net::Close::Reset) },
        _ => RIGHT,
    };
    let (result, server) = run("connections=10 rate=10/s duration=20s reconnect=500ms", 1, once);
    let c = &result.whole.counts;
    assert_eq!((c.sent, c.missed, c.dropped, c.redialled, result.held), (200, 0, 10, 10, 10), "{c:?}");
    assert_eq!((result.faults(), server.accepted_at.len()), (vec![(Stage::Exchange, Kind::Reset, 10)], 20));
}

#[test]
fn messages_go_by_the_rate_too() {
    let net = network(2, |_| {});
    let flags = "connections=40 rate=200/s duration=5s message=hello";
    let plan = plan("ws://127.0.0.1:8000/ws/echo", flags, 2);
    let (mut servers, counters) = servers(&net, plan.destinations()[0], 1, connections(&plan));
    let result = play(&net, &plan, 2, &mut [&mut servers[0]], |_, _| {});
    check_slots(&result, 1_000, 0);
    assert_eq!((result.faults(), result.whole.counts.answered), (vec![], 1_000));
    assert_eq!(counters.read().open, 40);
}
