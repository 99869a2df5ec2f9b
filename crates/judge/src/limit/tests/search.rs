//! Steps of a search: no fix suggests what the search does itself, and connections from before the step count.

use super::*;
use crate::{By, subject::Subject};

/// Checks the fix for a run, and for a step of a search of this kind.
fn check_fix(s: &Summary, e: Evidence, by: By, [of_run, of_step]: [&str; 2]) {
    let fix = |e: &Evidence| limit(s, e).expect("something stopped it").fix;
    assert_eq!(fix(&e), of_run);
    assert_eq!(fix(&Evidence { search: Some(by), ..e }), of_step, "{by:?}");
}

/// The evidence of a run with this threshold.
fn judged(threshold: &str) -> Evidence {
    let subject = Subject::of(&record::fixture::plan(&[threshold]));
    Evidence { subject, ..Evidence::default() }
}

#[test]
fn a_search_is_not_advised_to_search_or_to_load_less() {
    let mut strict = stopped(1_000, Vec::new());
    let expr = "latency.p99 < 1ms".to_owned();
    strict.thresholds = vec![samples::ThresholdResult { expr, value: Some(9e3), ..Default::default() }];
    let search = "search the highest load that meets it (throng find http://127.0.0.1:1/ --by rate -c 50 --threshold \
        'latency.p99 < 1ms'), or profile the target";
    check_fix(&strict, judged("latency.p99 < 1ms"), By::Rate, [search, "profile the target"]);
    // A figure that was not measured is not due to the load.
    strict.thresholds[0].value = None;
    assert_eq!(limit(&strict, &judged("latency.p99 < 1ms")), None);
    strict.thresholds[0].value = Some(9e3);
    // No smaller load has more requests.
    strict.thresholds[0].expr = "requests.per_s >= 20k/s".to_owned();
    strict.thresholds[0].value = Some(0.0);
    check_fix(&strict, judged("requests.per_s >= 20k/s"), By::Rate, ["profile the target"; 2]);
    let busy = target(TargetSeen { cpu_thread: Some(1.0), ..TargetSeen::default() });
    let more = "give it more processors or workers";
    check_fix(&strict, busy, By::Rate, [&format!("{more}, or reduce the load"), more]);
    let killed = target(TargetSeen { ended: true, oom_kills: 1, ..TargetSeen::default() });
    let more = "give it more memory (MemoryMax= of its unit)";
    let fewer = format!("{more}, or hold fewer connections");
    check_fix(&stopped(0, closed()), killed, By::Connections, [&fewer, more]);
    let mut late = stopped(1_000, Vec::new());
    late.verdict = Verdict::Invalid;
    late.reasons = vec!["throng was late: lag p99 20.0 ms > 10.0 ms (--max-lag)".to_owned()];
    let [own, lag] = [
        "give throng more processors or its own machine",
        "; where that lag does not matter, raise --max-lag",
    ];
    let texts = [format!("{own}, or reduce the load{lag}"), format!("{own}{lag}")];
    check_fix(&late, Evidence::default(), By::Rate, [&texts[0], &texts[1]]);
}

/// All connections of the load are held; only the probe fails.
#[test]
fn what_only_the_probe_meets_has_its_cause() {
    let files = Some(Fill { used: 700, limit: 700 });
    let seen = target(TargetSeen { open_files: files, cpu_thread: Some(1.0), ..TargetSeen::default() });
    let cause = |failed: u64| {
        let mut s = stopped(1_000, Vec::new());
        let censored = Some(samples::Censored { count: failed, ..Default::default() });
        let held_us = samples::Quantiles { censored, ..Default::default() };
        s.probe = Some(samples::ProbeSummary { held_us, ..Default::default() });
        limit(&s, &seen).map(|limit| limit.cause)
    };
    assert_eq!([cause(11), cause(0)], [Some(Cause::OpenFiles), Some(Cause::Cpu)]);
}

/// All connections of the load are held, and the probe's kept connections are served.
#[test]
fn new_connections_of_the_probe_that_are_closed_do_not_wait() {
    let sentence = |failures: &[(&str, u64)]| {
        let failure =
            |(what, count): &(&str, u64)| samples::ProbeFailure { what: (*what).to_owned(), count: *count };
        let censored = Some(samples::Censored { count: 14, ..Default::default() });
        let times = |count| samples::Quantiles { count, ..Default::default() };
        let probe = samples::ProbeSummary {
            kept_us: times(14),
            fresh_us: samples::Quantiles { censored, ..Default::default() },
            connect_us: times(15),
            failures: failures.iter().map(failure).collect(),
            ..Default::default()
        };
        let s = Summary { probe: Some(probe), ..stopped(136, Vec::new()) };
        let e = Evidence { search: Some(By::Connections), ..Evidence::default() };
        limit(&s, &e).expect("it is bad").sentence
    };
    let closed = "the target immediately closes connections beyond 136 plus the probe's";
    assert_eq!(sentence(&[("connection reset", 14)]), closed);
    assert_eq!(sentence(&[("connection closed", 12), ("timeout", 2)]), closed);
    let waits = "14 new probe connections got no correct response, the kept ones got 14: the target serves a limited number \
        of connections at a time, including the probe's";
    assert_eq!(sentence(&[("timeout", 12), ("connection closed", 2)]), waits);
    assert_eq!(sentence(&[]), waits);
    let with = |what| format!("the target responds with {what} to connections beyond 136 plus the probe's");
    assert_eq!(sentence(&[("status 503", 13), ("timeout", 1)]), with("status 503"));
    assert_eq!(sentence(&[("unexpected status", 14)]), with("an unexpected status"));
}

#[test]
fn connections_of_the_probe_in_the_queue_are_none_of_the_load() {
    let queue = Some(Fill { used: 25, limit: 400 });
    let e = Evidence { accept_queue: queue, stood: 25, ..here(NetCounters::default()) };
    let mut s = stopped(400, vec![fault(Stage::Exchange, Kind::Timeout, 2)]);
    (s.connections.wanted, s.connections.opened, s.connections.peak) = (400, 400, 400);
    s.probe = Some(samples::ProbeSummary::default());
    let sentence = limit(&s, &e).expect("it is bad").sentence;
    assert_eq!(sentence, "the target serves 398 connections at a time: 25 others wait in its accept queue");
}

#[test]
fn a_limit_on_the_rate_is_no_advice_to_send_less() {
    let mut s = stopped(1_000, vec![fault(Stage::Exchange, Kind::WrongStatus, 282)]);
    s.requests.status = [(200, 1_000), (429, 282)].into();
    let mut evidence = Evidence::default();
    evidence.subject.curl = Some("curl -i http://h/".to_owned());
    let raise = "the target limits the rate of requests: raise its limit";
    check_fix(&s, evidence, By::Rate, [&format!("{raise}, or send fewer requests"), raise]);
}

#[test]
fn a_target_that_waits_for_others_is_not_searched_for_a_load() {
    let mut slow = stopped(1_000, Vec::new());
    let expr = "latency.p99 < 50ms".to_owned();
    slow.thresholds = vec![samples::ThresholdResult { expr, value: Some(9e3), ..Default::default() }];
    (slow.latency_us.min, slow.latency_us.p50, slow.latency_us.p99) = (200e3, 201e3, 205e3);
    let seen = |cpu| {
        let seen = TargetSeen { cpu_thread: Some(cpu), cpu_share: cpu / 2.0, ..TargetSeen::default() };
        Evidence { target: Some(seen), ..judged("latency.p99 < 50ms") }
    };
    let waits = "the target waits for something else (its CPU was idle): look at what it calls";
    check_fix(&slow, seen(0.02), By::Rate, [waits, waits]);
    // It works, or some responses are faster.
    let search = "search the highest load that meets it (throng find http://127.0.0.1:1/ --by rate -c 50 --threshold \
        'latency.p99 < 50ms'), or profile the target";
    check_fix(&slow, seen(0.5), By::Rate, [search, "profile the target"]);
    slow.latency_us.min = 1e3;
    check_fix(&slow, seen(0.02), By::Rate, [search, "profile the target"]);
}

#[test]
fn a_flag_that_the_search_sets_is_no_advice() {
    let queue = Some(Fill { used: 450, limit: 4_096 });
    let slow = || Evidence { accepts_per_s: Some(49.7), accept_queue: queue, ..here(NetCounters::default()) };
    let (s, threads) = (stopped(300, waiting()), "make it accept in more threads or worker processes");
    let ramp = format!("use --ramp 44/s, or {threads}");
    check_fix(&s, slow(), By::Connections, [&ramp, &ramp]);
    check_fix(&s, slow(), By::Burst, [&ramp, threads]);
    let mut arrivals = slow();
    arrivals.subject.arrives = true;
    check_fix(&s, arrivals, By::Arrival, [&format!("use --arrive 44/s, or {threads}"), threads]);
    let mut few = stopped(30, Vec::new());
    (few.connections.wanted, few.duration_s) = (50, 1.0);
    (few.requests.sent, few.requests.missed) = (900, 100);
    // Of the 50, the target had closed 20 with an announcement.
    let delays = "or find out what delays the responses";
    let more = format!("use -c 56 or more, which is what the rate needs at this response time, {delays}");
    check_fix(&few, Evidence::default(), By::Rate, [&more, &more]);
    let lower = format!("lower the rate, which needs 56 connections at this response time, {delays}");
    check_fix(&few, Evidence::default(), By::Connections, [&more, &lower]);
}

#[test]
fn arrivals_that_only_a_queue_takes_are_not_sustained() {
    let accept_queue = Some(Fill { used: 433, limit: 4_096 });
    let e = |search, queued_at_end| Evidence {
        search,
        backlog: Some(420),
        queued_at_end,
        accepts_per_s: Some(100.2),
        accept_queue,
        ..here(NetCounters::default())
    };
    let said = |e: &Evidence| crate::queue::outrun(e, 0).map(|why| why.sentence());
    let queued = e(Some(By::Arrival), Some(430));
    let detail = "it accepts a steady 100/s; 430 connections were in its accept queue of 4,096 when the last one arrived";
    let s = stopped(0, Vec::new());
    check(&s, &queued, ("target", "slow-accept", 800, detail, "accept in more threads"));
    let found = limit(&s, &queued).expect("something stopped it");
    let sentence =
        "connections arrive faster than the target accepts them: 430 waited in its accept queue at the end";
    assert_eq!((found.sentence.as_str(), said(&queued).as_deref()), (sentence, Some(sentence)));
    // The connections do not wait to be accepted, or that is not observed.
    for other in [e(Some(By::Arrival), Some(40)), e(Some(By::Arrival), None)] {
        let why =
            "connections arrive faster than the target serves them: 420 waited for a response at the end";
        assert_eq!(said(&other).as_deref(), Some(why));
        let in_each = "more waited in each part of the step than in the one before";
        check(&s, &other, ("target", "saturated", 800, in_each, "gdb -p, jstack"));
        // The same where some of them wait until they time out; at any pace at which it accepts, that is known.
        let timed_out = stopped(0, of(Fault::target(Stage::Exchange, Kind::Timeout), 56));
        let other = Evidence { accepts_per_s: None, ..other };
        check(&timed_out, &other, ("target", "saturated", 800, "; 56 timed out", ""));
        let found = limit(&timed_out, &other).expect("something stopped it");
        assert_eq!((found.sentence.as_str(), weight(&found)), (why, 1));
        // That alone is no sign of it.
        check(&timed_out, &Evidence { backlog: None, ..other }, ("target", "timeout", 800, "", ""));
    }
    // If something failed, that is the reason.
    check(&stopped(0, closed()), &queued, ("target", "closed", 800, "", ""));
    // Held connections do not arrive, so there is no such cause; and a run does not fail for it.
    assert_eq!(said(&e(Some(By::Connections), Some(430))), None);
    assert_eq!(said(&e(None, Some(430))), None);
    let command = "throng find http://h/ --by arrival";
    let warned = format!("warning: {sentence}; search the rate that it sustains ({command})");
    let mut of_run = e(None, Some(430));
    of_run.subject.search_by_arrival = command.to_owned();
    assert_eq!(warnings(&s, &of_run), [warned]);
    assert!(
        warnings(&s, &queued).is_empty() && warnings(&s, &e(Some(By::Connections), Some(430))).is_empty()
    );
    assert_eq!(said(&Evidence { backlog: None, ..queued }), None);
}

/// Whether they time out or a threshold failed; what used to wait alone is no sign of it.
#[test]
fn a_run_by_arrival_that_does_not_pass_says_the_same() {
    let e = |outpaced, queued_at_end| Evidence {
        backlog: Some(420),
        outpaced,
        queued_at_end,
        ..here(NetCounters::default())
    };
    let timed_out = || stopped(0, of(Fault::target(Stage::Exchange, Kind::Timeout), 56));
    let in_each = "more waited, or had timed out, in each part of the load than in the one before";
    for (s, more) in [(timed_out(), "; 56 timed out"), (stopped(0, Vec::new()), "")] {
        let found = limit(&s, &e(Some(84), None)).expect("something stopped it");
        let sentence =
            "connections arrive faster than the target serves them: 84 waited for a response at the end";
        assert_eq!((found.sentence.as_str(), found.cause), (sentence, Cause::Saturated));
        assert_eq!(found.detail, format!("{in_each}{more}"));
    }
    let found = limit(&timed_out(), &e(Some(84), Some(80))).expect("something stopped it");
    let sentence =
        "connections arrive faster than the target accepts them: 80 waited in its accept queue at the end";
    assert_eq!((found.sentence.as_str(), found.cause), (sentence, Cause::SlowAccept));
    // throng has given up some connections in the queue: the others must be most of those that wait.
    let left = |queued, given_up_at_end| {
        let e = Evidence { given_up_at_end, ..e(Some(84), Some(queued)) };
        limit(&timed_out(), &e).expect("something stopped it")
    };
    let found = left(406, 346);
    let sentence = "connections arrive faster than the target accepts them: 406 in its accept queue at the end, 346 of them already \
        abandoned by throng";
    assert_eq!((found.sentence.as_str(), found.cause), (sentence, Cause::SlowAccept));
    assert!(
        found.detail.contains("when the last one arrived, 346 of them already abandoned by throng; more"),
        "{found:?}"
    );
    assert_eq!(left(406, 380).cause, Cause::Saturated);
    // The other connections were served at once, or something else failed.
    check(&timed_out(), &e(None, None), ("target", "timeout", 800, "", ""));
    check(&stopped(0, closed()), &e(Some(84), None), ("target", "closed", 800, "", ""));
}

#[test]
fn requests_that_come_faster_than_they_are_served_are_named_in_a_search_by_rate() {
    let e = |search| Evidence { search, rate_backlog: Some(42), ..here(NetCounters::default()) };
    let mut s = stopped(50, Vec::new());
    let detail = "more waited in each part of the step than in the one before";
    let found = limit(&s, &e(Some(By::Rate))).expect("it falls behind");
    let sentence = "requests come faster than the target serves them on 50 connections: 42 waited at the end";
    assert_eq!((found.sentence.as_str(), found.detail.as_str()), (sentence, detail));
    assert!(found.fix.ends_with("use more connections (-c)"), "{found:?}");
    let said = |by| crate::queue::outrun(&e(by), 50).map(|why| why.sentence());
    assert_eq!(said(Some(By::Rate)).as_deref(), Some(sentence), "that is why it fails, too");
    assert_eq!([None, Some(By::Connections)].map(said), [None, None]);
    s.verdict = Verdict::Pass;
    assert_eq!(
        [None, Some(By::Connections)].map(|by| suspect(&s, &e(by)).map(|limit| limit.cause)),
        [None; 2]
    );
    // A resource that is used up is the more specific cause.
    let busy = target(TargetSeen { cpu_thread: Some(1.0), ..TargetSeen::default() });
    let busy = Evidence { search: Some(By::Rate), rate_backlog: Some(42), ..busy };
    s.verdict = Verdict::Fail;
    assert_eq!(limit(&s, &busy).map(|limit| limit.cause), Some(Cause::Cpu));
}

#[test]
fn a_step_counts_the_connections_of_those_before() {
    let mut s = stopped(800, of(Fault::target(Stage::Dial, Kind::Refused), 200));
    s.connections.opened = 300;
    let e = lost(Pattern { before: 500, opened_by_then: 800, ..Pattern::default() });
    let detail = "200 dials were refused after 800 had been accepted: the 801st and all after it";
    check(&s, &e, ("target", "refused", 800, detail, "stopped listening"));
    // Others were accepted later, in place of lost connections.
    let mut again = s.clone();
    again.connections.redialled = 40;
    let found = limit(&again, &e).expect("something stopped it");
    assert_eq!(found.detail, "200 dials were refused after 840 had been accepted");
    assert!(found.fix.starts_with("it accepts connections again: "), "{}", found.fix);
    // None of them is left: nothing listens any more.
    let mut gone = s.clone();
    (gone.connections.held, gone.connections.opened) = (0, 0);
    let found = limit(&gone, &e).expect("something stopped it");
    assert!(is_nobody(&found) && found.sentence.contains("after the target had accepted 500"), "{found:?}");
    // A firewall lets 800 connections in, and 500 were open before the step.
    s.faults = vec![fault(Stage::Dial, Kind::Timeout, 200)];
    (s.connections.opened, s.requests.sent, s.requests.answered) = (300, 300, 300);
    check(&s, &e, ("path", "no-syn-ack", 800, "the 801st and all after it; the 800 open", "connlimit"));
    s.connections.opened = 0;
    let none = Pattern { before: 800, opened_by_then: 800, ..Pattern::default() };
    check(&s, &lost(none), ("path", "no-syn-ack", 800, "the 801st and all after it", "connlimit"));
}
