//! Requests of operators to agents and to runs: `throng fleet ls`, `doctor`, `calibrate`, `drain`, `set`. Requests and replies use core
//! NATS; a request without a reply must be repeated by the user.

mod agent;
mod operator;

use samples::{Calibration, Command, Header, Phase, Samples, Sink, Tick};
use serde::{Deserialize, Serialize};
use units::{Count, Nanos};

use crate::{
    error::Error,
    identity::Identity,
    link::{Asked, Inbox, Link},
    message::{is_agent_name, is_run_name},
};

pub use agent::{Calibrator, Control};
pub use operator::Operator;

/// Subject of requests to all agents.
const TO_ALL: &str = "throng.control";

/// Subject of requests to one agent.
fn to_one(id: &str) -> String {
    format!("throng.control.{id}")
}

/// Subject of read-only requests to all agents. Separate, so that a server can grant them to users who may not control agents.
const LOOK_AT_ALL: &str = "throng.look";

/// Subject of read-only requests to one agent.
fn look_at(id: &str) -> String {
    format!("throng.look.{id}")
}

/// Subject on which a new agent asks whether its name is taken.
fn named(id: &str) -> String {
    format!("throng.name.{id}")
}

/// Subject of requests to the coordinator of a run.
fn to_run(run: &str) -> String {
    format!("throng.command.{run}")
}

/// A request to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Its identity and state.
    Status,
    /// The same, from a process that is about to join under this name.
    Joining {
        /// The process that asks.
        incarnation: u32,
    },
    /// As [`Request::Status`], after updating the findings.
    Doctor,
    /// Accept no new run, until [`Request::Undrain`] or a restart.
    Drain,
    /// Accept runs again.
    Undrain,
    /// Run a calibration, if the agent is free.
    Calibrate {
        /// Approximate time of each measurement: `8s`.
        duration: String,
    },
}

impl Request {
    /// Whether the request is read-only.
    fn only_looks(&self) -> bool {
        matches!(self, Request::Status | Request::Joining { .. } | Request::Doctor)
    }
}

/// An agent's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The current state; the reply to all requests but [`Request::Calibrate`].
    Status(Box<AgentStatus>),
    /// A calibration begins.
    Calibrating {
        /// The agent.
        id: String,
    },
    /// The result of a calibration.
    Calibrated {
        /// The agent.
        id: String,
        /// The figures.
        calibration: Box<Calibration>,
    },
    /// The agent refuses the request.
    Refused {
        /// The agent.
        id: String,
        /// The reason.
        why: String,
    },
}

impl Reply {
    /// Whether its names are valid; an operator builds subjects from them.
    fn has_names(&self) -> bool {
        let is_run = match self {
            Reply::Status(status) => status.run.as_deref().is_none_or(is_run_name),
            _ => true,
        };
        is_run && is_agent_name(self.id())
    }

    /// The agent.
    pub fn id(&self) -> &str {
        match self {
            Reply::Status(status) => &status.identity.id,
            Reply::Calibrating { id } | Reply::Calibrated { id, .. } | Reply::Refused { id, .. } => id,
        }
    }
}

/// The identity and state of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentStatus {
    /// Its identity.
    pub identity: Identity,
    /// `free`, `in run`, `draining` or `calibrating`.
    pub state: String,
    /// The run that it takes part in.
    pub run: Option<String>,
    /// Lag of its load, in nanoseconds: the 99th percentile of the last second. `None`: unknown, or no run.
    pub lag_ns: Option<u64>,
    /// Fraction of its machine's processors in use in the last second, from 0 to 1; `None`: unknown.
    pub cpu: Option<f64>,
}

impl AgentStatus {
    /// The state of an agent that accepts runs.
    const FREE: &'static str = "free";

    /// Whether it accepts runs.
    pub fn is_free(&self) -> bool {
        self.state == AgentStatus::FREE
    }
}

/// The valid values of `load=`.
pub const LOADS: &str =
    "load: from 0.0001 % to 100 % of the plan's; use load=50%, or throng fleet pause for none";

/// A request to a run's coordinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunRequest {
    /// Set the load to this number of connections.
    Connections(u64),
    /// Set the load to this share of the plan's, in millionths.
    Load(u32),
    /// Start nothing new.
    Pause,
    /// Continue.
    Resume,
}

/// The coordinator's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunReply {
    /// The request is now a command of the run; describes its effect.
    Accepted(String),
    /// The request is refused, for this reason.
    Refused(String),
}

impl RunRequest {
    /// The command for a run with this many connections, and its description; or the reason for a refusal. During a pause, the load is
    /// set for the time afterwards.
    fn command(self, connections: u64, is_paused: bool) -> Result<(Command, String), Error> {
        const ALL: u32 = 1_000_000;
        let when = if is_paused { " when resumed" } else { "" };
        match self {
            RunRequest::Pause => Ok((Command::Pause, "paused".to_owned())),
            RunRequest::Resume => Ok((Command::Resume, "resumed".to_owned())),
            RunRequest::Load(millionths @ 1..=ALL) => {
                let percent = f64::from(millionths) / 10_000.0;
                Ok((Command::Load(millionths), format!("load {percent} % of the plan's{when}")))
            }
            RunRequest::Load(_) => Err(Error::refused(LOADS)),
            RunRequest::Connections(_) if connections == 0 => {
                Err(Error::refused("this run has no fixed number of connections; use load=50%"))
            }
            RunRequest::Connections(n) if n == 0 || n > connections => Err(Error::Refused(format!(
                "connections: use 1 to {connections}; a run cannot exceed its plan, because the machines were not checked \
                for more: {n}"
            ))),
            RunRequest::Connections(n) => {
                let what = format!("load {} of {}{when}", Count(n), Count(connections).of("connection"));
                Ok((Command::Connections(n), what))
            }
        }
    }
}

/// Receives commands of a run over NATS: a sink that supplies commands, like a terminal or a page.
pub struct Commands {
    requests: Inbox<Asked<RunRequest>>,
    /// Connections of the plan.
    connections: u64,
    /// Whether the run is paused, by its last second and the commands since.
    is_paused: bool,
}

impl Commands {
    /// Subscribes to commands of this run.
    ///
    /// # Errors
    /// NATS refuses the subscription.
    pub fn new(link: &Link, run: &str) -> Result<Commands, Error> {
        Ok(Commands { requests: link.serve(to_run(run))?, connections: 0, is_paused: false })
    }
}

impl Sink for Commands {
    fn begin(&mut self, header: &Header) {
        self.connections = header.connections;
    }

    fn tick(&mut self, tick: &Tick, _: &Samples) {
        self.is_paused = tick.phase == Phase::Pause;
    }

    fn ask(&mut self) -> Option<Command> {
        let asked = self.requests.next(Nanos::ZERO)?;
        match asked.message.command(self.connections, self.is_paused) {
            Ok((command, what)) => {
                asked.reply(&RunReply::Accepted(what));
                self.is_paused = command == Command::Pause || self.is_paused && command != Command::Resume;
                Some(command)
            }
            Err(why) => {
                asked.reply(&RunReply::Refused(why.to_string()));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_share_of_the_plans() {
        use RunRequest::{Connections, Load};
        for (request, connections, expected) in [
            (Connections(50), 200, Ok(Command::Connections(50))),
            (Connections(200), 200, Ok(Command::Connections(200))),
            (Load(1), 0, Ok(Command::Load(1))),
            (RunRequest::Pause, 0, Ok(Command::Pause)),
            (Connections(201), 200, Err("connections: use 1 to 200; ")),
            (Connections(0), 200, Err("connections: use 1 to 200; ")),
            (Connections(u64::MAX), u64::MAX - 1, Err("for more: 18446744073709551615")),
            (Connections(5), 0, Err("use load=50%")),
            (Load(0), 1, Err("use load=50%")),
            (Load(1_000_001), 1, Err("use load=50%")),
        ] {
            match (request.command(connections, false), expected) {
                (Ok((command, _)), Ok(expected)) => assert_eq!(command, expected, "{request:?}"),
                (Err(why), Err(part)) => assert!(why.to_string().contains(part), "{request:?}: {why}"),
                (other, _) => panic!("{request:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_reply_says_what_a_command_does_and_when() {
        let said = |request: RunRequest, is_paused| request.command(3_000, is_paused).map(|(_, what)| what);
        for (request, at_once, in_a_pause) in [
            (
                RunRequest::Connections(1_000),
                "load 1,000 of 3,000 connections",
                "load 1,000 of 3,000 connections when resumed",
            ),
            (
                RunRequest::Load(125_000),
                "load 12.5 % of the plan's",
                "load 12.5 % of the plan's when resumed",
            ),
            (RunRequest::Resume, "resumed", "resumed"),
        ] {
            assert_eq!(said(request, false).as_deref(), Ok(at_once));
            assert_eq!(said(request, true).as_deref(), Ok(in_a_pause));
        }
    }
}
