//! The rates at which the target accepts and serves: when they are the limit, and when they only reflect the load.

use super::*;
use crate::{
    evidence::{Queueing, Stall},
    starved::Starved,
};

/// The target accepts at `rate`; connections arrive at the rate `arrive`, if given.
fn accepts(rate: f64, arrive: Option<f64>) -> Evidence {
    let mut e = here(NetCounters::default());
    (e.accepts_per_s, e.arrivals_per_s, e.subject.arrives) = (Some(rate), arrive, arrive.is_some());
    Evidence { accept_queue: Some(Fill { used: 36, limit: 511 }), ..e }
}

fn timed_out() -> Summary {
    stopped(0, of(Fault::target(Stage::Exchange, Kind::Timeout), 56))
}

fn cause(s: &Summary, e: &Evidence) -> Cause {
    limit(s, e).expect("something stopped it").cause
}

#[test]
fn a_target_that_accepts_all_that_comes_is_not_limited_by_that() {
    let found = limit(&timed_out(), &accepts(98.4, Some(200.0))).expect("something stopped it");
    let sentence = "200 connections/s arrive, and the target accepts no more than 98/s";
    assert_eq!((found.sentence.as_str(), found.cause), (sentence, Cause::SlowAccept));
    assert!(found.fix.starts_with("use --arrive 88/s, or make it accept in more threads"), "{found:?}");
    // The slope of a line through samples is not exact.
    assert_eq!(cause(&timed_out(), &accepts(49.0, Some(50.0))), Cause::Timeout);
    assert_eq!(cause(&timed_out(), &accepts(101.0, Some(100.0))), Cause::Timeout);
    // Connections that are dialled again as fast as a stalling target serves them; and connections that always wait.
    let redialled = accepts(11.0, None);
    assert_eq!(cause(&timed_out(), &redialled), Cause::SlowAccept);
    assert_eq!(cause(&timed_out(), &Evidence { queue_empties: true, ..redialled }), Cause::Timeout);
}

#[test]
fn no_queue_is_long_enough_for_more_than_is_accepted() {
    let full = |rate, arrive| {
        let queue = Some(Fill { used: 129, limit: 128 });
        let host = Host { net: overflows(278), ..Host::default() };
        Evidence { here: host, there: Some(host), accept_queue: queue, ..accepts(rate, arrive) }
    };
    let expected =
        ("target", "slow-accept", 800, "a steady 98/s, while up to 129 waited", "use --arrive 88/s");
    check(&timed_out(), &full(98.4, Some(200.0)), expected);
    // Some are still in the queue.
    check(&timed_out(), &Evidence { unaccepted: 120, ..full(98.4, Some(200.0)) }, expected);
    // The target has no CPU left to accept more, even if its queue is not full.
    let seen = target(TargetSeen { cpu_thread: Some(1.0), ..TargetSeen::default() }).target;
    let cpu = ("target", "cpu", 800, "busiest thread of process 81", "more processors or workers");
    check(&timed_out(), &Evidence { target: seen, ..full(98.4, Some(200.0)) }, cpu);
    let standing = |target| Evidence { target, stood: 56, accepts_per_s: None, ..accepts(0.0, Some(200.0)) };
    check(&timed_out(), &standing(seen), cpu);
    check(
        &timed_out(),
        &standing(None),
        ("target", "accept-queue", 744, "the target serves 744 at a time", ""),
    );
    // A burst; and arrivals that the target accepts in total.
    let queue = ("target", "accept-queue", 800, "accept queue of 128 was full", "somaxconn");
    check(&timed_out(), &full(98.4, None), queue);
    check(&timed_out(), &full(199.0, Some(200.0)), queue);
    // A run that passes gets the same as a warning.
    let passed = Summary { verdict: Verdict::Pass, ..Summary::default() };
    let warned = |e: &Evidence| crate::queue::overflow_warning(&passed, e).expect("it overflowed");
    let pace = "; 200 connections/s arrive, and the target accepts no more than 98/s: use --arrive 88/s, or ";
    let warning = warned(&full(98.4, Some(200.0)));
    assert!(warning.contains(pace) && !warning.contains("backlog"), "{warning}");
    assert!(!warned(&full(199.0, Some(200.0))).contains("arrive"));
}

/// 800 users that pause for two seconds; the target has CPU for 188 responses a second. Some users are still in its queue, which has room.
#[test]
fn users_that_use_up_the_cpu_are_why_others_are_not_accepted() {
    let busy = target(TargetSeen { cpu_thread: Some(0.97), ..TargetSeen::default() }).target;
    let e = |pause_s, target| {
        let mut e = Evidence { target, stood: 56, accepts_per_s: None, ..accepts(0.0, None) };
        e.subject.longest_pause = Nanos::from_secs(pause_s);
        e.subject.mean_pause = Some(e.subject.longest_pause).filter(|_| pause_s > 0);
        e
    };
    let mut s = timed_out();
    (s.connections.wanted, s.requests.per_s) = (800, 188.2);
    let of = |s: &Summary, e: &Evidence| limit(s, e).map(|found| (found.cause, found.sentence));
    let ran_out = |from| {
        format!("the target ran out of CPU{from}: its busiest thread was runnable for 97 % of the time")
    };
    assert_eq!(of(&s, &e(2, busy)), Some((Cause::Cpu, ran_out(" from 376 connections on"))));
    // The same if they are in the queue at the end of the load.
    let unaccepted = Evidence { unaccepted: 56, stood: 0, ..e(2, busy) };
    assert_eq!(of(&s, &unaccepted).map(|found| found.0), Some(Cause::Cpu));
    // As many connections as are wanted would not use up the CPU.
    s.connections.wanted = 376;
    assert_eq!(of(&s, &e(2, busy)), Some((Cause::Cpu, ran_out(""))));
    // Other causes: in a closed loop, a few connections use up the CPU; the target has CPU left; its queue was full; it serves only certain
    // connections.
    let full = Host { net: overflows(278), ..Host::default() };
    let full =
        Evidence { there: Some(full), accept_queue: Some(Fill { used: 129, limit: 128 }), ..e(2, busy) };
    let starved = Starved { count: 56, served: 744, responses: 9_000, ..Starved::default() };
    let kept = Evidence { starved: vec![starved], unserved: 56, ..e(2, busy) };
    for other in [e(0, busy), e(2, None), full] {
        assert_eq!(of(&s, &other).map(|found| found.0), Some(Cause::AcceptQueue));
    }
    assert!(of(&s, &kept).is_some_and(|found| found.0 != Cause::Cpu));
}

#[test]
fn what_is_accepted_as_fast_as_it_arrives_waits_to_be_served() {
    let sentence = |rate| {
        let e = Evidence { outpaced: Some(50), queued_at_end: Some(50), ..accepts(rate, Some(100.0)) };
        let found = limit(&timed_out(), &e).expect("something stopped it");
        (found.sentence, found.cause, found.fix.contains("workers or threads"))
    };
    let arrive = "connections arrive faster than the target";
    let served = format!("{arrive} serves them: 50 waited for a response at the end");
    assert_eq!(sentence(101.0), (served, Cause::Saturated, true));
    let accepted = format!("{arrive} accepts them: 50 waited in its accept queue at the end");
    assert_eq!(sentence(40.0), (accepted, Cause::SlowAccept, false));
}

#[test]
fn responses_that_come_until_shortly_before_the_timeout_take_longer() {
    let e = Evidence { timeout: Nanos::from_secs(1), ..Evidence::default() };
    let mut s = timed_out();
    (s.latency_us.count, s.latency_us.p95) = (20, 935e3);
    let detail = "56 requests timed out; of the responses, one in twenty took 935 ms or longer";
    check(&s, &e, ("target", "timeout", 800, detail, "raise --timeout, or "));
    let found = limit(&s, &e).expect("something stopped it");
    assert_eq!(found.sentence, "56 requests took longer than the timeout of 1 s");
    let sentence = |s: &Summary| limit(s, &e).expect("something stopped it").sentence;
    // The other responses came at once; or dials timed out, too.
    s.latency_us.p95 = 300e3;
    assert_eq!(sentence(&s), "56 requests timed out after 1 s");
    // Too few responses for a 95th percentile.
    (s.latency_us.count, s.latency_us.p95) = (19, 935e3);
    assert_eq!(sentence(&s), "56 requests timed out after 1 s");
    s.latency_us.count = 20;
    (s.latency_us.p95, s.faults) = (935e3, waiting());
    assert_eq!(sentence(&s), "800 dials and requests timed out after 1 s");
}

/// No response can come later than its timeout.
#[test]
fn a_silence_longer_than_the_timeout_is_a_stall() {
    let stall = Stall { from_s: 2.0, until_s: 2.8, count: 1, is_over: true, ..Stall::default() };
    let e = Evidence { stall: Some(stall), timeout: Nanos::from_millis(400), ..accepts(49.0, Some(50.0)) };
    let mut s = timed_out();
    (s.latency_us.p50, s.latency_us.max) = (700.0, 390e3);
    assert_eq!(cause(&s, &e), Cause::Stall);
    // No response came late.
    s.latency_us.max = 9e3;
    assert_eq!(cause(&s, &e), Cause::Timeout);
}

/// More connections would only make more messages due.
#[test]
fn more_connections_are_no_advice_for_messages_at_an_interval() {
    let mut s = stopped(20, Vec::new());
    (s.connections.wanted, s.duration_s) = (20, 3.0);
    (s.requests.sent, s.requests.missed, s.requests.per_s) = (302, 298, 94.4);
    let mut e = Evidence::default();
    e.subject.pause_flag = Some("--ping".into());
    let found = limit(&s, &e).expect("it is bad");
    assert_eq!((found.cause, found.side), (Cause::Saturated, Side::Target));
    assert_eq!(found.sentence, "the target responds to only 94 of the 200 requests due per second");
    assert_eq!(found.detail, "298 messages were due while their connection awaited the reply to one before");
    assert_eq!(found.fix, "find out what delays the replies, or send less often (--ping)");
    // At a rate, messages are due at the rate, whatever the number of connections.
    e.subject.rate = Some(units::Rate::per_s(200));
    assert_eq!(limit(&s, &e).expect("it is bad").cause, Cause::TooFewConnections);
}

#[test]
fn more_connections_are_no_advice_where_responses_wait_in_line() {
    let mut s = stopped(20, Vec::new());
    (s.connections.wanted, s.duration_s) = (20, 3.0);
    (s.requests.sent, s.requests.missed, s.requests.per_s) = (302, 298, 94.4);
    s.latency_us.min = 10_200.0;
    let found = |queueing, search| {
        let e = Evidence { queueing, search, ..Evidence::default() };
        let found = limit(&s, &e).expect("it is bad");
        (found.cause, found.sentence, found.fix)
    };
    let (cause, sentence, fix) = found(Queueing::InLine, None);
    let expected = "the target responds to only 94 of the 200 requests due per second";
    assert_eq!((cause, sentence.as_str()), (Cause::Saturated, expected));
    assert!(
        fix.starts_with("more connections would only wait longer: check the number of its workers"),
        "{fix}"
    );
    assert!(fix.ends_with(", or lower the rate to 84/s"), "{fix}");
    let (_, _, fix) = found(Queueing::InLine, Some(crate::By::Rate));
    assert!(fix.ends_with("(gdb -p, jstack)"), "{fix}");
    let (cause, _, fix) = found(Queueing::None, None);
    assert_eq!(cause, Cause::TooFewConnections);
    assert!(fix.starts_with("use -c 40 or more") && fix.ends_with("delays the responses"), "{fix}");
    let (cause, _, fix) = found(Queueing::Unclear, None);
    assert_eq!(cause, Cause::TooFewConnections);
    assert!(fix.ends_with("; if they carry no more, the target is at its limit"), "{fix}");
}
