//! Several summaries of one load as one: what is counted adds up, what is seen of the one server is the most that one of them
//! saw, what is judged is the worst, times are of all requests together.

use std::collections::BTreeSet;

use samples::{Latency, Tick};
use serde_json::{Map, Value, json};

/// Times of a tick, as the summary names them.
fn named(tick: &Tick) -> [(&'static str, &Latency); 6] {
    [
        ("latency_us", &tick.latency),
        ("ramp_latency_us", &tick.ramp_latency),
        ("first_byte_us", &tick.first_byte),
        ("connect_us", &tick.connect),
        ("handshake_us", &tick.handshake),
        ("lag_us", &tick.lag),
    ]
}

/// `peak`: connections open at the same time, as the seconds have it. `totals`: all their ticks together, from the run store,
/// since percentiles do not add up.
pub(super) fn combined(summaries: &[Value], peak: f64, totals: &Tick) -> Value {
    const WORST: [&str; 4] = ["pass", "fail", "invalid", "interrupted"];
    let rank = |summary: &&Value| WORST.iter().position(|word| summary["verdict"] == **word);
    let worst = summaries.iter().max_by_key(rank).expect("there are several");
    let mut all = worst.clone();
    let parts = |path: &str| summaries.iter().filter_map(|summary| summary.pointer(path)).collect::<Vec<_>>();
    let most = |path: &str| parts(path).iter().filter_map(|value| value.as_f64()).reduce(f64::max);
    for group in ["connections", "requests"] {
        all[group] = added(&parts(&format!("/{group}")));
    }
    let held = all["connections"]["held"].as_f64().unwrap_or(0.0);
    all["connections"]["peak"] = Value::from(peak.max(held));
    if let Some(at) = all.pointer_mut("/limit/at_connections") {
        *at = Value::from(peak.max(held));
    }
    let seen = ["/connections/seen_by_target", "/target_cost/rss_bytes", "/target_cost/cpu_s"];
    for path in ["/ramp_s", "/duration_s", "/elapsed_s"].into_iter().chain(seen) {
        if let (Some(place), Some(most)) = (all.pointer_mut(path), most(path)) {
            *place = Value::from(most);
        }
    }
    let sum = |name: &str| added(&parts(&format!("/generator/{name}")));
    all["generator"] =
        json!({ "cpu_s": sum("cpu_s"), "system_s": sum("system_s"), "rss_bytes": sum("rss_bytes") });
    // Each has seen the server's whole memory grow over its own part of the connections; the others are of one alone.
    let of_one = [
        "/target_cost/user_bytes_per_connection",
        "/kernel_bytes_per_connection",
        "/cost",
        "/probe",
        "/populations",
    ];
    for path in of_one {
        if let Some(place) = all.pointer_mut(path) {
            *place = Value::Null;
        }
    }
    all["faults"] = parts("/faults").into_iter().filter_map(Value::as_array).flatten().cloned().collect();
    let counted =
        |name: &str| parts(&format!("/{name}/count")).iter().filter_map(|n| n.as_u64()).sum::<u64>();
    for (name, latency) in named(totals) {
        let is_whole = latency.count() == counted(name);
        all[name] = if is_whole {
            serde_json::to_value(latency.quantiles()).expect("plain numbers")
        } else {
            Value::Null
        };
    }
    if all["latency_us"].is_null() {
        let why = "latencies of several clients come from the run store, which does not have all of their \
        runs";
        all["reasons"] = json!([why]);
    }
    let headline = worst["headline"].as_str().unwrap_or_default();
    let whose = if worst["verdict"] == "pass" { "each" } else { "one of them" };
    all["headline"] = Value::from(format!("{} clients, {whose}: {headline}", summaries.len()));
    all
}

/// Numbers added, objects field by field, of yes and no any.
fn added(parts: &[&Value]) -> Value {
    if let Some(wholes) = parts.iter().map(|part| part.as_u64()).collect::<Option<Vec<u64>>>() {
        return Value::from(wholes.iter().sum::<u64>());
    }
    if parts.iter().any(|part| part.is_number()) {
        return Value::from(parts.iter().filter_map(|part| part.as_f64()).sum::<f64>());
    }
    if parts.iter().any(|part| part.is_object()) {
        let names: BTreeSet<&String> =
            parts.iter().filter_map(|part| part.as_object()).flat_map(Map::keys).collect();
        let field =
            |name: &String| added(&parts.iter().filter_map(|part| part.get(name)).collect::<Vec<_>>());
        return Value::Object(names.into_iter().map(|name| (name.clone(), field(name))).collect());
    }
    match parts.iter().find(|part| part.as_bool() == Some(true)).or(parts.first()) {
        Some(value) => (*value).clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    fn summary(verdict: &str, held: u64, status: &str) -> Value {
        json!({
            "verdict": verdict,
            "headline": format!("{verdict}: of one"),
            "limit": if verdict == "fail" { json!({"cause": "cpu", "at_connections": 1}) } else { Value::Null },
            "ramp_s": held as f64,
            "connections": {"held": held, "peak": held + 5, "open_per_s": 10.5, "seen_by_target": held * 3},
            "requests": {"answered": held * 2, "lower_bound": held > 100, "status": {status: held * 2}},
            "faults": if verdict == "fail" { json!([{"kind": "reset", "count": 1}]) } else { json!([]) },
            "target_cost": {"rss_bytes": held * 10, "cpu_s": 1.0, "user_bytes_per_connection": 99.0},
            "generator": {"cpu_s": 1.5, "system_s": 0.5, "rss_bytes": 100, "stall_us": 7},
            "latency_us": {"count": 1, "p50": 1.0},
            "lag_us": {"count": 7},
            "probe": {},
        })
    }

    fn totals() -> Tick {
        let mut tick = Tick::default();
        tick.latency.record(Nanos::from_millis(7));
        let mut totals = tick.clone();
        totals.extend(&tick);
        totals
    }

    #[test]
    fn several_summaries_are_one() {
        let all = combined(&[summary("pass", 100, "200"), summary("pass", 200, "503")], 290.0, &totals());
        let connections = json!({"held": 300, "peak": 300.0, "open_per_s": 21.0, "seen_by_target": 600.0});
        assert_eq!(all["connections"], connections);
        let requests = json!({"answered": 600, "lower_bound": true, "status": {"200": 200, "503": 400}});
        assert_eq!(all["requests"], requests);
        assert_eq!(all["headline"], "2 clients, each: pass: of one");
        let cost = json!({"rss_bytes": 2000.0, "cpu_s": 1.0, "user_bytes_per_connection": null});
        assert_eq!(all["target_cost"], cost);
        assert_eq!(all["generator"], json!({"cpu_s": 3.0, "system_s": 1.0, "rss_bytes": 200}));
        assert_eq!((&all["ramp_s"], &all["probe"]), (&json!(200.0), &Value::Null));
        assert_eq!((&all["latency_us"]["max"], &all["latency_us"]["count"]), (&json!(7000.0), &json!(2)));
        // The store has fewer than the summaries: better none than wrong ones.
        assert_eq!(all["lag_us"], Value::Null);
    }

    #[test]
    fn the_worst_is_told() {
        let all = combined(&[summary("pass", 1, "200"), summary("fail", 2, "200")], 30.0, &Tick::default());
        assert_eq!(all["headline"], "2 clients, one of them: fail: of one");
        assert_eq!(
            (all["verdict"].as_str(), all["faults"].as_array().map(Vec::len)),
            (Some("fail"), Some(1))
        );
        assert_eq!((&all["limit"]["at_connections"], &all["latency_us"]), (&json!(30.0), &Value::Null));
        assert!(all["reasons"][0].as_str().unwrap().contains("the run store"));
    }
}
