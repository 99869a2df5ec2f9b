//! OpenAPI 3 and Swagger 2 documents, as JSON: a step for each operation. Operations that change data are written as comments.

use serde_json::{Map, Value};
use url::Url;

use crate::draft::{Draft, NO_SERVER, Step, encoded, path};

/// Depth of references, and of schemas that examples are made of.
const DEEPEST: usize = 8;
/// Maximum number of values that an example is made of: schemas may refer to each other in circles.
const MOST_VALUES: usize = 1_000;

pub(crate) fn read(document: &Value) -> Result<Draft, String> {
    let mut draft = Draft::default();
    let base = base(document, &mut draft);
    for (template, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if ["get", "head", "options", "post", "put", "patch", "delete"].contains(&&**method) {
                draft.steps.push(step(document, &base, (template, method), (item, operation)));
            }
        }
    }
    let is_secured =
        document.get("security").is_some() || document["components"]["securitySchemes"].is_object();
    if is_secured {
        draft.left_out.push(
            "how to log in: add headers = { Authorization = \"Bearer {env TOKEN}\" } to the population"
                .to_owned(),
        );
    }
    if draft.steps.iter().any(|step| step.is_off) {
        draft
            .left_out
            .push("steps that change data: they are comments; remove the # of those to send".to_owned());
    }
    Ok(draft)
}

/// The path before all paths; the draft gets its target.
fn base(document: &Value, draft: &mut Draft) -> String {
    let scheme = document["schemes"][0].as_str().unwrap_or("https");
    let swagger = document["host"]
        .as_str()
        .map(|host| format!("{scheme}://{host}{}", document["basePath"].as_str().unwrap_or_default()));
    let server = document["servers"][0]["url"].as_str().map(str::to_owned).or(swagger).unwrap_or_default();
    if let Ok(url) = Url::parse(&server) {
        draft.is_of_origin(&url);
        return url.path().trim_end_matches('/').to_owned();
    }
    draft.origin = NO_SERVER.to_owned();
    draft
        .left_out
        .push(format!("the server, which the document does not name: set target, here {NO_SERVER}/"));
    let base = if server.starts_with('/') {
        server
    } else {
        document["basePath"].as_str().unwrap_or_default().to_owned()
    };
    base.trim_end_matches('/').to_owned()
}

fn step(
    document: &Value,
    base: &str,
    (template, method): (&str, &str),
    (item, operation): (&Value, &Value),
) -> Step {
    let mut step = Step { method: method.to_ascii_uppercase(), ..Step::default() };
    step.name = operation["operationId"].as_str().unwrap_or_default().to_owned();
    step.remarks.extend(operation["summary"].as_str().map(|text| text.replace('\n', " ")));
    step.is_off = !matches!(method, "get" | "head" | "options");
    let (mut own_path, mut query) = (format!("{base}{template}"), Vec::new());
    let parameters =
        [item, operation].into_iter().flat_map(|of| of["parameters"].as_array().into_iter().flatten());
    for parameter in parameters.map(|parameter| resolved(document, parameter)) {
        let name = parameter["name"].as_str().unwrap_or_default();
        let is_needed = parameter["required"] == true;
        let (value, is_known) = example(document, parameter);
        match parameter["in"].as_str() {
            Some("path") => own_path = own_path.replace(&format!("{{{name}}}"), &encoded(&value)),
            Some("query") if is_needed => query.push(format!("{}={}", encoded(name), encoded(&value))),
            Some("header") if is_needed => step.header(name, &value),
            _ => continue,
        }
        if !is_known {
            step.remarks.push(format!("{name}: the document has no example"));
        }
    }
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    step.path = path(&format!("{own_path}{query}"));
    body(document, operation, &mut step);
    step.status = status(operation);
    step
}

/// The first documented status of success, if it is none of 2xx.
fn status(operation: &Value) -> Option<u16> {
    let statuses = operation["responses"].as_object()?.keys().filter_map(|status| status.parse::<u16>().ok());
    let lowest = statuses.min()?;
    (300..400).contains(&lowest).then_some(lowest)
}

fn body(document: &Value, operation: &Value, step: &mut Step) {
    let content = &resolved(document, &operation["requestBody"])["content"];
    if let Some(json) = content.as_object().and_then(|all| all.iter().find(|(kind, _)| kind.contains("json")))
    {
        let (kind, media) = json;
        let named =
            media["examples"].as_object().and_then(|all| all.values().next()).map(|own| &own["value"]);
        let given = media.get("example").or(named).cloned();
        let value = given.unwrap_or_else(|| made_up(document, &media["schema"], 0, &mut { MOST_VALUES }));
        step.header("Content-Type", kind);
        step.set_body(&value.to_string());
    } else if let Some(kind) = content.as_object().and_then(|all| all.keys().next()) {
        step.leave_out(format!("its body of type {kind}"));
    }
}

/// The value of a parameter as text, and whether the document gives one.
fn example(document: &Value, parameter: &Value) -> (String, bool) {
    let schema = resolved(document, &parameter["schema"]);
    let named = parameter["examples"]
        .as_object()
        .and_then(|all| all.values().next())
        .and_then(|own| own.get("value"));
    let given = [parameter, schema]
        .into_iter()
        .flat_map(|of| [of.get("example"), of.get("default"), of["enum"].get(0)]);
    let given = given.flatten().chain(named).next();
    // Swagger 2 has the type in the parameter itself.
    let of_type = if schema.is_null() { parameter } else { schema };
    let value = given.cloned().unwrap_or_else(|| made_up(document, of_type, 0, &mut { MOST_VALUES }));
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (text, given.is_some())
}

/// A value of this schema; `left` is the number of values that may still be made.
fn made_up(document: &Value, schema: &Value, depth: usize, left: &mut usize) -> Value {
    let schema = resolved(document, schema);
    let given =
        [schema.get("example"), schema.get("default"), schema["enum"].get(0), schema["examples"].get(0)];
    if let Some(value) = given.into_iter().flatten().next() {
        return value.clone();
    }
    let any = ["allOf", "oneOf", "anyOf"].iter().find_map(|key| schema[*key].get(0));
    *left = left.saturating_sub(1);
    match schema["type"].as_str() {
        _ if depth == DEEPEST || *left == 0 => Value::Null,
        Some("integer" | "number") => Value::from(1),
        Some("boolean") => Value::from(true),
        Some("array") => Value::from(vec![made_up(document, &schema["items"], depth + 1, left)]),
        Some("string") => Value::from(match schema["format"].as_str() {
            Some("uuid") => "00000000-0000-4000-8000-000000000000",
            Some("date") => "2026-01-31",
            Some("date-time") => "2026-01-31T12:00:00Z",
            Some("email") => "user@example.org",
            _ => "text",
        }),
        _ if let Some(any) = any => made_up(document, any, depth + 1, left),
        _ => {
            let members = schema["properties"].as_object().into_iter().flatten();
            let members = members.map(|(name, own)| (name.clone(), made_up(document, own, depth + 1, left)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// What a reference within the document leads to; anything else as it is.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let mut value = value;
    for _ in 0..DEEPEST {
        let reference = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        let Some(found) = reference.and_then(|pointer| document.pointer(pointer)) else { return value };
        value = found;
    }
    value
}
