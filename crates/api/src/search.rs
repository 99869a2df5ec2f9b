//! A search that this server has started.

use parking_lot::Mutex;
use samples::{FindSummary, Point};
use serde_json::{Value, json};
use units::Date;

use crate::Stop;

/// A search.
pub(crate) struct Search {
    pub(crate) id: String,
    target: String,
    began: Date,
    stop: Stop,
    now: Mutex<Now>,
}

/// How far it has come.
#[derive(Default)]
struct Now {
    /// Its steps, in the order of time; bounded, since each narrows the search.
    steps: Vec<Point>,
    /// What it found, or why it could not begin; none before its end.
    result: Option<Result<FindSummary, Vec<String>>>,
}

impl Search {
    pub(crate) fn new(id: String, target: String, began: Date, stop: Stop) -> Search {
        Search { id, target, began, stop, now: Mutex::default() }
    }

    pub(crate) fn url(&self) -> String {
        format!("/searches/{}", self.id)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.now.lock().result.is_some()
    }

    /// Ends it early.
    pub(crate) fn stop(&self) {
        (self.stop)();
    }

    pub(crate) fn add(&self, step: &Point) {
        self.now.lock().steps.push(step.clone());
    }

    pub(crate) fn end(&self, result: Result<FindSummary, Vec<String>>) {
        self.now.lock().result = Some(result);
    }

    /// As it is listed; with its steps and its result, where it is shown alone.
    pub(crate) fn json(&self, is_whole: bool) -> Value {
        let now = self.now.lock();
        let (state, found, reasons) = match &now.result {
            None => ("running", None, &[][..]),
            Some(Ok(found)) => ("done", Some(found), &[][..]),
            Some(Err(reasons)) => ("refused", None, reasons.as_slice()),
        };
        let mut json = json!({
            "id": self.id,
            "url": self.url(),
            "state": state,
            "target": self.target,
            "began": self.began.to_string(),
            "outcome": found.map(outcome),
            "max": found.map(|found| found.max),
            "reasons": reasons,
        });
        if is_whole {
            json["steps"] = json!(now.steps);
            json["result"] = json!(found);
        }
        json
    }
}

/// How it ended. The result itself says what was found until it was interrupted.
fn outcome(found: &FindSummary) -> Value {
    if found.interrupted { json!("interrupted") } else { json!(found.outcome) }
}
