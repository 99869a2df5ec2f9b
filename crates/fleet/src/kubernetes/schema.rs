//! Checks that the API server would accept a manifest: every field is known and of its type, and no required one is missing. The schema
//! is the part of Kubernetes' OpenAPI description for the kinds in use; `cargo xtask test kubernetes` generates it, and checks the same
//! manifests with a real API server.

use serde_json::{Map, Value};

const SCHEMA: &str = include_str!("schema/v1.36.json");

/// The mistakes in an object, each with its path.
pub(super) fn mistakes(object: &Value) -> Vec<String> {
    let schema: Map<String, Value> = serde_json::from_str(SCHEMA).unwrap();
    let (api, kind) = (object["apiVersion"].as_str().unwrap_or(""), object["kind"].as_str().unwrap_or(""));
    let (group, version) = api.rsplit_once('/').unwrap_or(("", api));
    let is_it = |definition: &&Value| {
        let kinds = definition["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
        kinds.clone().any(|own| own["group"] == group && own["version"] == version && own["kind"] == kind)
    };
    let Some(definition) = schema.values().find(is_it) else {
        return vec![format!("{api} {kind}: no such kind")];
    };
    let mut mistakes = Vec::new();
    check(&schema, definition, object, kind, &mut mistakes);
    mistakes
}

fn check(schema: &Map<String, Value>, wanted: &Value, value: &Value, path: &str, mistakes: &mut Vec<String>) {
    if let Some(name) = wanted["$ref"].as_str().and_then(|name| name.strip_prefix("#/definitions/")) {
        return match name.rsplit('.').next() {
            // A string in the schema; the server accepts numbers as well.
            Some("Quantity") if is_quantity(value) => {}
            Some("Quantity") => mistakes.push(format!("{path}: not a quantity: {value}")),
            Some("IntOrString") if value.is_string() || value.is_i64() => {}
            Some("IntOrString") => mistakes.push(format!("{path}: neither number nor text: {value}")),
            _ => check(schema, &schema[name], value, path, mistakes),
        };
    }
    let is_right = match wanted["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") | None => value.is_object(),
        Some(other) => panic!("a type that is not known: {other}"),
    };
    if !is_right {
        return mistakes.push(format!("{path}: not of type {}: {value}", wanted["type"]));
    }
    for (nth, item) in value.as_array().into_iter().flatten().enumerate() {
        check(schema, &wanted["items"], item, &format!("{path}[{nth}]"), mistakes);
    }
    let Some(fields) = value.as_object() else { return };
    for name in wanted["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            mistakes.push(format!("{path}.{name}: missing"));
        }
    }
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        match (wanted["properties"].get(name), wanted.get("additionalProperties")) {
            (Some(wanted), _) | (None, Some(wanted)) => check(schema, wanted, value, &path, mistakes),
            // An object without described fields accepts any.
            (None, None) if wanted.get("properties").is_none() => {}
            (None, None) => mistakes.push(format!("{path}: no such field")),
        }
    }
}

/// A quantity: `2`, `100m`, `512Mi`, `1.5G`.
fn is_quantity(value: &Value) -> bool {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let units = ["", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"];
    text[..end].parse::<f64>().is_ok() && units.contains(&&text[end..])
}

#[cfg(test)]
mod tests;
