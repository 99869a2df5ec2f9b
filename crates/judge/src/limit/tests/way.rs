//! The path to the target, and the reasons for which connections are closed.

use record::{rejection::Rejection, segments::Segments};

use super::*;

fn segments(unacknowledged: u64, unanswered: u64, quiet_s: u64) -> Evidence {
    let quiet = Some(Nanos::from_secs(quiet_s));
    let segments =
        Segments { connections: 50, unacknowledged, unanswered, quiet, syns: 3, ..Segments::default() };
    Evidence { segments, ..Evidence::default() }
}

#[test]
fn a_network_that_goes_dark_is_the_path() {
    let expected = ("path", "unacknowledged", 800, "on 50 of 50 connections was never acknowledged", "mtr");
    check(&stopped(0, waiting()), &segments(50, 0, 8), expected);
    // Only handshakes ever got through; or data did before.
    let size = "mtr), then the routers and firewalls on the path; or full-size packets are dropped (path MTU, ICMP blocked): ping -M do";
    check(&stopped(0, waiting()), &segments(50, 0, 8), ("path", "unacknowledged", 800, "", size));
    let mut before = stopped(0, waiting());
    before.requests.answered = 800;
    let limit_of = |s: &Summary| limit(s, &segments(50, 0, 8)).expect("something stopped it");
    assert!(!limit_of(&before).fix.contains("MTU"), "{:?}", limit_of(&before));
    // Other connections receive data, so the network is up.
    check(&stopped(0, waiting()), &segments(50, 0, 0), ("target", "timeout", 800, "", ""));
    // On loopback there is no path to interrupt, and no firewall on it.
    let mut local = segments(50, 0, 8);
    local.subject.is_loopback = true;
    check(&stopped(0, waiting()), &local, ("target", "timeout", 800, "", ""));
    let fix = limit(&stopped(0, waiting()), &local).expect("something stopped it").fix;
    assert!(!fix.contains("firewall") && !fix.contains("router"), "{fix}");
    // Acknowledged, but not answered: the target's process.
    let exchange = vec![fault(Stage::Exchange, Kind::Timeout, 50)];
    let expected = ("target", "timeout", 800, "acknowledged them, but its process does not respond", "locks");
    check(&stopped(0, exchange.clone()), &segments(0, 50, 8), expected);
    assert_eq!(
        limit(&stopped(0, exchange.clone()), &segments(0, 50, 8)).unwrap().certainty,
        Certainty::Inferred
    );
    assert!(!limit(&stopped(0, exchange.clone()), &segments(0, 50, 8)).unwrap().fix.contains("--timeout"));
    // The target responded to others.
    let mut slow = stopped(0, exchange);
    slow.requests.answered = 249;
    let e = Evidence { timeout: Nanos::from_secs(1), ..segments(0, 50, 8) };
    check(&slow, &e, ("target", "timeout", 800, "does not respond within 1 s", "or raise --timeout"));
    assert!(limit(&slow, &e).unwrap().sentence.ends_with("its process did not respond within 1 s"));
    check(&stopped(0, closed()), &segments(50, 0, 8), ("target", "closed", 800, "", ""));
}

#[test]
fn no_syn_ack_ever_is_the_path() {
    let mut s = stopped(0, vec![fault(Stage::Dial, Kind::Timeout, 200)]);
    (s.connections.opened, s.connections.peak) = (0, 0);
    let host = Host { net: NetCounters { syn_retrans: 600, ..NetCounters::default() }, ..Host::default() };
    let e = Evidence { here: host, ..Evidence::default() };
    check(&s, &e, ("path", "no-syn-ack", 0, "no reset and no ICMP (600 SYN retransmissions)", "ping"));
    // From a TUN device, a ping takes another route.
    s.io = "tun".into();
    let expected =
        ("path", "no-syn-ack", 0, "do not come back to the network of the sources", "throng doctor");
    check(&s, &e, expected);
    assert!(!limit(&s, &e).unwrap().fix.contains("ping"));
    s.io = "uring".into();
    // Dials fail from some number on: a full queue, or a firewall.
    (s.connections.opened, s.connections.peak, s.connections.held) = (400, 400, 400);
    let later = Evidence { losses: Pattern { opened_by_then: 400, ..Pattern::default() }, ..e };
    check(
        &s,
        &later,
        ("target", "timeout", 400, "the 401st and all after it; 600 SYN retransmissions", "firewalls"),
    );
    assert_eq!(limit(&s, &later).unwrap().certainty, Certainty::Guess);
}

/// Of 800 dials, 200 waited for a retransmitted SYN.
fn slow_dials(faults: Vec<FaultCount>) -> Summary {
    let mut s = stopped(0, faults);
    (s.connections.failed, s.connect_us.p50, s.connect_us.p99) = (200, 400.0, 3_040_000.0);
    s.connect_us.max = 3_100_000.0;
    let threshold = samples::ThresholdResult { expr: "connect.p99 < 200ms".to_owned(), ..Default::default() };
    s.thresholds = vec![threshold];
    s
}

#[test]
fn dials_that_wait_for_their_syns_are_the_path_or_a_queue() {
    let again = |n| NetCounters { syn_retrans: n, ..NetCounters::default() };
    let there = |net| Evidence { there: Some(Host { net, ..Host::default() }), ..from_here(again(300)) };
    let seen = there(NetCounters::default());
    let detail =
        "300 SYN retransmissions for 1,000 dials: connecting took 0.0 s at the median and 3.0 s at the 99th";
    let s = slow_dials(Vec::new());
    check(&s, &from_here(again(300)), ("path", "syn-loss", 800, detail, "ListenDrops"));
    check(&s, &seen, ("path", "syn-loss", 800, "the target's queues dropped none", "limit rate"));
    let found = limit(&s, &seen).expect("something stopped it");
    let begin = "300 SYNs were retransmitted, and connect p99 was 3.0 s: probably the path drops some SYNs; ";
    assert!(found.sentence_with_fix().starts_with(begin), "{found:?}");
    let mut own = seen.clone();
    own.subject.is_loopback = true;
    check(&s, &own, ("path", "syn-loss", 800, "", "this machine's firewall"));
    // Some SYNs were dropped repeatedly.
    check(
        &slow_dials(vec![fault(Stage::Dial, Kind::Timeout, 200)]),
        &seen,
        ("path", "syn-loss", 800, "", ""),
    );
    // The threshold that failed is on another figure.
    let mut held = slow_dials(Vec::new());
    held.thresholds[0].expr = "connections.held >= 99%".to_owned();
    assert!(limit(&held, &seen).is_none_or(|limit| limit.cause != Cause::SynLoss));
    // A search by arrivals checks it whatever the thresholds are.
    let mut arrivals = Evidence { search: Some(crate::By::Arrival), ..from_here(again(300)) };
    let without = Summary { thresholds: Vec::new(), ..s.clone() };
    check(&without, &arrivals, ("path", "syn-loss", 800, "", ""));
    arrivals.search = None;
    check(&without, &arrivals, ("unknown", "unknown", 800, "300 SYN retransmissions", ""));
}

#[test]
fn syns_that_others_lost_or_a_queue_dropped_are_no_loss_on_the_path() {
    let again = |n| NetCounters { syn_retrans: n, ..NetCounters::default() };
    let is_loss = |s: &Summary, e: &Evidence| limit(s, e).is_some_and(|limit| limit.cause == Cause::SynLoss);
    let s = slow_dials(Vec::new());
    assert!(is_loss(&s, &from_here(again(300))));
    // Only a few retransmissions, perhaps of other programs; dials that took no longer; none.
    let mut quick = s.clone();
    quick.connect_us.p99 = 900_000.0;
    assert!(!is_loss(&s, &from_here(again(9))) && !is_loss(&quick, &from_here(again(300))));
    assert!(!is_loss(&s, &from_here(again(0))));
    let overflown =
        Evidence { there: Some(Host { net: overflows(300), ..Host::default() }), ..from_here(again(300)) };
    let timed_out = slow_dials(vec![fault(Stage::Dial, Kind::Timeout, 200)]);
    assert!(!is_loss(&s, &overflown) && !is_loss(&timed_out, &overflown));
    // Something else failed; or other machines dial.
    assert!(!is_loss(&slow_dials(closed()), &from_here(again(300))));
    let agents = Summary { agents: vec![samples::AgentSummary::default()], ..s };
    assert!(!is_loss(&agents, &from_here(again(300))));
}

/// SYNs that the target's queue dropped miss a threshold on connect times; a burst may be over between two samples of the queue.
#[test]
fn slow_dials_of_a_queue_that_overflowed_are_the_queue() {
    let queue = |used| Evidence { accept_queue: Some(Fill { used, limit: 5 }), ..here(overflows(134)) };
    let s = slow_dials(Vec::new());
    let detail = "its accept queue of 5 overflowed 134 times: connecting took 0.0 s at the median and 3.0 s";
    check(&s, &queue(0), ("target", "accept-queue", 800, detail, "somaxconn"));
    let found = limit(&s, &queue(0)).expect("something stopped it");
    let begin = "probably the target's accept queue of 5 was full: it overflowed 134 times; ";
    assert!(found.sentence_with_fix().starts_with(begin), "{found:?}");
    assert_eq!(limit(&s, &queue(6)).map(|limit| limit.certainty), Some(Certainty::Seen));
    // Requests of connections that only the kernel had opened timed out, too; a busy target is what the others met.
    let busy = target(TargetSeen { cpu_thread: Some(0.99), ..TargetSeen::default() }).target;
    let waits = slow_dials(vec![fault(Stage::Exchange, Kind::Timeout, 21)]);
    check(&waits, &Evidence { target: busy, ..queue(0) }, ("target", "accept-queue", 800, detail, ""));
    // What failed is another figure; dials were fast; no SYN was sent again, so it was another listener's queue.
    let is_queue =
        |s: &Summary, e: &Evidence| limit(s, e).is_some_and(|limit| limit.cause == Cause::AcceptQueue);
    let mut other = s.clone();
    other.thresholds[0].expr = "latency.p99 < 1ms".to_owned();
    let mut quick = s.clone();
    quick.connect_us.p99 = 900.0;
    assert!(!is_queue(&other, &queue(0)) && !is_queue(&quick, &queue(0)));
    let mut elsewhere = queue(0);
    elsewhere.here.net.syn_retrans = 0;
    assert!(!is_queue(&s, &elsewhere));
}

#[test]
fn a_run_that_passes_is_warned_of_lost_syns() {
    let s = Summary { verdict: Verdict::Pass, thresholds: Vec::new(), ..slow_dials(Vec::new()) };
    let net = NetCounters { syn_retrans: 300, ..NetCounters::default() };
    let found = warnings(&s, &from_here(net));
    let begin = "warning: 300 SYNs were retransmitted, and connect p99 was 3.0 s: probably ";
    assert!(found.len() == 1 && found[0].starts_with(begin), "{found:?}");
    let mut quick = s;
    quick.connect_us.p99 = 900_000.0;
    assert!(warnings(&quick, &from_here(net)).is_empty());
}

fn from_here(net: NetCounters) -> Evidence {
    Evidence { here: Host { net, ..Host::default() }, ..Evidence::default() }
}

#[test]
fn a_rejecting_router_is_named_rather_than_a_known_limit() {
    let rejected = |n| of(Fault { side: Side::Path, ..Fault::target(Stage::Dial, Kind::Unreachable) }, n);
    let mut s = stopped(1_000, rejected(500));
    (s.connections.wanted, s.connections.opened, s.connections.peak, s.connections.failed) =
        (1_500, 1_000, 1_000, 500);
    let e =
        Evidence { losses: Pattern { opened_by_then: 1_000, ..Pattern::default() }, ..Evidence::default() };
    check(
        &s,
        &e,
        (
            "path",
            "unreachable",
            1_000,
            "ICMP (unreachable or prohibited): the 1,001st and all after it",
            "firewalls",
        ),
    );
    let found = limit(&s, &e).unwrap();
    assert!(found.certainty == Certainty::Seen && !found.detail.contains("files"), "{found:?}");
    // Some dials found no route, but not all after them.
    let some =
        Evidence { losses: Pattern { opened_by_then: 300, ..Pattern::default() }, ..Evidence::default() };
    check(&s, &some, ("path", "unreachable", 1_000, "500 dials were rejected", ""));
    // A few dials are rejected, and the others get no reply.
    s.faults.push(fault(Stage::Dial, Kind::Timeout, 900));
    s.faults[0].count = 12;
    check(
        &s,
        &e,
        (
            "path",
            "unreachable",
            1_000,
            "900 dials got no SYN-ACK, and 12 ICMP messages arrived (unreachable or prohibited): the 1,001st and all after it",
            "",
        ),
    );
    assert_eq!(limit(&s, &e).unwrap().sentence, "912 dials were rejected or got no SYN-ACK");
}

/// Dials to 10.9.0.1 are rejected by this ICMP message.
fn rejection(by: [u8; 4], code: u8, is_ours: bool, opened_by_then: u64) -> Evidence {
    let rejection = Some(Rejection {
        by: Some(by.into()),
        is_v6: false,
        kind: 3,
        code,
        at: ([10, 9, 0, 1], 80).into(),
        is_ours,
    });
    Evidence { rejection, ..lost(Pattern { opened_by_then, ..Pattern::default() }) }
}

#[test]
fn the_sender_of_rejections_is_named() {
    const ROUTER: [u8; 4] = [10, 0, 0, 1];
    let path = |kind| Fault { side: Side::Path, ..Fault::target(Stage::Dial, kind) };
    let mut s = stopped(1_000, of(path(Kind::Unreachable), 500));
    (s.connections.wanted, s.connections.opened, s.connections.peak) = (1_500, 1_000, 1_000);
    let detail = "500 dials were rejected: 10.0.0.1 rejects with ICMP administratively prohibited: the 1,001st and all after it";
    let expected = ("path", "unreachable", 1_000, detail, "firewall of 10.0.0.1");
    check(&s, &rejection(ROUTER, 13, false, 1_000), expected);
    assert_eq!(limit(&s, &rejection(ROUTER, 13, false, 1_000)).unwrap().certainty, Certainty::Seen);
    // The network has no route.
    let expected =
        ("path", "unreachable", 1_000, "10.0.0.1 rejects with ICMP host unreachable", "its routes");
    check(&s, &rejection(ROUTER, 1, false, 1_000), expected);
    // One message a second, and silence otherwise.
    s.faults = vec![fault(Stage::Dial, Kind::Timeout, 490), s.faults[0].clone()];
    s.faults[1].count = 10;
    let expected = (
        "path",
        "unreachable",
        1_000,
        "500 dials were rejected or got no SYN-ACK: 10.0.0.1 rejects with ICMP",
        "",
    );
    check(&s, &rejection(ROUTER, 13, false, 1_000), expected);
    // Refused by a firewall's message, which hosts do not send for TCP.
    s.faults = vec![fault(Stage::Dial, Kind::Refused, 500)];
    let expected = ("path", "unreachable", 1_000, "10.0.0.1 rejects with ICMP port unreachable", "firewall");
    check(&s, &rejection(ROUTER, 3, false, 1_000), expected);
    check(
        &s,
        &rejection(ROUTER, 13, false, 1_000),
        ("target", "refused", 1_000, "the 1,001st", "resets looks the same"),
    );
    let expected = ("path", "unreachable", 1_000, "10.9.0.1 rejects", "the firewall of the target's host");
    check(&s, &rejection([10, 9, 0, 1], 3, false, 1_000), expected);
}

#[test]
fn beyond_some_number_syns_get_no_reply() {
    let mut s = stopped(1_000, vec![fault(Stage::Dial, Kind::Timeout, 200)]);
    (s.connections.wanted, s.connections.opened, s.connections.peak) = (1_200, 1_000, 1_000);
    (s.requests.sent, s.requests.answered) = (1_000, 1_000);
    let e = lost(Pattern { opened_by_then: 1_000, ..Pattern::default() });
    let detail = "200 dials got no SYN-ACK, no reset and no ICMP: the 1,001st and all after it; the 1,000 open connections are served";
    check(&s, &e, ("path", "no-syn-ack", 1_000, detail, "a limit on connections"));
    assert_eq!(limit(&s, &e).unwrap().certainty, Certainty::Inferred);
    // At least a tenth of the open connections needed a second SYN: their rate is limited, or packets are lost.
    let mut again = e.clone();
    again.here.net.syn_retrans = 471;
    (s.connect_us.mean, s.connect_us.p99) = (95e3, 3e6);
    check(&s, &again, ("path", "syn-loss", 1_000, "471 SYN retransmissions for 1,000 dials", "limit rate"));
    s.connect_us.mean = 94e3;
    check(&s, &again, ("path", "no-syn-ack", 1_000, detail, "a limit on connections"));
    // Some connections are not served: they may be in a queue.
    s.requests.answered = 990;
    check(&s, &e, ("target", "timeout", 1_000, "the 1,001st and all after it", ""));
}

#[test]
fn dials_are_among_what_timed_out() {
    let mut s = stopped(0, waiting());
    let sentence = |s: &Summary, e: &Evidence| limit(s, e).expect("something stopped it").sentence;
    // The target is slow; or it accepts no more, and connections wait in its queue.
    let slow = ("target", "timeout", 800, "800 dials and requests timed out", "CPU and open files");
    check(&s, &Evidence::default(), slow);
    assert_eq!(sentence(&s, &Evidence::default()), "800 dials and requests timed out");
    let cut_off = lost(Pattern { opened_by_then: 800, ..Pattern::default() });
    let detail = "800 dials and requests timed out: the 801st and all after it";
    check(&s, &cut_off, ("target", "timeout", 800, detail, "accept queue (ss -ltn"));
    // Only requests are acknowledged, and without dials none was cut off.
    let acknowledged = segments(0, 50, 8);
    check(
        &s,
        &acknowledged,
        ("target", "timeout", 800, "600 requests timed out; the target's host", "locks"),
    );
    s.faults.remove(0);
    check(&s, &cut_off, ("target", "timeout", 800, "600 requests timed out", "CPU and open files"));
}

#[test]
fn rejections_by_this_machine_are_its_own() {
    let path = |kind| Fault { side: Side::Path, ..Fault::target(Stage::Dial, kind) };
    let mut s = stopped(0, of(path(Kind::Unreachable), 5));
    (s.connections.opened, s.connections.peak) = (0, 0);
    let own = [10, 7, 0, 2];
    let expected =
        ("host", "denied", 0, "this machine rejects them itself with ICMP administratively", "nft");
    check(&s, &rejection(own, 13, true, 0), expected);
    // The host itself sends this message if a neighbour does not respond.
    let expected = ("path", "unreachable", 0, "no host responds at that address", "ping 10.9.0.1");
    check(&s, &rejection(own, 1, true, 0), expected);
    // Dropped on this machine, on the way out.
    s.faults = vec![fault(Stage::Dial, Kind::Timeout, 5)];
    let net = NetCounters { syn_retrans: 10, retrans_fails: 10, ..NetCounters::default() };
    let e = Evidence { here: Host { net, ..Host::default() }, ..Evidence::default() };
    check(&s, &e, ("host", "denied", 0, "blocked 10 outgoing segments", "OUTPUT"));
}

#[test]
fn a_number_of_responses_closes_a_connection() {
    let after = |responses, age_s| {
        lost(Pattern {
            responses: Some(responses),
            age: Some(Nanos::from_secs(age_s)),
            is_surplus: true,
            ..Pattern::default()
        })
    };
    let expected = (
        "target",
        "requests-per-connection",
        800,
        "closes each connection after 10 responses without announcing it; each had been open for 3 s",
        "Connection: close); or look for a maximum connection age of 3 s",
    );
    check(&stopped(141, closed()), &after(10, 3), expected);
    check(
        &stopped(141, reset()),
        &after(1, 2),
        ("target", "requests-per-connection", 800, "after its response", "(Connection: close)"),
    );
}

#[test]
fn an_idle_timeout_must_be_above_the_longest_pause() {
    let fix = |silence_ms, pause_s, flag: Option<&'static str>| {
        let silence = Some(Nanos::from_millis(silence_ms));
        let mut e = lost(Pattern { silence, ..Pattern::default() });
        (e.subject.longest_pause, e.subject.pause_flag) = (Nanos::from_secs(pause_s), flag.map(Into::into));
        limit(&stopped(0, closed()), &e).expect("something stopped it").fix
    };
    let think = Some("--think");
    assert_eq!(fix(5_010, 90, think), "raise its idle timeout above 90 s, or send more often (--think 1s)");
    assert_eq!(fix(60_000, 90, think), "raise its idle timeout above 90 s, or send more often (--think 12s)");
    assert_eq!(fix(1_200, 8, think), "raise its idle timeout above 8 s, or send more often (--think 100ms)");
    assert_eq!(fix(5_000, 90, None), "raise its idle timeout above 90 s, or send more often");
    assert_eq!(fix(5_000, 0, think), "raise its idle timeout above 5 s, or send more often");
}

#[test]
fn eviction_is_no_idle_timeout() {
    let pattern = Pattern {
        evicted: Some(Nanos::from_millis(1_600)),
        others: Nanos::from_millis(9_800),
        ..Pattern::default()
    };
    let check_at = |held, detail: &str| {
        let expected = ("target", "connection-limit", held, detail, "worker_connections");
        check(&stopped(held, closed()), &lost(pattern), expected);
    };
    let inactive = "after 1.6 s of inactivity, while others were inactive for 9.8 s";
    check_at(790, inactive);
    check_at(790, "makes room for new ones, and keeps about 790");
    // The target closed many at a time: of 800 open connections these are left.
    check_at(512, inactive);
    let limit = limit(&stopped(512, closed()), &lost(pattern)).expect("something stopped it");
    assert!(limit.sentence.ends_with(" idle connections to admit new ones"), "{limit:?}");
    check(&stopped(512, waiting()), &lost(pattern), ("target", "timeout", 800, "", ""));
}

/// As others were dialled again, and beyond those that were left, by accident.
#[test]
fn what_ends_while_a_response_is_due_is_no_limit_on_connections() {
    let evicted = Some(Nanos::from_millis(300));
    let all = Pattern { is_surplus: true, evicted, had_responses: true, ..Pattern::default() };
    let asked = |kind| {
        let mut s = stopped(3, vec![fault(Stage::Exchange, kind, 100)]);
        (s.requests.sent, s.connections.dropped) = (1_000, 100);
        s
    };
    let said =
        |s: &Summary, pattern| limit(s, &lost(pattern)).expect("something stopped it").sentence_with_fix();
    let instead = "the target closed 100 connections instead of responding (1 in 10 requests); check the target's log: ";
    assert!(said(&asked(Kind::Closed), all).starts_with(instead), "{}", said(&asked(Kind::Closed), all));
    assert!(said(&asked(Kind::Reset), all).starts_with("the target reset 100 connections instead of "));
    // New connections after their first requests; idle connections.
    let new = Pattern { had_responses: false, evicted: None, ..all };
    check(&asked(Kind::Closed), &lost(new), ("target", "connection-limit", 3, "", ""));
    let idle = stopped(3, vec![fault(Stage::Hold, Kind::Closed, 100)]);
    check(&idle, &lost(all), ("target", "connection-limit", 3, "", ""));
}

#[test]
fn numbers_are_spoken() {
    let spoken = [1, 2, 3, 4, 11, 12, 13, 21, 112, 1_001].map(crate::say::nth);
    assert_eq!(spoken, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th", "1,001st"]);
}

#[test]
fn a_refusal_depends_on_whether_any_dial_succeeded() {
    let mut none = stopped(0, of(Fault::target(Stage::Dial, Kind::Refused), 1_000));
    (none.connections.opened, none.connections.peak) = (0, 0);
    check(&none, &Evidence::default(), ("target", "refused", 0, "nothing is listening", "start the server"));
    let some = stopped(800, of(Fault::target(Stage::Dial, Kind::Refused), 200));
    let expected = |side| (side, "refused", 800, "after 800 had been accepted", "stopped listening");
    let all = |opened_by_then| Pattern { opened_by_then, ..Pattern::default() };
    check(&some, &lost(all(800)), expected("target"));
    // From afar, a firewall looks the same, unless connections that were open are lost as well.
    check(&some, &Evidence { losses: all(800), ..Evidence::default() }, expected("unknown"));
    // Some dials are refused all the time.
    let part = "200 dials were refused, and 800 accepted before and after";
    check(&some, &lost(all(500)), ("target", "refused", 800, part, "each of its backends"));
    let mut gone = stopped(800, of(Fault::target(Stage::Dial, Kind::Refused), 200));
    gone.connections.dropped = 1;
    check(&gone, &Evidence::default(), expected("target"));
    // All were refused before the first dial was accepted.
    let late = lost(Pattern { refused_at_first: Some(Nanos::from_millis(200)), ..Pattern::default() });
    let expected = (
        "target",
        "refused",
        800,
        "in the first 0.2 s, before the target had accepted any",
        "wait until its port",
    );
    check(&some, &late, expected);
    // The target began to listen only after they were refused.
    let unheard = Pattern { refused_unheard: Some(Nanos::from_millis(1_000)), ..Pattern::default() };
    let listens =
        Evidence { accept_queue: Some(Fill { used: 0, limit: 128 }), ..here(NetCounters::default()) };
    let late = Evidence { losses: unheard, ..listens.clone() };
    check(
        &none,
        &late,
        ("target", "refused", 0, "in the first 1 s, before anything listened", "wait until its port"),
    );
    check(&none, &listens, ("target", "refused", 0, "although there was a listener", "nft list ruleset"));
    none.connections.peak = 20;
    let late = lost(Pattern { refused_at_first: Some(Nanos::from_millis(200)), ..Pattern::default() });
    check(
        &none,
        &Evidence { accept_queue: Some(Fill { used: 0, limit: 128 }), ..late },
        ("target", "refused", 20, "", ""),
    );
}
