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
//! The Job is created first, owns everything else, and ends on its own. So the cluster removes all of it, whenever and however `throng
//! run` ends: docs/decisions/0026-a-job-owns-its-fleet.md.

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
    /// Maximum number of concurrent connections.
    pub connections: u64,
    /// Number of agents; `None`: one for each 50,000 connections.
    pub agents: Option<u32>,
    /// Targets that agents may load, each as `HOST:PORT`.
    pub targets: Vec<String>,
    /// Duration of the plan, if it has an end.
    pub lasts: Option<Nanos>,
}
