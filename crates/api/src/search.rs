//! A search that this server has started: its state, its steps so far and its result.

use parking_lot::Mutex;
use samples::{FindSummary, Point};
use serde_json::{Value, json};
use units::Date;

use crate::Stop;

/// A search, shared between the thread that performs it and the requests that read it.
pub(crate) struct Search {
    pub(crate) id: String,
    target: String,
    began: Date,
    stop: Stop,
    now: Mutex<Now>,
}

/// The state of a search.
#[derive(Default)]
struct Now {
    /// The steps, in the order of time. Their number is bounded, since each narrows the search.
    steps: Vec<Point>,
    /// The result, or the reasons why the search could not begin; `None` while it is in progress.
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

    /// Ends the search early.
    pub(crate) fn stop(&self) {
        (self.stop)();
    }

    pub(crate) fn add(&self, step: &Point) {
        self.now.lock().steps.push(step.clone());
    }

    pub(crate) fn end(&self, result: Result<FindSummary, Vec<String>>) {
        self.now.lock().result = Some(result);
    }

    /// The search as JSON; `is_whole` adds its steps and its result, which lists omit.
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

/// The outcome of a search. If it was interrupted, the result contains what was known until then.
fn outcome(found: &FindSummary) -> Value {
    if found.interrupted { json!("interrupted") } else { json!(found.outcome) }
}
