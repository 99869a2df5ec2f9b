//! The probe: it has its own schedule, and is counted separately from the populations.

use net::{Close, io::sim::Faults};
use samples::Probe;
use stage::{
    RunResult, connections, listening, measured, network, plan, play,
    scripted::{Act, Request, Script, Scripted, Then},
    servers, turns,
};
use units::Nanos;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
const OK_FOR_2S: &[u8] = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=2\r\nContent-Length: 5\r\n\r\nhello";

fn probe(result: &RunResult) -> &Probe {
    result.whole.probe.as_deref().expect("there is a lane")
}

#[test]
fn the_probe_is_counted_apart_from_the_population() {
    for (target, flags) in [
        ("http://127.0.0.1:8000/?length={rand 1 900}", "think=1s..2s expect=length=$1"),
        ("ws://127.0.0.1:8000/ws/echo", "ping=1s message=hello"),
    ] {
        let net = network(5, |_| {});
        let flags = format!("connections=500 duration=20s probe=10/s ramp=5s {flags}");
        let plan = plan(target, &flags, 5);
        let (mut servers, counters) = servers(&net, plan.destinations()[0], 2, connections(&plan));
        let mut turns = turns(&mut servers);
        let mut most_open = 0;
        let result = play(&net, &plan, 3, &mut turns, |_, tick| most_open = tick.open.max(most_open));
        let (p, c, server) = (probe(&result), &result.whole.counts, counters.read());
        // Ten a second, from the start of the ramp to the end of the hold.
        let slots = (result.hold_until.secs_f64() * 10.0).ceil() as u64;
        assert_eq!((p.sent, p.answered, p.failed), (slots, slots, 0), "{target}");
        assert_eq!((p.fresh.count(), p.kept.count()), (slots.div_ceil(2), slots / 2), "{target}");
        let held = slots - (result.hold_from.secs_f64() * 10.0).ceil() as u64;
        assert_eq!(p.held.count(), held, "{target}: those of the ramp are not in it");
        // A dial for each fresh connection. A single kept connection suffices if responses come in time.
        assert_eq!(p.connect.count(), p.fresh.count() + 1, "{target}");
        assert_eq!(
            (c.opened, result.held, result.peak, result.faults()),
            (500, 500, 500, vec![]),
            "{target}"
        );
        assert!(most_open <= 167, "a shard's share: {most_open}");
        assert_eq!(server.accepted, 500 + p.connect.count(), "{target}");
        let upgrades = if target.starts_with("ws") { server.accepted } else { 0 };
        assert_eq!(server.requests, c.sent + p.sent + upgrades, "{target}");
        // A round trip takes 220 µs: one for a request, one for a dial, one for an upgrade.
        let rounds = if target.starts_with("ws") { 3.0 } else { 2.0 };
        let (fresh, kept, connect) = (measured(&p.fresh), measured(&p.kept), measured(&p.connect));
        assert!((fresh.mean / (rounds * 220.0) - 1.0).abs() < 0.1, "{target}: {fresh:?}");
        assert!((kept.mean / 225.0 - 1.0).abs() < 0.1, "{target}: {kept:?}");
        assert!((connect.mean / 220.0 - 1.0).abs() < 0.1, "{target}: {connect:?}");
    }
}

#[test]
fn no_probe_is_no_probe() {
    let (result, _) = run("", |_| {}, |_| Act { send: OK, then: Then::Stay });
    assert_eq!(result.whole.probe, None);
}

/// Two connections that are only held, beside a probe. If the network takes the same time for all, they come first.
fn run(flags: &str, change: fn(&mut Faults), script: Script) -> (RunResult, Scripted) {
    let net = network(1, change);
    let flags = format!("connections=2 think=1h duration=20s timeout=2s {flags}");
    let plan = plan("http://127.0.0.1:80/", &flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, 2_000, Scripted::new(script));
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    (result, std::mem::replace(server.program(), Scripted::new(script)))
}

#[test]
fn a_kept_connection_that_is_closed_by_announcement_is_dialled_again() {
    let (result, server) = run("probe=10/s", |_| {}, |_| Act { send: OK_AND_CLOSE, then: Then::Stay });
    let p = probe(&result);
    assert_eq!((p.failed, p.connect.count()), (0, p.sent));
    assert_eq!((p.answered, server.accepted_at.len() as u64), (p.sent, 2 + p.sent));
    // Sometimes a kept connection's idle time ends just when its request is due: the request still counts.
    let idle =
        |_| Act { send: OK_FOR_2S, then: Then::CloseAfter(Nanos::from_millis(1_999), Close::Graceful) };
    let (result, _) = run("probe=1/s", |f| f.delay.1 = Nanos::from_millis(5), idle);
    let p = probe(&result);
    assert_eq!((p.failed, p.answered), (0, p.sent));
    assert!(p.connect.count() > p.fresh.count() + 3, "{} dials", p.connect.count());
}

#[test]
fn wrong_responses_to_the_probe_are_no_faults_of_the_population() {
    // The population is served; later connections are not.
    let wrong = |request: Request| match request.conn {
        0..2 => Act { send: OK, then: Then::Stay },
        _ => Act { send: b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", then: Then::Stay },
    };
    let silent = |request: Request| match request.conn {
        0..2 => Act { send: OK, then: Then::Stay },
        _ => Act { send: b"", then: Then::Stay },
    };
    let reset = |request: Request| match request.conn {
        0..2 => Act { send: OK, then: Then::Stay },
        _ => Act { send: b"", then: Then::Close(Close::Reset) },
    };
    for (script, known) in [(wrong as Script, 1.0), (silent, 0.8), (reset, 1.0)] {
        let (result, _) = run("probe=20/s", |f| f.delay = (f.delay.0, f.delay.0), script);
        let p = probe(&result);
        assert_eq!(result.faults(), []);
        assert!(
            p.answered <= 2 && p.failed as f64 >= known * (p.sent as f64) - 3.0,
            "{} of {}",
            p.failed,
            p.sent
        );
        assert!(p.sent > 200 && p.fresh.count() + p.kept.count() == p.answered);
    }
}

#[test]
fn the_probe_is_bounded_however_slow_the_target_is() {
    // No request gets a response, and each waits for its timeout of two seconds. Meanwhile the kept connections are busy, so that all
    // requests use fresh connections: twenty a second. The population is lost meanwhile, and may come back.
    let (result, server) =
        run("probe=20/s reconnect=1h..2h", |_| {}, |_| Act { send: b"", then: Then::Stay });
    let p = probe(&result);
    assert_eq!(p.answered, 0);
    let dials = server.accepted_at.len() as u64 - 2;
    assert!((380..=425).contains(&dials), "{dials} dials in 20 s");
    assert_eq!((p.failed, p.unanswered), (p.sent, 0), "each has timed out");
    assert_eq!((p.fresh.censored() + p.kept.censored(), p.fresh.count()), (p.failed, 0));
}
