//! HTTP/2 requests that the target ends without closing their connections.

use super::*;

#[test]
fn reset_streams_are_no_lost_connections() {
    let mut s = stopped(800, reset());
    check(&s, &Evidence::default(), ("target", "wrong-answer", 800, "800 streams were reset", "handler"));
    s.connections.dropped = 1;
    // Each request on the lost connection is a fault.
    check(&s, &lost(Pattern::default()), ("target", "closed", 800, "1 connection was lost", ""));
}

#[test]
fn refused_streams_are_no_refused_connections() {
    let faults =
        || vec![fault(Stage::Exchange, Kind::Refused, 700), fault(Stage::Handshake, Kind::Refused, 86)];
    let sentence = |s: &Summary| limit(s, &Evidence::default()).expect("something stopped it").sentence;
    let mut s = stopped(800, faults());
    let mut e = Evidence::default();
    let refused = |fix| ("target", "wrong-answer", 800, "no connection was lost", fix);
    check(&s, &e, refused("each connection had one request at a time"));
    e.subject.has_streams = true;
    check(&s, &e, refused("fewer --streams"));
    assert_eq!(sentence(&s), "the target refused 786 streams (REFUSED_STREAM); the connections stayed open");
    s.connections.dropped = 1;
    assert_eq!(sentence(&s), "the target refused 786 streams (REFUSED_STREAM)");
}

#[test]
fn a_session_that_ends_for_idleness_is_an_idle_cut() {
    let mut ended = fault(Stage::Hold, Kind::Closed, 5);
    ended.detail = samples::Detail::of_goaway(11);
    let mut s = stopped(800, vec![ended.clone()]);
    s.connections.dropped = 5;
    let e = |said: &[u8]| {
        let mut samples = samples::ErrorSamples::default();
        let fault = samples::Fault::target(Stage::Hold, Kind::Closed).with(ended.detail);
        samples.add(samples::ErrorSample::new(fault, Nanos(1), None, said, &[]));
        let mut subject = crate::subject::Subject::default();
        (subject.longest_pause, subject.pause_flag) = (Nanos::from_secs(5), Some("--think".into()));
        Evidence { words: crate::words::Words::of(&samples), subject, ..Evidence::default() }
    };
    let outlast = "raise its idle timeout above 5 s, or send more often";
    check(&s, &e(b"session IDLE for 2 s"), ("target", "idle-cut", 800, "5 connections were lost", outlast));
    check(&s, &e(b"too_many_pings"), ("target", "closed", 800, "5 connections were lost", "protocol error"));
}

#[test]
fn a_session_that_ends_with_an_error_has_its_name() {
    let mut ended = fault(Stage::Hold, Kind::Closed, 5);
    ended.detail = samples::Detail::of_goaway(11);
    let mut s = stopped(800, vec![ended.clone()]);
    s.connections.dropped = 5;
    let found = limit(&s, &Evidence::default()).expect("something stopped it");
    assert_eq!(found.sentence, "the target ended 5 connections with an error (GOAWAY, ENHANCE_YOUR_CALM)");
    assert!(found.fix.contains("log"), "{}", found.fix);
    for (code, fix) in
        [(1011, "its handler failed"), (1009, "--message"), (1013, "overloaded"), (1002, "protocol error")]
    {
        ended.detail = samples::Detail::of_close(Some(code));
        s.faults = vec![ended.clone()];
        let found = limit(&s, &Evidence::default()).expect("something stopped it");
        let name = ended.detail.name();
        let said = format!("the target ended 5 connections with an error (Close, {name})");
        assert_eq!((found.sentence, found.fix.contains(fix)), (said, true), "{}", found.fix);
    }
    // That others came, and that all wanted connections were there at the end, only shows that connections are dialled again.
    ended.detail = samples::Detail::of_close(Some(1011));
    s.faults = vec![ended.clone()];
    let e =
        lost(Pattern { is_surplus: true, were_old: Some(false), responses: Some(5), ..Pattern::default() });
    assert!(limit(&s, &e).expect("something stopped it").sentence.contains("(Close, 1011 internal error)"));
    // The server received too many PINGs or other frames from throng.
    let fix = |is_grpc, code| {
        let mut subject = crate::subject::Subject::default();
        (subject.has_pings, subject.is_grpc) = (true, is_grpc);
        let mut ended = fault(Stage::Hold, Kind::Closed, 5);
        ended.detail = samples::Detail::of_goaway(code);
        let e = Evidence { subject, ..Evidence::default() };
        limit(&stopped(800, vec![ended]), &e).expect("something stopped it").fix
    };
    assert_eq!(fix(false, 11), "ping less often than the server allows (--ping)");
    assert!(
        fix(true, 11)
            .starts_with("ping less often than the server allows (--ping; by default once in 5 minutes")
    );
    assert!(fix(true, 2).contains("log"));
}
