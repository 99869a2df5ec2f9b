//! What requests have in their bodies and addresses.

use std::collections::BTreeMap;

use exporters::web;
use samples::Command;
use serde::Deserialize;
use serde_json::Value;
use units::Count;

use crate::{Spec, problem::Problem};

/// A run as JSON describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    target: Option<String>,
    scenario: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    flags: BTreeMap<String, Value>,
}

/// Reads a run, or a search: JSON where it is said to be, or seems to be, for curl says of any data that it is a form; else the text
/// of a scenario file, which never begins with a brace.
pub(crate) fn spec(is_json: bool, body: &[u8]) -> Result<Spec, Problem> {
    let is_json = is_json || body.trim_ascii_start().starts_with(b"{");
    let wrong = |why: String| Problem::wrong(vec![why]);
    if !is_json {
        let text = str::from_utf8(body).map_err(|_| wrong("a scenario file is UTF-8".to_owned()))?;
        if text.trim().is_empty() {
            return Err(wrong(
                "no scenario; send the text of a scenario file, or JSON with a target".to_owned(),
            ));
        }
        return Ok(Spec { scenario: Some(text.to_owned()), ..Spec::default() });
    }
    let Written { target, scenario, files, flags } = serde_json::from_slice(body)
        .map_err(|e| Problem::wrong(unknown_keys(body).unwrap_or_else(|| vec![format!("JSON: {e}")])))?;
    let mut mistakes = Vec::new();
    if target.is_some() == scenario.is_some() {
        mistakes.push("use either target or scenario".to_owned());
    }
    if scenario.is_none() && !files.is_empty() {
        mistakes.push("files: only with a scenario".to_owned());
    }
    let mut given = Vec::new();
    for (name, value) in flags {
        match values(value) {
            Some(values) => given.extend(values.into_iter().map(|value| (name.clone(), value))),
            None => mistakes.push(format!("flags.{name}: use a text, a number, true or a list of texts")),
        }
    }
    if !mistakes.is_empty() {
        return Err(Problem::wrong(mistakes));
    }
    Ok(Spec { target, scenario, files: files.into_iter().collect(), flags: given })
}

/// The keys that no run has, if there are any.
fn unknown_keys(body: &[u8]) -> Option<Vec<String>> {
    const KEYS: [&str; 4] = ["target", "scenario", "files", "flags"];
    let keys = serde_json::from_slice::<BTreeMap<String, Value>>(body).ok()?.into_keys();
    let unknown = keys.filter(|key| !KEYS.contains(&key.as_str()));
    let mistake = |key| format!("{key}: no key of a run; use target, scenario, files and flags");
    Some(unknown.map(mistake).collect()).filter(|mistakes: &Vec<String>| !mistakes.is_empty())
}

/// The values of a flag, as they would be typed.
fn values(value: Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text]),
        Value::Number(number) => Some(vec![number.to_string()]),
        Value::Bool(true) => Some(vec![String::new()]),
        Value::Bool(false) => Some(Vec::new()),
        Value::Array(all) => all.into_iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        Value::Null | Value::Object(_) => None,
    }
}

/// A change of a run in progress.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    ask: Option<Command>,
    load: Option<Value>,
    connections: Option<Value>,
}

/// Reads a change of a run with this many connections: `{"ask": "pause"}`, `{"load": "50%"}` or `{"connections": "20k"}`.
pub(crate) fn change(body: &[u8], planned: u64) -> Result<Command, Problem> {
    const FIX: &str = "use {\"ask\": \"pause\"}, resume, up, down, drain or stop; {\"load\": \"50%\"}; or {\"connections\": 20000}";
    let wrong = |why: &str| Problem::wrong(vec![format!("{why}{FIX}")]);
    let change: Change = serde_json::from_slice(body).map_err(|e| wrong(&format!("JSON: {e}; ")))?;
    let share = match (change.ask, change.load, change.connections) {
        (Some(Command::Load(_)), None, None) => return Err(wrong("")),
        (Some(ask), None, None) => return Ok(ask),
        (None, Some(load), None) => share(&load).ok_or_else(|| wrong(&format!("load: {load}; ")))?,
        (None, None, Some(n)) => {
            let count = count(&n).ok_or_else(|| wrong(&format!("connections: {n}; ")))?;
            if planned == 0 {
                let why = "connections: this run does not hold connections, or has not begun; use load";
                return Err(Problem::wrong(vec![why.to_owned()]));
            }
            count as f64 / planned as f64
        }
        _ => return Err(wrong("one change at a time; ")),
    };
    if share > 1.0 {
        let why = format!("the load can be set up to the plan's, {} connections", Count(planned));
        return Err(Problem::wrong(vec![why]));
    }
    match (share * 1e6).round() {
        millionths @ 1.0.. => Ok(Command::Load(millionths as u32)),
        _ => Err(Problem::wrong(vec!["a load is more than nothing; use pause".to_owned()])),
    }
}

/// How an agent is to measure what its machine can do.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Calibration {
    duration: Option<String>,
}

/// Reads the time of each measurement of a calibration, `{"duration": "8s"}`; an empty body has none.
pub(crate) fn calibration(body: &[u8]) -> Result<Option<String>, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let read: Result<Calibration, _> = serde_json::from_slice(body);
    let wrong = |e: serde_json::Error| {
        Problem::wrong(vec![format!("JSON: {e}; use {{\"duration\": \"8s\"}}, or no body")])
    };
    read.map(|calibration| calibration.duration).map_err(wrong)
}

/// The values of these parameters in the query of an address, where they are. Nothing is percent-decoded: ids and names of formats
/// are letters and digits.
pub(crate) fn parameters<'q, const N: usize>(
    query: Option<&'q str>,
    names: [&str; N],
) -> Result<[Option<&'q str>; N], Problem> {
    let mut values = [None; N];
    for (name, value) in web::parameters(query.unwrap_or_default()) {
        let Some(nth) = names.iter().position(|known| *known == name) else {
            let fix = names.join(" and ");
            return Err(Problem::wrong(vec![format!("{name}: no such parameter; use {fix}")]));
        };
        values[nth] = Some(value);
    }
    Ok(values)
}

/// `"50%"`, or 0.5.
fn share(value: &Value) -> Option<f64> {
    let share = match value {
        Value::String(text) => text.strip_suffix('%')?.parse::<f64>().ok()? / 100.0,
        value => value.as_f64()?,
    };
    share.is_finite().then_some(share)
}

fn count(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => Count::parse(text).ok().map(|Count(n)| n),
        value => value.as_u64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_scenario_or_a_target_with_flags() {
        let read = |is_json: bool, body: &str| spec(is_json, body.as_bytes()).map_err(|p| format!("{p:?}"));
        let flags = [("connections", "100"), ("target-gc", ""), ("threshold", "a"), ("threshold", "b")];
        let expected = Spec {
            target: Some("http://h/".to_owned()),
            flags: flags.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            ..Spec::default()
        };
        let json = r#"{"target": "http://h/",
            "flags": {"connections": 100, "target-gc": true, "threshold": ["a", "b"], "tag": false}}"#;
        assert_eq!(read(true, json).as_ref(), Ok(&expected));
        assert_eq!(read(false, &format!("\n{json}")), Ok(expected), "curl --data says that it is a form");
        let scenario = Spec { scenario: Some("target = 1".to_owned()), ..Spec::default() };
        assert_eq!(read(false, "target = 1"), Ok(scenario.clone()));
        let with_file = Spec { files: vec![("u.csv".to_owned(), "a".to_owned())], ..scenario };
        assert_eq!(read(true, r#"{"scenario": "target = 1", "files": {"u.csv": "a"}}"#), Ok(with_file));
        for (is_json, body, part) in [
            (false, " \n", "no scenario; send"),
            (true, "{", "JSON: "),
            (true, "{}", "use either target or scenario"),
            (true, r#"{"target": "a", "scenario": "b"}"#, "use either target or scenario"),
            (true, r#"{"target": "a", "files": {"b": "c"}}"#, "files: only with a scenario"),
            (true, r#"{"target": "a", "flags": {"x": {}}}"#, "flags.x: use a text, a number, true"),
            (true, r#"{"target": "a", "colour": 1}"#, "colour: no key of a run; use target"),
            (true, r#"{"target": 1}"#, "JSON: invalid type"),
        ] {
            assert!(read(is_json, body).is_err_and(|why| why.contains(part)), "{body}");
        }
        let all = read(true, r#"{"json": "/tmp/x", "foo": "1", "flags": {}}"#).unwrap_err();
        assert!(
            all.contains("foo: no key") && all.contains("json: no key") && !all.contains("flags: no"),
            "{all}"
        );
    }

    #[test]
    fn a_load_is_set_within_the_plan() {
        let read = |body: &str| change(body.as_bytes(), 20_000).map_err(|p| format!("{p:?}"));
        for (body, expected) in [
            (r#"{"ask": "pause"}"#, Command::Pause),
            (r#"{"ask": "stop"}"#, Command::Stop),
            (r#"{"load": "50%"}"#, Command::Load(500_000)),
            (r#"{"load": 1}"#, Command::Load(1_000_000)),
            (r#"{"load": 0.25}"#, Command::Load(250_000)),
            (r#"{"connections": 5000}"#, Command::Load(250_000)),
            (r#"{"connections": "20k"}"#, Command::Load(1_000_000)),
        ] {
            assert_eq!(read(body), Ok(expected), "{body}");
        }
        for (body, part) in [
            ("pause", "JSON: "),
            ("{}", "one change at a time"),
            (r#"{"ask": "fly"}"#, "unknown variant"),
            (r#"{"ask": {"load": 5}}"#, "use {"),
            (r#"{"ask": "pause", "load": 1}"#, "one change at a time"),
            (r#"{"load": "half"}"#, "load: "),
            (r#"{"load": 1.1}"#, "up to the plan's, 20,000 connections"),
            (r#"{"connections": 20001}"#, "up to the plan's, 20,000 connections"),
            (r#"{"connections": -1}"#, "connections: -1"),
            (r#"{"load": 0}"#, "more than nothing; use pause"),
        ] {
            assert!(read(body).as_ref().is_err_and(|why| why.contains(part)), "{body}: {:?}", read(body));
        }
        assert!(change(br#"{"connections": 5}"#, 0).is_err());
    }

    #[test]
    fn a_calibration_has_a_time_or_no_body() {
        let read = |body: &str| calibration(body.as_bytes()).map_err(|p| format!("{p:?}"));
        assert_eq!(read(" "), Ok(None));
        assert_eq!(read("{}"), Ok(None));
        assert_eq!(read(r#"{"duration": "3s"}"#), Ok(Some("3s".to_owned())));
        for wrong in ["8s", r#"{"duration": 8}"#, r#"{"time": "8s"}"#] {
            assert!(read(wrong).is_err_and(|why| why.contains("or no body")), "{wrong}");
        }
    }

    #[test]
    fn parameters_are_those_that_there_are() {
        let read = |query| parameters(query, ["a", "b"]).map_err(|p| format!("{p:?}"));
        assert_eq!(read(None), Ok([None, None]));
        assert_eq!(read(Some("b=2&a=1")), Ok([Some("1"), Some("2")]));
        assert_eq!(read(Some("&a&")), Ok([Some(""), None]));
        assert!(read(Some("c=1")).is_err_and(|why| why.contains("c: no such parameter; use a and b")));
    }
}
