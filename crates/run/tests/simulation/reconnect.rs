//! Lost connections are redialled after a back-off, if requested, and are counted as lost nevertheless.

use net::{Close, io::sim::Faults};
use samples::{Kind, Stage};
use stage::{
    RunResult, connections, listening, measured, network, plan, play, play_frozen,
    scripted::{Act, Request, Script, Scripted, Then},
};
use units::Nanos;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const RIGHT: Act = Act { send: OK, then: Then::Stay };
const RESET: Act = Act { send: b"", then: Then::Close(Close::Reset) };

fn run(flags: &str, change: fn(&mut Faults), script: Script) -> (RunResult, Scripted) {
    let net = network(1, change);
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(script));
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    (result, std::mem::replace(server.program(), Scripted::new(script)))
}

#[test]
fn reset_connections_come_back_spread_out() {
    const N: u64 = 500;
    // With a fixed think time, all are reset simultaneously, a second after the ramp.
    let once = |request: Request| if request.conn < N && request.nth == 1 { RESET } else { RIGHT };
    let flags = "connections=500 ramp=0s think=1s duration=10s reconnect=2s..30s";
    let (result, server) = run(flags, |_| {}, once);
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Reset, N)]);
    assert_eq!((c.opened, c.dropped, c.redialled, c.failed, c.closed), (N, N, N, 0, 0), "{c:?}");
    assert_eq!((result.held, server.accepted_at.len() as u64), (N, 2 * N));
    // Full jitter: uniform over the two seconds after the loss.
    let waits: Vec<f64> = server.accepted_at[500..].iter().map(|at| at.secs_f64() - 1.0).collect();
    assert!(waits.iter().all(|wait| (0.0..2.01).contains(wait)), "{waits:?}");
    for quarter in 0..4 {
        let from = f64::from(quarter) * 0.5;
        let n = waits.iter().filter(|wait| (from..from + 0.5).contains(*wait)).count();
        assert!((85..=165).contains(&n), "{n} of {N} from {from} s on");
    }
}

#[test]
fn the_back_off_doubles_up_to_its_limit() {
    // No request gets a response, so that each failure extends the series.
    let flags = "connections=100 duration=60s reconnect=1s..8s";
    let (result, server) = run(flags, |_| {}, |_| RESET);
    let c = &result.whole.counts;
    assert_eq!(c.opened + c.redialled, c.dropped + c.ended_after + result.whole.open);
    // Average waits of 0.5, 1, 2, 4, 4, … s: in 60 s a first dial and about 17 others. With constant waits it would be 120 dials for half
    // a second, and 15 for four seconds.
    let each = server.accepted_at.len() as f64 / 100.0;
    assert!((16.0..20.5).contains(&each), "{each} dials each");
}

#[test]
fn a_response_ends_a_row_of_failures() {
    // Every second request is reset. Each failure is the first of its series, with an average back-off of half a second.
    let flags = "connections=100 think=100ms duration=30s reconnect=1s..30s";
    let (_, server) = run(flags, |_| {}, |request| if request.nth == 1 { RESET } else { RIGHT });
    let each = server.accepted_at.len() as f64 / 100.0;
    assert!((45.0..55.0).contains(&each), "{each} dials each in 30 s of 0.6 s");
}

#[test]
fn failed_dials_are_repeated() {
    let flags = "connections=300 think=1s duration=30s reconnect=500ms..2s";
    let (result, server) = run(flags, |f| f.refuse = 500_000, |_| RIGHT);
    let c = &result.whole.counts;
    assert_eq!((result.held, c.opened + c.redialled, c.dropped), (300, 300, 0), "{c:?}");
    assert_eq!(result.faults(), [(Stage::Dial, Kind::Refused, c.failed)]);
    assert_eq!(server.accepted_at.len(), 300);
    // Half of all dials fail: one for each success.
    assert!((230..=370).contains(&c.failed) && c.opened > 110 && c.opened < 190, "{c:?}");
}

#[test]
fn without_it_lost_connections_stay_lost() {
    for reconnect in ["planned", "never"] {
        let flags = format!("connections=50 think=1s duration=10s reconnect={reconnect}");
        let (result, _) = run(&flags, |_| {}, |request| if request.nth == 1 { RESET } else { RIGHT });
        let c = &result.whole.counts;
        assert_eq!((c.dropped, c.redialled, result.held), (50, 0, 0), "{c:?}");
    }
}

#[test]
fn raw_connections_come_back_too() {
    let net = network(4, |_| {});
    let flags = "connections=20 duration=20s reconnect=1s";
    let plan = plan("tcp://127.0.0.1:8000", flags, 4);
    let at = plan.destinations()[0];
    let knobs = serve::Knobs { reset_after: Some(Nanos::from_secs(5)), ..serve::Knobs::default() };
    let counters = std::sync::Arc::new(serve::Counters::new(1));
    let mut server = listening(&net, at, 300, serve::Http::shard(counters.clone(), 0, 300, &knobs));
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    let c = &result.whole.counts;
    // Each is reset after five seconds, and closed for half a second on average: three times in twenty seconds.
    assert!((50..=80).contains(&c.dropped) && c.redialled >= c.dropped - 20, "{c:?}");
    assert_eq!(result.faults(), [(Stage::Hold, Kind::Reset, c.dropped)]);
}

/// Twenty connections, each closed as announced after its first response, of a client that is suspended from 0.5 s to 2.5 s.
fn frozen(flags: &str) -> RunResult {
    const CLOSES: Act =
        Act { send: b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", then: Then::Stay };
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", &format!("connections=20 ramp=0s {flags}"), 1);
    let at = plan.destinations()[0];
    let script = Scripted::new(|request| if request.conn < 20 { CLOSES } else { RIGHT });
    let mut server = listening(&net, at, 128, script);
    let frozen = (Nanos::from_millis(500), Nanos::from_millis(2_500));
    play_frozen(&net, &plan, 1, &mut [&mut server], frozen)
}

#[test]
fn a_dial_made_too_late_counts_from_when_it_was_due() {
    // Redialled for requests that were due at 1 s and sent at 2.5 s.
    let result = frozen("think=1s duration=4s");
    let (whole, connect) = (&result.whole, measured(&result.whole.connect));
    assert_eq!((whole.counts.opened, whole.counts.redialled), (20, 20), "{:?}", whole.counts);
    assert!(connect.p50 < 10_000.0 && connect.p75 > 1_400_000.0, "dials due at about 1 s: {connect:?}");
    assert!(connect.max < 1_600_000.0, "{connect:?}");
    let late = measured(&whole.lag);
    assert!(late.count >= 20 && late.max > 1_400_000.0, "and the requests are late: {late:?}");
    // In an open loop, for slots due between 0.5 s and 2.5 s.
    let result = frozen("rate=20/s duration=4s");
    let (whole, connect) = (&result.whole, measured(&result.whole.connect));
    assert_eq!((whole.counts.opened, whole.counts.redialled), (20, 20), "{:?}", whole.counts);
    assert!(connect.max > 900_000.0 && connect.max < 2_100_000.0, "{connect:?}");
}
