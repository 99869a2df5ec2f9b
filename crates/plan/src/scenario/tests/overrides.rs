//! Changes of a scenario's load by the command line.

use super::*;
use crate::flag::{self, FLAGS, Flag};

const ONE: &str = r#"
    target = "http://127.0.0.1:80/"
    connections = "400k"
    ramp = "5k/s"
    duration = "5m"
    think = "10s..99s"
"#;

const SEVERAL: &str = r#"
    target = "http://127.0.0.1:80/"
    [[stage]]
    ramp = "4k/s"
    of = ["users", "few", "guests"]
    [[stage]]
    name = "hold"
    for = "3m"
    of = ["users"]
    [[population]]
    name = "users"
    connections = "600k"
    think = "5s..45s"
    [[population]]
    name = "few"
    connections = 10
    rate = "30/s"
    [[population]]
    name = "guests"
    arrive = "1k/s"
    total = 10
"#;

fn with(text: &str, flags: Flags) -> Result<Plan, Vec<String>> {
    let resolve = |_: &str| unreachable!("the target is an address");
    let open = |_: &str| unreachable!("it names no file");
    let around = Environment { cores: 2, seed: 77, resolve: &resolve };
    read("load.toml", text, &flags, &around, &open).map_err(|mistakes| listed(&mistakes))
}

/// Loads, the ramp of the first stage, the hold of the last.
fn check(text: &str, flags: Flags, loads: &[Load], ramp: Ramp, hold: Hold) {
    let plan = with(text, flags).unwrap();
    let found: Vec<Load> = plan.populations.iter().map(|population| population.load).collect();
    assert_eq!(found, loads);
    assert_eq!((plan.stages[0].ramp, plan.stages.last().unwrap().hold), (ramp, hold));
}

fn given<const N: usize>(pairs: [(&Flag, &str); N]) -> Flags {
    pairs.into_iter().fold(Flags::default(), |flags, (flag, value)| flags.with(flag, value))
}

#[test]
fn an_override_applies_to_the_only_population() {
    let held = |connections| [Load::Held { connections }];
    let minutes = Hold::For(Nanos::from_secs(300));
    let own = Ramp::Rate(Rate::per_s(5_000));
    check(ONE, Flags::default(), &held(400_000), own, minutes);
    check(ONE, given([(&flag::CONNECTIONS, "19k")]), &held(19_000), own, minutes);
    let flags = given([(&flag::RAMP, "2s"), (&flag::DURATION, "forever")]);
    check(ONE, flags, &held(400_000), Ramp::Within(Nanos::from_secs(2)), Hold::Forever);
}

#[test]
fn several_populations_keep_their_proportions() {
    let loads = |users, few, rate, arrive, total| {
        [
            Load::Held { connections: users },
            Load::Rate { connections: few, rate: Rate::per_s(rate) },
            Load::Arrivals { rate: Rate::per_s(arrive), total: Some(total) },
        ]
    };
    let (ramp, hold) = (Ramp::Rate(Rate::per_s(4_000)), Hold::For(Nanos::from_secs(180)));
    for (wanted, users, few) in
        [("19k", 18_999, 1), ("60001", 60_000, 1), ("1200020", 1_200_000, 20), ("2", 1, 1)]
    {
        let flags = given([(&flag::CONNECTIONS, wanted)]);
        check(SEVERAL, flags, &loads(users, few, 30, 1_000, 10), ramp, hold);
    }
    let flags = given([
        (&flag::RATE, "60/s"),
        (&flag::ARRIVE, "2k/s"),
        (&flag::TOTAL, "20"),
        (&flag::DURATION, "10s"),
    ]);
    check(SEVERAL, flags, &loads(600_000, 10, 60, 2_000, 20), ramp, Hold::For(Nanos::from_secs(10)));
}

#[test]
fn overriding_a_fixed_key_is_a_mistake() {
    let check = |text: &str, flags: Flags, expected: &[&str]| {
        assert_eq!(with(text, flags).unwrap_err(), expected, "{text}");
    };
    let flags = given([(&flag::RATE, "5/s"), (&flag::ARRIVE, "5/s"), (&flag::TOTAL, "5")]);
    let expected = [
        "--rate: no population of the scenario has a rate; set it in the file",
        "--arrive: no population of the scenario has arrivals; set it in the file",
        "--total: no population of the scenario has arrivals; set it in the file",
    ];
    check(ONE, flags, &expected);
    let flags = given([(&flag::CONNECTIONS, "1"), (&flag::THINK, "1s")]);
    let expected = [
        "--think: cannot be used with a scenario file; set think in the file: \"1s\"",
        "--connections: 2 populations hold connections; use at least 2",
    ];
    check(SEVERAL, flags, &expected);
    let arrivals = "target = \"http://127.0.0.1:80/\"\narrive = \"9/s\"\ntotal = 9";
    let flags = given([(&flag::CONNECTIONS, "5")]);
    let expected =
        ["--connections: no population of the scenario holds connections; use --arrive or --total"];
    check(arrivals, flags, &expected);
    let again = SEVERAL.replace("ramp = \"4k/s\"", "ramp = \"4k/s\"\n    for = \"1s\"");
    let flags = given([(&flag::DURATION, "5s")]);
    check(&again, flags, &["--duration: 2 stages hold; set for in the file"]);
    let flags = given([(&flag::DURATION, "soon"), (&flag::CONNECTIONS, "0")]);
    let found = with(ONE, flags).unwrap_err();
    assert_eq!(found.len(), 2, "{found:?}");
}

/// Next to a scenario file, each flag except output flags is reported with the value "?", or changes the plan.
#[test]
fn every_flag_is_read_or_refused_beside_a_scenario() {
    let without = with(ONE, Flags::default());
    for flag in FLAGS.iter().filter(|flag| flag.name != "target") {
        let with = with(ONE, given([(flag, "?")]));
        let is_read = match &with {
            Ok(_) => with != without,
            Err(mistakes) => mistakes[0].starts_with(&format!("{}: ", flag.place())),
        };
        assert_eq!(is_read, flag.role.is_of_plan(), "{}: {with:?}", flag.place());
    }
}

#[test]
fn every_key_of_a_flag_is_one_of_the_scenario() {
    for key in FLAGS.iter().filter_map(|flag| flag.key) {
        assert!(super::super::keys::SCENARIO.key(key.name).is_some(), "{}", key.name);
    }
}
