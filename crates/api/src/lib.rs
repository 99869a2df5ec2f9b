//! The HTTP API of a coordinator: runs and searches as resources, described by OpenAPI 3.1 at `/openapi.json`.
//!
//! It knows nothing of plans: what a request describes is read, and carried out, by a [`Runner`]. A run is followed as on the live
//! page, which is served for each run and works through this API.

mod problem;
mod request;
mod routes;
mod runs;
mod search;
#[cfg(test)]
mod tests;

use std::{future, io, net::SocketAddr, sync::Arc, time::Duration};

use exporters::web::{Opens, Web};
use samples::{FindSummary, Point, RunRecord, Sink, Summary};
use serde_json::Value;
use units::Date;
use view::Report;

use runs::Runs;

/// What a request describes, as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The target, or none where the scenario has it.
    pub target: Option<String>,
    /// The text of a scenario file.
    pub scenario: Option<String>,
    /// Files that the scenario reads, by name.
    pub files: Vec<(String, String)>,
    /// Flags of `throng run`, or of `throng find`, without `--`, each once.
    pub flags: Vec<(String, Given)>,
}

/// What a request has for a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// `true`: the flag, without a value.
    Alone,
    /// A string, or a number.
    One(String),
    /// A list of strings.
    Many(Vec<String>),
}

/// Carries out a run; the sink sees it as it happens.
pub type Work = Box<dyn FnOnce(&mut dyn Sink) -> Result<Finished, Vec<String>> + Send>;

/// A run that was read, and has not begun.
pub struct Ready {
    /// What it loads.
    pub target: String,
    /// What is known of it.
    pub record: RunRecord,
    /// Carries it out, or says why it cannot.
    pub work: Work,
    /// Ends what it waits for before it begins; a run that has begun takes commands.
    pub stop: Stop,
}

/// A run that is over.
pub struct Finished {
    /// What it means.
    pub summary: Summary,
    /// Its id in the run store, if it was stored.
    pub stored: Option<String>,
}

/// Carries out a search; calls its argument with each completed step.
pub type SearchWork = Box<dyn FnOnce(&mut dyn FnMut(&Point)) -> Result<FindSummary, Vec<String>> + Send>;

/// Ends a search early, with a result as far as it came; or a run that has not begun.
pub type Stop = Box<dyn Fn() + Send + Sync>;

/// A search that was read, and has not begun.
pub struct ReadySearch {
    /// What it loads.
    pub target: String,
    /// When it was read.
    pub began: Date,
    /// Carries it out, or says why it cannot.
    pub work: SearchWork,
    /// Ends it early.
    pub stop: Stop,
}

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest {
    /// Check the limits of its machine again.
    Doctor,
    /// Take no new run.
    Drain,
    /// Take runs again.
    Undrain,
    /// Measure what its machine can do; the time of each of the two measurements, if it is given.
    Calibrate(Option<String>),
}

/// Why an agent does not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRefusal {
    /// The request is wrong.
    Wrong(String),
    /// There is no such agent.
    Unknown,
    /// It cannot do it now, or there is no fleet.
    Conflict(String),
    /// It cannot be asked.
    Unreachable(String),
}

/// A stored run that was started by this API before this process, or by another server with the same run store.
pub struct Past {
    /// Its id in this API.
    pub id: String,
    /// What it loaded.
    pub target: String,
    /// When it began.
    pub began: Date,
    /// Connections of its plan.
    pub connections: u64,
    /// Its summary as it is stored; null, where it did not come to its end.
    pub summary: Value,
    /// Its id in the run store.
    pub stored: String,
    /// It appears to be in progress: another server leads it, or one that has ended a moment ago.
    pub is_under_way: bool,
}

/// What carries out runs: this machine, or a fleet.
pub trait Runner: Send + Sync + 'static {
    /// Reads what is to run; `id`: of the run in this API.
    ///
    /// # Errors
    /// All mistakes, a line each.
    fn read(&self, spec: &Spec, id: &str) -> Result<Ready, Vec<String>>;

    /// Reads a search: what is to run at each step, with `by` and `max` among its flags.
    ///
    /// # Errors
    /// All mistakes, a line each.
    fn read_search(&self, spec: &Spec) -> Result<ReadySearch, Vec<String>>;

    /// Whether a further run would find an agent that is free now. None, where it waits for one, that is not known, or there is no
    /// fleet.
    fn has_agents_for(&self, spec: &Spec) -> Option<bool>;

    /// The stored runs that were started by this API before this process, and by others with the same run store, the oldest first.
    fn past(&self) -> Vec<Past>;

    /// One of them as it is now, by its id in the run store; none, where it is not there any more.
    fn past_run(&self, stored: &str) -> Option<Past>;

    /// The report of one of them, by its id in the run store.
    ///
    /// # Errors
    /// It is not there any more, or cannot be read.
    fn report(&self, stored: &str) -> Result<Report, String>;

    /// What differs between two stored runs, by their ids in the run store, as JSON (`throng.compare/1`).
    ///
    /// # Errors
    /// One of them is not there any more, or cannot be read.
    fn compare(&self, base: &str, other: &str) -> Result<String, String>;

    /// Leaves one of them out of [`Runner::past`] from now on.
    ///
    /// # Errors
    /// The store cannot be written.
    fn forget(&self, stored: &str) -> Result<(), String>;

    /// The agents that have joined, each as an object with its `id`.
    ///
    /// # Errors
    /// They cannot be asked.
    fn agents(&self) -> Result<Vec<Value>, String>;

    /// Asks an agent; the agent as it is then, as an object with its `id` and its `state`.
    ///
    /// # Errors
    /// It does not do it.
    fn ask_agent(&self, id: &str, request: &AgentRequest) -> Result<Value, AgentRefusal>;

    /// How many runs and searches there may be at once.
    fn most(&self) -> usize;
}

/// The running API.
pub struct Api {
    web: Web,
    runs: Arc<Runs>,
}

impl Api {
    /// Serves at this address; also returns it, with the port. `opens`: the token that every request must show; without it the
    /// caller has to see to it that the address is on loopback.
    ///
    /// # Errors
    /// Another one listens there, or another error of bind.
    pub fn start(at: SocketAddr, runner: impl Runner, opens: Option<Opens>) -> io::Result<(Api, SocketAddr)> {
        Api::start_within(routes::PATIENCE, at, runner, opens)
    }

    /// The same with another timeout of requests.
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

    /// Stops all runs and searches, waits for them, and ends.
    pub fn end(self) {
        self.runs.stop();
        self.web.end();
    }
}
