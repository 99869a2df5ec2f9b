//! Targets of clients: where they dial to, and from which local addresses.

use std::net::SocketAddr;

use parking_lot::Mutex;
use plan::{Dials, Text, Tuple, Values};
use units::Random;

/// A checked and resolved target, with local addresses to dial it from.
#[derive(Debug)]
pub(crate) struct Target {
    /// As given in the request.
    pub(crate) ws: String,
    path: Text,
    /// Additional header fields of the upgrade, as lines.
    fields: Text,
    destinations: Vec<SocketAddr>,
    /// The Host field for each destination.
    hosts: Vec<String>,
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
            path: target.path.clone(),
            fields: Text::of_fields(&population.headers),
            destinations: target.destinations.clone(),
            hosts: (0..target.destinations.len()).map(|nth| target.host_header(nth)).collect(),
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

    /// The path and additional fields of the upgrade of client `number`, and its Host field.
    pub(crate) fn request(
        &self,
        number: u32,
        destination: u16,
        random: &mut Random,
    ) -> (String, String, &str) {
        let mut values = Values::new(random, number.into(), 0);
        let mut written = |text: &Text| {
            let mut bytes = vec![0; text.max_len()];
            let length = text.write(&mut values, &mut bytes);
            bytes.truncate(length);
            String::from_utf8(bytes).expect("its segments are texts")
        };
        (written(&self.path), written(&self.fields), &self.hosts[usize::from(destination)])
    }
}
