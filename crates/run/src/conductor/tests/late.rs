//! Late ticks: of a lost worker whose load ended meanwhile, and of connections that come and go.

use super::*;

#[test]
fn the_connections_of_a_second_are_counted_once_where_a_load_ended_in_it() {
    let plan = scenario("connections = 9\nduration = \"60s\"");
    let model = Model::new(&plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    (0..2).for_each(|worker| conductor.handle_tick(worker, &counted(1, 4, 10)));
    conductor.handle_lost(1);
    let ending = |from: u64, until: u64, answered: u64| Tick {
        from: MS(from),
        until: MS(until),
        phase: Phase::Drain,
        ..counted(2, 4, answered)
    };
    // Two ticks per second.
    let late =
        [ending(1_000, 1_450, 1), ending(1_450, 2_000, 2), ending(2_000, 2_700, 4), ending(2_700, 3_000, 8)];
    late.iter().for_each(|tick| conductor.handle_tick(1, tick));
    let late = conductor.take_late();
    let seen: Vec<(Nanos, u64, u64)> =
        late.iter().map(|tick| (tick.until, tick.open, tick.counts.answered)).collect();
    assert_eq!(seen, [(S(2), 4, 3), (S(3), 4, 12)]);
    assert_eq!((conductor.open(), conductor.sum(|tick| tick.counts.answered)), (4, 35));
}

/// The begin, end, connections and responses of these ticks.
fn seen(ticks: &[Tick]) -> Vec<(Nanos, Nanos, u64, u64)> {
    ticks.iter().map(|tick| (tick.from, tick.until, tick.open, tick.counts.answered)).collect()
}

/// Two workers of a fleet. One is silent for a few seconds at first, and later until it counts as lost.
#[test]
fn each_second_has_a_line_of_its_own_while_a_worker_is_away_and_when_it_is_back() {
    let plan = scenario("connections = 8\nduration = \"60s\"");
    let model = Model::new(&plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    let mut lines = Vec::new();
    (0..2).for_each(|worker| conductor.handle_tick(worker, &counted(1, 4, 10)));
    lines.extend(conductor.poll_line(S(1)));
    // Each line waits up to a second for the silent worker; ticks of the other one that arrive meanwhile belong to the next line.
    for second in 2..=4 {
        conductor.handle_tick(0, &counted(second, 4, 10));
        lines.extend(conductor.poll_line(S(second) + MS(10)));
    }
    assert_eq!(conductor.sum(|tick| tick.counts.answered), 50);
    (2..=4).for_each(|second| conductor.handle_tick(1, &counted(second, 4, 7)));
    lines.extend(conductor.poll_line(S(4) + MS(50)));
    let expected = [(S(0), S(1), 8, 20), (S(1), S(2), 8, 10), (S(2), S(3), 8, 10), (S(3), S(4), 8, 17)];
    assert_eq!(seen(&lines), expected);
    // Its connections were in the lines shown.
    assert_eq!(seen(&conductor.take_late()), [(S(1), S(2), 0, 7), (S(2), S(3), 0, 7)]);
    // Once it is lost they are not, even if it comes back before its late ticks arrive.
    conductor.handle_lost(1);
    conductor.handle_tick(0, &counted(5, 4, 10));
    lines.extend(conductor.poll_line(S(5)));
    conductor.handle_back(1);
    conductor.handle_tick(0, &counted(6, 4, 10));
    lines.extend(conductor.poll_line(S(6)));
    (5..=6).for_each(|second| conductor.handle_tick(1, &counted(second, 4, 7)));
    lines.extend(conductor.poll_line(S(6) + MS(50)));
    assert_eq!(seen(&lines[4..]), [(S(4), S(5), 4, 10), (S(5), S(6), 8, 17)]);
    assert_eq!(seen(&conductor.take_late()), [(S(4), S(5), 4, 7)]);
    // The tick of a suspended worker belongs to the second in which it resumed, whose line has already been emitted.
    for second in 7..=8 {
        conductor.handle_tick(0, &counted(second, 4, 10));
        lines.extend(conductor.poll_line(S(second) + MS(10)));
    }
    conductor.handle_tick(1, &Tick { from: MS(6_200), ..counted(8, 4, 30) });
    lines.extend(conductor.poll_line(S(8) + MS(50)));
    assert_eq!(seen(&lines[6..]), [(S(6), S(7), 8, 10), (S(7), S(8), 8, 40)]);
    assert_eq!((conductor.take_late(), conductor.sum(|tick| tick.counts.answered)), (Vec::new(), 155));
    assert_eq!(conductor.finish().1.totals.counts.answered, 155);
}

/// It was lost while the broker was away, and the user did not wait for it.
#[test]
fn the_load_lasted_as_long_as_what_comes_late_of_it() {
    let plan = scenario("connections = 4\nduration = \"60s\"");
    let model = Model::new(&plan, 1, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    let at_load = |second| {
        let mut tick = counted(second, 4, 10);
        tick.counts.answered_at_load = 10;
        tick
    };
    (1..=2).for_each(|second| conductor.handle_tick(0, &at_load(second)));
    conductor.step(S(2));
    conductor.handle_signal();
    conductor.handle_lost(0);
    assert!(conductor.step(S(3)).has_ended);
    let known = conductor.record.populations[0].at_load;
    (3..=12).for_each(|second| conductor.handle_tick(0, &at_load(second)));
    conductor.handle_tick(0, &Tick { phase: Phase::Drain, ..counted(13, 4, 1) });
    let record = conductor.finish().1;
    assert_eq!((record.populations[0].at_load, record.ended), (known + S(10), S(12)));
}

#[test]
fn each_connection_of_lost_workers_is_in_one_sum() {
    let plan = scenario("connections = 12\nduration = \"2s\"");
    let model = Model::new(&plan, 3, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    let tick = |second, open, phase| Tick { ramped_at: S(1), phase, ..counted(second, open, 10) };
    for worker in 0..3 {
        let mut first = tick(1, 4, Phase::Hold);
        first.counts.opened = 4;
        conductor.handle_tick(worker, &first);
    }
    conductor.step(S(1));
    (1..3).for_each(|worker| conductor.handle_lost(worker));
    // One of them loses a connection before it is lost for good; the other one is back.
    let mut late = tick(2, 3, Phase::Hold);
    late.counts.dropped = 1;
    conductor.handle_tick(1, &late);
    conductor.handle_back(2);
    [0, 2].into_iter().for_each(|worker| conductor.handle_tick(worker, &tick(4, 4, Phase::Drain)));
    assert!(conductor.step(S(4)).has_ended);
    // Its connections were held until the end.
    conductor.handle_lost(2);
    let record = conductor.finish().1;
    let measured = &record.populations[0];
    let counts = &measured.totals.counts;
    assert_eq!((counts.opened, measured.held, counts.dropped, measured.lost), (12, 8, 1, 3));
}

#[test]
fn the_peak_has_connections_that_came_and_went_within_a_tick() {
    let plan = scenario("arrive = \"10/s\"\ntotal = 100");
    let model = Model::new(&plan, 2, MS(120), MS(200));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
    let tick = |open, most_open| Tick { until: MS(200), open, most_open, ..Tick::default() };
    conductor.handle_tick(0, &tick(2, 5));
    conductor.handle_tick(1, &tick(0, 4));
    let (line, record) = conductor.finish();
    assert_eq!((record.peak, record.populations[0].peak, record.populations[0].open), (6, 6, 2));
    assert_eq!((line.open, line.most_open), (2, 0), "of one worker, it is no figure of the run");
}

#[test]
fn those_that_are_dialled_again_in_the_drain_were_not_open_when_the_load_ended() {
    let plan = scenario("connections = 8\nduration = \"5s\"");
    let model = Model::new(&plan, 1, MS(120), MS(200));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
    let mut take = |second, phase, open, (opened, closed, redialled)| {
        let counts = samples::Counts { opened, closed, redialled, ..Default::default() };
        let tick = Tick { ramped_at: S(1), phase, counts, ..counted(second, open, 0) };
        conductor.handle_tick(0, &tick);
        conductor.step(S(second));
    };
    take(1, Phase::Hold, 8, (8, 0, 0));
    take(6, Phase::Drain, 6, (0, 2, 0));
    take(7, Phase::Drain, 8, (0, 0, 2));
    conductor.end_load();
    let measured = &conductor.record.populations[0];
    assert_eq!((measured.held, measured.disconnected), (6, 2));
}
