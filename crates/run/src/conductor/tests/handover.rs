//! The end of a run with a fixed number of requests, where other workers take over the load of a lost one.

use super::*;

const BOUNDED: &str = "connections = 8\nrequests = 60";

/// The last tick of a worker, whose load ends in this second.
fn ending(second: u64, answered: u64) -> Tick {
    Tick { phase: Phase::Drain, ramped_at: S(1), ..counted(second, 4, answered) }
}

/// The second of two workers is lost, and others are to take over its load; the first one completes its load in second 5.
fn left(plan: &Plan) -> Conductor<'_> {
    let model = Model::new(plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(plan, &model, Nanos::ZERO, MS(400));
    for worker in 0..2 {
        conductor.handle_tick(worker, &Tick { ramped_at: S(1), ..counted(1, 4, 10) });
    }
    assert!(!conductor.step(S(1)).drains);
    conductor.handle_lost(1);
    conductor.hands_over = true;
    conductor.handle_tick(0, &ending(5, 20));
    conductor
}

#[test]
fn the_load_lasts_until_others_have_done_what_a_lost_worker_did() {
    let plan = scenario(BOUNDED);
    let mut conductor = left(&plan);
    assert!(!conductor.step(S(5)).drains);
    // The run continues, although the load of the remaining worker has ended.
    let line = conductor.poll_line(S(7)).expect("it is over");
    assert_eq!((line.phase, line.open), (Phase::Hold, 4));
    assert!(!conductor.step(S(19)).drains, "it is not taken over");
    conductor.hands_over = false;
    conductor.handle_joined(Role::Population(0));
    assert!(!conductor.step(S(20)).drains, "it is taken over, and not done");
    conductor.handle_tick(2, &ending(24, 20));
    let step = conductor.step(S(24));
    assert!(step.drains && step.has_ended && step.is_over);
    let (_, record) = conductor.finish();
    assert_eq!((record.ended, record.interrupted.as_deref()), (S(24), None));
    assert_eq!((record.populations[0].held, record.totals.counts.sent), (8, 60));
}

#[test]
fn what_no_worker_takes_over_is_not_waited_for() {
    let plan = scenario(BOUNDED);
    let mut conductor = left(&plan);
    assert!(!conductor.step(S(5)).drains);
    conductor.hands_over = false;
    assert!(conductor.step(S(6)).has_ended);
    assert_eq!(conductor.finish().1.ended, S(5));
    // No handover either if no worker is left.
    let mut model = Model::new(&plan, 1, MS(400), S(1)).losing(0, Nanos::ZERO).on_agents();
    let mut conductor = left(&plan);
    while conductor.gather(&mut model).is_some() {}
    assert!(conductor.step(S(6)).drains);
}

#[test]
fn a_signal_and_the_time_of_the_run_end_the_wait() {
    let plan = scenario(BOUNDED);
    let mut conductor = left(&plan);
    conductor.handle_signal();
    assert!(conductor.step(S(6)).is_over);
    let plan = scenario(&format!("{BOUNDED}\nduration = \"10s\""));
    let mut conductor = left(&plan);
    // Full load began at 1.4 s.
    assert!(!conductor.step(MS(11_399)).drains);
    assert!(conductor.step(MS(11_400)).is_over);
}

#[test]
fn a_run_that_is_bounded_by_its_time_alone_is_as_long() {
    let plan = scenario("connections = 9\nduration = \"5s\"");
    let ran = |hands_over_until| {
        let model = Model::new(&plan, 3, MS(400), S(1)).losing(1, S(3)).on_agents();
        let ran = play(&plan, model.handing_over(hands_over_until), &[]);
        (ran.record.ended, ran.drained, ran.over)
    };
    assert_eq!(ran(S(60)), ran(Nanos::ZERO));
}
