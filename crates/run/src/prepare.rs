//! Can this machine do it? Asked before the first dial.

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
};

use host::{Finding, Listener, Need, Root, Severity};
use net::{Backend, io::uring::Uring};
use plan::{Plan, Ports, SourcePool, Sources, capacity, usable_ports};

use crate::backend::{Shards, choose_io, shards};

use crate::listeners::listeners;

/// Local addresses asked for beyond what is needed, so that taken ones can be skipped.
const SPARE_TUPLES: u64 = 1000;

/// Why a run does not start.
#[derive(Debug)]
pub enum Refusal {
    /// Limits of this machine, with their cures.
    Findings(Vec<Finding>),
    /// An operation of this machine failed.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Failed(what) => f.write_str(what),
            Refusal::Findings(findings) => {
                let refusals = findings.iter().filter(|finding| finding.severity == Severity::Refuse);
                let lines: Vec<String> = refusals.map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

/// What a run needs of this machine, found to be there.
#[derive(Debug)]
pub struct Prepared {
    /// What may make it suffer all the same.
    pub warnings: Vec<Finding>,
    pub(crate) pool: SourcePool,
    pub(crate) ports: Ports,
    /// Where the local addresses begin: not a child of the seed, so that a repeated run does not meet its own
    /// TIME_WAIT.
    pub(crate) salt: u64,
    pub(crate) backend: Backend,
    /// Why it is that one, where the plan leaves the choice.
    pub(crate) because: Option<String>,
    pub(crate) shards: Shards,
    /// Files, or direct descriptors, that one table may have.
    pub(crate) slots: u32,
}

/// Checks the plan against this machine.
///
/// # Errors
/// [`Refusal::Findings`] where something cannot work, with all that stands in the way.
pub fn prepare(plan: &Plan, root: &Root) -> Result<Prepared, Refusal> {
    let (backend, because) = choose_io(plan.io, root)?;
    let (pool, need, ports) = demand(plan, root)?;
    let slots = net::raise_open_files().unwrap_or(1024);
    // Whether io_uring works, and what the tables of epoll take, has been looked at by itself.
    let need = Need { uring: Ok(()), ..need };
    let (mut refusals, warnings): (Vec<_>, Vec<_>) =
        host::preflight(root, &need).into_iter().partition(|f| f.severity == Severity::Refuse);
    match shards(plan, backend, slots, net::probe_own_open_files) {
        Ok(shards) if refusals.is_empty() => {
            Ok(Prepared { warnings, pool, ports, salt: random(), backend, because, shards, slots })
        }
        Ok(_) => Err(Refusal::Findings(refusals)),
        Err(finding) => {
            refusals.push(finding);
            Err(Refusal::Findings(refusals))
        }
    }
}

/// The most connections that this machine can hold of what the plan asks for.
///
/// # Errors
/// As [`prepare`].
pub fn fitting(plan: &Plan, root: &Root) -> Result<u64, Refusal> {
    Ok(host::capacity(root, &need(plan, root)?).connections.min(u64::from(plan.connections)))
}

/// What the plan asks of this machine, not yet held against it: doctor's question.
///
/// # Errors
/// There is no way to the target.
pub fn need(plan: &Plan, root: &Root) -> Result<Need, Refusal> {
    demand(plan, root).map(|(_, need, _)| need)
}

fn demand(plan: &Plan, root: &Root) -> Result<(SourcePool, Need, Ports), Refusal> {
    let destinations = &plan.target.destinations;
    let listeners = listeners(root);
    let facts = host::port_facts(root, &listeners).avoiding(destinations);
    let pool = source_pool(plan)?;
    // On loopback no (address, port) pair is ever used twice, so that destinations do not multiply.
    let lanes = if pool == SourcePool::Loopback4 { 1 } else { destinations.len() as u64 };
    let wanted = plan.pairs_needed() + SPARE_TUPLES;
    let ports = usable_ports(&facts, pool.count(), lanes, wanted);
    let need = Need {
        target: Some(plan.target.text.clone()),
        connections: plan.places().into(),
        threads: plan.threads.into(),
        sources: pool.count(),
        networks: match &plan.sources {
            Sources::Automatic => Vec::new(),
            Sources::Listed(networks) => networks.clone(),
        },
        device: host::route_device(root, destinations[0].ip()).unwrap_or_else(|| "lo".to_owned()),
        destinations: destinations.len() as u64,
        is_v4: plan.target.is_v4(),
        listeners: answering(listeners, plan),
        both_ends_here: destinations.iter().all(|d| host::is_local(root, d.ip())),
        tuples: capacity(pool.count(), lanes, &facts),
        uring: Uring::probe().map_err(|e| e.to_string()),
    };
    Ok((pool, need, ports))
}

/// Those that a dial to the target reaches, were it on this machine.
fn answering(listeners: Vec<Listener>, plan: &Plan) -> Vec<Listener> {
    let reached = |listener: &Listener| {
        plan.target.destinations.iter().any(|d| {
            d.port() == listener.port && (d.ip() == listener.address || listener.address.is_unspecified())
        })
    };
    listeners.into_iter().filter(reached).collect()
}

fn source_pool(plan: &Plan) -> Result<SourcePool, Refusal> {
    let destinations = &plan.target.destinations;
    match &plan.sources {
        Sources::Listed(networks) => Ok(SourcePool::Listed(networks.clone())),
        Sources::Automatic if plan.target.is_loopback() && plan.target.is_v4() => Ok(SourcePool::Loopback4),
        Sources::Automatic => {
            let from = net::route_source(destinations[0])
                .map_err(|e| Refusal::Failed(format!("no way to {}: {e}", destinations[0])))?;
            Ok([from].into_iter().collect())
        }
    }
}

/// A number from the operating system's randomness.
pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
