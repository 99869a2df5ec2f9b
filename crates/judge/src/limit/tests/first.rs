//! The first cause is reported, not the last symptom.

use super::*;
use crate::evidence::{Stall, State, Timeline};
use record::signs::{Sign, Signs};

const TIMEOUT: Nanos = Nanos::from_secs(2);

/// Each sign from one second until another; dials time out in the line that ends at `failed`.
fn timeline(times: &[(Sign, u64, u64)], failed: u64) -> Timeline {
    let (mut signs, second) = (Signs::default(), Nanos::from_secs);
    for (sign, from, until) in times {
        (*from..=*until).for_each(|at| signs.note(*sign, second(at), true));
    }
    let failed = waiting().into_iter().map(|fault| (fault, second(failed - 1), second(failed)));
    Timeline::new(signs, Nanos::ZERO, failed, TIMEOUT)
}

/// Both causes were seen: the target's files are used up, and its accept queue is full.
fn both(times: &[(Sign, u64, u64)], failed: u64) -> Evidence {
    let files = Some(Fill { used: 1_000, limit: 1_000 });
    let seen = target(TargetSeen { open_files: files, ..TargetSeen::default() });
    let queue = Some(Fill { used: 9, limit: 8 });
    Evidence { accept_queue: queue, timeout: TIMEOUT, timeline: timeline(times, failed), ..seen }
}

fn first_limit(evidence: &Evidence) -> (&'static str, Option<f64>, String) {
    let limit = limit(&stopped(400, waiting()), evidence).expect("something stopped it");
    (limit.cause.name(), limit.first_seen_s, limit.detail)
}

#[test]
fn of_two_that_are_as_sure_the_earlier_is_the_cause() {
    let (cause, at, detail) = first_limit(&both(&[(Sign::Queue, 2, 9), (Sign::OpenFiles, 5, 9)], 5));
    assert_eq!((cause, at), ("accept-queue", Some(2.0)));
    assert!(detail.ends_with("; first seen in second 2, followed by: open files (second 5)"), "{detail}");
    let (cause, at, detail) = first_limit(&both(&[(Sign::Queue, 5, 9), (Sign::OpenFiles, 2, 9)], 5));
    assert_eq!((cause, at), ("open-files", Some(2.0)));
    assert!(detail.ends_with("; first seen in second 2, followed by: accept queue (second 5)"), "{detail}");
    // In the same second, the order of the table decides.
    let (cause, at, detail) = first_limit(&both(&[(Sign::Queue, 2, 9), (Sign::OpenFiles, 2, 9)], 5));
    assert_eq!((cause, at), ("open-files", Some(2.0)));
    assert!(!detail.contains("followed by"), "{detail}");
}

#[test]
fn signs_that_ended_before_the_failures_explain_nothing() {
    // A burst at the beginning of the ramp; dials fail from second 10 on, that began in second 8.
    let (cause, at, _) = first_limit(&both(&[(Sign::Queue, 1, 2), (Sign::OpenFiles, 9, 20)], 11));
    assert_eq!((cause, at), ("open-files", Some(9.0)));
    // Nor does what began after it.
    let (cause, at, _) = first_limit(&both(&[(Sign::Queue, 3, 9), (Sign::OpenFiles, 15, 20)], 5));
    assert_eq!((cause, at), ("accept-queue", Some(3.0)));
}

/// The run before it has left connections in the queue.
#[test]
fn a_queue_that_was_full_before_the_load_comes_before_nothing() {
    let (cause, at, detail) = first_limit(&both(&[(Sign::Queue, 0, 9), (Sign::OpenFiles, 3, 9)], 5));
    assert_eq!((cause, at), ("open-files", Some(3.0)));
    assert!(!detail.contains("followed by"), "{detail}");
    // Where nothing else explains what failed, the target does not accept.
    let alone = Evidence { target: None, ..both(&[(Sign::Queue, 0, 9)], 5) };
    assert_eq!(first_limit(&alone).0, "accept-queue");
    let late = both(&[(Sign::Queue, 0, 9), (Sign::OpenFiles, 15, 20)], 5);
    assert_eq!(first_limit(&late).0, "accept-queue");
}

#[test]
fn without_times_the_table_decides() {
    assert_eq!(first_limit(&both(&[], 5)).0, "open-files");
    assert_eq!(first_limit(&both(&[(Sign::Queue, 2, 9)], 5)).0, "open-files");
}

#[test]
fn a_less_certain_cause_does_not_come_first() {
    // Overflow counters alone cover all listeners together.
    let (mut evidence, full) = (both(&[(Sign::Queue, 2, 9), (Sign::OpenFiles, 5, 9)], 5), overflows(9));
    evidence.accept_queue = None;
    (evidence.here.net, evidence.there) = (full, Some(Host { net: full, ..Host::default() }));
    assert_eq!(first_limit(&evidence).0, "open-files");
}

#[test]
fn a_stop_goes_before_the_queue_that_it_fills() {
    let stopped_at = |from| Evidence {
        stopped: Some((from, 9.0)),
        stall: Some(Stall {
            from_s: from,
            until_s: 9.0,
            count: 1,
            is_over: false,
            state: State::Stopped,
            ..Stall::default()
        }),
        ..both(&[(Sign::OpenFiles, 6, 9), (Sign::Queue, 3, 9)], 5)
    };
    let (cause, at, detail) = first_limit(&stopped_at(2.2));
    assert_eq!((cause, at), ("stall", Some(2.2)));
    assert!(detail.ends_with("in second 3, followed by: open files (second 6)"), "{detail}");
}

#[test]
fn symptoms_come_after_their_cause() {
    let mut evidence = both(&[(Sign::Thread, 3, 9), (Sign::Queue, 4, 9)], 5);
    evidence.target = target(TargetSeen::default()).target;
    evidence.threads_gone = vec!["http-nio-8080-A".to_owned()];
    let (cause, _, detail) = first_limit(&evidence);
    assert_eq!(cause, "thread");
    assert!(detail.contains("\"http-nio-8080-A\" of process 81 has ended"), "{detail}");
}

#[test]
fn a_process_that_ended_is_the_cause_of_later_failures() {
    let ended_at = |at, failed| {
        let mut evidence = both(&[(Sign::Queue, 2, 30), (Sign::Ended, at, 30)], failed);
        let seen = TargetSeen { ended: true, ..TargetSeen::default() };
        evidence.target = target(seen).target;
        first_limit(&evidence).0
    };
    // Dials that time out in second 12 began in second 9.
    assert_eq!(ended_at(10, 12), "ended");
    assert_eq!(ended_at(20, 12), "accept-queue");
}
