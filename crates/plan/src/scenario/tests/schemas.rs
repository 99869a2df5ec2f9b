//! The generated documents match the code, and the schema accepts and rejects the same files.

use super::files::{root, texts};
use super::*;
use serde_json::{Value, json};
use std::{env, fs};
use toml::de::{DeTable, DeValue};

/// Compares a file of the repository with what the code generates; `UPDATE_GOLDEN=1` writes it.
fn check(file: &str, expected: &str) {
    let path = root().join(file);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, expected).expect("it can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{file} is not what the code generates: UPDATE_GOLDEN=1 cargo test -p plan");
}

#[test]
fn the_schema_file_is_generated() {
    check("docs/reference/scenario.schema.json", &schema());
}

/// Markers before and after the generated part of the reference.
const MARKS: [&str; 2] = ["<!-- generated -->\n", "<!-- end -->\n"];

#[test]
fn the_references_tables_are_generated() {
    let file = "docs/reference/scenario.md";
    let text = fs::read_to_string(root().join(file)).expect("the reference is there");
    let (before, rest) = text.split_once(MARKS[0]).expect("it has tables");
    let (_, behind) = rest.split_once(MARKS[1]).expect("they end");
    check(file, &format!("{before}{}\n{}{}{behind}", MARKS[0], reference(), MARKS[1]));
}

/// Defaults in the table of keys match the code: a file that sets them explicitly is the same plan.
#[test]
fn the_references_defaults_are_the_codes() {
    let mut compared = Vec::new();
    for key in crate::scenario::keys::SCENARIO.keys {
        let Some((_, rest)) = key.about.rsplit_once("default ") else { continue };
        let default = rest.split([',', ';', ':']).next().unwrap_or_default().trim();
        let target = match key.about {
            about if about.starts_with("ws, tcp") => "ws://127.0.0.1:1/",
            about if about.starts_with("https, ") => "https://127.0.0.1:1/",
            _ => "http://127.0.0.1:1/",
        };
        let before = if key.name == "streams" { "http2 = true\n" } else { "" };
        let plain = format!("target = \"{target}\"\n{before}");
        let value =
            if ["true", "false"].contains(&default) { default.to_owned() } else { format!("\"{default}\"") };
        // Defaults described in words, such as `adaptive`, cannot be written as a value.
        let Ok(with) = scenario(&format!("{plain}{} = {value}\n", key.name)) else { continue };
        assert_eq!(with, right(&plain), "{} = {default}", key.name);
        compared.push(key.name);
    }
    for name in [
        "connections",
        "duration",
        "think",
        "ping",
        "message",
        "timeout",
        "reconnect",
        "streams",
        "max-lag",
        "io",
    ] {
        assert!(compared.contains(&name), "{name} was not compared: {compared:?}");
    }
}

#[test]
fn the_references_examples_are_right() {
    let text = fs::read_to_string(root().join("docs/reference/scenario.md")).expect("the reference is there");
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 3);
    examples.iter().for_each(|example| drop(right(example)));
}

/// The first violation of a schema by a value, for the parts of JSON Schema that throng's schema uses.
fn breach(schema: &Value, root: &Value, value: &Value) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return breach(&root["$defs"][name.trim_start_matches("#/$defs/")], root, value);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let none = any.iter().all(|schema| breach(schema, root, value).is_some());
        return none.then(|| format!("none of them: {value}"));
    }
    if let Some(values) = schema["enum"].as_array() {
        return (!values.contains(value)).then(|| format!("not one of them: {value}"));
    }
    let kind = match value {
        Value::String(_) => "string",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    };
    let wanted = &schema["type"];
    if !(wanted == kind || wanted.as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))) {
        return Some(format!("not {wanted}: {value}"));
    }
    if let Some(items) = value.as_array() {
        let most = schema["minItems"].as_u64().unwrap_or(0);
        let few = (items.len() as u64) < most;
        return few
            .then(|| "too few".to_owned())
            .or_else(|| items.iter().find_map(|item| breach(&schema["items"], root, item)));
    }
    value.as_object()?.iter().find_map(|(name, value)| match &schema["properties"][name] {
        Value::Null if schema["additionalProperties"] == false => Some(format!("no such key: {name}")),
        Value::Null => breach(&schema["additionalProperties"], root, value),
        schema => breach(schema, root, value),
    })
}

/// A TOML value as JSON.
fn value(found: &DeValue) -> Value {
    match found {
        DeValue::String(text) => json!(text),
        DeValue::Integer(number) => json!(number.as_str().parse::<i64>().unwrap()),
        // A JSON Schema integer is any number without a fraction, including `1e3`.
        DeValue::Float(number) => json!(number.as_str().parse::<f64>().unwrap() as i64),
        DeValue::Boolean(truth) => json!(truth),
        DeValue::Array(items) => items.iter().map(|item| value(item.get_ref())).collect(),
        DeValue::Table(found) => table(found),
        _ => panic!("no scenario has one"),
    }
}

fn table(found: &DeTable) -> Value {
    found.iter().map(|(name, found)| (name.get_ref().to_string(), value(found.get_ref()))).collect()
}

fn judge(text: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(&schema()).expect("it is JSON");
    breach(&schema, &schema, &table(DeTable::parse(text).expect("it is TOML").get_ref()))
}

#[test]
fn the_schema_takes_what_the_reader_takes() {
    assert_eq!(judge(EVERYTHING), None);
    for (name, text) in texts() {
        assert_eq!(judge(&text), None, "{name}");
    }
    // A printed plan sets more keys.
    assert_eq!(judge(&right(EVERYTHING).to_string()), None);
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    for text in [
        "colour = 1",
        "target = true",
        "io = \"kqueue\"",
        "thresholds = \"x\"",
        "thresholds = [1]",
        "stage = []",
        "stage = 5",
        "probe = 5",
        "[probe]\nrat = \"1/s\"",
        "[[stage]]\nto = []",
        "[csv.users]\nfil = \"x\"",
        "[[population]]\nthnik = \"1s\"",
        "[[population]]\nloop = 5",
        "[[population.step]]\nrequest = \"/\"\n",
        "[[population]]\n[[population.step]]\nheaders = { A = true }",
        "[[population]]\n[[population.step]]\nexpect = { status = 200, colour = 1 }",
    ] {
        assert!(judge(text).is_some(), "{text}");
        assert!(scenario(text).is_err(), "{text}");
    }
}
