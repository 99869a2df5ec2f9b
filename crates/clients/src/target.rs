//! Targets of clients: where they dial to, and from which local addresses.

use std::net::SocketAddr;

use engine::TargetProtocol;
use parking_lot::Mutex;
use plan::{Dials, Tuple};

/// A checked and resolved target, with local addresses to dial it from.
#[derive(Debug)]
pub(crate) struct Target {
    /// As given in the request.
    pub(crate) ws: String,
    pub(crate) protocol: TargetProtocol,
    destinations: Vec<SocketAddr>,
    /// TLS configuration (`None` without TLS), and the key by which connections share a layer.
    pub(crate) secured: Option<(String, tls::Client)>,
    /// Shared by all shards: each dial takes the next tuple.
    dials: Mutex<Dials>,
    /// Number of clients for which there are tuples.
    pub(crate) tuples: u64,
}

impl Target {
    /// A target from a resolved population, and the tuples to dial it from.
    pub(crate) fn new(population: &plan::Population, dials: Dials) -> Target {
        let target = &population.target;
        let secured = engine::secured(population);
        Target {
            secured: secured.map(|tls| (format!("{:?} {}", tls.names, tls.insecure), tls)),
            ws: target.text.clone(),
            protocol: TargetProtocol::new(population),
            destinations: target.destinations.clone(),
            tuples: dials.count(),
            dials: Mutex::new(dials),
        }
    }

    /// The addresses of the next dial (from, to), and the index of its destination; destinations take turns.
    pub(crate) fn next(&self) -> (SocketAddr, SocketAddr, u16) {
        let Tuple { from, destination } = self.dials.lock().next();
        (from, self.destinations[destination as usize], destination as u16)
    }

    /// Another local address for the same destination, after one that was in use.
    pub(crate) fn next_further_to(&self, destination: u16) -> (SocketAddr, SocketAddr) {
        (self.dials.lock().next_further_to(destination.into()), self.destinations[usize::from(destination)])
    }
}
