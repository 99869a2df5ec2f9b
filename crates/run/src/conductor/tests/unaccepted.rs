//! Connections that only the target's kernel has accepted.

use super::*;

#[test]
fn unaccepted_ones_are_not_held_unless_they_were_served_later() {
    let populations = "duration = \"2s\"\n[[population]]\nname = \"a\"\nconnections = 30\n\
                       [[population]]\nname = \"b\"\nconnections = 20";
    let plan = scenario(populations);
    let finish_after = |unaccepted, answered_by_a, (ended_after, served)| {
        let model = Model::new(&plan, 1, MS(120), MS(200));
        let mut conductor = Conductor::new(&plan, &model, Nanos::ZERO, MS(120));
        (conductor.record.populations[0].held, conductor.record.populations[1].held) = (30, 20);
        let counts = &mut conductor.record.populations[0].totals.counts;
        (counts.sent, counts.answered) = (30, answered_by_a);
        (counts.opened, counts.ended_after) = (30, ended_after);
        conductor.record.populations[0].totals.served = served;
        conductor.handle_unaccepted(unaccepted);
        let record = conductor.finish().1;
        (record.populations[0].held, record.populations[1].held, record.unaccepted)
    };
    let finish = |unaccepted, answered_by_a| finish_after(unaccepted, answered_by_a, (0, 0));
    assert_eq!(finish(0, 10), (30, 20, Some(0)));
    assert_eq!(finish(35, 10), (0, 15, Some(35)));
    assert_eq!(finish(99, 10), (0, 0, Some(50)), "no more than there are");
    assert_eq!(finish(35, 30), (30, 15, Some(5)), "all requests of the one were answered in the end");
    assert_eq!(finish_after(35, 30, (8, 8)), (0, 15, Some(35)), "others had to be closed before");
    assert_eq!(finish_after(35, 30, (8, 30)), (30, 15, Some(5)), "it had served each of them");
}
