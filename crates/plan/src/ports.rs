//! Local ports that may be used for dials.
//!
//! A port that is bound explicitly is unavailable to the kernel's automatic choice, for every address: if each port of
//! `ip_local_port_range` were bound once, no other program on the host could connect anywhere. Therefore ports outside that range are used
//! first.

use std::net::SocketAddr;
use std::ops::Range;

/// First unprivileged port.
const FIRST: u16 = 1_024;
/// Number of ports in the local range that are left to other programs.
const LEFT_FREE: usize = 2_000;

/// The host's port settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortFacts {
    /// First and last of `net.ipv4.ip_local_port_range`.
    pub local_range: (u16, u16),
    /// First and last ports of the ranges in `net.ipv4.ip_local_reserved_ports`.
    pub reserved: Vec<(u16, u16)>,
    /// Ports with a listener, at any address.
    pub listening: Vec<u16>,
}

/// Ports to dial from, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Ports outside the local range first, ascending.
    pub list: Vec<u16>,
    /// Number of ports at the end of the list that are inside the local range.
    pub inside: usize,
}

impl Ports {
    /// All unprivileged ports, for addresses that no other program on the host uses.
    pub fn unshared() -> Ports {
        Ports { list: (FIRST..=u16::MAX).collect(), inside: 0 }
    }
}

impl PortFacts {
    /// Also excludes the ports of loopback destinations: a dial from the destination's address and port would connect to itself
    /// (simultaneous open, RFC 9293 section 3.5) if the listener were gone.
    pub fn avoiding(mut self, destinations: &[SocketAddr]) -> PortFacts {
        let local = destinations.iter().filter(|destination| destination.ip().is_loopback());
        self.listening.extend(local.map(SocketAddr::port));
        self
    }

    /// Candidate ports: those outside the local range, and those inside it that need not be left free.
    fn candidates(&self) -> (Vec<u16>, Vec<u16>) {
        let (first, last) = (u32::from(self.local_range.0), u32::from(self.local_range.1));
        let (lowest, end) = (u32::from(FIRST), u32::from(u16::MAX) + 1);
        let closed = self.closed();
        let open = |within: Range<u32>| between(&closed, within);
        let outside = [open(lowest..first), open((last + 1).max(first).max(lowest)..end)].concat();
        let mut inside = open(first.max(lowest)..last + 1);
        inside.truncate(inside.len().saturating_sub(LEFT_FREE));
        (outside, inside)
    }

    /// Ports that are reserved or have a listener, as ranges (first, one after the last), ascending.
    fn closed(&self) -> Vec<(u32, u32)> {
        let reserved = self.reserved.iter().map(|&(first, last)| (u32::from(first), u32::from(last) + 1));
        let listening = self.listening.iter().map(|&port| (u32::from(port), u32::from(port) + 1));
        let mut closed: Vec<_> = reserved.chain(listening).collect();
        closed.sort_unstable();
        closed
    }
}

/// The ports of `within` outside all of these ranges, without looking up each port.
fn between(closed: &[(u32, u32)], within: Range<u32>) -> Vec<u16> {
    let (mut open, mut at) = (Vec::new(), within.start);
    for &(first, end) in closed.iter().chain(&[(within.end, within.end)]) {
        open.extend((at..first.min(within.end)).map(|port| port as u16));
        at = at.max(end);
    }
    open
}

/// The ports with which `sources` addresses reach `wanted` 4-tuples towards `destinations`: all ports outside the local range, and if these
/// do not suffice, as many as needed from inside it, of which at least 2,000 stay free. Never a reserved port or one with a listener. If
/// the list is too short, [`capacity`] reports it beforehand.
pub fn usable_ports(facts: &PortFacts, sources: u64, destinations: u64, wanted: u64) -> Ports {
    let (mut list, mut inside) = facts.candidates();
    let per_port = sources.saturating_mul(destinations).max(1);
    let needed = usize::try_from(wanted.div_ceil(per_port)).unwrap_or(usize::MAX);
    inside.truncate(needed.saturating_sub(list.len()));
    list.extend(&inside);
    Ports { list, inside: inside.len() }
}

/// Maximum number of 4-tuples from `sources` addresses towards `destinations`, for the preflight. Saturates. For
/// [`crate::SourcePool::Loopback4`] pass one destination, because no source is used for two.
pub fn capacity(sources: u64, destinations: u64, facts: &PortFacts) -> u64 {
    let (outside, inside) = facts.candidates();
    let ports = (outside.len() + inside.len()) as u64;
    ports.saturating_mul(sources).saturating_mul(destinations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// The default of Linux.
    const DEFAULT: (u16, u16) = (32_768, 60_999);

    #[test]
    fn takes_from_inside_only_what_is_needed() {
        let facts = PortFacts { local_range: DEFAULT, ..PortFacts::default() };
        let check = |sources, destinations, wanted, expected: (usize, usize)| {
            let ports = usable_ports(&facts, sources, destinations, wanted);
            assert_eq!((ports.list.len(), ports.inside), expected, "{sources} {destinations} {wanted}");
        };
        check(1, 1, 1, (36_280, 0));
        check(1, 1, 36_280, (36_280, 0));
        check(1, 1, 36_281, (36_281, 1));
        check(1, 1, 62_512, (62_512, 26_232));
        check(1, 1, 70_000, (62_512, 26_232));
        check(2, 1, 72_560, (36_280, 0));
        check(2, 3, 217_681, (36_281, 1));
        check(0, 1, 1, (36_280, 0));
        check(u64::MAX, 2, u64::MAX, (36_280, 0));
        assert_eq!(capacity(1, 1, &facts), 62_512);
        assert_eq!(capacity(3, 20, &facts), 3_750_720);
        assert_eq!(capacity(u64::MAX, 2, &facts), u64::MAX);
    }

    #[test]
    fn a_loopback_destination_keeps_its_port() {
        let destinations =
            ["127.0.0.9:8000", "[::1]:8001", "192.0.2.1:8002"].map(|text| text.parse().unwrap());
        let facts = PortFacts { local_range: DEFAULT, ..PortFacts::default() }.avoiding(&destinations);
        let ports = usable_ports(&facts, 1, 1, 1).list;
        assert_eq!([8_000, 8_001, 8_002].map(|port| ports.contains(&port)), [false, false, true]);
    }

    proptest! {
        // Each case examines all ports.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_policy_holds_for_any_host(
            local_range: (u16, u16),
            reserved in vec((any::<u16>(), 0u16..9_000), 0..4),
            listening in vec(any::<u16>(), 0..50),
            (sources, destinations) in (1u64..4, 1u64..4),
            wanted in 0u64..400_000,
        ) {
            let reserved = reserved.into_iter().map(|(first, width)| (first, first.saturating_add(width))).collect();
            let facts = PortFacts { local_range, reserved, listening };
            let ports = usable_ports(&facts, sources, destinations, wanted);
            let is_inside = |port: &u16| (local_range.0..=local_range.1).contains(port);
            let listening: HashSet<_> = facts.listening.iter().collect();
            let is_closed = |port: &u16| {
                *port < 1_024 || listening.contains(port) || facts.reserved.iter().any(|(a, b)| a <= port && port <= b)
            };
            let (outside, inside) = ports.list.split_at(ports.list.len() - ports.inside);

            prop_assert!(ports.list.iter().all(|port| !is_closed(port)));
            prop_assert!(inside.iter().all(is_inside) && !outside.iter().any(is_inside));
            let mut unique = ports.list.clone();
            unique.sort_unstable();
            unique.dedup();
            prop_assert_eq!(unique.len(), ports.list.len());

            let free_inside = (0..=u16::MAX).filter(|port| is_inside(port) && !is_closed(port)).count();
            prop_assert!(ports.inside == 0 || free_inside - ports.inside >= 2_000);
            // All ports outside, and only as many as needed from inside.
            prop_assert_eq!(outside.len(), (0..=u16::MAX).filter(|port| !is_inside(port) && !is_closed(port)).count());
            let reach = ports.list.len() as u64 * sources * destinations;
            prop_assert!(ports.inside == 0 || reach - sources * destinations < wanted);
            prop_assert_eq!(reach >= wanted, capacity(sources, destinations, &facts) >= wanted);
        }
    }
}
