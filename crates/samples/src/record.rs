//! The stored records of a run: one schema for the store and the page, and later for the fleet.
//!
//! A record is JSON whose fields go by name: [`Tick`] and its parts are written as they are, so that a new field is stored as soon as it
//! exists, and a field that an old record lacks takes its default. A field that changes its meaning gets a new name. A new [`SCHEMA`] is
//! needed only if records could not be read at all by this rule.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use units::Date;

use crate::{encode::json, observation::Samples, sink::Header, tick::Tick};

/// Version of all records in this module.
pub const SCHEMA: u32 = 1;

/// A run, known before its first tick.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct RunRecord {
    /// throng's own version.
    pub version: String,
    /// Its command-line arguments.
    pub words: Vec<String>,
    /// When it began.
    #[cfg_attr(test, ts(type = "number"))]
    pub began_ms: Date,
    /// Where it ran.
    pub host: HostFacts,
    /// The header given to the sinks.
    pub header: Header,
    /// What the user calls it, each once.
    pub tags: Vec<String>,
    /// The scenario file, if it ran one.
    pub scenario: Option<String>,
    /// Its id in the HTTP API that it was started by, if it was.
    pub api_id: Option<String>,
    /// Its name among the agents, if it ran on a fleet.
    pub fleet_run: Option<String>,
    /// How often another process of its coordinator has taken it up.
    pub fleet_term: u32,
    /// Limits and settings of the host that throng ran on, by their names.
    pub settings: Vec<Setting>,
}

/// What makes the figures of two runs comparable: the host that throng ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct HostFacts {
    /// The kernel's release, as `uname -r` has it.
    pub kernel: String,
    /// Processors that throng may use.
    pub cores: u64,
    /// Memory in all, or as much of it as the control group allows, bytes.
    pub memory_bytes: u64,
}

/// A limit or a setting of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Setting {
    /// `net.core.somaxconn`, `open files (soft)`.
    pub name: String,
    /// As the kernel writes it.
    pub value: String,
}

/// One period of a run, all shards merged. Borrowed to be written: a tick holds a megabyte of histograms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct TickRecord<'a> {
    /// What happened.
    pub tick: Cow<'a, Tick>,
    /// What was seen last of hosts and processes.
    pub looks: Cow<'a, Samples>,
}

impl TickRecord<'_> {
    /// A record of a tick without samples.
    pub fn of(tick: &Tick) -> TickRecord<'_> {
        TickRecord { tick: Cow::Borrowed(tick), ..TickRecord::default() }
    }
}

impl TickRecord<'static> {
    /// Adds a later period: counts add up; the samples are replaced by the later ones.
    pub fn extend(&mut self, later: &TickRecord) {
        self.tick.to_mut().extend(&later.tick);
        self.looks = Cow::Owned(later.looks.clone().into_owned());
    }

    /// A copy with coarser histograms, which is precise enough to draw.
    pub fn coarse(record: &TickRecord) -> TickRecord<'static> {
        let mut tick = record.tick.clone().into_owned();
        tick.coarsen();
        TickRecord { tick: Cow::Owned(tick), looks: Cow::Owned(record.looks.clone().into_owned()) }
    }
}

json! {
    RunRecord => RunRecord,
    TickRecord<'_> => TickRecord<'static>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        sample::{HostSample, JvmSample, ProcessSample, TargetSample},
        threshold::ThresholdResult,
        tick::tests::tick,
    };
    use proptest::prelude::*;
    use serde_json::Value;

    fn record(seed: u64) -> TickRecord<'static> {
        TickRecord {
            tick: Cow::Owned(tick(seed)),
            looks: Cow::Owned(Samples {
                target: Some(TargetSample {
                    pid: 7,
                    open_files: Some(seed),
                    jvm: Some(JvmSample::default()),
                    ..TargetSample::default()
                }),
                host: Some(HostSample { kernel_bytes: seed, ..HostSample::default() }),
                target_host: None,
                own: Some(ProcessSample { rss_bytes: seed, ..ProcessSample::default() }),
                connections: Some(seed),
                thresholds: vec![ThresholdResult {
                    expr: "held >= 1".to_owned(),
                    ..ThresholdResult::default()
                }],
            }),
        }
    }

    fn again(record: &TickRecord) -> TickRecord<'static> {
        TickRecord::from_json(&record.to_json()).unwrap_or_else(|e| panic!("{e}: {}", record.to_json()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Ticks, written and read, add up to the same totals: a stored run can be replayed.
        #[test]
        fn a_record_read_back_has_the_same_totals(seeds in proptest::collection::vec(0u64..1000, 1..4)) {
            let first = again(&record(seeds[0]));
            prop_assert_eq!(&first, &record(seeds[0]));
            let mut direct = [tick(seeds[0]), tick(seeds[0])];
            let mut replayed = [first.tick.clone().into_owned(), first.tick.into_owned()];
            for &seed in &seeds {
                let (tick, read) = (tick(seed), again(&record(seed)).tick);
                direct[0].extend(&tick);
                direct[1].merge(&tick);
                replayed[0].extend(&read);
                replayed[1].merge(&read);
            }
            prop_assert_eq!(direct, replayed);
        }
    }

    #[test]
    fn a_histogram_keeps_each_place_up_to_the_highest() {
        let mut full = Tick::default();
        for exponent in 0..53 {
            full.latency.record(units::Nanos(3 << exponent));
        }
        full.counts.answered = u64::MAX;
        full.open_ns = u128::MAX;
        let record = TickRecord { tick: Cow::Owned(full), ..TickRecord::default() };
        assert_eq!(again(&record), record);
    }

    #[test]
    fn times_below_the_least_are_kept_too() {
        for ns in [0, 1, 63, 64, 65] {
            let mut small = Tick::default();
            small.lag.record(units::Nanos(ns));
            let record = TickRecord { tick: Cow::Owned(small), ..TickRecord::default() };
            assert_eq!(again(&record), record, "{ns}");
        }
    }

    #[test]
    fn an_empty_tick_takes_little_room() {
        let json = TickRecord::default().to_json();
        assert!(json.len() < 1500, "{}: {json}", json.len());
    }

    #[test]
    fn missing_and_unknown_fields_of_a_record_are_accepted() {
        let check = |text: &str, open: u64| {
            let record = TickRecord::from_json(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(*record.tick, Tick { open, ..Tick::default() }, "{text}");
        };
        check("{}", 0);
        check(r#"{"tick":{"open":5}}"#, 5);
        check(r#"{"tick":{"open":5,"weather":{"rain":true},"latency":{}},"mood":[1]}"#, 5);
        let run = RunRecord::from_json(r#"{"header":{"io":"epoll"},"later":1}"#).unwrap();
        assert_eq!(run.header, Header { io: "epoll".into(), ..Header::default() });
    }

    /// The record without one of its fields, for each of them at any depth.
    fn lacking_one(record: &Value) -> Vec<Value> {
        let Some(fields) = record.as_object() else { return Vec::new() };
        let with = |key: &String, field: Option<Value>| {
            let mut one = fields.clone();
            one.remove(key);
            one.extend(field.map(|field| (key.clone(), field)));
            Value::Object(one)
        };
        let of = |(key, field): (&String, &Value)| {
            let within = lacking_one(field).into_iter().map(|field| with(key, Some(field)));
            within.chain([with(key, None)]).collect::<Vec<_>>()
        };
        fields.iter().flat_map(of).collect()
    }

    #[test]
    fn an_older_record_may_lack_any_field() {
        let mut full = record(5);
        full.tick.to_mut().open_ns = 1;
        full.looks.to_mut().target_host = full.looks.host.clone();
        let run = RunRecord { words: vec!["run".to_owned()], ..RunRecord::default() };
        let [full, run] = [full.to_json(), run.to_json()].map(|json| serde_json::from_str(&json).unwrap());
        let older = lacking_one(&full);
        assert!(older.len() > 150, "{}", older.len());
        for older in older {
            TickRecord::from_json(&older.to_string()).unwrap_or_else(|e| panic!("{e}: {older}"));
        }
        for older in lacking_one(&run) {
            RunRecord::from_json(&older.to_string()).unwrap_or_else(|e| panic!("{e}: {older}"));
        }
    }

    #[test]
    fn an_invalid_record_is_an_error() {
        for text in [
            "",
            "[1]",
            r#"{"tick":{"open":-1}}"#,
            r#"{"tick":{"latency":{"histogram":"?"}}}"#,
            r#"{"tick":{"latency":{"histogram":"AAAA"}}}"#,
            r#"{"tick":{"faults":[{"side":"moon","stage":"dial","kind":"reset","count":1}]}}"#,
        ] {
            assert!(TickRecord::from_json(text).is_err(), "{text}");
        }
    }
}
