//! The number of held connections changes.

use samples::{Phase, Tick};
use stage::{
    Level::{self, Connections},
    RunResult, connections, network, plan, play_levels, servers, turns,
};
use units::{Nanos, Rate};

const S: fn(u64) -> Nanos = Nanos::from_secs;

/// Connections open at the end of a second, summed over all shards.
fn run(target: &str, flags: &str, levels: &[(Nanos, Level)]) -> (RunResult, serve::Stats, Vec<(u64, u64)>) {
    const SHARDS: u32 = 3;
    let net = network(6, |_| {});
    let plan = plan(target, flags, 6);
    let (mut servers, counters) = servers(&net, plan.destinations()[0], 2, connections(&plan));
    let mut turns = turns(&mut servers);
    let (mut open, mut seconds) = ([0; SHARDS as usize], Vec::new());
    let result = play_levels(&net, &plan, SHARDS, &mut turns, levels, |shard, tick: &Tick| {
        open[shard as usize] = tick.open;
        if shard + 1 == SHARDS && tick.until.0.is_multiple_of(S(1).0) && tick.phase != Phase::Drain {
            seconds.push((tick.until.0 / S(1).0, open.iter().sum()));
        }
    });
    (result, counters.read(), seconds)
}

/// For each level: the seconds at whose end exactly that many are open.
fn check(target: &str, flags: &str) {
    let levels = [(S(0), Connections(1_000)), (S(10), Connections(3_000)), (S(30), Connections(500))];
    let (result, server, seconds) = run(target, flags, &levels);
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.finished, result.held), (3_000, 2_500, 500), "{flags}: {c:?}");
    assert_eq!((c.dropped, c.closed, c.failed, c.redialled), (0, 0, 0, 0), "{flags}: {c:?}");
    assert_eq!((result.faults(), result.peak), (vec![], 3_000), "{flags}");
    assert_eq!((server.accepted, server.open, server.closed), (3_000, 500, 2_500), "{flags}");
    assert!(seconds.len() > 50, "{flags}: every second was looked at");
    for (second, open) in seconds {
        let expected = match second {
            2..10 => 1_000,
            14..30 => 3_000,
            34.. => 500,
            _ => continue,
        };
        assert_eq!(open, expected, "{flags}: after {second} s");
    }
}

#[test]
fn connections_come_and_go_as_they_are_wanted() {
    const HTTP: &str = "http://127.0.0.1:8000/";
    check(HTTP, "connections=3k think=1s..3s duration=60s");
    check(HTTP, "connections=3k think=1s duration=60s ramp=1k/s");
    check(HTTP, "connections=3k rate=2k/s duration=60s");
    check("tcp://127.0.0.1:8000", "connections=3k duration=60s");
    check("ws://127.0.0.1:8000/ws/echo", "connections=3k ping=1s duration=60s");
}

#[test]
fn busy_connections_close_after_their_response() {
    // Responses take a second, and the loop is closed: no connection is ever idle.
    let target = "http://127.0.0.1:8000/delay?for=1s";
    let (result, _, seconds) = run(target, "connections=300 duration=20s", &[(S(5), Connections(100))]);
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.finished, c.dropped, result.held), (300, 200, 0, 100), "{c:?}");
    assert_eq!((result.faults(), c.sent), (vec![], c.answered));
    assert!(seconds.iter().all(|(s, open)| *s < 7 || *open == 100), "{seconds:?}");
}

#[test]
fn no_more_than_the_plan_has_and_again_after_less() {
    let levels = [(S(5), 50), (S(10), 99_000), (S(15), 10), (S(15), 200)].map(|(at, n)| (at, Connections(n)));
    let (result, server, _) = run("http://127.0.0.1:8000/", "connections=200 think=1s duration=30s", &levels);
    let c = &result.whole.counts;
    assert_eq!((result.peak, result.held, server.open), (200, 200, 200), "{c:?}");
    assert_eq!((c.opened - c.finished, c.dropped + c.closed + c.failed), (200, 0), "{c:?}");
}

#[test]
fn a_rate_changes_with_its_order() {
    let levels = [(S(5), Level::Rate(Rate::per_s(1_000))), (S(10), Level::Rate(Rate::per_s(50)))];
    let flags = "connections=60 rate=200/s duration=20s";
    let (result, server, _) = run("http://127.0.0.1:8000/", flags, &levels);
    let c = &result.whole.counts;
    // Each level begins 120 ms after its order; requests due before the shards had the order are sent nevertheless.
    let (from, until) = (result.hold_from.secs_f64(), result.hold_until.secs_f64());
    let least = 200.0 * (5.0 - from) + 1_000.0 * 5.0 + 50.0 * (until - 10.12);
    let sent = c.sent as f64;
    assert!(
        (least - 120.0..=least + 24.0 + 6.0).contains(&sent),
        "{sent} sent, {least} and a little expected"
    );
    assert_eq!((c.missed, c.sent, result.faults()), (0, server.requests, vec![]), "{c:?}");
    result.assert_on_time();
}
