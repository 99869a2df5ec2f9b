//! Can this machine do it? Asked before the first dial.

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
    io,
    net::IpAddr,
};

use host::{Finding, Need, Root, Severity};
use net::io::uring::{self, Uring};
use plan::{IoChoice, Plan, Ports, SourcePool, Sources, capacity, usable_ports};
use units::Clock;

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
    /// Direct descriptors a ring may have.
    pub(crate) slots: u32,
}

/// Checks the plan against this machine.
///
/// # Errors
/// [`Refusal::Findings`] where something cannot work, with all that stands in the way.
pub fn prepare(plan: &Plan, root: &Root) -> Result<Prepared, Refusal> {
    if plan.io == IoChoice::Epoll {
        return Err(Refusal::Failed("--io: epoll is not available in this version: write uring".to_owned()));
    }
    let (pool, need, ports) = need(plan, root)?;
    let (refusals, warnings): (Vec<_>, Vec<_>) =
        host::preflight(root, &need).into_iter().partition(|f| f.severity == Severity::Refuse);
    if !refusals.is_empty() {
        return Err(Refusal::Findings(refusals));
    }
    if let Err(why) = need.uring {
        return Err(Refusal::Failed(format!("io_uring cannot be used here: {why}")));
    }
    Ok(Prepared { warnings, pool, ports, salt: random(), slots: raise_open_files() })
}

/// The most connections that this machine can hold of what the plan asks for.
///
/// # Errors
/// As [`prepare`].
pub fn fitting(plan: &Plan, root: &Root) -> Result<u64, Refusal> {
    let (_, need, _) = need(plan, root)?;
    Ok(host::capacity(root, &need).min(u64::from(plan.connections)))
}

fn need(plan: &Plan, root: &Root) -> Result<(SourcePool, Need, Ports), Refusal> {
    let destinations = &plan.target.destinations;
    let facts = host::port_facts(root).avoiding(destinations);
    let pool = source_pool(plan)?;
    // On loopback no (address, port) pair is ever used twice, so that destinations do not multiply.
    let lanes = if pool == SourcePool::Loopback4 { 1 } else { destinations.len() as u64 };
    let wanted = u64::from(plan.connections) + SPARE_TUPLES;
    let ports = usable_ports(&facts, pool.count(), lanes, wanted);
    let need = Need {
        connections: plan.connections.into(),
        sources: pool.count(),
        destinations: destinations.len() as u64,
        both_ends_here: destinations.iter().all(|d| host::is_local(root, d.ip())),
        tuples: capacity(pool.count(), lanes, &facts),
        foreign_sources: match &plan.sources {
            Sources::Automatic => Vec::new(),
            Sources::Listed(networks) => {
                let mut ends: Vec<IpAddr> =
                    networks.iter().flat_map(|n| [n.nth(0), n.nth(n.count() - 1)]).collect();
                // A single address is both its ends.
                ends.dedup();
                host::foreign(root, &ends)
            }
        },
        uring: probe_uring().map_err(|e| e.to_string()),
    };
    Ok((pool, need, ports))
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

fn probe_uring() -> io::Result<()> {
    Uring::new(uring::Settings { connections: 1, slots: 1, by_hand: false }, Clock::start()).map(|_| ())
}

/// Raises the soft limit of open files to the hard one; returns what a ring's table may have.
pub(crate) fn raise_open_files() -> u32 {
    net::raise_open_files().unwrap_or(1024)
}

/// A number from the operating system's randomness.
pub(crate) fn random() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
