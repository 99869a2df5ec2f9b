//! `--fleet k8s`: agents as pods of a Kubernetes cluster, for one run.
//!
//! ```text
//! throng run                         cluster
//!   Job      ── owns ──┬─────────►    an agent in each pod, spread over the nodes
//!   Secret   ◄─────────┤              credentials of this run's NATS server
//!   Service  ◄─────────┤              its name
//!   Pod      ◄─────────┘              nats-server
//!   port-forward ◄───────────────►    the pod's port 4222, through the API server
//! ```
//!
//! The Job is created first and owns everything else, and it ends by itself, so that whatever becomes of `throng run`, and whenever, the
//! cluster removes all of it: docs/decisions/0026-a-job-owns-its-fleet.md.

#[cfg(feature = "k8s")]
mod forward;
#[cfg(feature = "k8s")]
mod launch;
#[cfg(any(feature = "k8s", test))]
mod objects;
mod options;
#[cfg(any(feature = "k8s", test))]
mod pods;
#[cfg(test)]
mod schema;

use units::Nanos;

#[cfg(feature = "k8s")]
pub use launch::Launched;
pub use options::{Kubernetes, Seccomp};

/// What a run needs of its agents.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The most connections at one time.
    pub connections: u64,
    /// How many agents; none: one for each 50,000 connections.
    pub agents: Option<u32>,
    /// Targets that agents may load: `HOST:PORT`, each.
    pub targets: Vec<String>,
    /// How long the plan lasts, if it has an end.
    pub lasts: Option<Nanos>,
}
