//! Local addresses to dial from: `10.0.0.5,10.1.0.0/16`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Source addresses of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sources {
    /// The address that the kernel would choose; for loopback targets, further addresses if its ports do not suffice.
    Automatic,
    /// Only these networks: of one family, none inside another.
    Listed(Vec<Network>),
}

/// A block of addresses (CIDR, RFC 4632), which is never expanded: a /8 has 16 million. A single address is a /32 or /128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Network {
    /// Number of usable addresses: without the first and the last (network and broadcast, RFC 919; the subnet's anycast, RFC 4291 section
    /// 2.6.1) if there are more than two, and at most 2^32.
    pub fn count(&self) -> u64 {
        let bits = width(self.base) - self.prefix;
        let whole = 1u64 << bits.min(33);
        if bits < 2 { whole } else { (whole - 2).min(1 << 32) }
    }

    /// The `index`-th of its [`Network::count`] addresses.
    #[inline]
    pub fn nth(&self, index: u64) -> IpAddr {
        let skipped = u64::from(width(self.base) - self.prefix >= 2);
        match self.base {
            // The index is below the block's size, so the sum stays in the block.
            IpAddr::V4(base) => Ipv4Addr::from_bits(base.to_bits() + (index + skipped) as u32).into(),
            IpAddr::V6(base) => Ipv6Addr::from_bits(base.to_bits() + u128::from(index + skipped)).into(),
        }
    }

    /// The `nth` network of `prefix` bits in it; `None` beyond the last one, or if it is smaller than that.
    pub fn piece(&self, nth: u64, prefix: u8) -> Option<Network> {
        let bits = prefix.checked_sub(self.prefix).filter(|_| prefix <= width(self.base))?;
        if u128::from(nth).checked_shr(bits.into()).unwrap_or(0) > 0 {
            return None;
        }
        let skipped = u128::from(nth).unbounded_shl((width(self.base) - prefix).into());
        let base = match self.base {
            // The number is below that of the pieces, so the sum stays in the block.
            IpAddr::V4(base) => Ipv4Addr::from_bits(base.to_bits() + skipped as u32).into(),
            IpAddr::V6(base) => Ipv6Addr::from_bits(base.to_bits() + skipped).into(),
        };
        Some(Network { base, prefix })
    }

    /// The index of one of its [`Network::count`] addresses: the inverse of [`Network::nth`].
    pub(crate) fn place_of(&self, address: IpAddr) -> Option<u64> {
        let offset = match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                u128::from(address.to_bits().checked_sub(base.to_bits())?)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => address.to_bits().checked_sub(base.to_bits())?,
            _ => return None,
        };
        let skipped = u128::from(width(self.base) - self.prefix >= 2);
        let index = u64::try_from(offset.checked_sub(skipped)?).ok()?;
        (index < self.count()).then_some(index)
    }

    /// The network of `prefix` bits that contains it; unchanged if it is at least that large.
    pub fn widened(&self, prefix: u8) -> Network {
        let prefix = prefix.min(self.prefix);
        Network { base: first_of(self.base, prefix), prefix }
    }

    /// Whether an address is in it.
    pub fn has(&self, address: IpAddr) -> bool {
        self.overlaps(&Network::from(address))
    }

    /// Whether it is IPv4.
    pub fn is_v4(&self) -> bool {
        self.base.is_ipv4()
    }

    /// First address, and length of the prefix that all of its addresses share.
    pub fn base_and_prefix(&self) -> (IpAddr, u8) {
        (self.base, self.prefix)
    }

    /// Parses `10.0.0.5`, `10.1.0.0/16` or `fd00::/64`. The error contains the text and the fix.
    pub fn parse(text: &str) -> Result<Network, String> {
        let wrong = || format!("{text:?} is not an address; use 127.0.0.2 or 127.1.0.0/16");
        let Some((base, prefix)) = text.split_once('/') else {
            return text.parse::<IpAddr>().map(Network::from).map_err(|_| wrong());
        };
        let base: IpAddr = base.parse().map_err(|_| wrong())?;
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= width(base)).ok_or_else(wrong)?;
        let first = first_of(base, prefix);
        if first != base {
            // 10.0.0.5/24 is how a host's address is displayed: it may mean the address or the network.
            return Err(format!("{text:?} is an address within a network; use {base} or {first}/{prefix}"));
        }
        Ok(Network { base, prefix })
    }

    /// Whether they have an address in common.
    pub fn overlaps(&self, other: &Network) -> bool {
        let prefix = self.prefix.min(other.prefix);
        self.is_v4() == other.is_v4() && first_of(self.base, prefix) == first_of(other.base, prefix)
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        Network { base: address, prefix: width(address) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix {
            prefix if prefix == width(self.base) => write!(f, "{}", self.base),
            prefix => write!(f, "{}/{prefix}", self.base),
        }
    }
}

impl Sources {
    /// Parses a comma-separated list. Overlapping networks are rejected, because a 4-tuple can be used only once; so are mixed families,
    /// because a run uses one.
    pub fn parse(text: &str) -> Result<Sources, String> {
        let mut networks: Vec<Network> = Vec::new();
        for item in text.split(',') {
            let network = Network::parse(item)?;
            if let Some(other) = networks.iter().find(|other| other.overlaps(&network)) {
                return Err(format!("{item:?} overlaps {other}; remove one of them"));
            }
            if networks.iter().any(|other| other.is_v4() != network.is_v4()) {
                return Err(format!("IPv4 and IPv6 cannot be mixed in one run; use one of them: {text:?}"));
            }
            networks.push(network);
        }
        Ok(Sources::Listed(networks))
    }

    /// Whether they are IPv4; `None` if either family is possible.
    pub fn is_v4(&self) -> Option<bool> {
        match self {
            Sources::Automatic => None,
            Sources::Listed(networks) => networks.first().map(Network::is_v4),
        }
    }
}

/// Number of bits in an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first address of the network of `prefix` bits that contains `address`.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.unbounded_shl(32 - u32::from(prefix));
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.unbounded_shl(128 - u32::from(prefix));
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists() {
        check("127.0.0.2", Ok("1 of 127.0.0.2: 127.0.0.2 to 127.0.0.2"));
        check("10.0.0.0/8", Ok("16777214 of 10.0.0.0/8: 10.0.0.1 to 10.255.255.254"));
        check("10.0.0.4/30", Ok("2 of 10.0.0.4/30: 10.0.0.5 to 10.0.0.6"));
        check("10.0.0.4/31", Ok("2 of 10.0.0.4/31: 10.0.0.4 to 10.0.0.5"));
        check(
            "10.0.0.4/32,10.0.0.5",
            Ok("1 of 10.0.0.4: 10.0.0.4 to 10.0.0.4; 1 of 10.0.0.5: 10.0.0.5 to 10.0.0.5"),
        );
        check("0.0.0.0/0", Ok("4294967294 of 0.0.0.0/0: 0.0.0.1 to 255.255.255.254"));
        check("::1", Ok("1 of ::1: ::1 to ::1"));
        check("fd00::/126", Ok("2 of fd00::/126: fd00::1 to fd00::2"));
        check("fd00::/64", Ok("4294967296 of fd00::/64: fd00::1 to fd00::1:0:0"));
        check("here", Err("\"here\" is not an address; use 127.0.0.2 or 127.1.0.0/16"));
        check("", Err("\"\" is not an address; use 127.0.0.2 or 127.1.0.0/16"));
        check("127.0.0.0/33", Err("\"127.0.0.0/33\" is not an address; use 127.0.0.2 or 127.1.0.0/16"));
        check(
            "10.0.0.5/24",
            Err("\"10.0.0.5/24\" is an address within a network; use 10.0.0.5 or 10.0.0.0/24"),
        );
        check("10.0.0.5,10.0.0.5", Err("\"10.0.0.5\" overlaps 10.0.0.5; remove one of them"));
        check("10.0.0.0/24,10.0.0.7", Err("\"10.0.0.7\" overlaps 10.0.0.0/24; remove one of them"));
        check(
            "10.0.0.1,::1",
            Err("IPv4 and IPv6 cannot be mixed in one run; use one of them: \"10.0.0.1,::1\""),
        );
    }

    #[test]
    fn a_network_is_divided_without_a_gap() {
        let check = |text: &str, prefix: u8, nth: u64, expected: Option<&str>| {
            let piece = Network::parse(text).unwrap().piece(nth, prefix);
            assert_eq!(piece.map(|piece| piece.to_string()).as_deref(), expected, "{text} {prefix} {nth}");
        };
        check("198.18.0.0/15", 24, 0, Some("198.18.0.0/24"));
        check("198.18.0.0/15", 24, 1, Some("198.18.1.0/24"));
        check("198.18.0.0/15", 24, 511, Some("198.19.255.0/24"));
        check("198.18.0.0/15", 24, 512, None);
        check("198.18.0.0/15", 15, 0, Some("198.18.0.0/15"));
        check("198.18.0.0/15", 14, 0, None);
        check("10.0.0.5", 32, 0, Some("10.0.0.5"));
        check("10.0.0.5", 33, 0, None);
        check("0.0.0.0/0", 32, u32::MAX.into(), Some("255.255.255.255"));
        check("2001:2::/48", 112, 0xabc, Some("2001:2::abc:0/112"));
        check("::/0", 64, u64::MAX, Some("ffff:ffff:ffff:ffff::/64"));
        check("::/0", 0, 1, None);
    }

    fn check(text: &str, expected: Result<&str, &str>) {
        let describe =
            |n: &Network| format!("{} of {n}: {} to {}", n.count(), n.nth(0), n.nth(n.count() - 1));
        let read = Sources::parse(text).map(|sources| match sources {
            Sources::Listed(networks) => networks.iter().map(describe).collect::<Vec<_>>().join("; "),
            Sources::Automatic => "automatic".to_owned(),
        });
        assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    }
}
