//! Generates the TypeScript types of the records: `web/src/model/records.ts`, from the Rust types.

mod reference;

use std::{fs, path::Path};

use ts_rs::{Config, TS};

use crate::*;

fn one<T: TS + 'static>(config: &Config) -> String {
    let docs = T::docs().unwrap_or_default();
    format!("{docs}export {}\n", T::decl(config))
}

/// The declarations of these types.
macro_rules! each {
    ($($type:ty),+ $(,)?) => {{
        let config = Config::default().with_large_int("number");
        [$(one::<$type>(&config)),+].join("\n")
    }};
}

/// Types stored before the first tick and each second.
fn records() -> String {
    each![
        RunRecord,
        HostFacts,
        Setting,
        Header,
        ThresholdBound,
        TickRecord<'static>,
        Tick,
        Phase,
        Counts,
        FaultCount,
        error_sample::Written,
        Example,
        Mark,
        MarkKind,
        Destination,
        AgentShare,
        AgentTicks,
        Latest,
        Highest,
        Congestion,
        books::Imbalance,
        Pushes,
        Latency,
        Moments,
        Rates,
        Probe,
        Generator,
        Samples,
        TargetSample,
        ProcessMemory,
        CpuQuota,
        LogLine,
        LogKind,
        JvmSample,
        ProcessSample,
        HostSample,
        SockStat,
        NetCounters,
    ]
}

/// Types stored at the end of a run.
fn summaries() -> String {
    each![
        Summary,
        Verdict,
        Limit,
        Certainty,
        Connections,
        Requests,
        PushFigures,
        Errors,
        Quantiles,
        Censored,
        Stalled,
        Figures,
        StreamLimit,
        PopulationSummary,
        StepSummary,
        DestinationSummary,
        Bad,
        InCommon,
        InCommonRow,
        ProbeSummary,
        ProbeFailure,
        ProbePoint,
        ProcessCost,
        KernelCost,
        Cost,
        Discarded,
        Fit,
        Observation,
        Gauge<u64>,
        Growth,
        TargetSeen,
        ProcessSeen,
        HostSeen,
        ObserverSeen,
        RejectionSeen,
        CalibrationShare,
        Measurement,
        ThresholdResult,
        UserCommand,
        ExperimentSummary,
        AgentState,
        AgentSummary,
    ]
}

/// Types of the result of a search.
fn searches() -> String {
    each![FindSummary, FindOutcome, Baseline, IdleTimeout, Point]
}

fn all() -> String {
    let (records, summaries, searches) = (records(), summaries(), searches());
    format!(
        "// Made from the types of crates/samples by its test `typescript`: UPDATE_GOLDEN=1 writes it.\n\n{records}\n{summaries}\n{searches}"
    )
}

/// Like `fixtures::check_golden`, which depends on this crate and cannot be used here. `place`: path in the project.
fn check_golden(place: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(place);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, golden, "not what {} has: UPDATE_GOLDEN=1 writes it", file.display());
}

#[test]
fn the_pages_types_are_those_of_the_records() {
    check_golden("web/src/model/records.ts", &all());
}

#[test]
fn every_type_that_is_named_is_there() {
    let text = all();
    let code = text.lines().filter(|line| !line.starts_with('/') && !line.starts_with(" *"));
    let named = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric()));
    // A single letter is a type parameter.
    let types = named.filter(|word| word.len() > 1 && word.starts_with(|c: char| c.is_ascii_uppercase()));
    let (mut seen, of_the_language) = (0, ["Array", "Record"]);
    for name in types.filter(|name| !of_the_language.contains(name)) {
        let is_there = [" =", "<"].iter().any(|next| text.contains(&format!("export type {name}{next}")));
        assert!(is_there, "{name} is not among the types");
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
}
