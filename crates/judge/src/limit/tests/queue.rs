//! The target's accept queue, and how to make it longer.

use super::*;
use crate::starved::Starved;

#[test]
fn a_full_accept_queue_names_its_backlog() {
    let queue = |used, net| Evidence { accept_queue: Some(Fill { used, limit: 8 }), ..here(net) };
    let expected =
        ("target", "accept-queue", 40, "accept queue of 8 was full: it overflowed 33 times", "somaxconn");
    check(&stopped(40, waiting()), &queue(9, overflows(33)), expected);
    // The queue was seen full, and does not overflow any more.
    let quiet = NetCounters::default();
    check(&stopped(40, waiting()), &queue(9, quiet), ("target", "accept-queue", 40, "of 8", ""));
    check(&stopped(40, waiting()), &queue(3, quiet), ("target", "timeout", 800, "", ""));
    // Another listener overflowed while this queue was short; and the case of an unobserved queue.
    check(&stopped(40, waiting()), &queue(3, overflows(9)), ("target", "timeout", 800, "", ""));
    check(&stopped(40, waiting()), &here(overflows(9)), ("target", "accept-queue", 40, "9 times", ""));
    // A burst between two samples: 200 dials timed out, and as many overflows were counted.
    check(&stopped(40, waiting()), &queue(0, overflows(199)), ("target", "timeout", 800, "", ""));
    check(&stopped(40, waiting()), &queue(0, overflows(200)), ("target", "accept-queue", 40, "of 8 ", ""));
    check(&stopped(40, reset()), &queue(9, overflows(1)), ("target", "accept-queue", 40, "", ""));
    check(&stopped(40, closed()), &queue(9, overflows(1)), ("target", "closed", 800, "", ""));
    // The counters of throng's machine say nothing about another host.
    let remote = Evidence { there: None, ..here(overflows(33)) };
    check(&stopped(40, waiting()), &remote, ("target", "timeout", 800, "", ""));
    let slow = Evidence { accepts_per_s: Some(500.4), ..queue(9, overflows(1)) };
    check(&stopped(40, waiting()), &slow, ("target", "accept-queue", 40, "a steady 500/s", ""));
}

#[test]
fn what_limits_a_queue_is_raised() {
    let check = |limit: u64, somaxconn: Option<u64>, program: &str, expected: &str| {
        let evidence = Evidence {
            accept_queue: Some(Fill { used: limit + 1, limit }),
            somaxconn,
            program: program.to_owned(),
            ..here(overflows(33))
        };
        let found = super::limit(&stopped(40, waiting()), &evidence).expect("something stopped it");
        let own_limit =
            "check whether its own limit on connections (max-connections) keeps it from accepting";
        assert_eq!(found.fix, format!("{own_limit}; otherwise {expected}"), "{limit} of {somaxconn:?}");
        // A run that passes gets the same as a warning.
        let passed = Summary { verdict: Verdict::Pass, ..Summary::default() };
        let warning = crate::queue::overflow_warning(&passed, &evidence).expect("it overflowed");
        assert!(warning.ends_with(&format!(" is retransmitted after 1 s; {expected}")), "{warning}");
    };
    let nginx =
        |to: u64| format!("raise the target's listen backlog (nginx: listen … backlog={to}), and restart it");
    check(511, Some(4_096), "nginx", &nginx(4_096));
    check(511, Some(20_000), "nginx", &nginx(20_000));
    let sysctl = "sysctl -w net.core.somaxconn";
    check(128, Some(1_024), "nginx", &format!("{sysctl}=4096, then {}", nginx(4_096)));
    check(4_096, Some(4_096), "nginx", &format!("{sysctl}=65535, then restart the target"));
    check(65_535, Some(65_535), "nginx", &format!("{sysctl}=131070, then restart the target"));
    check(
        8,
        Some(4_096),
        "a-server",
        "raise the backlog in the target's call of listen() to 4096, and restart it",
    );
    // The target is on another host, or netlink is forbidden.
    let both = format!(
        "{}; if net.core.somaxconn of its host is smaller, raise that first ({sysctl}=65535)",
        nginx(65_535)
    );
    check(511, None, "nginx", &both);
}

/// The target has no socket for them, because the queue was full when their handshakes completed.
#[test]
fn connections_that_the_target_has_no_end_of_are_its_accept_queues() {
    let short = |missing| Evidence {
        missing: Some(missing),
        accept_queue: Some(Fill { used: 2, limit: 5 }),
        starved: vec![Starved { count: 41, served: 159, responses: 90_000, ..Starved::default() }],
        ..target(TargetSeen { cpu_thread: Some(1.0), ..TargetSeen::default() })
    };
    let short = |missing| Evidence { there: here(overflows(406)).there, ..short(missing) };
    let mut s = stopped(159, vec![fault(Stage::Exchange, Kind::Timeout, 41)]);
    (s.connections.wanted, s.connections.opened, s.connections.peak) = (200, 200, 200);
    s.connections.dropped_in_drain = 41;
    let detail = "accept queue of 5 was full: it overflowed 406 times; 41 connections were established on this machine only, and unknown to the target's host";
    check(&s, &short(41), ("target", "accept-queue", 159, detail, "call of listen()"));
    assert_eq!(limit(&s, &short(41)).map(|limit| limit.certainty), Some(Certainty::Seen));
    // A healthy server that closes idle connections lacks none: the overflow does not explain the wait.
    check(&s, &short(0), ("target", "connection-limit", 159, "a worker or a thread", ""));
    // The connections had nothing to send, and nothing failed.
    s.faults = Vec::new();
    check(
        &s,
        &Evidence { starved: Vec::new(), ..short(41) },
        ("target", "accept-queue", 159, "406 times", ""),
    );
    // More connections are in the queue, which the process does not empty.
    let more = Evidence { starved: Vec::new(), unaccepted: 60, ..short(41) };
    check(&s, &more, ("target", "accept-queue", 159, "60 connections were accepted by the kernel only", ""));
}

/// Connections that timed out before the end of the load cannot be counted any more, but the listener counts what it dropped.
#[test]
fn what_a_listener_dropped_is_why_the_connections_without_a_response_timed_out() {
    let e = |queue_drops, unserved, missing| Evidence {
        queue_drops,
        unserved,
        missing,
        accept_queue: Some(Fill { used: 2, limit: 5 }),
        ..here(overflows(90))
    };
    let mut s = stopped(759, vec![fault(Stage::Exchange, Kind::Timeout, 41)]);
    check(
        &s,
        &e(90, 41, Some(0)),
        ("target", "accept-queue", 759, "it overflowed 90 times", "call of listen()"),
    );
    // The connections had had a response before; or the queue dropped fewer.
    check(&s, &e(90, 20, Some(0)), ("target", "timeout", 800, "", ""));
    check(&s, &e(40, 41, Some(0)), ("target", "timeout", 800, "", ""));
    // They waited until the end of the load, and the target has sockets for all of them.
    s.connections.dropped_in_drain = 41;
    check(&s, &e(90, 41, Some(0)), ("target", "timeout", 800, "", ""));
    check(&s, &e(90, 41, None), ("target", "accept-queue", 759, "", ""));
}

/// If some connections have no response, the headline has the same number of them as the reasons.
#[test]
fn the_connections_without_a_response_are_those_in_the_queue_and_the_others() {
    let of =
        |count, in_turns| Starved { count, served: 20, responses: 9_000, in_turns, ..Starved::default() };
    let sentence = |starved: &[Starved], unaccepted, stood| {
        let mut s = stopped(28, vec![fault(Stage::Exchange, Kind::Timeout, 30)]);
        (s.connections.wanted, s.connections.opened, s.connections.peak) = (50, 50, 50);
        let queue = Some(Fill { used: 30, limit: 128 });
        let e = Evidence {
            accept_queue: queue,
            starved: starved.to_vec(),
            unaccepted,
            stood,
            ..here(NetCounters::default())
        };
        limit(&s, &e).expect("they wait").sentence
    };
    let serves = "the target serves 20 connections at a time: 30 others";
    let some = format!("{serves} had no response by the end of the load, 22 of them in its accept queue");
    assert_eq!(sentence(&[of(30, false)], 22, 30), some);
    assert_eq!(sentence(&[of(30, false)], 0, 22), some);
    let all = format!("{serves} wait in its accept queue");
    assert_eq!([sentence(&[of(30, false)], 30, 30), sentence(&[of(30, false)], 0, 43)], [&*all, &*all]);
    let at_most = "the target serves at most 20 connections at a time: 30 others wait in its accept queue";
    assert_eq!(sentence(&[of(30, true)], 0, 30), at_most);
    // More connections are in the queue than had no response.
    let unaccepted = "the target's process did not accept 22 connections: they wait in its accept queue";
    assert_eq!([sentence(&[], 22, 30), sentence(&[of(9, false)], 22, 30)], [unaccepted, unaccepted]);
}

#[test]
fn no_more_connections_wait_than_there_are() {
    let sentence = |redialled, stood| {
        let mut s = stopped(8, vec![fault(Stage::Exchange, Kind::Timeout, 13)]);
        (s.connections.wanted, s.connections.opened, s.connections.peak) = (10, 10, 10);
        s.connections.redialled = redialled;
        let e = Evidence {
            accept_queue: Some(Fill { used: 13, limit: 128 }),
            stood,
            ..here(NetCounters::default())
        };
        let found = limit(&s, &e).expect("they wait");
        assert_eq!(found.detail.contains("at most"), redialled > 0, "{found:?}");
        found.sentence
    };
    assert_eq!(
        sentence(0, 13),
        "the target serves 8 connections at a time: 2 others wait in its accept queue"
    );
    let taking_turns = "the target serves at most 8 connections at a time: others wait in its accept queue";
    assert_eq!(sentence(5, 13), taking_turns);
}
