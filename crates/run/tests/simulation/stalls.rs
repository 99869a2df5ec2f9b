//! A target that stalls, compared with one that merely has slow responses now and then.

use samples::Verdict;
use stage::{
    connections,
    fates::Frozen,
    listening, network, plan, play,
    scripted::{Act, Request, Script, Scripted, Then},
};
use units::Nanos;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn after_ms(ms: u64) -> Act {
    Act { send: b"", then: Then::SendAfter(Nanos::from_millis(ms), OK) }
}

/// One in twenty responses takes 4 s, without a pattern.
fn slow_now_and_then(Request { conn, nth }: Request) -> Act {
    let random = (conn * 7_919 + nth + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    after_ms(if random.is_multiple_of(20) { 4_000 } else { 20 })
}

/// The cause and the sentence of a run that misses a threshold on latency; the target stops for this long, from 2 s on.
fn judged(flags: &str, script: Script, stopped_ms: u64) -> (&'static str, String) {
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", &format!("{flags} threshold=latency.max<1s"), 1);
    let mut server = listening(&net, plan.destinations()[0], connections(&plan) + 64, Scripted::new(script));
    let span = (Nanos::from_millis(2_070), Nanos::from_millis(2_070 + stopped_ms));
    let mut stopped = Frozen::new(&net, &mut server, std::slice::from_ref(&span));
    let s = play(&net, &plan, 1, &mut [&mut stopped], |_, _| {}).judge(&plan);
    assert_eq!((s.verdict, s.requests.unanswered), (Verdict::Fail, 0), "{flags}: {:?}", s.reasons);
    let limit = s.limit.expect("it fails");
    (limit.cause.name(), limit.sentence)
}

/// No response comes for seconds after the last request, or in a closed loop whose connections meet slow responses one after the other.
#[test]
fn slow_responses_are_no_stall() {
    for flags in [
        "connections=50 requests=300",
        "connections=50 rate=100/s duration=3s",
        "connections=50 duration=5s",
        "connections=5 duration=10s",
    ] {
        let (cause, sentence) = judged(flags, slow_now_and_then, 0);
        assert_eq!(cause, "unknown", "{flags}: {sentence}");
        let ends = [20, 21].map(|ms| format!(" of responses took 4.0 s, the others {ms} ms"));
        assert!(ends.iter().any(|end| sentence.ends_with(end)), "{flags}: {sentence}");
    }
    let (cause, sentence) = judged("arrive=60/s total=180 duration=10s", slow_now_and_then, 0);
    assert_ne!(cause, "stall", "{sentence}");
}

#[test]
fn a_target_that_stops_is_one() {
    for (flags, script) in [
        ("connections=50 duration=5s", (|_| after_ms(20)) as Script),
        ("connections=3 duration=5s", |_| after_ms(20)),
        ("connections=50 think=200ms duration=5s", |_| after_ms(20)),
        ("connections=50 rate=200/s duration=5s", |_| after_ms(20)),
        // In addition to slow responses.
        ("connections=100 think=500ms duration=8s", slow_now_and_then),
    ] {
        let (cause, sentence) = judged(flags, script, 1_960);
        assert_eq!(cause, "stall", "{flags}: {sentence}");
        assert!(sentence.starts_with("the target stalled: no response for "), "{flags}: {sentence}");
    }
}
