//! A runner of invented runs and searches, for tests.

use std::{
    sync::{Arc, atomic::AtomicBool, atomic::AtomicU32, atomic::Ordering::Relaxed},
    thread,
    time::Duration,
};

use fixtures::{header, seen};
use parking_lot::Mutex;
use samples::{Command, FindOutcome, Samples, Verdict};
use serde_json::{Value, json};

use crate::*;

/// Runs and searches that behave as their target says, and agents that behave as their name says.
#[derive(Default)]
pub(super) struct MadeUp {
    pub(super) is_cut_off: Arc<AtomicBool>,
    /// The identifiers of all runs that were parsed.
    pub(super) ids: Arc<Mutex<Vec<String>>>,
    /// Runs of an earlier process; another process leads `led` until `has_ended` is set.
    pub(super) past: Arc<Mutex<Vec<&'static str>>>,
    pub(super) has_ended: Arc<AtomicBool>,
    /// Whether no agent is free; becomes true after `busy_after` queries.
    pub(super) is_busy: Arc<AtomicBool>,
    pub(super) busy_after: Arc<AtomicU32>,
    /// Number of runs that are allowed beside one.
    pub(super) beside: usize,
    /// While this is set, at most for some seconds, no query returns.
    pub(super) is_stuck: Arc<AtomicBool>,
}

impl MadeUp {
    fn be_stuck(&self) {
        // Bounded, so that a failing test ends.
        for _ in (0..2_000).take_while(|_| self.is_stuck.load(Relaxed)) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Runner for MadeUp {
    fn read(&self, spec: &Spec, id: &str) -> Result<Ready, Vec<String>> {
        self.be_stuck();
        self.ids.lock().push(id.to_owned());
        let target = spec.target.clone().or(spec.scenario.clone()).unwrap_or_default();
        if target.contains("wrong") {
            return Err(vec!["target: one mistake".to_owned(), "ramp: and another".to_owned()]);
        }
        let (is_refused, waits) = (target.contains("refused"), target.contains("waits"));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let order = is_stopped.clone();
        let stop: Stop = Box::new(move || order.store(true, Relaxed));
        let work: Work = Box::new(move |sink| {
            if is_refused {
                return Err(vec!["ports: 3 free".to_owned()]);
            }
            while waits && !is_stopped.load(Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            if waits {
                return Err(vec!["interrupted before the run began".to_owned()]);
            }
            sink.begin(&header());
            let mut loads = Vec::new();
            for second in 1u64.. {
                sink.tick(&seen(second.min(3)).0, &Samples::default());
                thread::sleep(Duration::from_millis(10));
                match sink.ask() {
                    Some(Command::Stop | Command::Drain) => break,
                    Some(command) => loads.push(format!("{command:?}")),
                    None => {}
                }
            }
            let summary = Summary { verdict: Verdict::Interrupted, reasons: loads, ..Summary::default() };
            sink.finish(&summary);
            Ok(Finished { summary, stored: Some("stored-1".to_owned()) })
        });
        let record = RunRecord { api_id: Some(id.to_owned()), ..RunRecord::default() };
        Ok(Ready { target, record, work, stop })
    }

    fn read_search(&self, spec: &Spec) -> Result<ReadySearch, Vec<String>> {
        self.be_stuck();
        let target = spec.target.clone().or(spec.scenario.clone()).unwrap_or_default();
        if target.contains("wrong") {
            return Err(vec!["--by: one mistake".to_owned(), "--max: and another".to_owned()]);
        }
        let is_refused = target.contains("refused");
        let is_stopped = Arc::new(AtomicBool::new(false));
        let order = is_stopped.clone();
        let work: SearchWork = Box::new(move |show| {
            if is_refused {
                return Err(vec!["ports: 3 free".to_owned()]);
            }
            show(&Point { load: 500, pass: true, ..Point::default() });
            while !is_stopped.load(Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            let outcome = FindOutcome::NotReached;
            Ok(FindSummary { max: 500, outcome, interrupted: true, ..FindSummary::default() })
        });
        let stop: Stop = Box::new(move || order.store(true, Relaxed));
        Ok(ReadySearch { target, began: Date(1), work, stop })
    }

    fn has_agents_for(&self, _: &Spec) -> Option<bool> {
        let is_taken = self.busy_after.load(Relaxed) > 0 && self.busy_after.fetch_sub(1, Relaxed) == 1;
        Some(!self.is_busy.fetch_or(is_taken, Relaxed) && !is_taken)
    }

    fn past(&self) -> Vec<Past> {
        let is_under_way = |stored: &str| stored == "led" && !self.has_ended.load(Relaxed);
        let past = |stored: &&str| Past {
            id: format!("id-of-{stored}"),
            target: "http://h/".to_owned(),
            began: Date(1),
            connections: 7,
            summary: if *stored == "killed" || is_under_way(stored) {
                Value::Null
            } else {
                json!({ "verdict": "fail", "reasons": ["why"] })
            },
            stored: (*stored).to_owned(),
            is_under_way: is_under_way(stored),
        };
        self.past.lock().iter().map(past).collect()
    }

    fn past_run(&self, stored: &str) -> Option<Past> {
        self.be_stuck();
        self.past().into_iter().find(|past| past.stored == stored)
    }

    fn report(&self, stored: &str) -> Result<Report, String> {
        match stored {
            "killed" => Err("no run killed".to_owned()),
            _ => Ok(Report::new(RunRecord::default())),
        }
    }

    fn compare(&self, base: &str, other: &str) -> Result<String, String> {
        match base {
            "killed" => Err("no run killed".to_owned()),
            _ => Ok(json!({ "schema": "throng.compare/1", "of": [base, other] }).to_string()),
        }
    }

    fn forget(&self, stored: &str) -> Result<(), String> {
        if stored == "killed" {
            return Err("the store cannot be written".to_owned());
        }
        self.past.lock().retain(|past| *past != stored);
        Ok(())
    }

    fn agents(&self) -> Result<Vec<Value>, String> {
        self.be_stuck();
        if self.is_cut_off.load(Relaxed) {
            Err("no connection".to_owned())
        } else {
            Ok(vec![json!({ "id": "a" })])
        }
    }

    fn ask_agent(&self, id: &str, request: &AgentRequest) -> Result<Value, AgentRefusal> {
        self.be_stuck();
        if self.is_cut_off.load(Relaxed) {
            return Err(AgentRefusal::Unreachable("no connection".to_owned()));
        }
        let state = match (id, request) {
            ("busy", _) => return Err(AgentRefusal::Conflict("it takes part in run r1".to_owned())),
            ("a", AgentRequest::Calibrate(Some(time))) if time == "long" => {
                return Err(AgentRefusal::Wrong("duration: at most 1m".to_owned()));
            }
            ("a", AgentRequest::Calibrate(_)) => "calibrating",
            ("a", AgentRequest::Drain) => "draining",
            ("a", AgentRequest::Doctor | AgentRequest::Undrain) => "free",
            _ => return Err(AgentRefusal::Unknown),
        };
        Ok(json!({ "id": id, "state": state, "findings": [] }))
    }

    fn most(&self) -> usize {
        1 + self.beside
    }
}
