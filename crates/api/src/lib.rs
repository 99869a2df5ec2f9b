//! The HTTP API of a coordinator: runs and searches as resources, described by OpenAPI 3.1 at `/openapi.json`.
//!
//! The crate knows nothing of plans: a [`Runner`], passed in by the caller, parses what a request describes and performs it. Each run
//! has a live page, which works through this API.

mod problem;
mod request;
mod routes;
mod runs;
mod search;
#[cfg(test)]
mod tests;

use std::{future, io, net::SocketAddr, sync::Arc, time::Duration};

use samples::{FindSummary, Point, RunRecord, Sink, Summary};
use serde_json::Value;
use units::Date;
use view::Report;
use webserver::{Opens, Web};

use runs::Runs;

/// What a request describes, not parsed yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The target; `None` if the scenario contains it.
    pub target: Option<String>,
    /// The text of a scenario file.
    pub scenario: Option<String>,
    /// The files that the scenario reads: name and content.
    pub files: Vec<(String, String)>,
    /// Flags of `throng run` or `throng find` without `--`, each once.
    pub flags: Vec<(String, Given)>,
}

/// The value of a flag in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// `true`: a flag without a value.
    Alone,
    /// A string or a number.
    One(String),
    /// A list of strings.
    Many(Vec<String>),
}

/// Performs a run; the sink receives its ticks and its end. Errors: the reasons for a refusal.
pub type Work = Box<dyn FnOnce(&mut dyn Sink) -> Result<Finished, Vec<String>> + Send>;

/// A run that was parsed and has not begun.
pub struct Ready {
    /// The target.
    pub target: String,
    /// What is known before the first tick.
    pub record: RunRecord,
    /// Performs the run.
    pub work: Work,
    /// Cancels the preparation; once the run has begun, it accepts commands instead.
    pub stop: Stop,
}

/// The result of a run.
pub struct Finished {
    /// Its summary, with the verdict.
    pub summary: Summary,
    /// Its identifier in the run store; `None` if it was not stored.
    pub stored: Option<String>,
}

/// Performs a search; calls its argument with each completed step. Errors: the reasons for a refusal.
pub type SearchWork = Box<dyn FnOnce(&mut dyn FnMut(&Point)) -> Result<FindSummary, Vec<String>> + Send>;

/// Ends a search early, with the result so far; or cancels a run that has not begun.
pub type Stop = Box<dyn Fn() + Send + Sync>;

/// A search that was parsed and has not begun.
pub struct ReadySearch {
    /// The target.
    pub target: String,
    /// When the request was parsed.
    pub began: Date,
    /// Performs the search.
    pub work: SearchWork,
    /// Ends the search early.
    pub stop: Stop,
}

/// A request to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// Check the limits of its machine again.
    Doctor,
    /// Accept no new runs.
    Drain,
    /// Accept runs again.
    Undrain,
    /// Measure the capacity of its machine; the duration of each of the two measurements, or `None` for the default.
    Calibrate(Option<String>),
}

/// Why a request to an agent failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRefusal {
    /// The request is invalid.
    Wrong(String),
    /// There is no such agent.
    Unknown,
    /// The agent cannot do it in its present state, or there is no fleet.
    Conflict(String),
    /// The agent cannot be reached.
    Unreachable(String),
}

/// A stored run that this API started in an earlier process, or that another server with the same run store started.
pub struct Past {
    /// Its identifier in this API.
    pub id: String,
    /// The target.
    pub target: String,
    /// When the run began.
    pub began: Date,
    /// Planned connections.
    pub connections: u64,
    /// The stored summary; null if the run did not finish.
    pub summary: Value,
    /// The identifier in the run store.
    pub stored: String,
    /// Whether it appears to be in progress, led by another server or by one that has just ended.
    pub is_under_way: bool,
}

/// Performs runs and searches, on this machine or on a fleet.
pub trait Runner: Send + Sync + 'static {
    /// Parses a run; `id` is its identifier in this API.
    ///
    /// # Errors
    /// All mistakes, one per line.
    fn read(&self, spec: &Spec, id: &str) -> Result<Ready, Vec<String>>;

    /// Parses a search, whose flags include `by` and `max`.
    ///
    /// # Errors
    /// All mistakes, one per line.
    fn read_search(&self, spec: &Spec) -> Result<ReadySearch, Vec<String>>;

    /// Whether an agent is free for another run now. `None` if the run would wait for one, the answer is unknown, or there is no
    /// fleet.
    fn has_agents_for(&self, spec: &Spec) -> Option<bool>;

    /// The stored runs that this API started in earlier processes, or other servers started with the same run store; oldest first.
    fn past(&self) -> Vec<Past>;

    /// The current state of one of these runs, by its identifier in the run store; `None` if it has been deleted.
    fn past_run(&self, stored: &str) -> Option<Past>;

    /// The report of one of these runs, by its identifier in the run store.
    ///
    /// # Errors
    /// The run has been deleted or cannot be read.
    fn report(&self, stored: &str) -> Result<Report, String>;

    /// The comparison of two stored runs, by their identifiers in the run store, as JSON (`throng.compare/1`).
    ///
    /// # Errors
    /// One of the runs has been deleted or cannot be read.
    fn compare(&self, base: &str, other: &str) -> Result<String, String>;

    /// Omits a run from [`Runner::past`] from now on.
    ///
    /// # Errors
    /// The store cannot be written.
    fn forget(&self, stored: &str) -> Result<(), String>;

    /// The agents that have joined the fleet, each as an object with its `id`.
    ///
    /// # Errors
    /// The fleet cannot be reached.
    fn agents(&self) -> Result<Vec<Value>, String>;

    /// Sends a request to an agent; returns the agent's state afterwards, as an object with its `id` and `state`.
    ///
    /// # Errors
    /// The agent refused, or cannot be reached.
    fn ask_agent(&self, id: &str, request: &AgentRequest) -> Result<Value, AgentRefusal>;

    /// Maximum number of runs and searches in progress at the same time.
    fn most(&self) -> usize;
}

/// The API server.
pub struct Api {
    web: Web,
    runs: Arc<Runs>,
}

impl Api {
    /// Listens on this address and returns the actual one, with its port. `opens` is the token that every request must contain; if it
    /// is `None`, the caller must ensure that the address is a loopback address.
    ///
    /// # Errors
    /// The address is in use, or another error of bind.
    pub fn start(at: SocketAddr, runner: impl Runner, opens: Option<Opens>) -> io::Result<(Api, SocketAddr)> {
        Api::start_within(routes::PATIENCE, at, runner, opens)
    }

    /// As [`Api::start`], with another timeout for requests.
    fn start_within(
        patience: Duration,
        at: SocketAddr,
        runner: impl Runner,
        opens: Option<Opens>,
    ) -> io::Result<(Api, SocketAddr)> {
        let runs = Arc::new(Runs::new(Box::new(runner)));
        let (web, at) = Web::start(at, routes::router(runs.clone(), opens, patience), future::ready(()))?;
        Ok((Api { web, runs }, at))
    }

    /// Stops all runs and searches, waits for them, and ends the server.
    pub fn end(self) {
        self.runs.stop();
        self.web.end();
    }
}
