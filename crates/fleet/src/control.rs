//! What an operator asks of agents, and of a run: `throng fleet ls`, `doctor`, `calibrate`, `drain`, `set`. Requests and replies
//! over core NATS: who gets no reply asks again.

mod agent;
mod operator;
mod run;

use samples::{Calibration, Command};
use serde::{Deserialize, Serialize};
use units::Count;

use crate::{identity::Identity, name};

pub use agent::{Calibrator, Control};
pub use operator::Operator;
pub use run::Commands;

/// Where all agents are asked.
const TO_ALL: &str = "throng.control";

/// Where one agent is asked.
fn to_one(id: &str) -> String {
    format!("throng.control.{id}")
}

/// Where all agents are asked for what changes nothing: who may look need not be one who may steer.
const LOOK_AT_ALL: &str = "throng.look";

/// The same of one agent.
fn look_at(id: &str) -> String {
    format!("throng.look.{id}")
}

/// Where a process that is to be an agent asks whether there is one of this name.
fn named(id: &str) -> String {
    format!("throng.name.{id}")
}

/// Where the coordinator of a run is asked.
fn to_run(run: &str) -> String {
    format!("throng.command.{run}")
}

/// What is asked of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Who it is, and what it does.
    Status,
    /// The same, of a process that is to be an agent of this name.
    Joining {
        /// The one that asks.
        incarnation: u32,
    },
    /// As [`Request::Status`], after its doctor has looked again.
    Doctor,
    /// To take no new run, until [`Request::Undrain`] or a restart.
    Drain,
    /// To take runs again.
    Undrain,
    /// To measure what it can do, when it is free.
    Calibrate {
        /// Approximate time of each measurement: `8s`.
        duration: String,
    },
}

impl Request {
    /// Whether an agent is the same afterwards.
    fn only_looks(&self) -> bool {
        matches!(self, Request::Status | Request::Joining { .. } | Request::Doctor)
    }
}

/// An agent's reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To all but [`Request::Calibrate`]: as it is now.
    Status(Box<AgentStatus>),
    /// It begins to measure.
    Calibrating {
        /// The agent.
        id: String,
    },
    /// What it measured.
    Calibrated {
        /// The agent.
        id: String,
        /// The figures.
        calibration: Box<Calibration>,
    },
    /// It does not do it.
    Refused {
        /// The agent.
        id: String,
        /// The reason.
        why: String,
    },
}

impl Reply {
    /// Whether the names in it are names: an operator makes subjects of them.
    fn has_names(&self) -> bool {
        let is_run = match self {
            Reply::Status(status) => status.run.as_deref().is_none_or(name::is_run),
            _ => true,
        };
        is_run && name::is_agent(self.id())
    }

    /// The agent.
    pub fn id(&self) -> &str {
        match self {
            Reply::Status(status) => &status.identity.id,
            Reply::Calibrating { id } | Reply::Calibrated { id, .. } | Reply::Refused { id, .. } => id,
        }
    }
}

/// Who an agent is, and what it does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentStatus {
    /// Who it is.
    pub identity: Identity,
    /// `free`, `in run`, `draining` or `calibrating`.
    pub state: String,
    /// The run that it takes part in.
    pub run: Option<String>,
    /// How late its load is, at the 99th percentile of the last second, nanoseconds; `None`: not known, or no run.
    pub lag_ns: Option<u64>,
    /// The share of its machine's processors in use in the last second, from 0 to 1; `None`: not known yet.
    pub cpu: Option<f64>,
}

impl AgentStatus {
    /// What it is called that takes a run.
    const FREE: &'static str = "free";

    /// Whether it takes a run.
    pub fn is_free(&self) -> bool {
        self.state == AgentStatus::FREE
    }
}

/// What a share of a load may be.
pub const LOADS: &str =
    "load: from 0.0001 % to 100 % of the plan's; use load=50%, or throng fleet pause for none";

/// What is asked of a run's coordinator.
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

/// What the coordinator replies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunReply {
    /// It is a command of the run now: what it does.
    Accepted(String),
    /// It is none, for this reason.
    Refused(String),
}

impl RunRequest {
    /// As a command of a run of this many connections, and what it does; or why there is none. In a pause the load is set for the
    /// time after it.
    fn command(self, connections: u64, is_paused: bool) -> Result<(Command, String), String> {
        const ALL: u32 = 1_000_000;
        let when = if is_paused { " when resumed" } else { "" };
        match self {
            RunRequest::Pause => Ok((Command::Pause, "paused".to_owned())),
            RunRequest::Resume => Ok((Command::Resume, "resumed".to_owned())),
            RunRequest::Load(millionths @ 1..=ALL) => {
                let percent = f64::from(millionths) / 10_000.0;
                Ok((Command::Load(millionths), format!("load {percent} % of the plan's{when}")))
            }
            RunRequest::Load(_) => Err(LOADS.to_owned()),
            RunRequest::Connections(_) if connections == 0 => {
                Err("this run has no fixed number of connections; use load=50%".to_owned())
            }
            RunRequest::Connections(n) if n == 0 || n > connections => Err(format!(
                "connections: use 1 to {connections}; a run cannot exceed its plan, because the machines were not checked \
                for more: {n}"
            )),
            RunRequest::Connections(n) => {
                let what = format!("load {} of {}{when}", Count(n), Count(connections).of("connection"));
                Ok((Command::Connections(n), what))
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
                (Err(why), Err(part)) => assert!(why.contains(part), "{request:?}: {why}"),
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
