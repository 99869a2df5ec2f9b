//! One plan on many machines: agents that joined over NATS, and the coordinator that leads them.
//!
//! ```text
//! coordinator                          agent
//!   which agents exist     ◄─ Here ────  each second: its identity, and its run
//!   offer the plan         ── Offer ──►  plan, names, allow list, capacity     ─► Accepted or Refused
//!   parts that sum up      ── Assign ─►  caps and limits; missing table values ─► Lacks
//!   rows of tables         ── Rows ───►  threads set up                  ─► Ready or Refused
//!   measure each clock     ── Lead ───►  replies at once
//!   the run begins         ── Lead ───►  at the same time, by its own clock ─► Running
//!   run's conductor        ── Lead ───►  orders to its threads; renews its lease
//!   merges the log         ◄═ Ticks ══  each second, from its outbox
//!   checks the sums        ◄═ Sealed ══  the last entry of its log
//!   the run is over        ── Release ►  free
//! ```
//!
//! Messages (`──`) may be lost, repeated or late: the sender repeats them until they are answered. The log (`══`) is stored by NATS
//! JetStream. [`coordinator`] and [`agent`] are pure; `coordinator/fleet.rs` and `agent/service.rs` connect them to NATS, clocks and
//! threads. A fleet is one implementation of [`run::Workers`]: conductor, sinks and judge are the same as on one machine.

mod agent;
mod clock;
mod control;
mod coordinator;
mod error;
mod fingerprint;
mod identity;
mod kubernetes;
mod link;
mod message;
mod observe;
mod outbox;
mod rates;
mod share;
#[cfg(test)]
mod simulation;
mod split;

pub use agent::{Allow, Caps, Forbidden, Held, Planner, Service};
pub use control::{
    AgentStatus, Calibrator, Commands, Control, LOADS, Operator, Reply, Request, RunReply, RunRequest,
};
pub use coordinator::{Agents, Fleet, Job, OnLost};
pub use error::{Error, Waiting};
pub use identity::{
    AgentFinding, Identity, LocalPlanner, agent_name, host_agent_name, is_agent_name_of, new_agent_name,
};
#[cfg(feature = "k8s")]
pub use kubernetes::Launched;
pub use kubernetes::{Kubernetes, Needs, Seccomp};
pub use link::{Access, Link, NoLink, Say, Server, has_certificate, has_private_key};
pub use observe::{Observers, Observing};
pub use split::{Shares, shared};
