//! Runs that end before their time by themselves.

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
    // Each has done what it came for.
    check(Counts { finished: 10, ..Counts::default() }, false);
}
