use std::{fs, path::Path};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Detail, Fault, Kind, Stage};

/// Finds all objects with this schema in a document, at any depth.
fn find<'a>(json: &'a Value, schema: &str, found: &mut Vec<&'a Value>) {
    if json.get("schema").is_some_and(|own| own == schema) {
        found.push(json);
    } else if let Value::Object(fields) = json {
        fields.values().for_each(|field| find(field, schema, found));
    } else if let Value::Array(items) = json {
        items.iter().for_each(|item| find(item, schema, found));
    }
}

/// Checks that a document that is read and written again has all fields that it had.
fn check_kept(path: &str, before: &Value, after: &Value) {
    match (before, after) {
        (Value::Object(fields), _) => {
            for (name, field) in fields.iter().filter(|(_, field)| !field.is_null()) {
                check_kept(&format!("{path}.{name}"), field, &after[name]);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            before.iter().zip(after).for_each(|(before, after)| check_kept(path, before, after));
        }
        (Value::Number(before), Value::Number(after)) => {
            assert_eq!(before.as_f64(), after.as_f64(), "{path}");
        }
        _ => assert_eq!(before, after, "{path}"),
    }
}

/// The measurements in `bench/` contain summaries of many versions.
#[test]
fn summaries_of_earlier_versions_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/results");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let json: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let mut found = Vec::new();
        find(&json, "throng.summary/1", &mut found);
        for json in found {
            let summary = Summary::from_json(json).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            check_kept(&path.to_string_lossy(), json, &json!(summary));
            read += 1;
        }
    }
    assert!(read > 10, "{read}");
}

/// A summary with something of each kind.
fn summary() -> Summary {
    let mut s = Summary { io: "uring".into(), seed: u64::MAX, ..Summary::default() };
    (s.target, s.threads, s.ramp_s) = ("http://t/".to_owned(), 2, 1.5);
    s.requests.status = [(200, 7), (404, 1)].into();
    s.limit = Some(Limit { side: Side::Path, cause: Cause::NoSynAck, ..Limit::default() });
    let fault = Fault::target(Stage::Dial, Kind::Refused).with(Detail::new(111));
    s.faults = vec![FaultCount::new(fault, 3)];
    let own = PopulationSummary { figures: s.figures.clone(), ..PopulationSummary::default() };
    s.populations = [("users".to_owned(), own)].into();
    s
}

#[test]
fn a_summary_is_read_back() {
    for s in [Summary::default(), summary()] {
        assert_eq!(Summary::from_json(&json!(s)), Ok(s.clone()));
        assert_eq!(serde_json::from_str(&json!(s).to_string()).ok(), Some(s));
    }
}

#[test]
fn figures_stand_beside_the_rest() {
    let json = json!(summary());
    assert_eq!((&json["requests"]["status"]["404"], &json["ramp_s"]), (&json!(1), &json!(1.5)));
    assert_eq!((&json["limit"]["side"], &json["limit"]["cause"]), (&json!("path"), &json!("no-syn-ack")));
    let own = &json["populations"]["users"];
    assert_eq!((&own["requests"], &own["steps"]), (&json["requests"], &json!({})));
    assert!(json.get("figures").is_none() && json.get("steps").is_none(), "{json}");
}

#[test]
fn missing_and_unknown_fields_of_a_summary_are_accepted() {
    let text = json!({
        "verdict": "fail",
        "limit": { "side": "plan", "cause": "weather", "detail": "rain" },
        "latency_us": { "count": 5, "p99": null },
        "mood": [1],
    });
    let s = Summary::from_json(&text).unwrap();
    let limit = Limit { detail: "rain".to_owned(), ..Limit::default() };
    assert_eq!((s.verdict, s.limit.clone(), s.latency_us.count), (Verdict::Fail, Some(limit), 5));
    assert_eq!(s.connections, Connections::default());
    assert!(Summary::from_json(&json!({ "verdict": "moody" })).is_err());
}

/// A struct of this type with a value in each field.
fn numbers<T: DeserializeOwned>(fields: &[&str], others: &[(&str, Value)], seed: u64) -> T {
    let number = |(n, field): (u64, &&str)| ((*field).to_owned(), Value::from(1 + seed * (n + 1)));
    let mut all: serde_json::Map<String, Value> = (1..).zip(fields).map(number).collect();
    all.extend(others.iter().map(|(field, value)| ((*field).to_owned(), value.clone())));
    serde_json::from_value(Value::Object(all)).expect("each field is a number, or one of the others")
}

fn figures(seed: u64) -> Figures {
    let kind = Kind::ALL[seed as usize % Kind::ALL.len()];
    let others = [("status", json!({ "200": 3, (200 + seed % 3).to_string(): 5 }))];
    let lower_bound = ("lower_bound", json!(seed.is_multiple_of(2)));
    Figures {
        ramp_s: seed as f64,
        duration_s: (seed % 7) as f64,
        elapsed_s: (seed % 11) as f64,
        connections: numbers(Connections::FIELDS, &[], seed),
        requests: numbers(Requests::FIELDS, &[&others[..], &[lower_bound]].concat(), seed),
        pushes: numbers(PushFigures::FIELDS, &[], seed),
        faults: vec![FaultCount::new(Fault::target(Stage::Hold, kind), seed + 1)],
        streams: (!seed.is_multiple_of(3))
            .then_some(StreamLimit { wanted: 200 + seed % 2, allowed: 1 + seed % 13 }),
        ..Figures::default()
    }
}

proptest! {
    /// Summaries of clients that share a load are merged in any order; a fault that several saw is one.
    #[test]
    fn figures_merge_in_any_order(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
        let merged = |all: &[u64]| {
            let mut sum = figures(all[0]);
            all[1..].iter().for_each(|seed| sum.merge(&figures(*seed)));
            sum
        };
        let (whole, mut right) = (merged(&[a, b, c]), figures(a));
        right.merge(&merged(&[b, c]));
        prop_assert_eq!(&merged(&[c, a, b]), &whole);
        prop_assert_eq!(&merged(&[b, a, c]), &whole);
        prop_assert_eq!(&right, &whole);
        let held: u64 = [a, b, c].iter().map(|seed| figures(*seed).connections.held).sum();
        prop_assert_eq!((whole.connections.held, whole.connections.quiet_s), (held, None));
        prop_assert_eq!(whole.requests.status.values().sum::<u64>(), [a, b, c].map(|seed| figures(seed).requests.status.values().sum::<u64>()).iter().sum::<u64>());
        let faults: u64 = whole.faults.iter().map(|fault| fault.count).sum();
        prop_assert_eq!(faults, a + b + c + 3);
        let mut kinds: Vec<Kind> = whole.faults.iter().map(|fault| fault.kind).collect();
        kinds.dedup();
        prop_assert_eq!(kinds.len(), whole.faults.len());
    }
}
