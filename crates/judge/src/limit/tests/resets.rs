//! Connections that were reset: by the target or the path, and what share of them.

use super::*;
use crate::evidence::Timeline;
use record::{hops::Sender, signs::Signs};

/// The target's host is not observed, so nothing shows who sent the resets.
#[test]
fn resets_alone_may_be_of_the_path() {
    let mut s = stopped(0, reset());
    s.connections.dropped = 800;
    let mut far = lost(Pattern::default());
    far.subject.is_loopback = false;
    let found = |s: &Summary, e: &Evidence| {
        let limit = limit(s, e).expect("it is bad");
        (limit.side.name(), limit.cause.name(), limit.sentence)
    };
    let of_either = "800 connections were reset, by the target or by something on the path";
    assert_eq!(found(&s, &far), ("unknown", "unknown", of_either.to_owned()));
    let seen = Evidence { there: Some(Host::default()), ..far.clone() };
    for e in [lost(Pattern::default()), seen] {
        assert_eq!(found(&s, &e).0, "target");
    }
    // The hop count of the resets may show it.
    let from = |by| found(&s, &Evidence { resets_by: Some(by), ..far.clone() });
    let on_the_path = "800 connections were reset by something on the path".to_owned();
    assert_eq!(from(Sender::Path), ("path", "closed", on_the_path));
    assert_eq!(from(Sender::Target).0, "target");
    // A close, unlike a reset, can only come from an end of the connection.
    s.faults.push(fault(Stage::Exchange, Kind::Closed, 1));
    assert_eq!(found(&s, &far).0, "target");
}

/// Other connections stay open.
#[test]
fn refusals_have_a_sender_too() {
    let mut s = stopped(0, vec![fault(Stage::Dial, Kind::Refused, 30)]);
    (s.connections.opened, s.connections.held) = (150, 150);
    let mut e = lost(Pattern { opened_by_then: 150, ..Pattern::default() });
    e.subject.is_loopback = false;
    let mut check = |resets_by, side, whom: &str| {
        e.resets_by = resets_by;
        let limit = limit(&s, &e).expect("it is bad");
        let sentence = format!("connection refused after the target had accepted 150 connections{whom}");
        assert_eq!((limit.side.name(), limit.sentence), (side, sentence), "{resets_by:?}");
    };
    check(None, "unknown", ", by it or by something on the path");
    check(Some(Sender::Path), "path", ", by something on the path");
    check(Some(Sender::Target), "target", "");
}

/// The 1,000 responses before the failures do not count.
#[test]
fn a_share_is_of_the_time_in_which_things_failed() {
    let mut s = stopped(0, reset());
    (s.connections.dropped, s.requests.sent) = (800, 8_000);
    let mut e = lost(Pattern { had_responses: true, ..Pattern::default() });
    let failed = |at_s| {
        let (from, until) = (Nanos::from_secs(at_s), Nanos::from_secs(at_s + 1));
        [(fault(Stage::Exchange, Kind::Reset, 1), from, until)].into_iter()
    };
    e.answered = (0..10).map(|second| (f64::from(second), 800)).collect();
    let said = |e: &Evidence| limit(&s, e).expect("it is bad").sentence;
    let timeline = |at_s| Timeline::new(Signs::default(), Nanos::ZERO, failed(at_s), Nanos::ZERO);
    e.timeline = timeline(0);
    assert_eq!(said(&e), "the target reset 800 connections instead of responding (1 in 10 requests)");
    e.timeline = timeline(7);
    assert_eq!(
        said(&e),
        "the target reset 800 connections instead of responding (1 in 4 requests from second 7 on)"
    );
}
