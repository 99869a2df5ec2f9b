//! Runs that end early on their own.

use samples::Counts;

use super::*;

#[test]
fn a_load_whose_connections_are_all_lost_has_ended_early() {
    let plan = scenario("connections = 10\nduration = \"10s\"");
    let check = |counts: Counts, expected: bool| {
        let model = Model::new(&plan, 1, MS(120), MS(200));
        let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
        let ramp = Tick {
            until: MS(300),
            open: 10,
            resolved: 10,
            ramped_at: MS(300),
            counts: Counts { opened: 10, ..Counts::default() },
            ..Tick::default()
        };
        conductor.handle_tick(0, &ramp);
        assert!(!conductor.step(MS(320)).drains);
        let (open, resolved, ramped_at) = (0, 10, MS(300));
        let (from, until, phase) = (MS(300), S(2), Phase::Hold);
        conductor.handle_tick(
            0,
            &Tick { from, until, phase, open, resolved, ramped_at, counts, ..Tick::default() },
        );
        assert!(conductor.step(S(2)).drains);
        assert_eq!(conductor.record.is_deserted, expected);
    };
    check(Counts { dropped: 10, ..Counts::default() }, true);
    check(Counts { finished: 9, dropped: 1, ..Counts::default() }, true);
    // Each has completed its work.
    check(Counts { finished: 10, ..Counts::default() }, false);
}

/// The result of an interrupted search step is not used.
#[test]
fn an_interrupted_step_of_a_search_does_not_wait_long_for_a_silent_worker() {
    let plan = scenario("connections = 10\nduration = \"10s\"");
    let mut model = Model::new(&plan, 2, MS(400), S(1)).silencing(1, S(2)).on_agents();
    let mut conductor = Conductor::going_on(&plan, &model, &[0]);
    conductor.give_orders(&mut model);
    let over = loop {
        assert!(conductor.gather(&mut model).is_some());
        let now = model.now();
        if now >= S(3) {
            conductor.handle_signal();
        }
        let step = conductor.step(now);
        conductor.give_orders(&mut model);
        if step.is_over {
            break now;
        }
    };
    assert!((S(4)..S(5)).contains(&over), "{over}");
    let (_, record) = conductor.finish();
    assert!(record.interrupted.as_deref() == Some("a signal") && record.ended < Nanos::NEVER);
}

#[test]
fn what_is_not_waited_for_is_not_told() {
    let plan = scenario("connections = 10\nduration = \"10s\"\ntimeout = \"3s\"");
    let model = Model::new(&plan, 1, MS(120), MS(200));
    let waits = |mut conductor: Conductor| {
        conductor.poll_orders();
        let tick = Tick { until: MS(300), open: 10, resolved: 10, waiting: 3, owed: 3, ..Tick::default() };
        conductor.handle_tick(0, &tick);
        conductor.handle_signal();
        assert!(conductor.step(MS(500)).drains);
        conductor.waiting_for(MS(1_100))
    };
    let run = waits(Conductor::new(&plan, &model, Nanos::ZERO, MS(120)));
    assert_eq!(run, Some((Awaited::Responses(3), S(3))));
    assert_eq!(waits(Conductor::going_on(&plan, &model, &[0])), None, "a step of a search is not used");
}

#[test]
fn a_wait_for_the_broker_is_longer_than_one_for_reports() {
    let plan = scenario("connections = 10\nduration = \"60s\"\ntimeout = \"3s\"");
    let model = Model::new(&plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    conductor.handle_signal();
    assert!(conductor.step(S(10)).drains);
    assert_eq!(conductor.waiting_for(MS(11_900)), None, "reports take as long");
    // The timeout of a request, plus three report intervals.
    assert_eq!(conductor.waiting_for(S(12)), Some((Awaited::Reports, S(4))));
    conductor.patience.handle_disconnected(S(12));
    assert_eq!(conductor.waiting_for(S(12)), Some((Awaited::Broker, S(64))));
    assert!(!conductor.step(S(17)).is_over, "it counts from when reports arrive again");
    assert!(conductor.step(S(18)).is_over);
}
