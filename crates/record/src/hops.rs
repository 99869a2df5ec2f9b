//! The sender of resets, determined from the remaining TTL, which shows how many routers a segment has passed. Resets from a router or
//! firewall have passed fewer routers than the target's other segments, and may start from another initial TTL.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use serde::{Deserialize, Serialize};

/// Maximum number of addresses stored; further ones are ignored.
const MOST: usize = 64;

/// Remaining TTLs of the target's segments, by source address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hops {
    of: BTreeMap<IpAddr, Left>,
    /// Resets that this host sent itself, with another host's address.
    own: u64,
}

/// TTLs seen from one address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Left {
    resets: BTreeSet<u8>,
    /// TTLs of the first and last segments of connections.
    others: BTreeSet<u8>,
}

/// The sender of resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The target's host.
    Target,
    /// A router or firewall in front of it.
    Path,
    /// This host, by its firewall.
    Here,
}

impl Hops {
    /// Takes a segment that begins or ends a connection.
    pub fn take(&mut self, from: IpAddr, ttl: u8, is_reset: bool) {
        if self.of.len() < MOST || self.of.contains_key(&from) {
            let left = self.of.entry(from).or_default();
            let all = if is_reset { &mut left.resets } else { &mut left.others };
            all.insert(ttl);
        }
    }

    /// Takes a reset that this host sent itself.
    pub fn take_own(&mut self) {
        self.own += 1;
    }

    /// Whether any segment other than a reset was seen.
    pub fn has_others(&self) -> bool {
        self.of.values().any(|left| !left.others.is_empty())
    }

    /// An address from which only resets came.
    pub fn of_resets_alone(&self) -> Option<IpAddr> {
        let is_one = |left: &Left| !left.resets.is_empty() && left.others.is_empty();
        self.of.iter().find(|(_, left)| is_one(left)).map(|(address, _)| *address)
    }

    /// The sender of all resets; `None` if unknown or several.
    pub fn sender(&self) -> Option<Sender> {
        let known = self.of.values().filter(|left| !left.resets.is_empty());
        let own = (self.own > 0).then_some(Some(Sender::Here));
        let mut senders = own.into_iter().chain(known.map(Left::sender));
        let first = senders.next()??;
        senders.all(|other| other == Some(first)).then_some(first)
    }
}

impl Left {
    fn sender(&self) -> Option<Sender> {
        let as_far = self.resets.intersection(&self.others).count();
        match as_far {
            _ if self.others.is_empty() => None,
            0 => Some(Sender::Path),
            n => (n == self.resets.len()).then_some(Sender::Target),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(segments: &[(u8, u8, bool)], expected: Option<Sender>) {
        let mut hops = Hops::default();
        segments.iter().for_each(|(host, ttl, is_reset)| {
            hops.take(IpAddr::from([10, 0, 0, *host]), *ttl, *is_reset);
        });
        assert_eq!(hops.sender(), expected, "{segments:?}");
    }

    #[test]
    fn resets_that_passed_as_many_routers_are_the_targets() {
        let (reset, other) = (true, false);
        check(&[], None);
        check(&[(1, 63, other)], None);
        check(&[(1, 64, reset)], None);
        check(&[(1, 63, other), (1, 64, reset)], Some(Sender::Path));
        check(&[(1, 63, other), (1, 255, reset), (1, 254, reset)], Some(Sender::Path));
        check(&[(1, 63, other), (1, 63, reset)], Some(Sender::Target));
        // Over two paths of different lengths.
        check(&[(1, 63, other), (1, 60, other), (1, 60, reset)], Some(Sender::Target));
        // From both.
        check(&[(1, 63, other), (1, 63, reset), (1, 64, reset)], None);
    }

    #[test]
    fn a_reset_of_our_own_has_passed_nothing() {
        let mut hops = Hops::default();
        hops.take_own();
        assert_eq!(hops.sender(), Some(Sender::Here));
        hops.take(IpAddr::from([10, 0, 0, 1]), 64, true);
        assert_eq!(hops.sender(), None, "of both");
    }

    #[test]
    fn a_host_that_only_resets_is_to_be_asked() {
        let mut hops = Hops::default();
        let [one, other] = [1, 2].map(|host| IpAddr::from([10, 0, 0, host]));
        hops.take(one, 63, false);
        hops.take(other, 64, true);
        assert_eq!(hops.of_resets_alone(), Some(other));
        hops.take(other, 63, false);
        assert_eq!(hops.of_resets_alone(), None);
        assert_eq!(hops.sender(), Some(Sender::Path));
    }

    #[test]
    fn each_address_has_a_way_of_its_own() {
        let (reset, other) = (true, false);
        check(&[(1, 63, other), (2, 64, other), (2, 64, reset)], Some(Sender::Target));
        check(&[(1, 63, other), (1, 64, reset), (2, 62, other), (2, 62, reset)], None);
        check(&[(1, 63, other), (1, 64, reset), (2, 64, reset)], None);
        let many: Vec<(u8, u8, bool)> = (0..=MOST as u8).map(|host| (host, 63, other)).collect();
        let mut hops = Hops::default();
        many.iter()
            .for_each(|(host, ttl, is_reset)| hops.take(IpAddr::from([10, 0, 0, *host]), *ttl, *is_reset));
        assert_eq!(hops.of.len(), MOST);
    }
}
