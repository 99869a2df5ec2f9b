//! A plan, a fault and a record to begin a test with.

use plan::{Environment, Flags, Plan, flag};
use samples::{Fault, FaultCount, Kind, Stage};
use units::Nanos;

use crate::record::{PopulationRecord, Record};

/// A closed loop with these thresholds.
pub(crate) fn plan(thresholds: &[&str]) -> Plan {
    let flags = Flags::new("http://127.0.0.1:1/");
    let flags = thresholds.iter().fold(flags, |flags, text| flags.with(&flag::THRESHOLD, text));
    let resolve = |_: &str| Err("no names here".to_owned());
    plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).expect("it is right")
}

/// The target's doing.
pub(crate) fn fault(stage: Stage, kind: Kind, count: u64) -> FaultCount {
    FaultCount::new(Fault::target(stage, kind), count)
}

/// Of a run in which nothing happened.
pub(crate) fn record() -> Record {
    let plan = plan(&[]);
    Record {
        populations: vec![PopulationRecord::default()],
        threads: 1,
        ended: Nanos::ZERO,
        ..Record::empty(&plan)
    }
}
