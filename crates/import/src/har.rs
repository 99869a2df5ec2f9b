//! HTTP archives (HAR 1.2): what a browser's developer tools or a proxy have recorded.

use std::collections::BTreeMap;

use serde_json::Value;
use units::{Nanos, rfc3339};
use url::Url;

use crate::draft::{Draft, Step, counted};

/// A pause between two requests is one of the user, not of the network, from this length on.
const SHORTEST_PAUSE: Nanos = Nanos::from_secs(1);
/// Pauses have this resolution, in milliseconds.
const PAUSE_STEP_MS: u64 = 100;

pub(crate) fn read(har: &Value) -> Result<Draft, String> {
    let entries = har["log"]["entries"].as_array().expect("it was recognised by them");
    let mut draft = Draft { origin: main_origin(entries), cookies: true, ..Draft::default() };
    let mut others = BTreeMap::new();
    let (mut aborted, mut sockets) = (0, 0);
    let mut ended = None;
    for entry in entries {
        let (request, response) = (&entry["request"], &entry["response"]);
        let Some(url) = request["url"].as_str().and_then(|url| Url::parse(url).ok()) else { continue };
        if matches!(url.scheme(), "ws" | "wss") || entry["_resourceType"] == "websocket" {
            sockets += 1;
            continue;
        }
        if !matches!(url.scheme(), "http" | "https") {
            continue;
        }
        if !draft.is_of_origin(&url) {
            *others.entry(url.origin().ascii_serialization()).or_default() += 1;
            continue;
        }
        let status = response["status"].as_u64().unwrap_or(0);
        if status == 0 {
            aborted += 1;
            continue;
        }
        pause(&mut draft, entry, &mut ended);
        draft.http2 |= is_http2(request) || is_http2(response);
        draft.steps.push(step(request, response, &url, status));
    }
    draft.leave_out_others(&others);
    if aborted > 0 {
        draft.left_out.push(format!("{} without a response", counted(aborted, "request")));
    }
    if sockets > 0 {
        draft.left_out.push(format!("{}: add upgrade and send steps", counted(sockets, "WebSocket")));
    }
    Ok(draft)
}

/// The origin of most requests.
fn main_origin(entries: &[Value]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let urls = entries.iter().filter_map(|entry| Url::parse(entry["request"]["url"].as_str()?).ok());
    for url in urls.filter(|url| matches!(url.scheme(), "http" | "https")) {
        *counts.entry(url.origin().ascii_serialization()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(origin, _)| origin).unwrap_or_default()
}

fn step(request: &Value, response: &Value, url: &Url, status: u64) -> Step {
    let mut step = Step::new(request["method"].as_str().unwrap_or("GET"), url);
    for field in request["headers"].as_array().into_iter().flatten() {
        let (name, value) =
            (field["name"].as_str().unwrap_or_default(), field["value"].as_str().unwrap_or_default());
        // Each user has cookies of its own.
        if !name.eq_ignore_ascii_case("cookie") {
            step.header(name, value);
        }
    }
    step.set_body(request["postData"]["text"].as_str().unwrap_or_default());
    // A response from the cache was one with 200 without it.
    let status = if status == 304 { 200 } else { status as u16 };
    step.status = (!(200..300).contains(&status)).then_some(status);
    let content = &response["content"];
    let text = content["text"].as_str().filter(|_| content["encoding"].is_null());
    step.response = text.and_then(|text| serde_json::from_str(text).ok());
    step
}

fn is_http2(message: &Value) -> bool {
    let version = message["httpVersion"].as_str().unwrap_or_default().to_ascii_lowercase();
    version == "h2" || version.starts_with("http/2")
}

/// Adds the user's pause before this entry to the step before it.
fn pause(draft: &mut Draft, entry: &Value, ended: &mut Option<Nanos>) {
    let Some(began) = entry["startedDateTime"].as_str().and_then(rfc3339) else { return };
    if let (Some(ended), Some(step)) = (*ended, draft.steps.last_mut())
        && began.since(ended) >= SHORTEST_PAUSE
    {
        step.think_ms = began.since(ended).millis() / PAUSE_STEP_MS * PAUSE_STEP_MS;
    }
    let took_ms = entry["time"].as_f64().unwrap_or(0.0).max(0.0);
    *ended = (*ended).max(Some(began + Nanos::from_millis(took_ms as u64)));
}
