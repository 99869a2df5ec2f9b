//! The runs that this server has started.

use std::{sync::Arc, thread::JoinHandle};

use axum::http::StatusCode;
use parking_lot::Mutex;
use samples::{Command, Header, RunRecord};
use serde::Serialize;
use serde_json::{Value, json};
use units::Date;
use view::{Feed, Followed};

use crate::{Finished, Past, Ready, Runner, Spec, problem::Problem};

/// Runs that are over of which the results are kept; all of them are in the run store.
const KEPT: usize = 100;

/// All runs, the oldest first.
pub(crate) struct Runs {
    runner: Box<dyn Runner>,
    all: Mutex<Vec<Arc<Run>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A run.
pub(crate) struct Run {
    pub(crate) id: String,
    /// None, before the first one follows a run of an earlier process.
    followed: Mutex<Option<Followed>>,
    target: String,
    began: Date,
    /// Connections of its plan, where it is of an earlier process.
    connections: u64,
    now: Mutex<Now>,
}

/// What became of it so far.
#[derive(Default)]
struct Now {
    state: State,
    reasons: Vec<String>,
    verdict: Option<String>,
    summary: Option<Value>,
    stored: Option<String>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Checks limits, gathers agents.
    #[default]
    Preparing,
    Running,
    /// Over, with a verdict.
    Done,
    /// It could not begin.
    Refused,
    /// The server that started it ended before it did.
    Unfinished,
}

impl Runs {
    pub(crate) fn new(runner: Box<dyn Runner>) -> Runs {
        let past = runner.past();
        let kept = past.len().saturating_sub(KEPT);
        let all = past.into_iter().skip(kept).map(|past| Arc::new(Run::past(past))).collect();
        Runs { runner, all: Mutex::new(all), threads: Mutex::default() }
    }

    /// The agents that have joined.
    pub(crate) fn agents(&self) -> Result<Vec<Value>, Problem> {
        let failed = |why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why);
        self.runner.agents().map_err(failed)
    }

    /// All, the oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Run>> {
        self.all.lock().clone()
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Run>, Problem> {
        let all = self.all.lock();
        all.iter().find(|run| run.id == id).cloned().ok_or_else(|| Problem::unknown(id))
    }

    /// A run as its followers have it; one of an earlier process is read, which may take a while.
    pub(crate) fn followed(&self, id: &str) -> Result<Followed, Problem> {
        let run = self.get(id)?;
        if let Some(followed) = &*run.followed.lock() {
            return Ok(followed.clone());
        }
        let failed = |why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why);
        let stored = run.now.lock().stored.clone().unwrap_or_default();
        let followed = Followed::over(self.runner.report(&stored).map_err(failed)?);
        Ok(run.followed.lock().insert(followed).clone())
    }

    /// Reads what is to run, which may take a while, and starts it. Also returns what carries its events, to be spawned.
    pub(crate) fn start(
        self: &Arc<Self>,
        spec: &Spec,
    ) -> Result<(Arc<Run>, impl Future<Output = ()> + Send + use<>), Problem> {
        self.check_room(&self.all.lock())?;
        let id = format!("{:08x}", units::system_random() as u32);
        let Ready { target, record, work } = self.runner.read(spec, &id).map_err(Problem::wrong)?;
        let (run, mut feed, forward) = Run::new(id, target, record);
        {
            let mut all = self.all.lock();
            // Another one may have come meanwhile.
            self.check_room(&all)?;
            all.push(run.clone());
            let over: Vec<String> =
                all.iter().filter(|run| run.is_over()).map(|run| run.id.clone()).collect();
            if let [oldest, rest @ ..] = over.as_slice()
                && rest.len() >= KEPT
            {
                all.retain(|run| run.id != *oldest);
            }
        }
        let own = run.clone();
        let body = move || {
            own.end(work(&mut feed));
        };
        let thread = std::thread::Builder::new().name(format!("run-{}", run.id)).spawn(body);
        let failed = |e: std::io::Error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, e.to_string());
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread.map_err(failed)?);
        Ok((run, forward))
    }

    fn check_room(&self, all: &[Arc<Run>]) -> Result<(), Problem> {
        let under_way: Vec<&str> =
            all.iter().filter(|run| !run.is_over()).map(|run| run.id.as_str()).collect();
        if under_way.len() < self.runner.most() {
            return Ok(());
        }
        let why = format!(
            "no further run at the same time; stop one with DELETE /runs/ID: {}",
            under_way.join(", ")
        );
        Err(Problem::new(StatusCode::CONFLICT, why))
    }

    /// Stops a run that is under way, and forgets one that is over; whether it was over.
    pub(crate) fn delete(&self, id: &str) -> Result<bool, Problem> {
        let run = self.get(id)?;
        if !run.is_over() {
            run.command(Command::Stop)?;
            return Ok(false);
        }
        if let Some(stored) = run.now.lock().stored.as_deref() {
            let failed = |why| Problem::new(StatusCode::SERVICE_UNAVAILABLE, why);
            self.runner.forget(stored).map_err(failed)?;
        }
        self.all.lock().retain(|run| run.id != id);
        Ok(true)
    }

    /// Stops all, and waits for them.
    pub(crate) fn stop(&self) {
        for run in self.list() {
            // One that is over takes no commands.
            let _ = run.command(Command::Stop);
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A panic is its own.
            let _ = thread.join();
        }
    }
}

impl Run {
    fn new(
        id: String,
        target: String,
        record: RunRecord,
    ) -> (Arc<Run>, Feed, impl Future<Output = ()> + Send + 'static) {
        let began = record.began_ms;
        let (followed, feed, forward) = Followed::new(record);
        let (followed, now) = (Mutex::new(Some(followed)), Mutex::default());
        (Arc::new(Run { id, followed, target, began, connections: 0, now }), feed, forward)
    }

    fn past(Past { id, target, began, connections, summary, stored }: Past) -> Run {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let now = Now {
            state: if summary.is_null() { State::Unfinished } else { State::Done },
            reasons: summary["reasons"].as_array().into_iter().flatten().filter_map(text).collect(),
            verdict: text(&summary["verdict"]),
            summary: Some(summary),
            stored: Some(stored),
        };
        Run { id, followed: Mutex::default(), target, began, connections, now: Mutex::new(now) }
    }

    pub(crate) fn url(&self) -> String {
        format!("/runs/{}", self.id)
    }

    fn is_over(&self) -> bool {
        !matches!(self.now.lock().state, State::Preparing | State::Running)
    }

    /// Connections of its plan; none before it has begun.
    pub(crate) fn connections(&self) -> u64 {
        self.header().map_or(self.connections, |header| header.connections)
    }

    fn header(&self) -> Option<Header> {
        self.followed.lock().as_ref().and_then(Followed::header)
    }

    /// Sends it a command.
    pub(crate) fn command(&self, command: Command) -> Result<(), Problem> {
        if self.is_over() {
            return Err(Problem::new(StatusCode::CONFLICT, format!("this run is over: {}", self.id)));
        }
        let busy = || {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "this run has many commands to look at; try again")
        };
        let is_taken = self.followed.lock().as_ref().is_some_and(|followed| followed.command(command));
        is_taken.then_some(()).ok_or_else(busy)
    }

    fn end(&self, result: Result<Finished, Vec<String>>) {
        let mut now = self.now.lock();
        match result {
            Ok(Finished { summary, stored }) => {
                now.state = State::Done;
                now.verdict = Some(summary.verdict.name().to_owned());
                now.reasons = summary.reasons.clone();
                now.summary = serde_json::from_str(&view::json(&summary)).ok();
                now.stored = stored;
            }
            Err(reasons) => (now.state, now.reasons) = (State::Refused, reasons),
        }
    }

    /// As it is listed; with its summary, where it is shown alone.
    pub(crate) fn json(&self, with_summary: bool) -> Value {
        let (now, url) = (self.now.lock(), self.url());
        let state = match now.state {
            State::Preparing if self.header().is_some() => State::Running,
            state => state,
        };
        let mut json = json!({
            "id": self.id,
            "url": url,
            "events": format!("{url}/events"),
            "page": format!("{url}/page"),
            "state": state,
            "target": self.target,
            "began": self.began.to_string(),
            "connections": self.connections(),
            "verdict": now.verdict,
            "reasons": now.reasons,
            "stored": now.stored,
        });
        if with_summary {
            json["summary"] = now.summary.clone().unwrap_or_default();
        }
        json
    }
}
