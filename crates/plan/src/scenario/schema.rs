//! The table of keys as a JSON schema for editors, and as Markdown tables for the reference.

use super::keys::{SCENARIO, TABLES};
use crate::key::{Key, Kind, Table};
use serde_json::{Map, Value, json};

/// The JSON schema of a scenario file (draft 2020-12), as stored in `docs/reference`.
pub fn schema() -> String {
    let mut definitions = Map::new();
    define(&SCENARIO, &mut definitions);
    let Some(Value::Object(mut root)) = definitions.remove(SCENARIO.name) else {
        unreachable!("the scenario has been defined")
    };
    root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("title".to_owned(), json!("throng scenario"));
    root.insert("$defs".to_owned(), Value::Object(definitions));
    format!("{:#}\n", Value::Object(root))
}

/// Adds the definition of a table, and those of all tables that it refers to.
fn define(table: &Table, definitions: &mut Map<String, Value>) {
    if definitions.contains_key(table.name) {
        return;
    }
    // Inserted before its contents, so that a cycle would end.
    definitions.insert(table.name.to_owned(), Value::Null);
    let properties: Map<String, Value> =
        table.keys.iter().map(|key| (key.name.to_owned(), property(key, definitions))).collect();
    let schema = json!({
        "type": "object",
        "description": table.about,
        "additionalProperties": false,
        "properties": properties,
    });
    definitions.insert(table.name.to_owned(), schema);
}

fn property(key: &Key, definitions: &mut Map<String, Value>) -> Value {
    let mut refer = |table: &'static Table| {
        define(table, definitions);
        json!({ "$ref": format!("#/$defs/{}", table.name) })
    };
    let kind = match key.kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Number => json!({ "type": ["string", "integer"] }),
        Kind::OneOf(values) => json!({ "enum": values }),
        Kind::Truth => json!({ "type": "boolean" }),
        Kind::TruthOrText => json!({ "type": ["boolean", "string"] }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Pairs => json!({ "type": "object", "additionalProperties": { "type": ["string", "integer"] } }),
        Kind::Values => {
            json!({ "type": "object", "additionalProperties": { "type": ["string", "integer", "boolean"] } })
        }
        Kind::TextOrTable(table) => json!({ "anyOf": [{ "type": "string" }, refer(table)] }),
        Kind::Tables(table) => json!({ "type": "array", "minItems": 1, "items": refer(table) }),
        Kind::Named(table) => json!({ "type": "object", "additionalProperties": refer(table) }),
    };
    let Value::Object(mut kind) = kind else { unreachable!("each kind is an object") };
    kind.insert("description".to_owned(), json!(key.about));
    Value::Object(kind)
}

/// The reference in Markdown: one table of keys per table of the file.
pub fn reference() -> String {
    let mut text = String::new();
    for table in TABLES {
        // Names without a space are written literally in a file.
        let tick = if table.place.contains(' ') { "" } else { "`" };
        text += &format!("## {tick}{}{tick}\n\n{}\n\n", table.place, table.about);
        text += "| key | example | meaning |\n|---|---|---|\n";
        for key in table.keys {
            text += &format!("| `{}` | `{}` | {} |\n", key.name, key.example, key.about);
        }
        text.push('\n');
    }
    text
}
