//! Plans, faults and records for tests.

use plan::{Environment, Flags, Plan, flag};
use samples::{Fault, FaultCount, Kind, Stage};
use units::Nanos;

use crate::{PopulationRecord, Record};

/// A plan with a closed loop and these thresholds.
///
/// # Panics
/// A threshold is invalid.
pub fn plan(thresholds: &[&str]) -> Plan {
    let flags = Flags::new("http://127.0.0.1:1/");
    let flags = thresholds.iter().fold(flags, |flags, text| flags.with(&flag::THRESHOLD, text));
    let resolve = |_: &str| Err("no names here".to_owned());
    plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).expect("it is right")
}

/// A fault of the target.
pub fn fault(stage: Stage, kind: Kind, count: u64) -> FaultCount {
    FaultCount::new(Fault::target(stage, kind), count)
}

/// The record of a run in which nothing happened.
pub fn record() -> Record {
    let plan = plan(&[]);
    Record {
        populations: vec![PopulationRecord::default()],
        threads: 1,
        ended: Nanos::ZERO,
        ..Record::empty(&plan)
    }
}

/// The plan of a scenario file with these lines after its target.
///
/// # Panics
/// The text is invalid.
pub fn scenario(text: &str) -> Plan {
    let resolve = |_: &str| -> Result<Vec<std::net::IpAddr>, String> { Err("no names here".to_owned()) };
    let around = Environment { cores: 1, seed: 1, resolve: &resolve };
    let text = format!("target = \"http://127.0.0.1:80/\"\n{text}");
    plan::scenario::read("load.toml", &text, &Flags::default(), &around, &|_| Err("no such file".to_owned()))
        .expect("a scenario without mistakes")
}
