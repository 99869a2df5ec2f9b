//! Runs that end because no connection is left, on agents of which one was lost.

use samples::Counts;

use super::*;

/// A tick of a worker at full load, with these open connections and counts.
fn at_load(second: u64, open: u64, counts: Counts) -> Tick {
    Tick { ramped_at: S(1), counts, ..counted(second, open, 0) }
}

/// Two workers with four connections each. The second one is lost, then the target closes the first one's connections.
fn deserted(plan: &Plan) -> Conductor<'_> {
    let model = Model::new(plan, 2, MS(400), S(1)).on_agents();
    let mut conductor = Conductor::new(plan, &model, Nanos::ZERO, MS(400));
    // A connection closed as announced is redialled only by the worker that had it.
    for (worker, closed) in [(0, 0), (1, 1)] {
        conductor.handle_tick(worker, &at_load(1, 4 - closed, Counts { closed, ..Counts::default() }));
    }
    assert!(!conductor.step(S(2)).drains && conductor.is_holding());
    conductor.handle_lost(1);
    conductor.handle_tick(0, &at_load(5, 0, Counts { dropped: 4, ..Counts::default() }));
    conductor
}

#[test]
fn it_ends_once_what_was_lost_cannot_come_back() {
    let plan = scenario("connections = 8\nduration = \"1h\"");
    let mut conductor = deserted(&plan);
    assert!(!conductor.step(S(5)).drains, "the lost one may have connections");
    conductor.may_come_back = false;
    assert!(conductor.step(S(20)).drains);
    let (_, record) = conductor.finish();
    assert!(record.is_deserted && record.interrupted.is_none());
}

#[test]
fn it_goes_on_with_one_that_is_back() {
    let plan = scenario("connections = 8\nduration = \"1h\"");
    let mut conductor = deserted(&plan);
    conductor.handle_back(1);
    conductor.may_come_back = false;
    assert!(!conductor.step(S(8)).drains, "it has not reported");
    conductor.handle_tick(1, &at_load(9, 3, Counts::default()));
    assert!(!conductor.step(S(9)).drains);
    conductor.handle_tick(1, &at_load(10, 0, Counts { dropped: 3, ..Counts::default() }));
    assert!(!conductor.step(S(10)).drains, "one is to be dialled again");
    conductor.handle_tick(1, &at_load(11, 0, Counts { redialled: 1, dropped: 1, ..Counts::default() }));
    assert!(conductor.step(S(11)).drains);
}

#[test]
fn it_goes_on_with_those_that_take_over_what_was_lost() {
    let plan = scenario("connections = 8\nduration = \"1h\"");
    let mut conductor = deserted(&plan);
    (conductor.may_come_back, conductor.hands_over) = (false, true);
    assert!(!conductor.step(S(20)).drains);
    conductor.handle_joined(Role::Population(0));
    conductor.hands_over = false;
    assert!(!conductor.step(S(21)).drains, "it has not reported");
    let dials = Tick { ramped_at: Nanos::NEVER, ..at_load(22, 0, Counts::default()) };
    conductor.handle_tick(2, &dials);
    assert!(!conductor.step(S(22)).drains, "it dials");
    conductor.handle_tick(2, &at_load(23, 4, Counts::default()));
    assert!(!conductor.step(S(23)).drains);
    conductor.handle_tick(2, &at_load(24, 0, Counts { dropped: 4, ..Counts::default() }));
    assert!(conductor.step(S(24)).drains);
}

#[test]
fn a_step_of_a_search_goes_on_with_what_the_ones_before_have_left_to_be_dialled_again() {
    let plan = scenario("connections = 4\nduration = \"1h\"");
    let model = Model::new(&plan, 1, MS(400), S(1));
    let mut conductor = Conductor::going_on(&plan, &model, &[4]);
    conductor.record.populations[0].to_redial_before = 4;
    // Each was closed as announced in the step before: it is redialled with its next request, and closed again.
    conductor.handle_tick(0, &at_load(1, 0, Counts::default()));
    assert!(!conductor.step(S(1)).drains);
    conductor.handle_tick(0, &at_load(2, 0, Counts { redialled: 4, closed: 4, ..Counts::default() }));
    assert!(!conductor.step(S(2)).drains);
    // Until they are lost.
    conductor.handle_tick(0, &at_load(3, 0, Counts { redialled: 4, dropped: 4, ..Counts::default() }));
    assert!(conductor.step(S(3)).drains);
}

#[test]
fn a_load_that_is_not_dialled_again_ends_with_its_last_connection() {
    let keys = "connections = 4\nduration = \"1h\"\nreconnect = \"never\"";
    let plan = scenario(keys);
    let model = Model::new(&plan, 1, MS(400), S(1));
    let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(400));
    conductor.handle_tick(0, &at_load(1, 1, Counts { closed: 3, ..Counts::default() }));
    assert!(!conductor.step(S(2)).drains);
    conductor.handle_tick(0, &at_load(3, 0, Counts { closed: 1, ..Counts::default() }));
    assert!(conductor.step(S(3)).drains);
    let (_, record) = conductor.finish();
    assert!(record.is_deserted && record.interrupted.is_none());
}

#[test]
fn what_may_come_back_is_asked_of_the_workers() {
    let plan = scenario("connections = 8\nduration = \"1h\"");
    let target = Target { loses_at: S(5), ..Target::GOOD };
    let drained = |comes_back_until| {
        let model = Model::new(&plan, 2, MS(400), S(1)).losing(1, S(3)).on_agents().facing(target);
        play(&plan, model.coming_back(comes_back_until), &[]).drained
    };
    assert!((S(5)..S(6)).contains(&drained(Nanos::ZERO)));
    assert!((S(17)..S(18)).contains(&drained(S(17))));
}
