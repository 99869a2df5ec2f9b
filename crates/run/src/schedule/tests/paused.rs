//! Changes of the load during a pause.

use super::*;

const HOLD: &str =
    "[[stage]]\nramp = \"30/s\"\nfor = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 300\n";

/// The changes by commands, and the orders after the end of the pause; also the schedule.
fn check<'a>(plan: &'a Plan, commands: &[(u64, Command)], said: &[&str], expected: &[&str]) -> Schedule<'a> {
    let (orders, schedule) = manual_orders(plan, MS(500), Nanos::from_secs(60), commands);
    let is_said = |order: &&String| order.starts_with(|first: char| first.is_ascii_digit());
    assert_eq!(orders.iter().filter(is_said).collect::<Vec<_>>(), said, "{orders:?}");
    let resumed = orders.iter().position(|order| order == "all: Pause(false)").expect("it goes on");
    for order in expected {
        assert!(orders[resumed..].iter().any(|given| given == order), "{order}: {orders:?}");
    }
    schedule
}

#[test]
fn a_load_set_in_a_pause_is_that_of_the_time_after_it() {
    let plan = scenario(HOLD);
    let commands = [
        (2_620, Command::Pause),
        (3_000, Command::Load(500_000)),
        (3_020, Command::Down),
        (3_040, Command::Down),
        (3_060, Command::Connections(90)),
        (4_620, Command::Resume),
    ];
    let said = [
        "2.62: paused",
        "3.00: load 50 % when resumed",
        "3.02: load 40 % when resumed",
        "3.04: load 30 % when resumed",
        // The load is unchanged.
        "4.62: resumed",
    ];
    let schedule = check(&plan, &commands, &said, &["a: 90 by 30/s from 4.74"]);
    assert_eq!(schedule.wanted(0), 90);
    // Two of five seconds had passed; the rest is at the new load.
    let progress = schedule.progress(0);
    assert_eq!(progress.holding + schedule.ends_at().since(progress.hold_from), MS(5_000));
}

#[test]
fn a_load_that_is_set_and_set_back_in_a_pause_stays() {
    let plan = scenario(HOLD);
    let commands = [
        (2_620, Command::Pause),
        (3_000, Command::Down),
        (3_500, Command::Up),
        (3_600, Command::Up),
        (4_620, Command::Resume),
        (5_620, Command::Pause),
        (5_700, Command::Resume),
    ];
    let said = [
        "2.62: paused",
        "3.00: load 90 % when resumed",
        "3.50: load 100 % when resumed",
        "4.62: resumed",
        "5.62: paused",
        "5.70: resumed",
    ];
    let schedule = check(&plan, &commands, &said, &[]);
    assert!(schedule.is_at_peak(0) && schedule.wanted(0) == 300);
}

#[test]
fn a_load_set_in_a_pause_of_the_ramp_is_where_that_leads() {
    let plan = scenario(HOLD);
    let commands = [(100, Command::Pause), (200, Command::Connections(150)), (10_000, Command::Resume)];
    let said = ["0.10: paused", "0.20: load 150 of 300 connections (50 %) when resumed", "10.00: resumed"];
    let schedule = check(&plan, &commands, &said, &["a: 150 by 30/s from 10.12"]);
    assert_eq!(schedule.wanted(0), 150);
}
