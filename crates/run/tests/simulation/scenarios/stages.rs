//! Stages: the load moves to the level of each one, at its rate, and stays there for its time.

use samples::Tick;
use stage::{RunResult, measured, network, play, scenario, servers, turns};
use units::Nanos;

use super::{MS, S};
use crate::listener::{Received, Reply, Speaks, ok};

/// The activity of a population in a fifth of a second.
#[derive(Clone, Copy, Debug, Default)]
struct Fifth {
    /// Open connections at its end.
    open: u64,
    opened: u64,
    sent: u64,
    answered_at_load: u64,
}

/// A run and its course.
struct Schedule {
    result: RunResult,
    /// For each population, by fifths of a second.
    fifths: Vec<Vec<Fifth>>,
    server: serve::Stats,
}

const FIFTH: Nanos = Nanos::from_millis(200);
/// The notice before a stage moves the load, and before full load begins, plus the delay of a tick.
const SOON: Nanos = Nanos::from_millis(450);

/// A scenario whose targets are all the reference server at `127.0.0.1:8000`.
fn run(text: &str, shards: u32) -> Schedule {
    let net = network(5, |_| {});
    let plan = scenario(&format!("target = \"http://127.0.0.1:8000/\"\n{text}"), 5);
    let (mut servers, counters) = servers(&net, "0.0.0.0:8000".parse().unwrap(), 2, 5_000);
    let mut turns = turns(&mut servers);
    let mut fifths = vec![vec![Fifth::default(); 5 * 1_000]; plan.populations.len()];
    let result = play(&net, &plan, shards, &mut turns, |shard, tick: &Tick| {
        // The probe's shard is the last.
        let Some(own) = fifths.get_mut((shard / shards) as usize) else { return };
        let fifth = &mut own[tick.until.0.saturating_sub(1) as usize / FIFTH.0 as usize];
        fifth.opened += tick.counts.opened;
        fifth.sent += tick.counts.sent;
        fifth.answered_at_load += tick.counts.answered_at_load;
        if tick.until.0.is_multiple_of(FIFTH.0) {
            fifth.open += tick.open;
        }
    });
    assert_eq!((result.faults(), result.whole.counts.dropped), (vec![], 0));
    Schedule { result, fifths, server: counters.read() }
}

impl Schedule {
    /// Connections of a population at a time after the beginning of a stage, rounded down to a fifth of a second.
    fn open(&self, population: usize, stage: usize, after: Nanos) -> u64 {
        let at = self.result.stages[stage].0 + after;
        self.fifths[population][(at.0 / FIFTH.0) as usize - 1].open
    }

    /// Requests sent in the fifths of a second between two times.
    fn sent(&self, population: usize, from: Nanos, until: Nanos) -> u64 {
        let (first, last) = (from.0.div_ceil(FIFTH.0) as usize, (until.0 / FIFTH.0) as usize);
        self.fifths[population][first..last].iter().map(|fifth| fifth.sent).sum()
    }

    /// Asserts that this many connections per second are opened or closed from the first to the last second of a stage.
    fn check_slope(&self, population: usize, stage: usize, (from, to): (u64, u64), seconds: u64) {
        for second in 1..seconds {
            let level = from as f64 + (to as f64 - from as f64) * second as f64 / seconds as f64;
            let a_fifth = from.abs_diff(to) as f64 / seconds as f64 / 5.0 + 2.0;
            let open = self.open(population, stage, S(second));
            assert!(
                (open as f64 - level).abs() <= a_fifth,
                "{open} instead of {level} after {second} s of stage {stage}"
            );
        }
    }
}

#[test]
fn a_rate_of_dials_is_shared_by_growing_populations() {
    for ramp in ["40/s", "10s"] {
        let schedule = run(
            &format!(
                r#"
                [[stage]]
                ramp = "{ramp}"
                for = "2s"
                [[population]]
                name = "a"
                connections = 300
                think = "1s"
                [[population]]
                name = "b"
                target = "ws://127.0.0.1:8000/ws/echo"
                connections = 100
                ping = "5s"
                "#
            ),
            2,
        );
        schedule.check_slope(0, 0, (0, 300), 10);
        schedule.check_slope(1, 0, (0, 100), 10);
        let (_, held) = schedule.result.stages[0];
        assert!((MS(9_970)..S(10) + SOON).contains(&held), "{ramp}: {held}");
        assert_eq!((schedule.result.held, schedule.result.hold_until), (400, held + S(2)), "{ramp}");
    }
}

const COURSE: &str = r#"
[[stage]]
of = ["a"]
ramp = "10/s"
for = "5s"
[[stage]]
of = ["b"]
ramp = "5s"
for = "5s"
[[stage]]
of = ["a"]
to = "50%"
ramp = "10/s"
for = "5s"
[[stage]]
of = ["a"]
to = "100%"
ramp = "0"
for = "5s"
[[stage]]
of = ["b"]
to = "0%"
ramp = "5s"
for = "2s"
[[stage]]
of = ["a", "b"]
to = "10%"
for = "3s"
[[stage]]
for = "4s"

[[population]]
name = "a"
connections = 100
think = "1s"
[[population]]
name = "b"
target = "ws://127.0.0.1:8000/ws/echo"
connections = 50
ping = "2s"
"#;

#[test]
fn stages_move_only_their_own_populations() {
    let schedule = run(COURSE, 2);
    let stages = &schedule.result.stages;
    assert_eq!(stages.len(), 7);
    schedule.check_slope(0, 0, (0, 100), 10);
    schedule.check_slope(1, 1, (0, 50), 5);
    schedule.check_slope(0, 2, (100, 50), 5);
    schedule.check_slope(1, 4, (50, 0), 5);
    // The duration of each move, and the time at its end.
    for (stage, way, holds) in [(0, 10, 5), (1, 5, 5), (2, 5, 5), (3, 0, 5), (4, 5, 2), (5, 0, 3), (6, 0, 4)]
    {
        let (began, held) = stages[stage];
        let took = held.since(began);
        assert!(took + MS(110) >= S(way) && took <= S(way) + SOON, "stage {stage} took {took}");
        let ended = stages.get(stage + 1).map_or(schedule.result.hold_until, |next| next.0);
        assert!(
            (S(holds)..S(holds) + MS(2)).contains(&ended.since(held)),
            "stage {stage} held {}",
            ended.since(held)
        );
    }
    // The load of each population once it is reached; the other one is unaffected.
    for (stage, a, b) in
        [(0, 100, 0), (1, 100, 50), (2, 50, 50), (3, 100, 50), (4, 100, 0), (5, 10, 5), (6, 10, 5)]
    {
        let after = stages[stage].1.since(stages[stage].0) + MS(800);
        assert_eq!(
            (schedule.open(0, stage, after), schedule.open(1, stage, after)),
            (a, b),
            "in stage {stage}"
        );
    }
    let [a, b] = [0, 1].map(|nth| &schedule.result.populations[nth].counts);
    assert_eq!((a.opened, a.finished, b.opened, b.finished), (150, 140, 55, 50));
    assert_eq!((a.closed + b.closed, a.redialled + b.redialled), (0, 0), "nobody is lost on the way down");
    assert_eq!((schedule.server.accepted, schedule.server.closed, schedule.result.held), (205, 190, 15));
}

#[test]
fn only_what_is_due_at_full_load_counts_for_it() {
    let schedule = run(COURSE, 2);
    let Schedule { result, fifths, .. } = &schedule;
    for (population, per_s) in [(0, 1.0), (1, 0.5)] {
        let t = &result.populations[population];
        let (mut at_load, mut requests) = (Nanos::ZERO, 0.0);
        // A population's full load lasts from when it is reached until a stage changes it again.
        let levels: &[(usize, usize, f64)] = match population {
            0 => &[(0, 2, 100.0), (2, 3, 50.0), (3, 5, 100.0), (5, 7, 10.0)],
            // Zero load is not full load.
            _ => &[(1, 4, 50.0), (5, 7, 5.0)],
        };
        for &(from, until, connections) in levels {
            let until = result.stages.get(until).map_or(result.hold_until, |stage| stage.0);
            let time = until.since(result.stages[from].1);
            at_load = at_load + time;
            requests += time.secs_f64() * connections * per_s;
        }
        let own = result.at_load[population];
        assert!(own.since(at_load).max(at_load.since(own)) < MS(10), "{own} instead of {at_load}");
        let answered = t.counts.answered_at_load as f64;
        assert!((answered / requests - 1.0).abs() < 0.01, "{answered} instead of {requests:.0}");
        assert!(t.latency.count().abs_diff(t.counts.answered_at_load) < 40, "{}", t.latency.count());
        assert_eq!(t.ramp_latency.count(), t.counts.answered - t.latency.count());
        // It excludes moves: the whole second stage, and for b the ramp of the fifth one too.
        let on_the_way = &fifths[population];
        let (began, held) = result.stages[if population == 0 { 2 } else { 4 }];
        let inside = (began + MS(250)).0 / FIFTH.0..held.0 / FIFTH.0;
        assert!(
            inside.clone().count() > 20
                && inside.clone().all(|at| on_the_way[at as usize].answered_at_load == 0)
        );
        assert!(inside.map(|at| on_the_way[at as usize].sent).sum::<u64>() > 50, "though it asks");
    }
}

const RATES: &str = r#"
[[stage]]
ramp = "4s"
for = "5s"
[[stage]]
to = "50%"
ramp = "10s"
for = "5s"
[[stage]]
to = "100%"
for = "5s"
[[stage]]
to = "10%"
ramp = "0"
for = "10s"

[[population]]
name = "users"
connections = 40
rate = "100/s"
"#;

#[test]
fn a_rate_begins_with_its_connections_and_then_goes_evenly() {
    for shards in [1, 3] {
        let schedule = run(RATES, shards);
        let Schedule { result, .. } = &schedule;
        let c = &result.whole.counts;
        assert_eq!((c.missed, c.answered), (0, c.sent));
        let [(_, up), (down, half), (step, all), (drop, tenth)] = result.stages[..] else {
            panic!("four stages")
        };
        // No requests are sent while the connections are opened.
        assert_eq!(schedule.sent(0, Nanos::ZERO, up), 0);
        assert!(down.since(up) >= S(5) && half.since(down) >= S(10));
        // Area by area, to a fifth of a second at either end.
        let check = |from: Nanos, until: Nanos, rate: &dyn Fn(f64) -> f64, what: &str| {
            let sent = schedule.sent(0, from, until) as f64;
            let (first, last) = (from.0.div_ceil(FIFTH.0) * FIFTH.0, until.0 / FIFTH.0 * FIFTH.0);
            let (first, last) = (Nanos(first).since(from).secs_f64(), Nanos(last).since(from).secs_f64());
            let area = (rate(first) + rate(last)) / 2.0 * (last - first);
            assert!((sent - area).abs() <= 4.0, "{what}: {sent} instead of {area:.1}, {shards} shards");
        };
        check(up, down, &|_| 100.0, "full");
        for second in 0..9 {
            check(
                down + S(second),
                down + S(second + 1),
                &|t| 100.0 - 5.0 * (t + second as f64),
                "on the way down",
            );
        }
        // From the end of the ramp on, without a break before full load begins.
        check(down + S(10), step, &|_| 50.0, "half");
        check(step, drop, &|_| 100.0, "full again, at once");
        // Once each shard has the order.
        check(drop + FIFTH, result.hold_until, &|_| 10.0, "a tenth, at once");
        assert!(all.since(step) < SOON && tenth.since(drop) < SOON);
        result.assert_on_time();
    }
}

#[test]
fn arrivals_go_evenly_from_nothing_and_end_with_the_stages() {
    let text = r#"
        [[stage]]
        of = ["guests"]
        ramp = "10s"
        for = "5s"
        [[stage]]
        of = ["guests"]
        to = "0%"
        ramp = "10s"
        [[stage]]
        of = ["kept"]
        for = "3s"
        [[population]]
        name = "guests"
        arrive = "100/s"
        calls = 2
        [[population]]
        name = "kept"
        connections = 7
        think = "1s"
    "#;
    let schedule = run(text, 2);
    let c = &schedule.result.populations[0].counts;
    // Two triangles, the part between them, and the notice of the second change.
    assert!((1_510..=1_515).contains(&c.opened), "{c:?}");
    assert_eq!((c.finished, c.sent, c.answered_at_load), (c.opened, 2 * c.opened, c.sent));
    // They are at full load from the first one on.
    assert_eq!(schedule.result.populations[0].ramp_latency.count(), 0);
    let opened: Vec<u64> =
        schedule.fifths[0].chunks(5).map(|second| second.iter().map(|fifth| fifth.opened).sum()).collect();
    for (second, opened) in opened.iter().enumerate() {
        let expected = match second as u64 {
            second @ 0..10 => 5 + 10 * second,
            10..15 => 100,
            second @ 15..25 => 95 - 10 * (second - 15),
            _ => 0,
        };
        assert!(opened.abs_diff(expected) <= 3, "{opened} instead of {expected} in second {second}");
    }
    assert_eq!(schedule.result.held, 7);
    assert!(schedule.result.hold_until <= S(28) + SOON, "{}", schedule.result.hold_until);
}

#[test]
fn populations_of_later_stages_are_not_late() {
    let text = r#"
        [[stage]]
        of = ["first"]
        for = "530ms"
        [[stage]]
        ramp = "20/s"
        for = "1s"
        [[population]]
        name = "first"
        connections = 1
        think = "1h"
        [[population]]
        name = "guests"
        arrive = "50/s"
        [[population]]
        name = "more"
        connections = 20
        think = "1h"
    "#;
    let schedule = run(text, 2);
    let result = &schedule.result;
    result.assert_on_time();
    // From when a dial was due: two one-way delays.
    assert!(measured(&result.whole.connect).max <= 400.0, "{:?}", measured(&result.whole.connect));
    assert!(
        (95..=115).contains(&result.populations[1].counts.opened)
            && result.populations[2].counts.opened == 20
    );
}

#[test]
fn arrivals_have_a_rate_of_their_own_in_each_stage_and_a_total_over_all() {
    let text = r#"
        [[stage]]
        to = "20%"
        for = "5s"
        [[stage]]
        to = "100%"
        for = "1m"
        [[population]]
        name = "guests"
        arrive = "50/s"
        total = 300
    "#;
    let schedule = run(text, 2);
    let c = &schedule.result.whole.counts;
    assert_eq!((c.opened, c.finished), (300, 300));
    // Ten a second for five seconds and the notice of the next stage, and then fifty.
    let end = schedule.result.hold_until;
    assert!((MS(10_000)..=MS(10_120)).contains(&end), "{end}");
}

#[test]
fn a_stage_without_a_hold_is_only_a_ramp() {
    let text = r#"
        [[stage]]
        to = "50%"
        ramp = "2s"
        [[stage]]
        to = "100%"
        ramp = "10s"
        for = "5s"
        [[population]]
        name = "users"
        connections = 40
        rate = "100/s"
        [[population]]
        name = "idle"
        target = "tcp://127.0.0.1:8000"
        connections = 100
    "#;
    let schedule = run(text, 2);
    let [(_, half), (began, all)] = schedule.result.stages[..] else { panic!("two stages") };
    assert_eq!(half, began, "the next one begins when the first is there");
    schedule.check_slope(1, 1, (50, 100), 10);
    schedule.check_slope(0, 1, (20, 40), 10);
    assert!((S(10)..S(10) + SOON).contains(&all.since(began)));
    // The rate moves from half to full together with the connections.
    for second in 0..9 {
        let sent = schedule.sent(0, began + S(second), began + S(second + 1));
        let expected = 52.5 + 5.0 * second as f64;
        assert!(
            (sent as f64 - expected).abs() < 0.25 * expected,
            "{sent} instead of {expected} in second {second}"
        );
    }
    let c = &schedule.result.populations[0].counts;
    // It starts to move after the notice, and is unchanged until then.
    let notice = 0.12;
    let full = schedule.result.hold_until.since(began + S(10)).secs_f64() - notice;
    let expected = 50.0 * notice + 750.0 + 100.0 * full;
    assert!((c.sent as f64 - expected).abs() < 5.0, "{} instead of {expected}", c.sent);
}

#[test]
fn the_probe_goes_on_beside_the_stages() {
    let text = format!("probe = \"10/s\"\n{COURSE}");
    let schedule = run(&text, 1);
    let seen = schedule.result.whole.probe.as_ref().unwrap();
    let expected = schedule.result.hold_until.secs_f64() * 10.0;
    assert!((seen.sent as f64 - expected).abs() < 3.0, "{} instead of {expected}", seen.sent);
    assert_eq!((seen.answered + 2 >= seen.sent, seen.failed), (true, 0));
    // It is not part of any population's load.
    let c = &schedule.result.whole.counts;
    assert_eq!((c.opened, schedule.result.held), (205, 15));
    let fresh = seen.fresh.count();
    assert!(fresh.abs_diff(seen.kept.count()) <= 1, "{fresh} fresh ones");
}

/// A stage with another share may have the same number of connections: lost ones must be redialled, or the stage would never end.
#[test]
fn what_was_lost_is_there_again_in_a_stage_of_as_many_connections() {
    let text = "target = \"http://127.0.0.1:80/\"\n[[population]]\nname = \"a\"\nconnections = 2\nthink = \"50ms\"\n\
        [[stage]]\nto = \"50%\"\nfor = \"500ms\"\n[[stage]]\nto = \"30%\"\nramp = \"100ms\"\nfor = \"500ms\"\n";
    let closes_first = |received: &Received| if received.conn == 0 { vec![Reply::End] } else { ok() };
    let (result, _) = super::run(text, 1, Speaks::Http, closes_first);
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.dropped), (2, 1), "{c:?}");
    assert!(result.hold_until < S(3) && c.answered > 5, "{c:?}");
}

/// The load of a shard ends with its last connection: a later stage that wants one there does not wait for it.
#[test]
fn a_stage_does_not_wait_for_a_shard_that_has_lost_all_for_good() {
    let text = "target = \"http://127.0.0.1:80/\"\n[[population]]\nname = \"a\"\nconnections = 2\nthink = \"1ms\"\n\
        requests = 1000\nreconnect = \"never\"\n\
        [[stage]]\nfor = \"500ms\"\n[[stage]]\nto = \"50%\"\nramp = \"100ms\"\nfor = \"500ms\"\n";
    // The other shard arrives later: the connection that it closes waits for a slow response first.
    let slow = || format!("HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n{}", "x".repeat(300));
    let slowly = move || slow().bytes().map(|byte| Reply::Bytes(vec![byte])).collect();
    let closes_one = move |received: &Received| if received.conn == 0 { vec![Reply::End] } else { slowly() };
    let (result, _) = super::run(text, 2, Speaks::Http, closes_one);
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.dropped, c.finished), (2, 1, 1), "{c:?}");
    assert!(result.hold_until < S(3), "{c:?}");
}

/// Replies arrive after the next messages are due: surplus connections start no further messages.
#[test]
fn fewer_connections_are_held_also_where_messages_wait_for_replies() {
    let keys = "target = \"ws://127.0.0.1:80/ws/echo\"\nhttp2 = true\nstreams = 2\nping = \"30ms\"\nconnections = 6\n";
    let plan =
        scenario(&format!("{keys}[[stage]]\nfor = \"800ms\"\n[[stage]]\nto = \"50%\"\nfor = \"800ms\"\n"), 1);
    let net = network(1, |f| f.delay = (MS(100), MS(100)));
    let (mut servers, _) = servers(&net, plan.destinations()[0], 1, 20);
    let result = play(&net, &plan, 2, &mut turns(&mut servers), |_, _| {});
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.finished, result.held, result.faults()), (6, 3, 3, vec![]), "{c:?}");
    assert!(result.hold_until < S(5) && c.answered > 50 && c.missed > 50, "{}: {c:?}", result.hold_until);
}
