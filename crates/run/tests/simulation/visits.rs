//! Arrivals: connections that arrive at a rate, make a number of requests, and leave.

use net::io::sim::Faults;
use run::By;
use samples::{Kind, Stage, Summary, Verdict};
use stage::{
    Direction, RunResult, connections, direct, listening, measured, network, plan, play,
    scripted::{Act, Request, Script, Scripted, Then},
};
use units::Nanos;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const RIGHT: Act = Act { send: OK, then: Then::Stay };

fn run(flags: &str, shards: u32, change: fn(&mut Faults), script: Script) -> (RunResult, Scripted) {
    let net = network(1, change);
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(script));
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    (result, std::mem::replace(server.program(), Scripted::new(script)))
}

#[test]
fn each_arrives_in_time_sends_its_requests_and_leaves() {
    let still = |f: &mut Faults| f.delay = (Nanos::from_micros(50), Nanos::from_micros(50));
    for (shards, calls) in [(1, 10), (4, 10), (3, 1)] {
        let flags = format!("arrive=200/s total=2k calls={calls}");
        let (result, server) = run(&flags, shards, still, |_| RIGHT);
        let c = &result.whole.counts;
        assert_eq!(
            (c.opened, c.finished, c.failed, c.dropped, c.closed, c.redialled),
            (2_000, 2_000, 0, 0, 0, 0)
        );
        assert_eq!(
            (c.sent, c.answered, c.answered_at_load, server.requests),
            (2_000 * calls, c.sent, c.sent, c.sent)
        );
        assert_eq!((result.faults(), result.held, result.whole.open), (vec![], 0, 0));
        for (n, at) in server.accepted_at.iter().enumerate() {
            let due = Nanos::from_millis(5 * n as u64) + Nanos::from_micros(50);
            assert_eq!(*at, due, "arrival {n}");
        }
        // A request with its response takes 100 µs, and so does a dial: connections do not overlap.
        assert!(result.peak <= 1, "{}", result.peak);
        let whole = &result.whole;
        assert_eq!(
            (whole.connect.count(), whole.latency.count(), whole.ramp_latency.count()),
            (2_000, c.sent, 0)
        );
        assert_eq!((measured(&whole.connect).max, measured(&whole.latency).max), (100.0, 100.0));
        // The lag of each arrival; a request that follows immediately has no lag.
        assert_eq!((whole.lag.count(), measured(&whole.lag).max), (2_000, 0.0));
        // The last one arrived at 9.995 s, and took 100 µs for the dial and for each request.
        let end = Nanos::from_millis(9_995) + Nanos::from_micros(100 * (calls + 1));
        assert_eq!(result.hold_until, end, "the run ends with its last connection");
    }
}

#[test]
fn think_time_lies_between_calls_and_nowhere_else() {
    let (result, server) = run("arrive=100/s total=500 calls=3 think=1s", 2, |_| {}, |_| RIGHT);
    let c = &result.whole.counts;
    assert_eq!((c.finished, c.sent, server.requests), (500, 1_500, 1_500));
    // Two pauses of a second: two hundred connections are open at once.
    assert!((198..=203).contains(&result.peak), "{}", result.peak);
    assert!(result.hold_until < Nanos::from_millis(4_990 + 2_010), "{}", result.hold_until);
}

#[test]
fn connections_closed_early_have_lost_their_calls() {
    let thrice = |request: Request| {
        if request.nth == 2 { Act { send: OK_AND_CLOSE, then: Then::Stay } } else { RIGHT }
    };
    let (result, _) = run("arrive=100/s total=300 calls=10", 2, |_| {}, thrice);
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(Stage::Hold, Kind::Closed, 300)]);
    assert_eq!((c.sent, c.answered, c.dropped, c.closed, c.finished), (900, 900, 300, 0, 0), "{c:?}");
    // Whether or not this was its last request, it closes.
    let (result, _) = run("arrive=100/s total=300 calls=3", 2, |_| {}, thrice);
    assert_eq!((result.faults(), result.whole.counts.finished), (vec![], 300));
}

#[test]
fn failed_connections_are_counted_and_not_replaced() {
    let flags = "arrive=500/s total=2k calls=5 timeout=2s";
    let (result, server) = run(flags, 3, |f| (f.refuse, f.reset) = (100_000, 10_000), |_| RIGHT);
    let c = &result.whole.counts;
    assert_eq!((c.opened + c.failed, c.finished + c.dropped), (2_000, c.opened), "{c:?}");
    assert!(c.failed > 150 && c.dropped > 50 && c.redialled == 0, "{c:?}");
    assert_eq!((server.accepted_at.len() as u64, result.held), (c.opened, 0));
    let kinds: Vec<_> = result.faults().iter().map(|f| (f.0, f.1)).collect();
    assert_eq!(kinds, [(Stage::Dial, Kind::Refused), (Stage::Exchange, Kind::Reset)]);
}

/// Dials that were due are completed even after the load has ended.
#[test]
fn without_a_number_those_that_came_were_wanted() {
    let flags = "arrive=100/s calls=1 duration=2s";
    let (_, judged) = led(flags, Nanos::from_millis(100), Direction::default());
    let c = &judged.connections;
    assert_eq!((c.wanted, c.arriving, c.opened, c.finished), (200, 200, 200, 200), "{c:?}");
    assert!(c.all_arrive() && c.held < 50, "{c:?}");
    assert_eq!(judged.verdict, Verdict::Pass, "{:?}", judged.reasons);
}

#[test]
fn a_time_that_is_over_before_their_number_ends_them() {
    let check = |calls: &str, script: Script, expected: (u64, Verdict, &[&str])| {
        let flags = format!("arrive=100/s total=1k calls={calls} duration=2s");
        let (result, _) = run(&flags, 4, |_| {}, script);
        let c = &result.whole.counts;
        assert_eq!((c.opened, result.hold_until), (200, Nanos::from_secs(2)), "{c:?}");
        let judged = result.judge(&plan("http://127.0.0.1:80/", &flags, 1));
        assert_eq!((judged.connections.wanted, c.finished, judged.verdict), (1_000, expected.0, expected.1));
        assert_eq!(judged.reasons, expected.2);
    };
    let ended = "ended after 2.0 s with 200 of 1,000 connections";
    check("2", |_| RIGHT, (200, Verdict::Pass, &[ended]));
    // The connections that were due are judged.
    let loses_one: Script = |request| match (request.conn, request.nth) {
        (7, 1) => Act { send: OK_AND_CLOSE, then: Then::Close(net::Close::Graceful) },
        _ => RIGHT,
    };
    let closed = "the target closed 1 connection after announcing it, before all of their requests were made";
    let lost = ["199 of 200 connections completed all their calls", ended, closed];
    check("3", loses_one, (199, Verdict::Fail, &lost));
    // Also if all planned connections have arrived, and the last ones have calls left when the time is up.
    let flags = "arrive=100/s total=200 calls=2 think=100ms duration=2s";
    let (result, _) = run(flags, 2, |_| {}, |_| RIGHT);
    let (c, judged) = (&result.whole.counts, result.judge(&plan("http://127.0.0.1:80/", flags, 1)));
    assert!((150..200).contains(&c.finished) && c.answered > 350 && c.due == c.answered, "{c:?}");
    assert_eq!((judged.verdict, judged.reasons), (Verdict::Pass, vec![]));
}

/// Runs a plan in one shard, with this direction, over a network with this one-way delay.
fn led(flags: &str, way: Nanos, direction: Direction) -> (RunResult, Summary) {
    let net = network(1, |f| f.delay = (way, way));
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let mut server = listening(&net, plan.destinations()[0], 8_000, Scripted::new(|_| RIGHT));
    let result = direct(&net, &plan, 1, &mut [&mut server], direction, |_, _| {});
    let summary = result.judge(&plan);
    (result, summary)
}

const US: Nanos = Nanos::from_micros(50);

/// (flags, stall of throng in milliseconds, due in all, missed at the end, longest lag in milliseconds)
#[test]
fn arrivals_that_were_due_in_a_stall_of_throng_are_late_or_missed() {
    for (flags, (from, until), due, missed, longest) in [
        // 46 dials, from the one at 1.0 s on.
        ("arrive=153/s total=306 duration=2s", (1_000, 1_300), 306, 0, 300.0),
        // The dials from 1.902 s on.
        ("arrive=153/s total=306 duration=2s", (1_900, 2_200), 306, 0, 298.04),
        ("arrive=153/s total=1k duration=2s", (1_900, 2_200), 306, 0, 298.04),
        // A turn makes up for 128 of 200.
        ("arrive=2k/s total=4k duration=2s", (1_900, 2_200), 4_000, 72, 300.0),
    ] {
        let frozen = &[(Nanos::from_millis(from), Nanos::from_millis(until))];
        let (result, s) = led(flags, US, Direction { frozen, ..Direction::default() });
        let c = &result.whole.counts;
        assert_eq!((c.opened, c.finished, c.missed), (due - missed, due - missed, missed), "{flags} {from}");
        assert_eq!((result.whole.lag.count(), result.faults()), (due, vec![]), "{flags} {from}");
        let lag = measured(&result.whole.lag).max / 1e3;
        assert!((lag - longest).abs() < 0.1, "{flags} {from}: {lag} ms");
        // The connect time counts from when the dial was due.
        assert!(missed > 0 || measured(&result.whole.connect).max / 1e3 >= lag, "{flags} {from}");
        assert_eq!(s.verdict, Verdict::Invalid, "{:?}", s.reasons);
        let why = match missed {
            0 => "throng was late: lag p99 ",
            _ => "72 connections were due but not dialled before the load ended: throng was late",
        };
        assert!(s.reasons[0].starts_with(why), "{:?}", s.reasons);
        assert!(!s.reasons.iter().any(|why| why.contains("no connection became free")), "{:?}", s.reasons);
    }
}

#[test]
fn arrivals_that_are_dialled_when_the_load_ends_still_send() {
    let flags = "arrive=100/s total=200 calls=1 duration=2s";
    // A dial takes 100 ms: ten are outstanding.
    let (result, s) = led(flags, Nanos::from_millis(50), Direction::default());
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.finished, c.missed, result.faults()), (200, 200, 0, vec![]), "{c:?}");
    assert_eq!((result.hold_until, s.verdict), (Nanos::from_secs(2), Verdict::Pass), "{:?}", s.reasons);
    // Without waiting for them, all are counted.
    let patience = Some(Nanos::ZERO);
    let (result, _) = led(flags, Nanos::from_secs(1), Direction { patience, ..Direction::default() });
    let c = &result.whole.counts;
    assert_eq!((c.due, c.unanswered + c.missed, c.given_up, c.finished), (200, 200, c.missed, 0), "{c:?}");
}

const OUTRUN: &str = "connections arrive faster than the target serves them: ";

/// A target that accepts 100 connections per second takes more into its queue, where each gets its response once no more arrive.
#[test]
fn a_queue_that_grows_is_no_load_that_is_sustained() {
    let judged = |per_s: u32, server: Scripted| {
        let net = network(1, |_| {});
        let flags = format!("arrive={per_s}/s total={} calls=1 duration=5s", 5 * per_s);
        let plan = plan("http://127.0.0.1:80/", &flags, 1);
        let mut server = listening(&net, plan.destinations()[0], connections(&plan) + 64, server);
        let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
        let c = &result.whole.counts;
        assert_eq!((c.finished, result.faults()), (u64::from(5 * per_s), vec![]));
        // A whole run passes, with a warning.
        let step = run::judge_step(&plan, &result.record, By::Arrival.judged(), false, None);
        let whole = run::judge(&plan, &result.record);
        let warned = whole.reasons.iter().find_map(|why| why.strip_prefix("warning: ")?.split_once(';'));
        let warned = warned.map(|(why, _)| why).filter(|why| why.starts_with(OUTRUN));
        let failed = step.reasons.first().filter(|why| why.starts_with(OUTRUN));
        assert_eq!(warned, failed.map(String::as_str));
        assert_eq!(whole.verdict, Verdict::Pass, "{:?}", whole.reasons);
        step
    };
    let slow = || Scripted::accepting_each(Nanos::from_millis(10), |_| RIGHT);
    let s = judged(184, slow());
    let waited =
        s.reasons[0].strip_prefix(OUTRUN).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(waited.is_some_and(|n| (380..=480).contains(&n)), "{:?}", s.reasons);
    assert_eq!(s.verdict, Verdict::Fail);
    let keeps_up = |s: Summary, what: &str| {
        assert_eq!(s.verdict, Verdict::Pass, "{what}: {:?}", s.reasons);
        assert!(s.reasons.iter().all(|why| !why.starts_with(OUTRUN)), "{what}: {:?}", s.reasons);
    };
    [20, 80].into_iter().for_each(|per_s| keeps_up(judged(per_s, slow()), "below its rate"));
    // Slow responses alone are not a problem.
    let late: [(&str, Script); 5] = [
        ("1 s", |_| after(1)),
        ("2 s", |_| after(2)),
        ("4 s", |_| after(4)),
        ("6 s", |_| after(6)),
        ("6 s for a third", |request| if request.conn.is_multiple_of(3) { after(6) } else { RIGHT }),
    ];
    late.into_iter().for_each(|(what, script)| keeps_up(judged(184, Scripted::new(script)), what));
}

/// If more connections arrive than are accepted, some time out, and the run says why. A target that only leaves some requests without a
/// response, or responds slowly to some, is not reported as too slow.
#[test]
fn connections_that_time_out_in_a_queue_arrive_too_fast() {
    const SILENT: Act = Act { send: b"", then: Then::Stay };
    let hangs: Script = |request| if request.conn.is_multiple_of(5) { SILENT } else { RIGHT };
    // From 50 ms to 1.3 s, in no order.
    let varied: Script = |request| {
        let time = Nanos::from_millis(50 + request.conn * 7_919 % 1_250);
        Act { send: b"", then: Then::SendAfter(time, OK) }
    };
    let slow = |script: Script| Scripted::accepting_each(Nanos::from_millis(10), script);
    for (server, timeout, is_slow) in [
        (slow(|_| RIGHT), "1s", true),
        (slow(|_| RIGHT), "2s", true),
        (Scripted::new(hangs), "1s", false),
        (Scripted::new(hangs), "10s", false),
        (Scripted::new(varied), "1s", false),
    ] {
        let net = network(1, |_| {});
        let flags = format!("arrive=184/s total=920 calls=1 duration=5s timeout={timeout}");
        let plan = plan("http://127.0.0.1:80/", &flags, 1);
        let mut server = listening(&net, plan.destinations()[0], connections(&plan) + 1_024, server);
        let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
        assert!(result.faults().iter().any(|(_, kind, n)| *kind == Kind::Timeout && *n > 50), "{timeout}");
        let s = result.judge(&plan);
        let limit = s.limit.map(|limit| limit.sentence).unwrap_or_default();
        assert_eq!((s.verdict, limit.starts_with(OUTRUN)), (Verdict::Fail, is_slow), "{timeout}: {limit}");
    }
}

fn after(seconds: u64) -> Act {
    Act { send: b"", then: Then::SendAfter(Nanos::from_secs(seconds), OK) }
}

/// A slow target has more concurrent connections than the rate suggests, but not more than the slots reserved for them.
#[test]
fn all_arrivals_meet_a_slow_target() {
    let slow = |_| Act { send: b"", then: Then::SendAfter(Nanos::from_millis(900), OK) };
    let (result, _) = run("arrive=100/s total=1k calls=2 timeout=1s", 2, |_| {}, slow);
    let c = &result.whole.counts;
    assert_eq!((c.finished, c.sent, result.faults()), (1_000, 2_000, vec![]));
    assert!((178..=182).contains(&result.peak), "{}", result.peak);
    result.assert_on_time();
}
