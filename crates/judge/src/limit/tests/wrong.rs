//! Sentences about responses that are not as expected.

use samples::{Detail, Rule};

use super::*;
use crate::By;

#[test]
fn wrong_responses_are_described_with_their_statuses() {
    let wrong = |kind, n: u64| fault(Stage::Exchange, kind, n);
    let detail = |faults: Vec<FaultCount>, statuses: &[(u16, u64)]| {
        let mut s = stopped(1_000, faults);
        s.requests.status.extend(statuses.iter().copied());
        limit(&s, &Evidence::default()).expect("it is bad").detail
    };
    assert_eq!(
        detail(vec![wrong(Kind::WrongStatus, 34_502)], &[(404, 34_500), (503, 2)]),
        "34,502 responses were wrong: unexpected status, 404 × 34,500, 503 × 2"
    );
    assert_eq!(
        detail(vec![wrong(Kind::Truncated, 5), wrong(Kind::WrongLength, 2)], &[]),
        "7 responses were wrong, 5 of them: cut off in the middle"
    );
    assert_eq!(
        detail(vec![wrong(Kind::BadAnswer, 1)], &[]),
        "1 response was wrong: not allowed by the protocol"
    );
}

#[test]
fn a_part_of_the_requests_is_rejected_by_a_limit() {
    let s = |statuses: &[(u16, u64)]| {
        let mut s = stopped(1_000, vec![fault(Stage::Exchange, Kind::WrongStatus, 282)]);
        s.requests.status.extend(statuses.iter().copied());
        s
    };
    let mut evidence = Evidence::default();
    evidence.subject.curl = Some("curl -i http://h/".to_owned());
    let fix = |statuses: &[(u16, u64)]| limit(&s(statuses), &evidence).expect("it is bad").fix;
    let part = "the target rejects part of the requests: a rate or connection limit, its own or that of a proxy, or overload; check its log";
    assert_eq!(fix(&[(200, 118), (503, 282)]), part);
    for (program, which) in [
        ("nginx", "a rate or connection limit (limit_req, limit_conn)"),
        ("haproxy", "requests queue for too long for its servers (maxconn of a server, timeout queue)"),
    ] {
        let seen = Evidence { program: program.to_owned(), ..evidence.clone() };
        let fix = limit(&s(&[(200, 118), (503, 282)]), &seen).expect("it is bad").fix;
        let expected =
            format!("the target rejects part of the requests: {which}, or overload; check its log");
        assert_eq!(fix, expected);
    }
    assert_eq!(fix(&[(200, 118), (404, 282)]), "check the path of the target");
    for all in [&[(503, 282)][..], &[(200, 3), (503, 282)]] {
        let fix = fix(all);
        assert!(
            fix.starts_with("the target or a proxy limits") && fix.ends_with("curl -i http://h/"),
            "{fix}"
        );
    }
    // A search has served smaller loads: one more request is served, too.
    let searched = Evidence { search: Some(By::Connections), has_passed: true, ..evidence.clone() };
    assert_eq!(limit(&s(&[(503, 282)]), &searched).expect("it is bad").fix, part);
    let line = "[error] 7#7: *9 limiting requests, excess: 5.460 by zone \"one\"".to_owned();
    let log = samples::LogLine { kind: samples::LogKind::Error, line, ..samples::LogLine::default() };
    let logged = Evidence { log: vec![log], ..evidence.clone() };
    let detail = limit(&s(&[(200, 118), (503, 282)]), &logged).expect("it is bad").detail;
    assert!(detail.contains("; its log: [error] 7#7: *9 limiting requests"), "{detail}");
    // The user has to set secret values.
    let mut keyed = evidence;
    keyed.subject.variables = "$X_KEY (header X-Key)".to_owned();
    let fix = limit(&s(&[(404, 282)]), &keyed).expect("it is bad").fix;
    let end = "; set $X_KEY (header X-Key) in the shell first, then reproduce it with: curl -i http://h/";
    assert!(fix.ends_with(end), "{fix}");
}

/// A proxy that cannot dial its upstream replies with statuses that have many reasons: its log decides.
#[test]
fn a_proxy_without_local_ports_is_known_by_its_log() {
    const LINE: &str = "connect() to 127.0.0.1:9000 failed (99: Cannot assign requested address)";
    let logged = |kind| {
        let line = samples::LogLine { kind, file: "/log".to_owned(), line: LINE.to_owned() };
        Evidence { log: vec![line], ..target(TargetSeen::default()) }
    };
    let found = |stage, status: u16, evidence: &Evidence| {
        let mut s = stopped(800, vec![fault(stage, Kind::WrongStatus, 282)]);
        s.requests.status.extend([(200, 118), (status, 282)]);
        limit(&s, evidence).expect("it is bad")
    };
    let out = logged(samples::LogKind::Ports);
    for (stage, status) in [502, 503, 500].map(|status| (Stage::Exchange, status)) {
        let limit = found(stage, status, &out);
        let certain = (limit.side.name(), limit.cause.name(), limit.at_connections, limit.certainty);
        assert_eq!(certain, ("target", "ports", 800, samples::Certainty::Seen));
        assert_eq!(
            limit.detail,
            format!(
                "process 81 had no local port for another connection to its upstream: {status} × 282; its log: {LINE} (/log)"
            )
        );
        assert!(
            limit.fix.starts_with("keep connections to the upstream open (nginx: keepalive"),
            "{limit:?}"
        );
    }
    assert_eq!(found(Stage::Handshake, 502, &out).cause.name(), "ports", "a refused upgrade");
    // Another line, none, and statuses with other reasons.
    let (other, none) = (logged(samples::LogKind::Error), Evidence::default());
    for (status, evidence) in [(502, &other), (502, &none), (404, &out), (504, &out)] {
        assert_eq!(found(Stage::Exchange, status, evidence).cause.name(), "wrong-answer", "{status}");
    }
    // The ports that throng itself lacks, and responses that are late, have other causes.
    let own = of(Fault::host(Stage::Dial, Kind::AddressInUse), 700);
    let limit_of_own = limit(&stopped(100, own), &out).expect("it is bad");
    assert_eq!((limit_of_own.side.name(), limit_of_own.cause.name()), ("host", "ports"));
    assert_ne!(limit(&stopped(100, waiting()), &out).expect("it is bad").cause.name(), "ports");
}

#[test]
fn closes_instead_of_responses_are_no_idle_timeout() {
    let fix = |faults: Vec<FaultCount>| {
        let mut s = stopped(0, faults);
        s.connections.dropped = s.faults.iter().map(|fault| fault.count).sum();
        limit(&s, &lost(Pattern::default())).expect("it is bad").fix
    };
    assert_eq!(fix(closed()), "check the target's idle timeout, connection limit and log");
    let log =
        "check the target's log: it closed them instead of responding, because it failed or rejects them";
    assert_eq!(fix(reset()), log);
    assert_eq!(fix(vec![fault(Stage::Exchange, Kind::Closed, 50)]), log);
}

/// Where the limit delays some requests for longer than they wait, and rejects others.
#[test]
fn statuses_of_as_many_requests_are_named_beside_another_failure() {
    let found = |timeouts: u64, rejected: u64| {
        let faults = [(Kind::Timeout, timeouts), (Kind::WrongStatus, rejected)];
        let faults = faults.map(|(kind, n)| fault(Stage::Exchange, kind, n));
        let mut s = stopped(1_000, faults.into_iter().filter(|fault| fault.count > 0).collect());
        s.requests.status = [(200, 118), (503, rejected)].into();
        s.requests.status.retain(|_, n| *n > 0);
        let e = Evidence { program: "nginx".to_owned(), ..Evidence::default() };
        limit(&s, &e).expect("it is bad")
    };
    let busy = "check the target's CPU and open files, or raise --timeout";
    let both = found(190, 180);
    let sentence = "190 requests timed out, and 180 responses had an unexpected status (503 × 180)";
    assert_eq!((both.sentence.as_str(), both.cause), (sentence, Cause::Timeout));
    assert!(both.detail.ends_with("; 180 responses had an unexpected status, 503 × 180"), "{both:?}");
    let part = "the target rejects part of the requests: a rate or connection limit (limit_req, limit_conn), or overload; check its log";
    assert_eq!(both.fix, format!("{part}; then {busy}"));
    // A few rejections, or none.
    for rejected in [94, 0] {
        let found = found(190, rejected);
        assert_eq!((found.sentence.as_str(), found.fix.as_str()), ("190 requests timed out", busy));
    }
}

#[test]
fn wrong_responses_of_several_kinds_are_counted_each() {
    let wrong = |kind, n: u64| fault(Stage::Exchange, kind, n);
    let check = |faults: Vec<FaultCount>, expected: &str| {
        let mut s = stopped(1_000, faults);
        s.requests.status = [(200, 500), (404, 200)].into();
        assert_eq!(limit(&s, &Evidence::default()).expect("it is bad").sentence, expected);
    };
    check(vec![wrong(Kind::WrongBody, 158)], "response without the expected text × 158");
    let both =
        vec![wrong(Kind::WrongBody, 150), wrong(Kind::WrongLength, 108), wrong(Kind::WrongStatus, 200)];
    check(
        both,
        "unexpected status: 404 × 200, and response without the expected text × 150, unexpected content length × 108",
    );
    // A connection that ends because of a response is not a second bad response.
    let lacks = fault(Stage::Hold, Kind::MissingValue, 200);
    check(vec![wrong(Kind::WrongStatus, 200), lacks.clone()], "unexpected status: 404 × 200");
    check(
        vec![wrong(Kind::WrongStatus, 120), wrong(Kind::WrongBody, 80), lacks],
        "unexpected status: 404 × 200, and response without the expected text × 80",
    );
}

#[test]
fn messages_without_the_text_may_be_others() {
    let s = stopped(1_000, vec![fault(Stage::Exchange, Kind::WrongBody, 5)]);
    let fix = |wrong_messages| {
        limit(&s, &Evidence { wrong_messages, ..Evidence::default() }).expect("it is bad").fix
    };
    assert!(fix(true).contains("skip = true") && fix(false) == "check one of them with curl -i");
}

#[test]
fn against_a_status_a_scenario_has_means_of_its_own() {
    let mut s = stopped(30, vec![fault(Stage::Exchange, Kind::WrongStatus, 30)]);
    s.requests.status.insert(401, 30);
    let mut evidence = Evidence::default();
    let found = |evidence: &Evidence| {
        let limit = limit(&s, evidence).expect("it is bad");
        (limit.sentence, limit.fix)
    };
    let (sentence, fix) = found(&evidence);
    assert_eq!(sentence, "unexpected status: 401 × 30");
    assert!(fix.contains("log in with a scenario file"), "{fix}");
    evidence.subject.is_scenario = true;
    let (_, fix) = found(&evidence);
    assert!(fix.starts_with("check the credentials that the step sends") && !fix.contains("file"), "{fix}");
}

#[test]
fn a_call_that_ended_at_its_deadline_is_no_overload() {
    let mut s = stopped(1_000, vec![fault(Stage::Exchange, Kind::WrongStatus, 100)]);
    s.requests.status.extend([(0, 900), (4, 100)]);
    let mut evidence = Evidence { timeout: Nanos::from_millis(500), ..Evidence::default() };
    evidence.subject.is_grpc = true;
    let fix = limit(&s, &evidence).expect("some had the wrong status").fix;
    assert!(fix.contains("within the 0.5 s that each has") && fix.contains("raise --timeout"), "{fix}");
    assert!(!fix.contains("overload"), "{fix}");
}

#[test]
fn what_a_response_broke_is_named() {
    let broke = |rule, n| {
        FaultCount::new(fault(Stage::Exchange, Kind::BadAnswer, n).fault().with(Detail::of_rule(rule)), n)
    };
    let found = |faults: Vec<FaultCount>| {
        let mut evidence = Evidence::default();
        evidence.subject.is_grpc = true;
        let limit = limit(&stopped(1_000, faults), &evidence).expect("it is bad");
        (limit.sentence, limit.fix)
    };
    let by_hand = "check one of them with grpcurl -v";
    let not_allowed = "response that the protocol does not allow";
    assert_eq!(
        found(vec![broke(Rule::Chunk, 55)]),
        (format!("{not_allowed} (malformed chunk) × 55"), by_hand.to_owned())
    );
    let (sentence, _) = found(vec![broke(Rule::Chunk, 50), broke(Rule::Surplus, 5)]);
    assert_eq!(sentence, format!("{not_allowed} (mostly malformed chunk) × 55"));
    let (sentence, fix) = found(vec![broke(Rule::GrpcMessages, 55)]);
    assert_eq!(sentence, format!("{not_allowed} (more than one message of gRPC) × 55"));
    let more = "if the method sends more than one message, use --server-streaming or --protoset FILE";
    assert_eq!(fix, format!("{more}; {by_hand}"));
    let (sentence, fix) = found(vec![broke(Rule::FieldsTooLong, 55)]);
    assert!(sentence.starts_with("response too long for throng (fields of over 32 KiB"), "{sentence}");
    assert!(fix.starts_with("reduce what it sends"), "{fix}");
}

#[test]
fn a_reason_says_what_was_wrong_in_words() {
    let mut s = stopped(100, vec![fault(Stage::Exchange, Kind::WrongStatus, 100)]);
    s.requests.status.extend([(401, 98), (403, 2)]);
    let (search, timeout) = (Some(crate::By::Connections), Nanos::from_secs(3));
    let step = Evidence { search, timeout, ..Evidence::default() };
    let said = |kind, e: &Evidence| reason(&fault(Stage::Exchange, kind, 100), &s, e);
    assert_eq!(said(Kind::WrongStatus, &step), "unexpected status: 401 × 98, 403 × 2");
    assert_eq!(said(Kind::WrongBody, &step), "response without the expected text × 100");
    assert_eq!(said(Kind::Reset, &step), "the target reset 100 connections without notice");
    assert_eq!(said(Kind::Timeout, &step), "100 requests timed out after 3 s");
    let of = |stage, kind, count, e: &Evidence| reason(&fault(stage, kind, count), &s, e);
    assert_eq!(of(Stage::Dial, Kind::Refused, 1, &step), "1 dial was refused");
    assert_eq!(of(Stage::Dial, Kind::Timeout, 2, &step), "2 dials timed out after 3 s");
    assert_eq!(of(Stage::Hold, Kind::Closed, 5, &step), "the target closed 5 connections without notice");
    // With several concurrent requests, each has a fault.
    let mut http2 = Evidence { search: step.search, ..Evidence::default() };
    http2.subject.is_http2 = true;
    assert_eq!(said(Kind::Reset, &http2), "100 requests failed: reset by the peer");
    assert_eq!(said(Kind::Refused, &http2), "100 requests failed: refused by the target (REFUSED_STREAM)");
    let lost = "5 connections were lost while being closed: reset by the peer";
    assert_eq!(of(Stage::Close, Kind::Reset, 5, &step), lost);
    // A run gets the same sentence as a step.
    let run = Evidence { search: None, ..step };
    assert_eq!(said(Kind::WrongStatus, &run), "unexpected status: 401 × 98, 403 × 2");
    assert_eq!(of(Stage::Dial, Kind::Timeout, 2, &run), "2 dials timed out after 3 s");
    let issuer = "1 TLS handshake failed: the target's certificate was not issued by a trusted CA";
    assert_eq!(of(Stage::Tls, Kind::UnknownIssuer, 1, &run), issuer);
    let own = FaultCount::new(Fault::host(Stage::Dial, Kind::Other).with(Detail::of_goaway(11)), 3);
    let said_of_own = "3 dials failed on this machine: an error of the operating system (ENHANCE_YOUR_CALM)";
    assert_eq!(reason(&own, &s, &run), said_of_own);
}

/// Sentences do not use the words of the JSON, which are for programs.
#[test]
fn every_fault_has_a_sentence() {
    let (s, e) = (Summary::default(), Evidence::default());
    for (side, stage) in Side::ALL.iter().flat_map(|side| Stage::ALL.iter().map(move |stage| (*side, *stage)))
    {
        for kind in Kind::ALL {
            let fault = Fault { side, stage, kind: *kind, detail: Detail::NONE };
            let said = reason(&FaultCount::new(fault, 2), &s, &e);
            let is_a_word = !kind.name().contains('-');
            assert!(said.contains('2') && (is_a_word || !said.contains(kind.name())), "{fault:?}: {said}");
        }
    }
}

#[test]
fn a_response_that_does_not_end_is_named() {
    let mut s = stopped(20, vec![fault(Stage::Exchange, Kind::Timeout, 20)]);
    s.requests.bytes_in = 4_096;
    let e = |unended| Evidence { unended, timeout: Nanos::from_secs(3), ..Evidence::default() };
    let limit = |s: &Summary, e: &Evidence| limit(s, e).expect("it is bad");
    let found = limit(&s, &e(20));
    assert_eq!(found.sentence, "20 responses began and did not end within 3 s");
    assert!(
        found.detail.contains("KiB of responses") && found.fix.contains("server-sent events"),
        "{found:?}"
    );
    // Bytes of settings, of interim responses, or of messages; and complete responses to others.
    let busy = "20 requests timed out after 3 s";
    assert_eq!(limit(&s, &e(0)).sentence, busy);
    let mut messages = e(20);
    messages.subject.has_messages = true;
    assert_eq!(limit(&s, &messages).sentence, busy);
    s.requests.answered = 1;
    assert_eq!(limit(&s, &e(9)).sentence, busy);
}

#[test]
fn credentials_that_were_sent_are_not_asked_for() {
    let found = |stage, status: u16, sends_credentials| {
        let mut s = stopped(100, vec![fault(stage, Kind::WrongStatus, 100)]);
        s.requests.status.insert(status, 100);
        let mut e = Evidence::default();
        e.subject.sends_credentials = sends_credentials;
        limit(&s, &e).expect("it is bad")
    };
    for status in [401, 403] {
        let fix = found(Stage::Exchange, status, true).fix;
        assert!(fix.starts_with("the credentials sent were refused"), "{fix}");
        let sentence = found(Stage::Handshake, status, true).sentence;
        assert!(sentence.contains(": the credentials sent were refused"), "{sentence}");
    }
    assert!(found(Stage::Exchange, 401, false).fix.starts_with("send credentials with each request"));
    let sentence = found(Stage::Handshake, 403, false).sentence;
    assert!(sentence.ends_with("or there is no WebSocket at this path"), "{sentence}");
    let fix = found(Stage::Exchange, 426, false).fix;
    assert!(fix.starts_with("the target speaks WebSocket at this path: use ws://"), "{fix}");
}

#[test]
fn a_refused_upgrade_has_its_own_status() {
    let sentence = |statuses: &[(u16, u64)]| {
        let mut s = stopped(100, vec![fault(Stage::Handshake, Kind::WrongStatus, 10)]);
        s.requests.status.extend(statuses.iter().copied());
        let subject = crate::subject::Subject::of(&record::fixture::plan(&[]));
        limit(&s, &Evidence { subject, ..Evidence::default() }).expect("it is bad").sentence
    };
    let refused = "WebSocket upgrade refused with status";
    let beside = sentence(&[(200, 720), (403, 10)]);
    assert!(beside.starts_with(&format!("{refused} 403 × 10: probably it requires an Origin")), "{beside}");
    // Other handshakes succeeded, so the way of asking is right.
    let mut some = stopped(100, vec![fault(Stage::Handshake, Kind::WrongStatus, 10)]);
    (some.handshake_us.count, some.requests.status) = (14, [(403, 10)].into());
    let limit_of_some = limit(&some, &Evidence::default()).expect("it is bad");
    assert_eq!(limit_of_some.sentence, format!("{refused} 403 × 10: it accepted others at the same time"));
    assert!(limit_of_some.fix.contains("limits"), "{}", limit_of_some.fix);
    // Without requests beside it, it may be any.
    let alone = sentence(&[(200, 10)]);
    assert!(alone.starts_with(&format!("{refused} 200 × 10: this path serves plain HTTP")), "{alone}");
}
