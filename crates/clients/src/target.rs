//! Where clients dial to, and from where.

use std::net::SocketAddr;

use parking_lot::Mutex;
use plan::{Dials, Text, Tuple, Values};
use units::Random;

/// A target: checked, resolved, and with local addresses to dial it from.
#[derive(Debug)]
pub(crate) struct Target {
    /// As it was given.
    pub(crate) ws: String,
    path: Text,
    /// Fields of the upgrade besides those of every one, as lines.
    fields: Text,
    destinations: Vec<SocketAddr>,
    /// The value of the Host field for each.
    hosts: Vec<String>,
    /// How connections are secured, where they are, and what those have in common that may share a layer.
    pub(crate) secured: Option<(String, tls::Client)>,
    /// Of all shards: a dial takes the next tuple.
    dials: Mutex<Dials>,
    /// How many clients it has tuples for.
    pub(crate) tuples: u64,
}

impl Target {
    /// What was resolved, and where to dial it from.
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

    /// The ends of the next dial, and the number of its destination; destinations take turns.
    pub(crate) fn next(&self) -> (SocketAddr, SocketAddr, u16) {
        let Tuple { from, destination } = self.dials.lock().next();
        (from, self.destinations[destination as usize], destination as u16)
    }

    /// Another local address for the same destination, after one that was in use.
    pub(crate) fn next_further_to(&self, destination: u16) -> (SocketAddr, SocketAddr) {
        (self.dials.lock().next_further_to(destination.into()), self.destinations[usize::from(destination)])
    }

    /// The path of the client of this number, its further fields, and the value of its Host field.
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
