//! Which orders are given, and when, with shards that apply them within a known time.

mod paused;

use samples::Command;

use super::*;
use record::fixture::scenario;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
/// Maximum time until every shard has received an order.
const NOTICE: Nanos = Nanos::from_millis(120);
/// Sampling interval of the schedule, in milliseconds.
const LOOK: u64 = 20;

fn seconds(at: Nanos) -> String {
    if at == Nanos::NEVER { "never".to_owned() } else { format!("{:.2}", at.secs_f64()) }
}

fn profile(profile: RateProfile) -> String {
    match profile {
        RateProfile::Steady(rate) => format!("{rate}"),
        RateProfile::Slope { from, to, over } => format!("{from} to {to} in {over}"),
    }
}

/// An order as text.
fn said(plan: &Plan, order: &Order) -> String {
    let name = |population: u16| plan.populations[usize::from(population)].name.clone();
    let control = |control: &Control| match control {
        Control::Hold(from) => format!("full load from {}", seconds(*from)),
        Control::RateProfile(of, from) => format!("{} from {}", profile(*of), seconds(*from)),
        Control::Until(until) => format!("until {}", seconds(*until)),
        other => format!("{other:?}"),
    };
    match order {
        Order::All(order) => format!("all: {}", control(order)),
        Order::Population(population, order) => format!("{}: {}", name(*population), control(order)),
        Order::Probe(order) => format!("probe: {}", control(order)),
        Order::Load(population, n, of, from) => {
            let by = of.map_or(String::new(), |of| format!(" by {}", profile(of)));
            format!("{}: {n}{by} from {}", name(*population), seconds(*from))
        }
    }
}

/// The orders of a schedule in which every population reaches its level this long after its last order.
fn orders(plan: &Plan, takes: Nanos, until: Nanos) -> (Vec<String>, Schedule<'_>) {
    manual_orders(plan, takes, until, &[])
}

/// The same with commands at these times.
fn manual_orders<'a>(
    plan: &'a Plan,
    takes: Nanos,
    until: Nanos,
    mut commands: &[(u64, Command)],
) -> (Vec<String>, Schedule<'a>) {
    let mut schedule = Schedule::new(plan, Nanos::ZERO, NOTICE);
    let mut applied_at = vec![Nanos::ZERO; plan.populations.len()];
    let (mut all, mut now) = (Vec::new(), Nanos::ZERO);
    while now < until && now < schedule.ends_at() {
        if let Some(((_, command), rest)) = commands.split_first().filter(|((at, _), _)| now >= MS(*at)) {
            let open: Vec<u64> = (0..plan.populations.len() as u16).map(|nth| schedule.wanted(nth)).collect();
            let what = schedule.apply(*command, now, &open);
            all.extend(what.map(|what| format!("{:.2}: {what}", now.secs_f64())));
            commands = rest;
        }
        schedule.step(now, |nth| Some(applied_at[usize::from(nth)] + takes).filter(|at| *at <= now));
        for order in schedule.orders() {
            if let Order::Load(population, ..) = order {
                applied_at[usize::from(population)] = now;
            }
            all.push(said(plan, &order));
        }
        now = (now + MS(LOOK)).min(schedule.acts_at().max(now + MS(1)));
    }
    (all, schedule)
}

fn check(stages: &str, populations: &str, expected: &[&str]) {
    let plan = scenario(&format!("{stages}\n{populations}"));
    let (orders, _) = orders(&plan, MS(500), Nanos::from_secs(100));
    assert_eq!(orders, expected, "{stages}");
}

const TWO: &str = r#"
[[population]]
name = "a"
connections = 300
[[population]]
name = "b"
connections = 100
"#;

#[test]
fn a_rate_of_dials_is_all_of_theirs() {
    let up = "[[stage]]\nramp = \"40/s\"\nfor = \"2s\"";
    let there =
        ["a: full load from 0.62", "b: full load from 0.62", "probe: full load from 0.62", "all: until 2.62"];
    check(up, TWO, &[&["a: 300 by 30/s from 0.00", "b: 100 by 10/s from 0.00"][..], &there].concat());
    let within = up.replace("40/s", "20s");
    check(&within, TWO, &[&["a: 300 by 15/s from 0.00", "b: 100 by 5/s from 0.00"][..], &there].concat());
    let at_once = up.replace("40/s", "0");
    check(
        &at_once,
        TWO,
        &[&["a: 300 by 300000/s from 0.00", "b: 100 by 100000/s from 0.00"][..], &there].concat(),
    );
    let adaptive = up.replace("ramp = \"40/s\"\n", "");
    check(&adaptive, TWO, &[&["a: 300 from 0.00", "b: 100 from 0.00"][..], &there].concat());
}

#[test]
fn a_stage_moves_its_own_and_begins_when_the_last_one_has_stayed() {
    let stages = r#"
        [[stage]]
        of = ["a"]
        for = "3s"
        [[stage]]
        of = ["b"]
        to = "30%"
        [[stage]]
        of = ["a"]
        to = "0%"
        for = "1s"
    "#;
    check(
        stages,
        TWO,
        &[
            "a: 300 from 0.00",
            "a: full load from 0.62",
            "probe: full load from 0.62",
            "b: 30 from 3.62",
            "b: full load from 4.24",
            "probe: full load from 4.24",
            "a: full load from never",
            "a: 0 from 4.24",
            // Zero load is not full load.
            "probe: full load from 4.86",
            "all: until 5.86",
        ],
    );
}

#[test]
fn a_rate_and_arrivals_go_with_the_stage() {
    let both = "[[population]]\nname = \"r\"\nconnections = 10\nrate = \"100/s\"\n\
                [[population]]\nname = \"n\"\narrive = \"50/s\"\n";
    let stages = "[[stage]]\nramp = \"1s\"\nfor = \"1s\"\n[[stage]]\nto = \"50%\"\nramp = \"4s\"\nfor = \"1s\"\n\
                  [[stage]]\nto = \"100%\"\nfor = \"forever\"\n";
    let plan = scenario(&format!("{stages}{both}"));
    let (orders, schedule) = orders(&plan, MS(0), Nanos::from_secs(100));
    // The steps of a descent are tested separately.
    let orders: Vec<&str> = orders
        .iter()
        .map(String::as_str)
        .filter(|order| !["r: 9", "r: 8", "r: 7", "r: 6"].iter().any(|way| order.starts_with(way)))
        .collect();
    assert_eq!(
        orders,
        [
            "r: 10 by 10/s from 0.00",
            "n: 4294967295 by 0/s to 50/s in 1s from 0.00",
            "n: full load from 0.00",
            "r: full load from 1.12",
            "r: 100/s from 1.12",
            "probe: full load from 1.12",
            "r: 100/s to 50/s in 4s from 2.24",
            "r: full load from never",
            "n: 50/s to 25/s in 4s from 2.24",
            "r: 5 from 6.24",
            "r: full load from 6.36",
            "probe: full load from 6.36",
            "r: 100/s from 7.48",
            "r: full load from never",
            "r: 10 from 7.36",
            "n: 50/s from 7.48",
            "r: full load from 7.60",
            "probe: full load from 7.60",
        ]
    );
    assert_eq!((schedule.ends_at(), schedule.acts_at(), schedule.stage()), (Nanos::NEVER, Nanos::NEVER, 2));
}

#[test]
fn a_descent_is_as_even_as_its_steps() {
    for (ramp, per_s) in [("25/s", 25.0), ("4s", 25.0), ("0", f64::INFINITY)] {
        let stages = format!("[[stage]]\nramp = \"0\"\n[[stage]]\nto = \"50%\"\nramp = \"{ramp}\"\n");
        let plan = scenario(&format!("{stages}[[population]]\nname = \"a\"\nconnections = 200\n"));
        let mut schedule = Schedule::new(&plan, Nanos::ZERO, NOTICE);
        let (mut began, mut now, mut level) = (None, Nanos::ZERO, 200);
        let mut took = Nanos::ZERO;
        while schedule.ends_at() == Nanos::NEVER {
            if schedule.step(now, |_| Some(now)) {
                began = Some(now);
            }
            for order in schedule.orders() {
                if let (Order::Load(_, to, None, _), Some(began)) = (order, began) {
                    assert!(to < level && to >= 100, "{to} after {level}");
                    (level, took) = (to, now.since(began));
                    let least = 200.0 - now.secs_f64() * per_s;
                    assert!(f64::from(to) >= least.max(100.0), "{to} at {now}, by {ramp}");
                }
            }
            now = now + MS(LOOK);
        }
        assert_eq!(level, 100, "{ramp}");
        let expected = if per_s.is_finite() { MS(4_000 - LOOK) } else { MS(0) };
        assert!((expected..expected + MS(4 * LOOK)).contains(&took), "{ramp} took {took}");
        assert_eq!(schedule.ramping(0, now), MS(0), "{ramp}: only the way up is a ramp");
    }
}

#[test]
fn the_time_of_a_population_is_its_own() {
    let stages = "[[stage]]\nof = [\"a\"]\nfor = \"10s\"\n[[stage]]\nof = [\"b\"]\nfor = \"5s\"\n\
                  [[stage]]\nof = [\"a\"]\nto = \"50%\"\nfor = \"3s\"\n";
    let plan = scenario(&format!("{stages}{TWO}"));
    let (_, schedule) = orders(&plan, MS(500), Nanos::from_secs(100));
    let (a, b) = (schedule.progress(0), schedule.progress(1));
    // Up to the population's last ramp; the current hold is not included yet.
    assert_eq!((a.holding, a.hold_from), (MS(15_620), MS(16_860)));
    // Closing half of the connections is not a ramp.
    assert_eq!((schedule.ramping(0, MS(19_000)), schedule.ramping(1, MS(19_000))), (MS(500), MS(500)));
    assert_eq!(schedule.ramping_any(MS(19_000)), MS(1_000));
    assert_eq!((b.holding, b.hold_from, schedule.ends_at()), (Nanos::ZERO, MS(11_240), MS(19_860)));
    assert!(!schedule.is_at_peak(0) && schedule.is_at_peak(1));
    assert_eq!(
        (schedule.wanted(0), schedule.wanted(1), Schedule::new(&plan, MS(0), NOTICE).wanted(1)),
        (150, 100, 0)
    );
}

#[test]
fn arrival_before_the_order_does_not_count() {
    let plan = scenario(&format!("[[stage]]\nto = \"50%\"\n[[stage]]\nto = \"100%\"\nfor = \"1s\"\n{TWO}"));
    let mut schedule = Schedule::new(&plan, Nanos::ZERO, NOTICE);
    schedule.step(MS(100), |_| Some(MS(90)));
    assert!(!schedule.is_moving());
    assert!(schedule.step(MS(300), |_| Some(MS(90))) && schedule.is_moving());
    // One population has arrived; the last report of the other one predates the stage.
    schedule.step(MS(400), |nth| Some(if nth == 0 { MS(390) } else { MS(90) }));
    assert!(schedule.is_moving());
    schedule.step(MS(400), |nth| (nth == 0).then_some(MS(390)));
    assert!(schedule.is_moving());
    // The move so far, from the start of the stage, 120 ms after the call at 100.
    assert_eq!(schedule.ramping(1, MS(450)), MS(90) + MS(230));
    schedule.step(MS(500), |_| Some(MS(410)));
    assert!(!schedule.is_moving());
}

#[test]
fn an_order_for_a_population_is_for_its_shards_and_each_has_its_share() {
    let plan = scenario(&format!("probe = \"10/s\"\n{TWO}"));
    let parts = plan.parts(|_| 3);
    let load = Order::Load(1, 50, None, Nanos::ZERO);
    let given: Vec<Option<u32>> = parts
        .iter()
        .map(|part| match load.to(part) {
            Some(Control::Load { connections, .. }) => Some(connections),
            _ => None,
        })
        .collect();
    assert_eq!(given, [None, None, None, Some(17), Some(17), Some(16), None, None]);
    let who = |order: Order| parts.iter().filter(|part| order.to(part).is_some()).count();
    assert_eq!((who(Order::All(Control::Stop)), who(Order::Probe(Control::Stop))), (8, 2));
    assert_eq!((who(Order::Population(0, Control::Stop)), who(Order::Population(7, Control::Stop))), (3, 0));
}

fn check_manual(text: &str, commands: &[(u64, Command)], expected: &[&str]) {
    let plan = scenario(text);
    let (orders, schedule) = manual_orders(&plan, MS(500), Nanos::from_secs(30), commands);
    assert_eq!(orders, expected, "{text}");
    assert_eq!(schedule.acts_at(), schedule.ends_at());
}

#[test]
fn a_pause_is_no_full_load_and_is_made_up_for() {
    let hold = "[[stage]]\nramp = \"30/s\"\nfor = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 300\n";
    check_manual(
        hold,
        // The second of two equal commands changes nothing.
        &[
            (2_620, Command::Pause),
            (3_000, Command::Pause),
            (4_620, Command::Resume),
            (5_000, Command::Resume),
        ],
        &[
            "a: 300 by 30/s from 0.00",
            "a: full load from 0.62",
            "probe: full load from 0.62",
            "all: until 5.62",
            "2.62: paused",
            "all: Pause(true)",
            "a: full load from never",
            "probe: full load from never",
            "all: until never",
            "4.62: resumed",
            "a: full load from 4.74",
            "probe: full load from 4.74",
            // Two of five seconds had passed.
            "all: until 7.74",
            "all: Pause(false)",
        ],
    );
    // During a ramp: it continues from there, and missed dials are not made up for.
    check_manual(
        hold,
        &[(100, Command::Pause), (10_000, Command::Resume)],
        &[
            "a: 300 by 30/s from 0.00",
            "0.10: paused",
            "all: Pause(true)",
            "probe: full load from never",
            "all: until never",
            "10.00: resumed",
            "a: 300 by 30/s from 10.12",
            "all: Pause(false)",
            "a: full load from 10.62",
            "probe: full load from 10.62",
            "all: until 15.62",
        ],
    );
}

#[test]
fn a_pause_stops_the_schedule_of_a_rate() {
    check_manual(
        "[[stage]]\nfor = \"5s\"\n[[population]]\nname = \"r\"\nconnections = 10\nrate = \"100/s\"\n",
        &[(1_620, Command::Pause), (2_620, Command::Resume)],
        &[
            "r: 10 from 0.00",
            "r: full load from 0.62",
            "r: 100/s from 0.62",
            "probe: full load from 0.62",
            "all: until 5.62",
            "1.62: paused",
            "all: Pause(true)",
            "r: full load from never",
            "r: 0/s from 1.62",
            "probe: full load from never",
            "all: until never",
            "2.62: resumed",
            "r: 100/s from 2.74",
            "r: full load from 2.74",
            "probe: full load from 2.74",
            "all: until 6.74",
            "all: Pause(false)",
        ],
    );
}

#[test]
fn a_manual_step_is_a_tenth_of_the_plan() {
    let text = "[[stage]]\nramp = \"31/s\"\nfor = \"5s\"\n[[population]]\nname = \"a\"\nconnections = 300\n\
                [[population]]\nname = \"r\"\nconnections = 10\nrate = \"100/s\"\n";
    let plan = scenario(text);
    let commands =
        [(2_620, Command::Up), (2_640, Command::Down), (4_620, Command::Down), (6_620, Command::Up)];
    let (orders, schedule) = manual_orders(&plan, MS(500), Nanos::from_secs(30), &commands);
    let after = orders.iter().position(|order| order == "2.64: load 90 %").expect("a step down");
    let steps: Vec<&str> = orders[after..].iter().map(String::as_str).collect();
    assert_eq!(
        steps[..10],
        [
            "2.64: load 90 %",
            "a: full load from never",
            "a: 270 by 30/s from 2.76",
            "r: 90/s from 2.76",
            "r: full load from never",
            "r: 9 by 1/s from 2.76",
            "all: until never",
            "a: full load from 3.26",
            "r: full load from 3.26",
            "probe: full load from 3.26",
        ]
    );
    assert!(steps.contains(&"4.62: load 80 %") && steps.contains(&"a: 240 by 30/s from 4.74"), "{steps:?}");
    assert!(steps.contains(&"6.62: load 90 %") && steps.contains(&"r: 90/s from 6.74"), "{steps:?}");
    // The time at full load is as planned; the ramps in between do not count.
    assert_eq!(
        schedule.progress(0).holding + schedule.ends_at().since(schedule.progress(0).hold_from),
        MS(5_000)
    );
    assert!(!schedule.is_at_peak(0));
    assert_eq!((schedule.wanted(0), schedule.wanted(1)), (270, 9));
}

#[test]
fn there_is_always_a_tenth_and_never_more_than_planned() {
    let plan = scenario("[[stage]]\nfor = \"60s\"\n[[population]]\nname = \"a\"\nconnections = 300\n");
    let commands: Vec<(u64, Command)> = (0..12)
        .map(|n| (2_000 + n, Command::Down))
        .chain((0..12).map(|n| (20_000 + n, Command::Up)))
        .collect();
    let (orders, schedule) = manual_orders(&plan, MS(500), Nanos::from_secs(30), &commands);
    let said: Vec<&str> =
        orders.iter().filter_map(|order| order.split_once(": load ")).map(|(_, load)| load).collect();
    let down = ["90 %", "80 %", "70 %", "60 %", "50 %", "40 %", "30 %", "20 %", "10 %"];
    let up = ["20 %", "30 %", "40 %", "50 %", "60 %", "70 %", "80 %", "90 %", "100 %"];
    assert_eq!(said, [down, up].concat());
    assert!(schedule.is_at_peak(0));
}

#[test]
fn a_load_is_set_to_a_share_and_steps_go_to_tenths() {
    let plan = scenario("[[stage]]\nfor = \"60s\"\n[[population]]\nname = \"a\"\nconnections = 300\n");
    let check = |commands: &[Command], expected: &[&str], connections: u32| {
        let commands: Vec<(u64, Command)> = (2_000..).step_by(20).zip(commands.iter().copied()).collect();
        let (orders, schedule) = manual_orders(&plan, MS(500), Nanos::from_secs(30), &commands);
        let said: Vec<&str> =
            orders.iter().filter_map(|order| order.split_once(": load ")).map(|(_, load)| load).collect();
        assert_eq!((said, schedule.wanted(0)), (expected.to_vec(), connections.into()), "{commands:?}");
    };
    use Command::{Connections, Down, Load, Up};
    check(&[Load(500_000)], &["50 %"], 150);
    check(&[Load(333_333), Up, Up, Down], &["33.3333 %", "40 %", "50 %", "40 %"], 120);
    check(&[Load(333_333), Down, Down, Down], &["33.3333 %", "30 %", "20 %", "10 %"], 30);
    check(&[Load(5_000), Down, Down], &["0.5 %"], 2);
    check(&[Load(5_000), Up, Down], &["0.5 %", "10 %"], 30);
    // The same load again, zero, and more than planned.
    check(&[Load(20), Load(20), Load(0), Load(1_000_001)], &["0.002 %"], 1);
    check(&[Connections(100), Up], &["100 of 300 connections (33 %)", "40 %"], 120);
    check(&[Connections(0), Connections(301), Connections(300)], &[], 300);
}

#[test]
fn a_slope_has_the_rest_of_its_time_after_a_pause_and_a_step() {
    let text = "[[stage]]\nramp = \"60s\"\nfor = \"1s\"\n[[population]]\nname = \"n\"\narrive = \"60/s\"\n";
    let plan = scenario(text);
    let commands = [(10_000, Command::Pause), (20_000, Command::Resume), (40_120, Command::Down)];
    let (orders, _) = manual_orders(&plan, MS(0), Nanos::from_secs(41), &commands);
    let profiles: Vec<&str> =
        orders.iter().map(String::as_str).filter(|order| order.contains("/s")).collect();
    assert_eq!(
        profiles,
        [
            "n: 4294967295 by 0/s to 60/s in 1m from 0.00",
            "n: 0/s from 10.00",
            // A sixth of the slope was complete.
            "n: 10/s to 60/s in 50s from 20.12",
            "n: 30/s to 54/s in 30s from 40.24",
        ]
    );
}

#[test]
fn a_step_does_not_stop_others_on_their_way_down() {
    let text =
        format!("[[stage]]\n[[stage]]\nof = [\"b\"]\nto = \"0%\"\nramp = \"10s\"\nfor = \"60s\"\n{TWO}");
    let plan = scenario(&text);
    let commands = [(5_000, Command::Down)];
    let (orders, schedule) = manual_orders(&plan, MS(0), Nanos::from_secs(30), &commands);
    let down = orders.iter().position(|order| order.starts_with("b: 0 from")).expect("b is gone");
    let seconds: f64 = orders[down].rsplit(' ').next().unwrap().parse().unwrap();
    assert!((10.0..10.7).contains(&seconds), "{orders:?}");
    assert_eq!(schedule.ramping(1, MS(30_000)), MS(0), "{:?}", schedule.progress(1));
}

#[test]
fn closing_connections_is_no_ramp() {
    let plan = scenario("[[stage]]\nfor = \"60s\"\n[[population]]\nname = \"a\"\nconnections = 300\n");
    let mut schedule = Schedule::new(&plan, Nanos::ZERO, NOTICE);
    let ramps = |schedule: &Schedule, now| (schedule.ramping(0, MS(now)), schedule.ramping_any(MS(now)));
    schedule.step(MS(1_000), |_| Some(MS(1_000)));
    assert!(schedule.apply(Command::Load(500_000), MS(5_000), &[300]).is_some() && schedule.is_closing());
    assert_eq!(ramps(&schedule, 6_000), (MS(1_000), MS(1_000)));
    schedule.step(MS(7_000), |_| Some(MS(7_000)));
    assert_eq!(ramps(&schedule, 8_000), (MS(1_000), MS(1_000)));
    assert!(schedule.apply(Command::Load(1_000_000), MS(8_000), &[150]).is_some() && !schedule.is_closing());
    schedule.step(MS(9_500), |_| Some(MS(9_500)));
    assert_eq!(ramps(&schedule, 10_000), (MS(2_500), MS(2_500)));
}

#[test]
fn less_in_the_middle_of_a_ramp_is_a_ramp_until_so_many_are_open() {
    let plan = scenario("[[stage]]\nfor = \"60s\"\n[[population]]\nname = \"a\"\nconnections = 300\n");
    for (open, expected) in [(100, MS(900)), (200, MS(400))] {
        let mut schedule = Schedule::new(&plan, Nanos::ZERO, NOTICE);
        assert!(schedule.apply(Command::Load(500_000), MS(400), &[open]).is_some());
        schedule.step(MS(900), |_| Some(MS(900)));
        assert_eq!((schedule.ramping(0, MS(2_000)), schedule.is_moving()), (expected, false), "{open} open");
    }
}
