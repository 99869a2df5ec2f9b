//! Values that came from an earlier response are captured there: a token in an `Authorization` field, an id in a path. A recorded value would
//! be that of one user, and often expired.

use samples::is_secret_name;
use serde_json::Value;

use crate::draft::{Draft, counted, word};

/// Shortest value that is looked for: a shorter one may be equal by chance.
const SHORTEST: usize = 8;
/// Maximum number of values of a response that are looked for.
const MOST_VALUES: usize = 2_000;
/// Maximum number of values that a scenario captures.
const MOST_CAPTURES: usize = 64;

/// Replaces each value in a request that an earlier response has by a variable, and the remaining secrets by variables of the environment.
pub(crate) fn correlate(draft: &mut Draft) {
    let (mut captures, mut left_out) = (0, 0);
    for at in 0..draft.steps.len() {
        let Some(response) = draft.steps[at].response.take() else { continue };
        let mut values = Vec::new();
        collect(&response, &mut String::new(), &mut values);
        for (pointer, value) in values {
            let used = draft.steps[at + 1..].iter().any(|step| {
                let fields = step.headers.iter().map(|(_, value)| value);
                [&step.path].into_iter().chain(fields).chain(&step.body).any(|text| text.contains(&value))
            });
            if used && captures == MOST_CAPTURES {
                left_out += 1;
            } else if used {
                captures += 1;
                let name = variable(draft, &pointer);
                let variable = format!("{{var {name}}}");
                for step in &mut draft.steps[at + 1..] {
                    let fields = step.headers.iter_mut().map(|(_, value)| value);
                    for text in [&mut step.path].into_iter().chain(fields).chain(&mut step.body) {
                        *text = text.replace(&value, &variable);
                    }
                }
                draft.steps[at].captures.push((name, pointer));
            }
        }
    }
    if left_out > 0 {
        draft.left_out.push(format!(
            "{}, which stay as recorded: a scenario captures {MOST_CAPTURES}",
            counted(left_out, "recorded value")
        ));
    }
    hide(draft);
}

/// The strings in JSON that may be values of later requests, with their pointers (RFC 6901).
fn collect(json: &Value, pointer: &mut String, values: &mut Vec<(String, String)>) {
    let length = pointer.len();
    match json {
        Value::String(text) => {
            let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~+/=:".contains(&b));
            if text.len() >= SHORTEST && is_plain && values.len() < MOST_VALUES {
                values.push((pointer.clone(), text.clone()));
            }
        }
        Value::Array(items) => {
            for (nth, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{nth}"));
                collect(item, pointer, values);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                pointer.push_str(&format!("/{}", name.replace('~', "~0").replace('/', "~1")));
                collect(member, pointer, values);
                pointer.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A free name for the variable at this pointer.
fn variable(draft: &Draft, pointer: &str) -> String {
    let name = word(pointer.rsplit('/').next().unwrap_or_default(), "value").replace('-', "_");
    let is_taken =
        |name: &str| draft.steps.iter().any(|step| step.captures.iter().any(|(own, _)| own == name));
    let numbered = (2..).map(|n| format!("{name}_{n}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).expect("some number is free")
}

/// Replaces secrets that are not captured by variables of the environment.
fn hide(draft: &mut Draft) {
    let mut hidden = Vec::new();
    for (name, value) in draft.steps.iter_mut().flat_map(|step| &mut step.headers) {
        if is_secret_name(name) && !value.contains("{var ") && !value.contains("{env ") {
            let variable = environment(name);
            *value = format!("{{env {variable}}}");
            if !hidden.contains(&variable) {
                hidden.push(variable);
            }
        }
    }
    for variable in hidden {
        draft.left_out.push(format!(
            "the recorded value of {variable}, which is secret: set the environment variable {variable}"
        ));
    }
}

/// The environment variable for this name: letters in upper case, digits and underscores.
pub(crate) fn environment(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}
