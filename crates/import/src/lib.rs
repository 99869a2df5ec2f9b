//! Imports what other tools have recorded or described: an HTTP archive, commands of curl, a Postman collection, an OpenAPI document. The
//! result is the text of a scenario, and a list of what could not be carried over.
//!
//! ```text
//!  text ─► recognise ─► a reader per format ─► Draft: target, steps ─► correlate ─► the text of a scenario
//! ```
//!
//! Pure: no file, no network. The engine does not know it; what it writes is read by `plan` like any other scenario.

mod correlate;
mod curl;
mod draft;
mod har;
mod openapi;
mod postman;

use std::net::Ipv4Addr;

use draft::Draft;
use plan::{Environment, Flags, scenario};
use serde_json::Value;

/// An imported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The format that was recognised: `an HTTP archive`.
    pub format: &'static str,
    /// The text of the scenario.
    pub scenario: String,
    /// What is not in it, and why; a line each.
    pub left_out: Vec<String>,
    /// What `throng run` would refuse in it: what was recorded was beyond what a scenario can say.
    pub mistakes: Vec<String>,
}

/// Imports a file with this text; `name` is its name, for the comment in the scenario.
///
/// # Errors
/// The format is not known, or there is no request in the file.
pub fn import(name: &str, text: &str) -> Result<Imported, String> {
    import_for(name, text, None)
}

/// As [`import`], for this target instead of the one in the file: scheme, host and port.
///
/// # Errors
/// As [`import`].
pub fn import_for(name: &str, text: &str, origin: Option<&str>) -> Result<Imported, String> {
    let text = text.trim_start_matches('\u{feff}');
    let (format, mut draft) = read(text)?;
    if let Some(origin) = origin {
        origin.clone_into(&mut draft.origin);
    }
    if draft.steps.iter().all(|step| step.is_off) {
        return Err(format!("{format} without a request that can be sent: {}", draft.left_out.join("; ")));
    }
    correlate::correlate(&mut draft);
    draft.name_steps();
    let scenario = draft.text(name);
    Ok(Imported::new(format, scenario, draft.left_out))
}

impl Imported {
    /// A scenario of a file of this format, and what is not in it.
    pub fn new(format: &'static str, scenario: String, left_out: Vec<String>) -> Imported {
        Imported { format, left_out, mistakes: mistakes(&scenario), scenario }
    }
}

/// What is wrong with a scenario, read without names, files and the environment.
fn mistakes(scenario: &str) -> Vec<String> {
    let resolve = |_: &str| Ok(vec![Ipv4Addr::LOCALHOST.into()]);
    let around = Environment { cores: 1, seed: 1, resolve: &resolve };
    let open = |_: &str| Err("an imported scenario has no files".to_owned());
    let read = scenario::read("scenario", scenario, &Flags::default(), &around, &open);
    read.err().into_iter().flatten().map(|mistake| mistake.to_string()).collect()
}

fn read(text: &str) -> Result<(&'static str, Draft), String> {
    if curl::is_command(text) {
        return Ok(("commands of curl", curl::read(text)?));
    }
    let json: Value = serde_json::from_str(text).map_err(|why| not_known(text, &why))?;
    match () {
        () if json["log"]["entries"].is_array() => Ok(("an HTTP archive", har::read(&json)?)),
        () if json.get("openapi").or(json.get("swagger")).is_some() => {
            Ok(("an OpenAPI document", openapi::read(&json)?))
        }
        () if json["item"].is_array() => Ok(("a Postman collection", postman::read(&json)?)),
        () => Err(format!("JSON of an unknown kind; use {KNOWN}")),
    }
}

const KNOWN: &str =
    "an HTTP archive (HAR), an OpenAPI document or a Postman collection as JSON, or commands of curl";

fn not_known(text: &str, why: &serde_json::Error) -> String {
    let first = text.trim_start();
    match () {
        () if first.starts_with("openapi:") || first.starts_with("swagger:") => {
            "an OpenAPI document as YAML; convert it to JSON first: yq -o json openapi.yaml >openapi.json"
                .to_owned()
        }
        () if first.starts_with(['{', '[']) => format!("not JSON: {why}"),
        () => format!("not a known format; use {KNOWN}"),
    }
}

#[cfg(test)]
mod tests;
