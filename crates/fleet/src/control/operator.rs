//! The operator's side of requests.

use std::collections::{BTreeMap, BTreeSet};

use units::{Clock, Nanos};

use super::{
    AgentStatus, LOOK_AT_ALL, Reply, Request, RunReply, RunRequest, TO_ALL, look_at, to_one, to_run,
};
use crate::{
    error::Error,
    link::Link,
    message::{is_agent_name, is_run_name},
};

/// Maximum time for an agent's reply.
const REPLIES: Nanos = Nanos::from_millis(1_500);
/// Once an agent has replied: maximum time after the last reply for further ones.
const QUIET: Nanos = Nanos::from_millis(500);
/// Maximum time for a coordinator's reply.
const RUN_REPLIES: Nanos = Nanos::from_secs(5);

/// Sends requests to agents and runs.
pub struct Operator {
    link: Link,
    clock: Clock,
}

impl Operator {
    /// An operator on this connection.
    pub fn new(link: Link) -> Operator {
        Operator { link, clock: Clock::start() }
    }

    /// Sends a request to these agents, or to all if none is named. Returns the replies, sorted by name.
    ///
    /// # Errors
    /// NATS refuses the request, or a named agent does not exist.
    pub fn ask(&self, names: &[String], request: &Request) -> Result<Vec<AgentStatus>, Error> {
        // Typed names become part of subjects.
        if let Some(wrong) = names.iter().find(|name| !is_agent_name(name)) {
            return Err(none_such("agent", &format!("{wrong:?}")));
        }
        let found = self.found(names, request)?;
        let missing = names.iter().filter(|name| !found.contains_key(*name));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        if !missing.is_empty() {
            return Err(none_such("agent", &missing.join(", ")));
        }
        let status = |reply| match reply {
            Reply::Status(status) => Some(*status),
            _ => None,
        };
        Ok(found.into_values().filter_map(status).collect())
    }

    /// Sends a request to one agent. Returns its first reply, which for a calibration says that it begins; `None` if the agent does not
    /// exist.
    ///
    /// # Errors
    /// NATS refuses the request.
    pub fn ask_one(&self, name: &str, request: &Request) -> Result<Option<Reply>, Error> {
        // The name becomes part of a subject.
        if !is_agent_name(name) {
            return Ok(None);
        }
        Ok(self.found(&[name.to_owned()], request)?.remove(name))
    }

    /// The first reply of each of these agents that has joined; of all agents if none is named.
    fn found(&self, names: &[String], request: &Request) -> Result<BTreeMap<String, Reply>, Error> {
        let subjects = match (names, request.only_looks()) {
            ([], true) => vec![LOOK_AT_ALL.to_owned()],
            ([], false) => vec![TO_ALL.to_owned()],
            (names, true) => names.iter().map(|name| look_at(name)).collect(),
            (names, false) => names.iter().map(|name| to_one(name)).collect(),
        };
        let mut inboxes = Vec::new();
        for subject in subjects {
            inboxes.push(self.link.ask::<Reply>(subject, request)?);
        }
        let mut found = BTreeMap::new();
        let mut until = self.clock.now() + REPLIES;
        while self.clock.now() < until && (names.is_empty() || found.len() < names.len()) {
            for inbox in &inboxes {
                let wait = Nanos::from_millis(20).min(until.since(self.clock.now()));
                if let Some(reply) = inbox.next(wait).filter(Reply::has_names) {
                    found.insert(reply.id().to_owned(), reply);
                    until = until.min(self.clock.now() + QUIET);
                }
            }
        }
        Ok(found)
    }

    /// Calibrates these agents, or all, simultaneously; `came` gets each result. Waits until all have finished, but no longer than
    /// `within`.
    ///
    /// # Errors
    /// NATS refuses a request, or a named agent does not exist.
    pub fn calibrate(
        &self,
        names: &[String],
        duration: &str,
        within: Nanos,
        came: &mut dyn FnMut(&Reply),
    ) -> Result<(), Error> {
        let statuses = self.ask(names, &Request::Status)?;
        let mut waiting: BTreeSet<String> = statuses.into_iter().map(|status| status.identity.id).collect();
        let mut inboxes = Vec::new();
        for id in &waiting {
            let request = Request::Calibrate { duration: duration.to_owned() };
            inboxes.push(self.link.ask::<Reply>(to_one(id), &request)?);
        }
        let until = self.clock.now() + within;
        while !waiting.is_empty() && self.clock.now() < until {
            for inbox in &inboxes {
                let Some(reply) = inbox.next(Nanos::from_millis(20)) else { continue };
                if !matches!(reply, Reply::Calibrating { .. }) && waiting.remove(reply.id()) {
                    came(&reply);
                }
            }
        }
        for id in waiting {
            let why = format!("no result within {within}");
            came(&Reply::Refused { id, why });
        }
        Ok(())
    }

    /// Sends a request to a run, or to the only one in progress if none is named. Returns the run, and the effect.
    ///
    /// # Errors
    /// There is no run, or several, or the run refuses.
    pub fn command(&self, run: Option<&str>, request: RunRequest) -> Result<(String, String), Error> {
        let run = match run {
            Some(run) if is_run_name(run) => run.to_owned(),
            Some(run) => return Err(none_such("run", &format!("{run:?}"))),
            None => self.only_run()?,
        };
        let replies = self.link.ask::<RunReply>(to_run(&run), &request)?;
        match replies.next(RUN_REPLIES) {
            Some(RunReply::Accepted(what)) => Ok((run, what)),
            Some(RunReply::Refused(why)) => Err(Error::Refused(why)),
            None => {
                let why = format!("the coordinator of run {run} does not reply; is it still in progress?");
                Err(Error::Missing(why))
            }
        }
    }

    fn only_run(&self) -> Result<String, Error> {
        let statuses = self.ask(&[], &Request::Status)?;
        let runs: BTreeSet<String> = statuses.into_iter().filter_map(|status| status.run).collect();
        let mut runs = runs.into_iter();
        match (runs.next(), runs.next()) {
            (Some(run), None) => Ok(run),
            (None, _) => Err(Error::Missing("no run is in progress on these agents".to_owned())),
            (Some(one), Some(other)) => {
                let all: Vec<String> = [one, other].into_iter().chain(runs).collect();
                let all = all.join(", ");
                Err(Error::Missing(format!("several runs are in progress; use --run with one of {all}")))
            }
        }
    }
}

fn none_such(what: &str, names: &str) -> Error {
    Error::Missing(format!("no such {what}; list them with throng fleet ls: {names}"))
}
