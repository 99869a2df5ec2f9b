//! A plan and a summary to begin a test with.

use std::collections::BTreeMap;

use plan::{Flags, Plan, Surroundings};
use samples::{Connections, FaultCount, Generator, Kind, Quantiles, Requests, Side, Stage, Summary, Verdict};

/// A closed loop with these thresholds.
pub(crate) fn plan(thresholds: &[&str]) -> Plan {
    let flags = Flags {
        target: Some("http://127.0.0.1:1/".to_owned()),
        thresholds: thresholds.iter().map(|text| (*text).to_owned()).collect(),
        ..Flags::default()
    };
    let resolve = |_: &str| Err("no names here".to_owned());
    plan::from_flags(&flags, &Surroundings { cores: 1, seed: 1, resolve: &resolve }).expect("it is right")
}

/// Of a run in which nothing happened.
pub(crate) fn summary() -> Summary {
    let none = Quantiles::default();
    Summary {
        schema: "throng.summary/1",
        verdict: Verdict::Pass,
        reasons: Vec::new(),
        limit: None,
        target: "http://127.0.0.1:1/".to_owned(),
        seed: 1,
        io: "uring",
        threads: 1,
        ramp_s: 0.0,
        duration_s: 0.0,
        elapsed_s: 0.0,
        connections: Connections::default(),
        faults: Vec::new(),
        requests: Requests { status: BTreeMap::new(), ..Requests::default() },
        latency_us: none,
        ramp_latency_us: none,
        connect_us: none,
        handshake_us: Quantiles::default(),
        first_byte_us: Quantiles::default(),
        lag_us: none,
        probe: None,
        generator: Generator::default(),
        target_cost: None,
        kernel_bytes_per_connection: None,
        cost: samples::Cost::default(),
        observed: samples::Observation::default(),
        rig: None,
        thresholds: Vec::new(),
    }
}

/// The target's doing.
pub(crate) fn fault(stage: Stage, kind: Kind, count: u64) -> FaultCount {
    FaultCount { side: Side::Target, stage, kind, count }
}
