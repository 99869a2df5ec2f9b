//! Targets that treat connections differently, or whose status or announcement explains why they end them.

use samples::{DestinationSummary, Detail};

use super::*;
use crate::starved::Starved;

/// 50 connections, of which 25 were closed.
fn half(faults: Vec<FaultCount>) -> Summary {
    let mut s = stopped(25, faults);
    (s.connections.wanted, s.connections.opened, s.connections.peak, s.connections.dropped) =
        (50, 50, 50, 25);
    s.requests.answered = 500;
    s
}

fn found(s: &Summary, e: &Evidence) -> (String, String) {
    let limit = limit(s, e).expect("it is bad");
    (limit.sentence, limit.fix)
}

#[test]
fn statuses_come_before_what_became_of_connections() {
    let faults = || vec![fault(Stage::Exchange, Kind::WrongStatus, 25), fault(Stage::Hold, Kind::Closed, 25)];
    for pattern in [
        Pattern { responses: Some(1), ..Pattern::default() },
        Pattern { is_surplus: true, were_old: Some(false), ..Pattern::default() },
        Pattern { silence: Some(Nanos::from_secs(3)), ..Pattern::default() },
    ] {
        let mut s = half(faults());
        s.requests.status.extend([(200, 475), (503, 25)]);
        let (sentence, fix) = found(&s, &lost(pattern));
        let expected = "the target closed 25 connections without notice, and 25 responses had an unexpected status (503 × 25)";
        assert_eq!(sentence, expected);
        assert!(fix.starts_with("the target rejects part of the requests"), "{fix}");
        // A few such responses among many have another cause.
        s.requests.status.insert(503, 5);
        assert_ne!(found(&s, &lost(pattern)).0, expected);
    }
}

#[test]
fn what_is_in_use_is_not_closed_to_make_room() {
    let pattern = Pattern { is_surplus: true, had_responses: true, ..Pattern::default() };
    let s = half(vec![fault(Stage::Exchange, Kind::Closed, 25)]);
    let mut e = lost(pattern);
    for is_http2 in [false, true] {
        e.subject.is_http2 = is_http2;
        let (sentence, _) = found(&s, &e);
        assert!(!sentence.contains("as others opened"), "{sentence}");
    }
    // Idle connections may have been evicted.
    let idle = half(vec![fault(Stage::Hold, Kind::Closed, 25)]);
    assert!(found(&idle, &e).0.contains("as others opened"));
}

#[test]
fn a_destination_that_holds_none_has_no_limit_on_them() {
    let mut s = half(vec![fault(Stage::Exchange, Kind::Reset, 25)]);
    let at = |port: u16, open: u64, faults: Vec<FaultCount>| {
        let name = format!("127.0.0.1:{port}");
        DestinationSummary {
            destination: name.clone(),
            last: name,
            opened: 25,
            open,
            faults,
            ..Default::default()
        }
    };
    let e = lost(Pattern { is_surplus: true, were_old: Some(false), ..Pattern::default() });
    s.destinations = vec![at(1, 25, Vec::new()), at(2, 0, s.faults.clone())];
    assert!(!found(&s, &e).0.contains("beyond"));
    s.destinations = vec![at(1, 15, Vec::new()), at(2, 10, s.faults.clone())];
    assert!(found(&s, &e).0.contains("beyond"));
}

#[test]
fn responses_that_do_not_end_are_named_beside_others() {
    let mut s = half(vec![fault(Stage::Exchange, Kind::Timeout, 25)]);
    s.connections.dropped = 25;
    let most = Starved { names: Vec::new(), count: 25, served: 25, responses: 500, in_turns: false };
    let e = |unended| Evidence {
        unended,
        starved: vec![most.clone()],
        timeout: Nanos::from_secs(3),
        ..Evidence::default()
    };
    let (sentence, fix) = found(&s, &e(25));
    assert_eq!(sentence, "25 responses began and did not end within 3 s");
    assert!(fix.contains("server-sent events"), "{fix}");
    assert_eq!(found(&s, &e(13)).0, "13 responses began and did not end within 3 s");
    assert!(found(&s, &e(12)).0.contains("the target serves 25 at a time"));
}

#[test]
fn what_others_speak_is_not_what_the_target_lacks() {
    let other = "others succeeded at the same time: check each of its backends";
    let mut s = half(vec![fault(Stage::Tls, Kind::NotTls, 25)]);
    let e = Evidence::default();
    assert!(found(&s, &e).1.starts_with("use http://"));
    s.figures.tls_us.count = 25;
    assert!(found(&s, &e).1.starts_with(other), "{:?}", found(&s, &e));
    // A certificate does not depend on the load: it belongs to one backend.
    s.faults = vec![fault(Stage::Tls, Kind::Expired, 25)];
    assert!(found(&s, &e).1.starts_with("renew it"));
    let mut s = half(vec![fault(Stage::Handshake, Kind::NothingInCommon, 25)]);
    assert_eq!(found(&s, &e).0, "the target does not speak HTTP/2 without TLS");
    s.figures.handshake_us.count = 25;
    let (sentence, fix) = found(&s, &e);
    assert_eq!(sentence, "the target does not speak HTTP/2 without TLS on 25 connections");
    assert!(fix.starts_with(other), "{fix}");
}

#[test]
fn an_announced_close_of_an_arrival_is_called_that() {
    let announced = |stage| of(Fault::target(stage, Kind::Closed).with(Detail::ANNOUNCED), 60);
    let mut e = lost(Pattern { responses: Some(1), ..Pattern::default() });
    e.subject.arrives = true;
    let (sentence, fix) = found(&half(announced(Stage::Hold)), &e);
    let early =
        "the target closed 25 connections after announcing it, before all of their requests were made";
    assert_eq!(sentence, early);
    assert!(fix.ends_with("or use fewer --calls"), "{fix}");
    let mute = "the target closed 25 connections after announcing it, without responding";
    assert_eq!(found(&half(announced(Stage::Exchange)), &e).0, mute);
}

#[test]
fn a_response_of_this_protocol_is_not_one_of_another_port() {
    let broke = |rule| of(Fault::target(Stage::Exchange, Kind::BadAnswer).with(Detail::of_rule(rule)), 25);
    let broken = Fault::target(Stage::Exchange, Kind::BadAnswer);
    let samples = vec![samples::ErrorSample::new(broken, units::Nanos(1), None, b"HTTP/1.1 200 OK\r\n", &[])];
    let e = Evidence { words: crate::words::Words::of(&samples.into()), ..Evidence::default() };
    let mut s = half(broke(samples::Rule::Chunk));
    s.requests.answered = 0;
    assert!(!found(&s, &e).1.contains("the port"), "{:?}", found(&s, &e));
    s.faults = broke(samples::Rule::HeadTooLong);
    assert!(found(&s, &e).1.starts_with("reduce what it sends"), "{:?}", found(&s, &e));
    s.faults = broke(samples::Rule::Version);
    assert!(found(&s, &e).1.contains("check that the port is that of this protocol"));
}

#[test]
fn what_a_304_and_no_streams_mean_is_said() {
    let mut s = half(vec![fault(Stage::Exchange, Kind::WrongStatus, 25)]);
    s.requests.status.insert(304, 25);
    assert!(found(&s, &Evidence::default()).1.contains("--expect status=304"));
    let timeout = Fault::target(Stage::Handshake, Kind::Timeout);
    let e = Evidence { timeout: Nanos::from_secs(1), ..Evidence::default() };
    let (sentence, fix) = found(&half(of(timeout.with(Detail::NO_STREAMS), 25)), &e);
    assert_eq!(sentence, "25 handshakes timed out after 1 s");
    assert!(fix.contains("SETTINGS_MAX_CONCURRENT_STREAMS 0"), "{fix}");
    let window = Fault::target(Stage::Exchange, Kind::Timeout).with(Detail::WINDOW);
    let (sentence, fix) = found(&half(of(window, 25)), &e);
    assert!(sentence.ends_with("HTTP/2 flow-control window blocked their bodies"), "{sentence}");
    assert!(fix.contains("reads the bodies of requests"), "{fix}");
}

#[test]
fn a_503_is_explained_by_the_log() {
    let mut s = half(vec![fault(Stage::Exchange, Kind::WrongStatus, 500)]);
    s.requests.status.insert(503, 500);
    let e = |line: &str| {
        let line = samples::LogLine { line: line.to_owned(), ..Default::default() };
        Evidence { log: vec![line], ..Evidence::default() }
    };
    let fix = |line: &str| found(&s, &e(line)).1;
    assert!(fix("limiting connections by zone \"z\"").contains("(limit_conn)"));
    assert!(fix("limiting requests, excess: 0.5 by zone \"y\"").contains("its burst (limit_req)"));
    assert!(fix("upstream timed out").contains("the target or a proxy limits connections or requests"));
    s.requests.status.clear();
    s.requests.status.insert(504, 500);
    assert!(found(&s, &e("")).1.starts_with("a proxy waited too long for its backend"));
}
