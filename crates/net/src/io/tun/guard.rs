//! Decides which packets may leave: only those from this shard's networks to the plan's destinations.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
};

/// The networks of the near end and the addresses of the far end. An agent's list of allowed targets was applied to the latter before.
#[derive(Debug)]
pub(super) struct Guard {
    /// Network address and mask.
    networks: Vec<(u128, u128)>,
    destinations: HashSet<(u128, u16)>,
    /// The destination of the last packet, as a shortcut: most runs have only one.
    last: (u128, u16),
}

/// An address as a number, IPv4 in the lowest bits: ::/96 is not assigned (RFC 4291, section 2.5.5.1).
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Guard {
    pub(super) fn new(networks: &[(IpAddr, u8)], destinations: &[SocketAddr]) -> Guard {
        let network = |&(base, prefix): &(IpAddr, u8)| {
            let above = if base.is_ipv4() { 96 } else { 0 };
            let mask = u128::MAX.unbounded_shl(128 - above - u32::from(prefix));
            // The mask covers the upper bits for IPv4 too, so that no IPv6 address is in an IPv4 network.
            (bits(base), mask)
        };
        Guard {
            networks: networks.iter().map(network).collect(),
            destinations: destinations.iter().map(|to| (bits(to.ip()), to.port())).collect(),
            last: (0, 0),
        }
    }

    pub(super) fn add(&mut self, to: SocketAddr) {
        self.destinations.insert((bits(to.ip()), to.port()));
    }

    /// Whether this shard may dial `to` from `from`.
    pub(super) fn allows(&mut self, from: SocketAddr, to: SocketAddr) -> bool {
        self.allows_bits(bits(from.ip()), (bits(to.ip()), to.port()))
    }

    /// Whether a packet with these IP and TCP headers may leave.
    pub(super) fn allows_packet(&mut self, head: &[u8]) -> bool {
        ends(head).is_some_and(|(from, to)| self.allows_bits(from, to))
    }

    fn allows_bits(&mut self, from: u128, to: (u128, u16)) -> bool {
        if to != self.last {
            if !self.destinations.contains(&to) {
                return false;
            }
            self.last = to;
        }
        self.networks.iter().any(|(base, mask)| from & mask == *base)
    }
}

/// The length of an IP header; `None` if the version is neither 4 nor 6.
fn ip_len(head: &[u8]) -> Option<usize> {
    match head.first()? >> 4 {
        4 => Some(usize::from(head[0] & 15) * 4),
        6 => Some(40),
        _ => None,
    }
}

/// The source address, and the destination address and port.
fn ends(head: &[u8]) -> Option<(u128, (u128, u16))> {
    let four = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?).into());
    let sixteen = |at: usize| Some(u128::from_be_bytes(head.get(at..at + 16)?.try_into().ok()?));
    let ip_len = ip_len(head)?;
    let (from, to) =
        if ip_len == 40 && head[0] >> 4 == 6 { (sixteen(8)?, sixteen(24)?) } else { (four(12)?, four(16)?) };
    let port = u16::from_be_bytes(head.get(ip_len + 2..ip_len + 4)?.try_into().ok()?);
    Some((from, (to, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(from: &str, to: &str) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let mut head = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => [&[0x45; 12][..], &from.octets(), &to.octets()].concat(),
            (IpAddr::V6(from), IpAddr::V6(to)) => [&[0x60; 8][..], &from.octets(), &to.octets()].concat(),
            _ => unreachable!("both ends are of one family"),
        };
        head.extend(from.port().to_be_bytes());
        head.extend(to.port().to_be_bytes());
        head
    }

    fn check(from: &str, to: &str, expected: bool) {
        let net = |text: &str, prefix| (text.parse().unwrap(), prefix);
        let networks = [net("198.18.3.0", 24), net("2001:2::3:0", 112)];
        let destinations = ["127.0.0.1:80", "10.0.0.9:443", "[2001:db8::1]:80"].map(|to| to.parse().unwrap());
        let mut guard = Guard::new(&networks, &destinations);
        let found = guard.allows(from.parse().unwrap(), to.parse().unwrap());
        assert_eq!(found, expected, "{from} {to}");
        // Also after another destination, which the guard remembers.
        assert!(guard.allows_packet(&head("198.18.3.9:1", "10.0.0.9:443")));
        assert_eq!(guard.allows_packet(&head(from, to)), expected, "{from} {to}");
    }

    #[test]
    fn only_the_plans_packets_leave() {
        check("198.18.3.1:5000", "127.0.0.1:80", true);
        check("198.18.3.255:1", "10.0.0.9:443", true);
        check("[2001:2::3:ffff]:9", "[2001:db8::1]:80", true);
        // Another shard's network, another port, another host, another family.
        check("198.18.4.1:5000", "127.0.0.1:80", false);
        check("198.18.3.1:5000", "127.0.0.1:81", false);
        check("198.18.3.1:5000", "127.0.0.2:80", false);
        check("[2001:2::4:1]:9", "[2001:db8::1]:80", false);
        check("[::c612:301]:9", "[2001:db8::1]:80", true);
        check("[1::c612:301]:9", "[2001:db8::1]:80", false);
    }

    #[test]
    fn what_is_no_packet_stays() {
        let mut guard = Guard::new(&[("0.0.0.0".parse().unwrap(), 0)], &["1.2.3.4:5".parse().unwrap()]);
        for head in [&[][..], &[0x45; 20], &[0x65; 43], &[0; 60]] {
            assert!(!guard.allows_packet(head), "{head:?}");
        }
    }
}
