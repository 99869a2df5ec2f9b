//! The duration of ramps when commands change the load meanwhile.

use super::*;

/// The basis of `ramp_s` and `open_per_s`.
#[test]
fn the_ramp_of_a_run_whose_load_is_set_is_the_time_of_opening() {
    let plan = scenario("connections = 10\nduration = \"8s\"");
    let played = |commands: &[(Nanos, Command)]| {
        let model = Model::new(&plan, 2, MS(120), MS(200));
        let ran = play(&plan, model.facing(Target { takes: MS(300), ..Target::GOOD }), commands);
        (ran.record.ramp, ran.record.populations[0].ramp, ran.record.totals.counts.opened)
    };
    let (less, more) = ((S(2), Command::Load(500_000)), (S(4), Command::Load(1_000_000)));
    assert_eq!(played(&[]), (MS(300), MS(300), 10));
    assert_eq!(played(&[less]), (MS(300), MS(300), 10));
    let (all, own, opened) = played(&[less, more]);
    assert!((MS(600)..MS(800)).contains(&all) && all == own && opened == 15, "{all} {own} {opened}");
}
