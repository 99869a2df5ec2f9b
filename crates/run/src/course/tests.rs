//! What is ordered, and when, where the shards do as they are told within a known time.

use std::net::IpAddr;

use plan::{Flags, Surroundings};

use super::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;
/// How often the course is looked at.
const LOOK: u64 = 20;

fn scenario(text: &str) -> Plan {
    let resolve = |_: &str| -> Result<Vec<IpAddr>, String> { Err("nobody to ask".to_owned()) };
    let around = Surroundings { cores: 1, seed: 1, resolve: &resolve };
    let text = format!("target = \"http://127.0.0.1:80/\"\n{text}");
    plan::scenario::read("load.toml", &text, &Flags::default(), &around, &|_| Err("no such file".to_owned()))
        .expect("a scenario without mistakes")
}

fn seconds(at: Nanos) -> String {
    if at == Nanos::NEVER { "never".to_owned() } else { format!("{:.2}", at.secs_f64()) }
}

fn tempo(tempo: Tempo) -> String {
    match tempo {
        Tempo::Steady(rate) => format!("{rate}"),
        Tempo::Slope { from, to, over } => format!("{from} to {to} in {over}"),
    }
}

/// An order, as one would say it.
fn said(plan: &Plan, order: &Order) -> String {
    let name = |population: u16| plan.populations[usize::from(population)].name.clone();
    let control = |control: &Control| match control {
        Control::Hold(from) => format!("full load from {}", seconds(*from)),
        Control::Tempo(of, from) => format!("{} from {}", tempo(*of), seconds(*from)),
        Control::Until(until) => format!("until {}", seconds(*until)),
        other => format!("{other:?}"),
    };
    match order {
        Order::All(order) => format!("all: {}", control(order)),
        Order::Population(population, order) => format!("{}: {}", name(*population), control(order)),
        Order::Probe(order) => format!("probe: {}", control(order)),
        Order::Load(population, n, of, from) => {
            let by = of.map_or(String::new(), |of| format!(" by {}", tempo(of)));
            format!("{}: {n}{by} from {}", name(*population), seconds(*from))
        }
    }
}

/// The orders of a course in which every population is where it shall be so long after it was last told.
fn orders(plan: &Plan, takes: Nanos, until: Nanos) -> (Vec<String>, Course<'_>) {
    let mut course = Course::new(plan, Nanos::ZERO);
    let mut told = vec![Nanos::ZERO; plan.populations.len()];
    let (mut all, mut now) = (Vec::new(), Nanos::ZERO);
    while now < until && now < course.ends_at() {
        course.step(now, |nth| Some(told[usize::from(nth)] + takes).filter(|at| *at <= now));
        for order in course.orders() {
            if let Order::Load(population, ..) = order {
                told[usize::from(population)] = now;
            }
            all.push(said(plan, &order));
        }
        now = (now + MS(LOOK)).min(course.acts_at().max(now + MS(1)));
    }
    (all, course)
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
            // Of nothing there is no full load.
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
    let (orders, course) = orders(&plan, MS(0), Nanos::from_secs(100));
    // Which step of the way down is seen when is another test's.
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
            "r: 5 from 6.12",
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
    assert_eq!((course.ends_at(), course.acts_at(), course.stage()), (Nanos::NEVER, Nanos::NEVER, 2));
}

#[test]
fn the_way_down_is_as_even_as_it_is_looked_at() {
    for (ramp, per_s) in [("25/s", 25.0), ("4s", 25.0), ("0", f64::INFINITY)] {
        let stages = format!("[[stage]]\nramp = \"0\"\n[[stage]]\nto = \"50%\"\nramp = \"{ramp}\"\n");
        let plan = scenario(&format!("{stages}[[population]]\nname = \"a\"\nconnections = 200\n"));
        let mut course = Course::new(&plan, Nanos::ZERO);
        let (mut began, mut now, mut level) = (None, Nanos::ZERO, 200);
        while course.ends_at() == Nanos::NEVER {
            if course.step(now, |_| Some(now)) {
                began = Some(course.acts_at().max(now));
            }
            for order in course.orders() {
                if let (Order::Load(_, to, None, _), Some(_)) = (order, began) {
                    assert!(to < level && to >= 100, "{to} after {level}");
                    level = to;
                    let least = 200.0 - now.secs_f64() * per_s;
                    assert!(f64::from(to) >= least.max(100.0), "{to} at {now}, by {ramp}");
                }
            }
            now = now + MS(LOOK);
        }
        assert_eq!(level, 100, "{ramp}");
        let took = course.ramping(0, now);
        let expected = if per_s.is_finite() { MS(4_000) } else { MS(0) };
        assert!((expected..expected + MS(3 * LOOK)).contains(&took), "{ramp} took {took}");
    }
}

#[test]
fn the_time_of_a_population_is_its_own() {
    let stages = "[[stage]]\nof = [\"a\"]\nfor = \"10s\"\n[[stage]]\nof = [\"b\"]\nfor = \"5s\"\n\
                  [[stage]]\nof = [\"a\"]\nto = \"50%\"\nfor = \"3s\"\n";
    let plan = scenario(&format!("{stages}{TWO}"));
    let (_, course) = orders(&plan, MS(500), Nanos::from_secs(100));
    let (a, b) = (course.progress(0), course.progress(1));
    // Up to its own last ramp; the last hold is still to be added.
    assert_eq!((a.holding, a.hold_from), (MS(15_620), MS(16_860)));
    assert_eq!((course.ramping(0, MS(19_000)), course.ramping(1, MS(19_000))), (MS(1_000), MS(500)));
    assert_eq!((b.holding, b.hold_from, course.ends_at()), (Nanos::ZERO, MS(11_240), MS(19_860)));
    assert!(!course.is_at_peak(0) && course.is_at_peak(1));
    assert_eq!((course.wanted(0), course.wanted(1), Course::new(&plan, MS(0)).wanted(1)), (150, 100, 0));
}

#[test]
fn who_was_there_before_the_order_is_not_there_after_it() {
    let plan = scenario(&format!("[[stage]]\nto = \"50%\"\n[[stage]]\nto = \"100%\"\nfor = \"1s\"\n{TWO}"));
    let mut course = Course::new(&plan, Nanos::ZERO);
    course.step(MS(100), |_| Some(MS(90)));
    assert!(!course.is_moving());
    assert!(course.step(MS(300), |_| Some(MS(90))) && course.is_moving());
    // One has come, the other one's last word is of the stage before.
    course.step(MS(400), |nth| Some(if nth == 0 { MS(390) } else { MS(90) }));
    assert!(course.is_moving());
    course.step(MS(400), |nth| (nth == 0).then_some(MS(390)));
    assert!(course.is_moving());
    // The way so far, from the stage's beginning, which was 120 ms behind the look at 100.
    assert_eq!(course.ramping(1, MS(450)), MS(90) + MS(230));
    course.step(MS(500), |_| Some(MS(410)));
    assert!(!course.is_moving());
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
    assert_eq!(given, [None, None, None, Some(17), Some(17), Some(16), None]);
    let who = |order: Order| parts.iter().filter(|part| order.to(part).is_some()).count();
    assert_eq!((who(Order::All(Control::Stop)), who(Order::Probe(Control::Stop))), (7, 1));
    assert_eq!((who(Order::Population(0, Control::Stop)), who(Order::Population(7, Control::Stop))), (3, 0));
}
