//! The runs and searches of this server, in progress or over.
//!
//! Each is performed by a thread of its own. Runs that are over are kept up to a limit, as are those of earlier processes, which come
//! from the run store. A run that another server leads is read again from the store on each request.

use std::{
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::Mutex;
use samples::{Command, Header, Point, RunRecord};
use serde::Serialize;
use serde_json::{Value, json};
use units::Date;
use view::{Feed, Followed, ReportFormat};

use crate::{
    AgentRefusal, AgentRequest, Finished, Past, Ready, ReadySearch, Runner, Spec, Stop, problem::Problem,
    search::Search,
};

/// Maximum number of runs that are over and are kept in the list (all are in the run store), and likewise of searches.
const KEPT: usize = 100;
/// Maximum wait for the turn to make a report or a comparison; shorter than the timeout of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// A run that is preparing takes its agents within about 3 s. This is how often a new run checks for free agents before it begins;
/// each check takes half a second. In total it must take less than the timeout of a request.
const LOOKS: u32 = 6;
const LOOKS_EVERY: Duration = Duration::from_millis(200);

/// All runs and searches of this server.
pub(crate) struct Runs {
    runner: Box<dyn Runner>,
    all: Mutex<All>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held while a report or a comparison is made: each takes memory and time, so only one is made at a time.
    turn: Mutex<()>,
}

/// Runs and searches, oldest first.
#[derive(Default)]
struct All {
    runs: Vec<Arc<Run>>,
    searches: Vec<Arc<Search>>,
}

/// A run, shared between the thread that performs it and the requests that read it.
pub(crate) struct Run {
    pub(crate) id: String,
    /// What followers of the run receive; `None` for a run of an earlier process until the first request reads it from the store.
    followed: Mutex<Option<Followed>>,
    target: String,
    began: Date,
    /// Planned connections, for a run of an earlier process.
    connections: u64,
    /// Ends a run that has not begun; `None` for a run of an earlier process.
    stop: Option<Stop>,
    now: Mutex<Now>,
}

/// The state of a run.
#[derive(Default)]
struct Now {
    state: State,
    reasons: Vec<String>,
    verdict: Option<String>,
    summary: Option<Value>,
    stored: Option<String>,
    /// Whether another server appears to lead the run, and the run store is updated by it.
    is_elsewhere: bool,
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Checks limits and takes agents.
    #[default]
    Preparing,
    Running,
    /// Over, with a verdict.
    Done,
    /// Refused before it began.
    Refused,
    /// Begun by another process, which ended before the run did, or still leads it.
    Unfinished,
}

impl Runs {
    pub(crate) fn new(runner: Box<dyn Runner>) -> Runs {
        let past = runner.past();
        let kept = past.len().saturating_sub(KEPT);
        let runs = past.into_iter().skip(kept).map(|past| Arc::new(Run::past(past))).collect();
        let all = All { runs, ..All::default() };
        Runs { runner, all: Mutex::new(all), threads: Mutex::default(), turn: Mutex::default() }
    }

    /// The agents that have joined the fleet.
    pub(crate) fn agents(&self) -> Result<Vec<Value>, Problem> {
        self.runner.agents().map_err(Problem::unavailable)
    }

    /// Sends a request to an agent; returns the agent's state afterwards.
    pub(crate) fn ask_agent(&self, id: &str, request: &AgentRequest) -> Result<Value, Problem> {
        self.runner.ask_agent(id, request).map_err(|refusal| match refusal {
            AgentRefusal::Wrong(why) => Problem::wrong(vec![why]),
            AgentRefusal::Unknown => Problem::unknown("agent", "/agents", id),
            AgentRefusal::Conflict(why) => Problem::conflict(why),
            AgentRefusal::Unreachable(why) => Problem::unavailable(why),
        })
    }

    /// All runs, oldest first.
    pub(crate) fn list(&self) -> Vec<Arc<Run>> {
        let runs = self.all.lock().runs.clone();
        runs.iter().for_each(|run| self.look_again(run));
        runs
    }

    /// All searches, oldest first.
    pub(crate) fn searches(&self) -> Vec<Arc<Search>> {
        self.all.lock().searches.clone()
    }

    pub(crate) fn get(&self, id: &str) -> Result<Arc<Run>, Problem> {
        let run = self.all.lock().runs.iter().find(|run| run.id == id).cloned();
        let run = run.ok_or_else(|| Problem::unknown("run", "/runs", id))?;
        self.look_again(&run);
        Ok(run)
    }

    /// Updates a run that another server leads from the run store.
    fn look_again(&self, run: &Run) {
        let stored = run.led_elsewhere().then(|| run.now.lock().stored.clone()).flatten();
        let Some(stored) = stored else { return };
        match self.runner.past_run(&stored) {
            Some(past) => *run.now.lock() = Now::past(past),
            None => run.now.lock().is_elsewhere = false,
        }
    }

    pub(crate) fn search(&self, id: &str) -> Result<Arc<Search>, Problem> {
        let all = self.all.lock();
        let search = all.searches.iter().find(|search| search.id == id).cloned();
        search.ok_or_else(|| Problem::unknown("search", "/searches", id))
    }

    /// What followers of a run receive. A run of an earlier process is read from the store, which may take a while.
    pub(crate) fn followed(&self, id: &str) -> Result<Followed, Problem> {
        let run = self.get(id)?;
        if let Some(followed) = &*run.followed.lock() {
            return Ok(followed.clone());
        }
        let stored = run.now.lock().stored.clone().unwrap_or_default();
        let followed = Followed::over(self.runner.report(&stored).map_err(Problem::unavailable)?);
        if run.led_elsewhere() {
            return Ok(followed);
        }
        Ok(run.followed.lock().insert(followed).clone())
    }

    /// The report of a run so far. May take a while.
    pub(crate) fn report(&self, id: &str, format: ReportFormat) -> Result<String, Problem> {
        let run = self.get(id)?;
        let _turn = self.turn.try_lock_for(PATIENCE).ok_or_else(busy)?;
        let followed = self.followed(id)?;
        if followed.header().is_none() {
            return Err(Problem::conflict(format!("this run has not begun: {id}")));
        }
        let mut report = followed.report();
        if let Some(stored) = run.now.lock().stored.clone() {
            report.name(stored);
        }
        Ok(format.text(&report))
    }

    /// The comparison of two runs, as JSON. May take a while.
    pub(crate) fn compare(&self, base: &str, other: &str) -> Result<String, Problem> {
        let stored = |id: &str| {
            let stored = self.get(id)?.now.lock().stored.clone();
            stored.ok_or_else(|| Problem::conflict(format!("this run is not over, or was not stored: {id}")))
        };
        let (base, other) = (stored(base)?, stored(other)?);
        let _turn = self.turn.try_lock_for(PATIENCE).ok_or_else(busy)?;
        self.runner.compare(&base, &other).map_err(Problem::unavailable)
    }

    /// Parses and starts a run; may take a while. `mistakes` are those already found in the request itself. Also returns the future
    /// that forwards the run's events, which the caller must spawn.
    pub(crate) fn start(
        self: &Arc<Self>,
        spec: &Spec,
        mistakes: Vec<String>,
    ) -> Result<(Arc<Run>, impl Future<Output = ()> + Send + use<>), Problem> {
        let id = new_id();
        let Ready { target, record, work, stop } = checked(mistakes, self.runner.read(spec, &id))?;
        self.check_room(&self.all.lock())?;
        self.check_agents(spec)?;
        let (run, mut feed, forward) = Run::new(id, target, record, stop);
        {
            let mut all = self.all.lock();
            // Another request may have started a run meanwhile.
            self.check_room(&all)?;
            all.runs.push(run.clone());
            forget_oldest(&mut all.runs, Run::is_over);
        }
        let own = run.clone();
        self.spawn(&run.id, move || own.end(work(&mut feed)))?;
        Ok((run, forward))
    }

    /// Parses and starts a search; may take a while. `mistakes` are those already found in the request itself.
    pub(crate) fn start_search(&self, spec: &Spec, mistakes: Vec<String>) -> Result<Arc<Search>, Problem> {
        let ReadySearch { target, began, work, stop } = checked(mistakes, self.runner.read_search(spec))?;
        self.check_room(&self.all.lock())?;
        self.check_agents(spec)?;
        let search = Arc::new(Search::new(new_id(), target, began, stop));
        {
            let mut all = self.all.lock();
            self.check_room(&all)?;
            all.searches.push(search.clone());
            forget_oldest(&mut all.searches, Search::is_over);
        }
        let own = search.clone();
        self.spawn(&search.id, move || own.end(work(&mut |step: &Point| own.add(step))))?;
        Ok(search)
    }

    /// Starts the thread of a run or a search.
    fn spawn(&self, id: &str, body: impl FnOnce() + Send + 'static) -> Result<(), Problem> {
        let thread = thread::Builder::new().name(format!("run-{id}")).spawn(body);
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread.map_err(|e| Problem::unavailable(e.to_string()))?);
        Ok(())
    }

    fn check_room(&self, all: &All) -> Result<(), Problem> {
        let under_way = all.under_way();
        if under_way.len() < self.runner.most() {
            return Ok(());
        }
        let why = format!("no further run at the same time; stop one with DELETE: {}", under_way.join(", "));
        Err(Problem::conflict(why))
    }

    /// Refuses a run if no agent is free for it; may take a while. Checked only while this server has another run or search in
    /// progress: agents busy with other servers' runs may be free when this run begins, or their run may be the one that it
    /// continues.
    fn check_agents(&self, spec: &Spec) -> Result<(), Problem> {
        for _ in 0..LOOKS {
            let (under_way, is_preparing) = {
                let all = self.all.lock();
                (all.under_way(), all.runs.iter().any(|run| run.is_preparing()))
            };
            if under_way.is_empty() {
                break;
            }
            match self.runner.has_agents_for(spec) {
                Some(false) => {
                    let all = under_way.join(", ");
                    let why = format!("no agent is free; stop a run with DELETE, or wait: {all}");
                    return Err(Problem::conflict(why));
                }
                // The free agents may be about to be taken by the run that is preparing.
                Some(true) if is_preparing => thread::sleep(LOOKS_EVERY),
                _ => break,
            }
        }
        Ok(())
    }

    /// Stops a run in progress, or removes one that is over; returns whether it was over.
    pub(crate) fn delete(&self, id: &str) -> Result<bool, Problem> {
        let run = self.get(id)?;
        if run.led_elsewhere() {
            return Err(led_elsewhere(id));
        }
        if !run.is_over() {
            run.command(Command::Stop)?;
            return Ok(false);
        }
        if let Some(stored) = run.now.lock().stored.as_deref() {
            self.runner.forget(stored).map_err(Problem::unavailable)?;
        }
        self.all.lock().runs.retain(|run| run.id != id);
        Ok(true)
    }

    /// As [`Runs::delete`], for a search.
    pub(crate) fn delete_search(&self, id: &str) -> Result<bool, Problem> {
        let search = self.search(id)?;
        if !search.is_over() {
            search.stop();
            return Ok(false);
        }
        self.all.lock().searches.retain(|search| search.id != id);
        Ok(true)
    }

    /// Stops all runs and searches, and waits until their threads have ended.
    pub(crate) fn stop(&self) {
        for run in self.list() {
            // A run that is over accepts no commands.
            let _ = run.command(Command::Stop);
        }
        self.searches().iter().for_each(|search| search.stop());
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

impl All {
    /// The paths of all runs and searches in progress.
    fn under_way(&self) -> Vec<String> {
        let runs = self.runs.iter().filter(|run| !run.is_over()).map(|run| run.url());
        let searches = self.searches.iter().filter(|search| !search.is_over()).map(|search| search.url());
        runs.chain(searches).collect()
    }
}

/// Removes the oldest entry that is over, if more than [`KEPT`] are.
fn forget_oldest<T>(all: &mut Vec<Arc<T>>, is_over: impl Fn(&T) -> bool) {
    let mut over = (0..all.len()).filter(|nth| is_over(&all[*nth]));
    if let (Some(oldest), true) = (over.next(), over.count() >= KEPT) {
        all.remove(oldest);
    }
}

/// Combines the mistakes of a request with the result of parsing what it describes.
///
/// # Errors
/// All mistakes in the request and in the plan.
fn checked<T>(mistakes: Vec<String>, read: Result<T, Vec<String>>) -> Result<T, Problem> {
    match read {
        Ok(read) if mistakes.is_empty() => Ok(read),
        read => Err(Problem::wrong([mistakes, read.err().unwrap_or_default()].concat())),
    }
}

fn new_id() -> String {
    format!("{:08x}", units::system_random() as u32)
}

fn busy() -> Problem {
    Problem::unavailable("another report or comparison is being made; try again")
}

fn led_elsewhere(id: &str) -> Problem {
    Problem::conflict(format!("another server may still lead this run; ask that one, or wait a moment: {id}"))
}

impl Now {
    fn past(Past { summary, stored, is_under_way, .. }: Past) -> Now {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Now {
            state: if summary.is_null() { State::Unfinished } else { State::Done },
            reasons: summary["reasons"].as_array().into_iter().flatten().filter_map(text).collect(),
            verdict: text(&summary["verdict"]),
            summary: Some(summary),
            stored: Some(stored),
            is_elsewhere: is_under_way,
        }
    }
}

impl Run {
    fn new(
        id: String,
        target: String,
        record: RunRecord,
        stop: Stop,
    ) -> (Arc<Run>, Feed, impl Future<Output = ()> + Send + 'static) {
        let began = record.began_ms;
        let (followed, feed, forward) = Followed::new(record);
        let (followed, now) = (Mutex::new(Some(followed)), Mutex::default());
        let run = Run { id, followed, target, began, connections: 0, stop: Some(stop), now };
        (Arc::new(run), feed, forward)
    }

    fn past(past: Past) -> Run {
        let (id, target) = (past.id.clone(), past.target.clone());
        let (began, connections) = (past.began, past.connections);
        let (followed, now) = (Mutex::default(), Mutex::new(Now::past(past)));
        Run { id, followed, target, began, connections, stop: None, now }
    }

    pub(crate) fn url(&self) -> String {
        format!("/runs/{}", self.id)
    }

    fn is_over(&self) -> bool {
        !matches!(self.now.lock().state, State::Preparing | State::Running)
    }

    /// Whether the run has not begun, and may still take any free agent.
    fn is_preparing(&self) -> bool {
        !self.is_over() && self.header().is_none()
    }

    fn led_elsewhere(&self) -> bool {
        self.now.lock().is_elsewhere
    }

    /// The planned connections; 0 before the run has begun.
    pub(crate) fn connections(&self) -> u64 {
        self.header().map_or(self.connections, |header| header.connections)
    }

    fn header(&self) -> Option<Header> {
        self.followed.lock().as_ref().and_then(Followed::header)
    }

    /// Sends a command to the run.
    pub(crate) fn command(&self, command: Command) -> Result<(), Problem> {
        if self.led_elsewhere() {
            return Err(led_elsewhere(&self.id));
        }
        if self.is_over() {
            return Err(Problem::conflict(format!("this run is over: {}", self.id)));
        }
        let many = || Problem::unavailable("this run has many commands to look at; try again");
        let is_taken = self.followed.lock().as_ref().is_some_and(|followed| followed.command(command));
        // Before a run begins, no conductor takes commands: stop and drain end its preparation.
        let ends = matches!(command, Command::Stop | Command::Drain) && self.header().is_none();
        self.stop.iter().filter(|_| ends).for_each(|stop| stop());
        (is_taken || ends).then_some(()).ok_or_else(many)
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

    /// The run as JSON; `with_summary` adds its summary, which lists omit.
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
