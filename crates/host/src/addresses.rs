//! Which addresses this machine may send from.

mod trie;

use crate::Root;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Flags of a route, <linux/route.h> and <linux/ipv6_route.h>.
const GATEWAY: u32 = 2;
const REJECT: u32 = 0x200;
const LOCAL: u32 = 0x8000_0000;

/// Maximum prefix length of a route that counts as a default route, not as a link: `default`, or the parts of it that a VPN sets.
const EVERYWHERE: u32 = 3;

/// The addresses that share the first `length` bits with `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Network {
    base: IpAddr,
    length: u32,
}

impl Network {
    fn contains(&self, address: IpAddr) -> bool {
        let (width, differing) = match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => (32, (base.to_bits() ^ address.to_bits()).into()),
            (IpAddr::V6(base), IpAddr::V6(address)) => (128, base.to_bits() ^ address.to_bits()),
            _ => return false,
        };
        // A shift by the full width, for length 0, is undefined; all addresses match then.
        differing.checked_shr(width - self.length).unwrap_or(0_u128) == 0
    }

    /// The address of a network with a single one.
    fn single(&self) -> Option<IpAddr> {
        let width = if self.base.is_ipv4() { 32 } else { 128 };
        (self.length == width).then_some(self.base)
    }

    /// Whether both networks have an address in common.
    fn overlaps(&self, other: &plan::Network) -> bool {
        self.contains(other.base_and_prefix().0) || other.has(self.base)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(address) => write!(f, "{address}"),
            None => write!(f, "{}/{}", self.base, self.length),
        }
    }
}

/// The individual local addresses of this machine, including loopback, sorted and without duplicates. Networks that are local as a whole
/// (127.0.0.0/8, AnyIP routes) are not listed; [`is_local`] recognises them.
pub fn local_addresses(root: &Root) -> Vec<IpAddr> {
    local_networks(root).iter().filter_map(Network::single).collect()
}

/// Whether a socket may be bound to `address`: an address of an interface, or part of a route of type `local`, such as one made by `ip
/// route add local 10.9.0.0/16 dev lo` (AnyIP). For IPv6 such a route does not suffice: `net.ipv6.ip_nonlocal_bind` must be 1 as well
/// (kernel document `networking/ip-sysctl`).
pub fn is_local(root: &Root, address: IpAddr) -> bool {
    foreign(root, &[address]).is_empty()
}

/// Whether a route of type `local` to exactly this network exists, regardless of whether sockets may be bound to it.
pub(crate) fn is_routed_here(root: &Root, network: &plan::Network) -> bool {
    let (base, prefix) = network.base_and_prefix();
    local_routes(root).contains(&Network { base, length: prefix.into() })
}

/// Whether this machine accepts packets to both ends of this network, regardless of whether sockets may be bound to them.
pub(crate) fn is_taken_in(root: &Root, network: &plan::Network) -> bool {
    let local = local_routes(root);
    let ends = [network.nth(0), network.nth(network.count() - 1)];
    ends.iter().all(|end| local.iter().any(|network| network.contains(*end)))
}

/// The `addresses` that are not local, in the given order. Reads the routes once.
pub(crate) fn foreign(root: &Root, addresses: &[IpAddr]) -> Vec<IpAddr> {
    let local = local_networks(root);
    let here = |address: IpAddr| local.iter().any(|network| network.contains(address));
    addresses.iter().copied().filter(|address| !here(address.to_canonical())).collect()
}

/// The device for packets to `to`: `lo` for this machine's own addresses, otherwise the device of the longest matching route. `None`
/// without a route. Ignores policy routing (ip-rule(8)).
pub fn route_device(root: &Root, to: IpAddr) -> Option<String> {
    let to = to.to_canonical();
    if is_local(root, to) {
        return Some("lo".to_owned());
    }
    let fitting = routes(root, to.is_ipv4()).into_iter().filter(|route| route.network.contains(to));
    // IPv6 "unreachable" routes of the kernel belong to lo.
    let fitting = fitting.filter(|route| to.is_ipv4() || route.device != "lo");
    let best = fitting.max_by_key(|route| (route.network.length, std::cmp::Reverse(route.metric)));
    best.map(|route| route.device)
}

/// What this machine would lose if all of `network` were routed elsewhere: a local address, a router, or neighbours; `None` if nothing.
/// As a sentence: `10.77.1.5 is of this machine`. Connected networks of all routing tables count, regardless of rules (ip-rule(8));
/// routers of tables other than main count only for IPv6.
pub(crate) fn in_use(root: &Root, network: &plan::Network) -> Option<String> {
    if let Some(own) = local_routes(root).iter().find(|own| own.overlaps(network)) {
        return Some(format!("{own} is of this machine"));
    }
    let routed = routes(root, network.is_v4()).iter().find_map(|route| match route.gateway {
        Some(gateway) => network.has(gateway).then(|| format!("{gateway} is a router of this machine")),
        None => (route.has_neighbours() && route.network.overlaps(network))
            .then(|| format!("{} is connected to {}", route.network, route.device)),
    });
    routed.or_else(|| {
        let connected = trie::connected_by_tables(&trie::read(root));
        let (table, other) = connected.into_iter().find(|(_, other)| other.overlaps(network))?;
        Some(format!("{other} is connected to this machine (ip route show table {table})"))
    })
}

/// A row of the routing table.
struct Route {
    network: Network,
    metric: u32,
    device: String,
    flags: u32,
    gateway: Option<IpAddr>,
}

impl Route {
    /// Whether its addresses are reached without a router.
    fn has_neighbours(&self) -> bool {
        self.flags & (GATEWAY | REJECT) == 0 && self.network.length > EVERYWHERE
    }
}

fn routes(root: &Root, is_v4: bool) -> Vec<Route> {
    let (file, parse): (_, fn(&str) -> Option<Route>) =
        if is_v4 { ("proc/net/route", parse_route4) } else { ("proc/net/ipv6_route", parse_route6) };
    root.read(file).unwrap_or_default().lines().filter_map(parse).collect()
}

/// Fields: device, destination, gateway, flags, two others, metric, mask. Addresses are words in the machine's byte order.
fn parse_route4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |text: &str| Some(Ipv4Addr::from(u32::from_str_radix(text, 16).ok()?.to_ne_bytes()));
    let (base, mask) = (address(fields.get(1)?)?, address(fields.get(7)?)?);
    let flags = u32::from_str_radix(fields[3], 16).ok()?;
    Some(Route {
        network: Network { base: base.into(), length: mask.to_bits().leading_ones() },
        metric: fields[6].parse().ok()?,
        device: fields[0].to_owned(),
        flags,
        gateway: address(fields[2]).filter(|_| flags & GATEWAY != 0).map(IpAddr::from),
    })
}

/// Fields: destination, prefix length, two others, gateway, metric, two others, flags, device.
fn parse_route6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let length = number(1).filter(|length| *length <= 128)?;
    let flags = number(8)?;
    Some(Route {
        network: Network { base: parse_hex6(fields[0])?, length },
        metric: number(5)?,
        device: (*fields.get(9)?).to_owned(),
        flags,
        gateway: parse_hex6(fields[4]).filter(|_| flags & GATEWAY != 0),
    })
}

/// The local networks, sorted and without duplicates. Both loopbacks are always included.
fn local_networks(root: &Root) -> Vec<Network> {
    let mut networks = vec![
        Network { base: Ipv4Addr::new(127, 0, 0, 0).into(), length: 8 },
        Network { base: Ipv6Addr::LOCALHOST.into(), length: 128 },
    ];
    networks.extend(trie::local(&trie::read(root)));
    networks.extend(root.read("proc/net/if_inet6").unwrap_or_default().lines().filter_map(parse_interface6));
    if root.read("proc/sys/net/ipv6/ip_nonlocal_bind").is_ok_and(|text| text.trim() == "1") {
        networks.extend(local_routes6(root));
    }
    networks.sort_unstable();
    networks.dedup();
    networks
}

fn local_routes6(root: &Root) -> Vec<Network> {
    routes(root, false).iter().filter(|route| route.flags & LOCAL != 0).map(|route| route.network).collect()
}

/// The local networks, and those that only incoming packets may use.
fn local_routes(root: &Root) -> Vec<Network> {
    [local_networks(root), local_routes6(root)].concat()
}

/// `fe8000000000000000fc00fffe000001 04 40 20 80 eth0`: the first field is the address.
fn parse_interface6(line: &str) -> Option<Network> {
    Some(Network { base: parse_hex6(line.split_whitespace().next()?)?, length: 128 })
}

fn parse_hex6(text: &str) -> Option<IpAddr> {
    let bits = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32)?;
    Some(Ipv6Addr::from_bits(bits).into())
}

#[cfg(test)]
mod tests {
    use super::{trie::tests::TABLES, *};
    use crate::fake::Machine;
    use proptest::prelude::*;

    const TRIE: &str = "\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 192.0.2.0/24 2 0 2
        |-- 192.0.2.2
           /32 host LOCAL
        |-- 192.0.2.255
           /32 link BROADCAST
Local:
  +-- 0.0.0.0/0 3 0 5
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.0
           /8 host LOCAL
        |-- 127.0.0.1
           /32 host LOCAL
     |-- 10.9.0.0
        /16 host LOCAL
        /32 link BROADCAST
     |-- 192.0.2.2
        /32 host LOCAL
";
    const INET6: &str = "\
00000000000000000000000000000001 01 80 10 80       lo
fd000000000000000000000000000002 04 40 00 82     eth0
";
    const ROUTE6: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000400 00000001 00000000 80000001       lo
";

    const ROUTE6_OUT: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    fn machine() -> Machine {
        Machine::with(&[
            ("proc/net/fib_trie", TRIE),
            ("proc/net/if_inet6", INET6),
            ("proc/net/ipv6_route", ROUTE6),
            ("proc/sys/net/ipv6/ip_nonlocal_bind", "1\n"),
        ])
    }

    #[test]
    fn a_local_route_of_ipv6_is_ours_only_with_nonlocal_bind() {
        for (switch, ours) in [("1\n", true), ("0\n", false)] {
            let machine = Machine::with(&[
                ("proc/net/if_inet6", INET6),
                ("proc/net/ipv6_route", ROUTE6),
                ("proc/sys/net/ipv6/ip_nonlocal_bind", switch),
            ]);
            check(&machine, "2001:db8::1", ours);
            check(&machine, "fd00::2", true);
        }
    }

    fn check(machine: &Machine, address: &str, expected: bool) {
        assert_eq!(is_local(&machine.root(), address.parse().unwrap()), expected, "{address}");
    }

    #[test]
    fn interfaces_and_local_routes_are_ours() {
        let machine = machine();
        for ours in ["127.0.0.1", "127.255.3.4", "192.0.2.2", "10.9.0.0", "10.9.255.255", "::1", "fd00::2"] {
            check(&machine, ours, true);
        }
        for anyip in ["2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", "::ffff:192.0.2.2"] {
            check(&machine, anyip, true);
        }
        for foreign in
            ["192.0.2.3", "192.0.2.255", "203.0.113.9", "10.10.0.0", "0.0.0.0", "fd00::3", "2001:db8:1::1"]
        {
            check(&machine, foreign, false);
        }
    }

    #[test]
    fn loopback_needs_no_file() {
        let machine = Machine::with(&[]);
        for (address, expected) in
            [("127.9.9.9", true), ("::1", true), ("192.0.2.2", false), ("fd00::2", false)]
        {
            check(&machine, address, expected);
        }
    }

    #[test]
    fn single_addresses_are_listed_once() {
        let found: Vec<String> = local_addresses(&machine().root()).iter().map(IpAddr::to_string).collect();
        assert_eq!(found, ["127.0.0.1", "192.0.2.2", "::1", "fd00::2"]);
    }

    #[test]
    fn the_longest_route_names_the_device() {
        let word = |address: &str| {
            format!("{:08X}", u32::from_ne_bytes(address.parse::<Ipv4Addr>().unwrap().octets()))
        };
        let row = |device: &str, to: &str, mask: &str, metric: u32| {
            format!("{device}\t{}\t00000000\t0001\t0\t0\t{metric}\t{}\t0\t0\t0\n", word(to), word(mask))
        };
        let routes = [
            "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n".to_owned(),
            row("eth0", "0.0.0.0", "0.0.0.0", 0),
            row("eth1", "10.0.0.0", "255.0.0.0", 200),
            row("eth2", "10.0.0.0", "255.0.0.0", 100),
        ];
        let machine = machine();
        machine.write("proc/net/route", &routes.concat());
        machine.write("proc/net/ipv6_route", &format!("{ROUTE6}{}", ROUTE6_OUT));
        let check = |to: &str, expected: Option<&str>| {
            let found = route_device(&machine.root(), to.parse().unwrap());
            assert_eq!(found.as_deref(), expected, "{to}");
        };
        check("127.0.0.9", Some("lo"));
        check("192.0.2.2", Some("lo"));
        check("203.0.113.9", Some("eth0"));
        check("10.1.2.3", Some("eth2"));
        check("2001:db8::5", Some("lo"));
        check("fd00::7", Some("eth0"));
        check("2001:db9::5", None);
    }

    /// A network routed to a device is taken away from its other users.
    #[test]
    fn a_network_of_its_own_touches_nothing_here() {
        let word = |address: &str| {
            format!("{:08X}", u32::from_ne_bytes(address.parse::<Ipv4Addr>().unwrap().octets()))
        };
        let row = |device: &str, to: &str, gateway: &str, flags: &str, mask: &str| {
            let [to, gateway, mask] = [to, gateway, mask].map(word);
            format!("{device}\t{to}\t{gateway}\t{flags}\t0\t0\t0\t{mask}\t0\t0\t0\n")
        };
        let routes = [
            row("eth0", "0.0.0.0", "172.16.0.1", "0003", "0.0.0.0"),
            // A VPN's half of the default route, a link, and an unreachable network.
            row("wg0", "128.0.0.0", "0.0.0.0", "0001", "128.0.0.0"),
            row("eth0", "10.77.1.0", "0.0.0.0", "0001", "255.255.255.0"),
            row("*", "10.200.0.0", "0.0.0.0", "0201", "255.255.0.0"),
        ];
        let machine = machine();
        machine.write("proc/net/route", &routes.concat());
        let router = "fd990000000000000000000000000001";
        let far = format!(
            "{:0<32} 40 {:032} 00 {router} 00000400 00000001 00000000 00000003     eth0\n",
            "fd55", 0
        );
        machine.write("proc/net/ipv6_route", &format!("{ROUTE6}{ROUTE6_OUT}{far}"));
        machine.write("proc/net/fib_trie", &format!("{TABLES}{TRIE}"));
        for (network, expected) in [
            ("198.18.0.0/15", None),
            ("10.200.3.0/24", None),
            ("192.0.2.0/24", Some("192.0.2.2 is of this machine")),
            ("192.0.2.2", Some("192.0.2.2 is of this machine")),
            ("10.0.0.0/8", Some("10.9.0.0/16 is of this machine")),
            ("10.9.7.0/24", Some("10.9.0.0/16 is of this machine")),
            ("127.9.0.0/16", Some("127.0.0.0/8 is of this machine")),
            ("0.0.0.0/0", Some("10.9.0.0/16 is of this machine")),
            ("10.77.1.128/25", Some("10.77.1.0/24 is connected to eth0")),
            ("10.64.0.0/10", Some("10.77.1.0/24 is connected to eth0")),
            ("172.16.0.0/24", Some("172.16.0.1 is a router of this machine")),
            // In tables other than main. Networks reached through their routers, and default routes, do not count.
            ("10.88.0.128/25", Some("10.88.0.0/24 is connected to this machine (ip route show table 100)")),
            (
                "10.98.0.0/24",
                Some("10.98.0.0/16 is connected to this machine (ip route show table 4000000000)"),
            ),
            ("10.99.0.0/24", None),
            ("10.66.0.0/24", None),
            ("2001:2::/48", None),
            ("fd55::/64", None),
            ("fd00::/120", Some("fd00::2 is of this machine")),
            ("fd00::ff00/120", Some("fd00::/64 is connected to eth0")),
            ("fd99::/64", Some("fd99::1 is a router of this machine")),
            ("2001:db8::7:0/112", Some("2001:db8::/64 is of this machine")),
        ] {
            let found = in_use(&machine.root(), &plan::Network::parse(network).unwrap());
            assert_eq!(found.as_deref(), expected, "{network}");
        }
    }

    #[test]
    fn foreign_ones_keep_their_order() {
        let addresses: Vec<IpAddr> =
            ["203.0.113.9", "127.0.0.1", "198.51.100.1"].map(|a| a.parse().unwrap()).to_vec();
        assert_eq!(foreign(&machine().root(), &addresses), [addresses[0], addresses[2]]);
    }

    #[test]
    fn this_machine_knows_loopback_and_not_a_documentation_address() {
        assert!(is_local(&Root::real(), "127.0.0.1".parse().unwrap()));
        assert!(!is_local(&Root::real(), "203.0.113.9".parse().unwrap()));
        assert!(local_addresses(&Root::real()).contains(&"::1".parse().unwrap()));
    }

    proptest! {
        /// The same result as a comparison of the first bits, one by one.
        #[test]
        fn a_network_contains_addresses_with_its_prefix(base: u128, address: u128, same in 0u32..=128, length in 0u32..=128) {
            // Makes it likely that both agree in about the relevant number of bits.
            let keep = u128::MAX.checked_shl(128 - same).unwrap_or(0);
            let address = (base & keep) | (address & !keep);
            let bit = |n: u128, i: u32| n >> (127 - i) & 1;
            let expected = (0..length).all(|i| bit(base, i) == bit(address, i));
            let network = Network { base: Ipv6Addr::from_bits(base).into(), length };
            prop_assert_eq!(network.contains(Ipv6Addr::from_bits(address).into()), expected);
            if length <= 32 {
                let high = |n: u128| IpAddr::from(Ipv4Addr::from_bits((n >> 96) as u32));
                let network = Network { base: high(base), length };
                prop_assert_eq!(network.contains(high(address)), expected);
                prop_assert!(!network.contains(Ipv6Addr::from_bits(address).into()));
            }
        }

        /// No text causes a panic, and loopback stays local.
        #[test]
        fn any_text_is_survived(trie in "(\\|-- |/|[0-9.]{1,9}| LOCAL|\n){0,40}", six in "([0-9a-f]{32} |80 |\n){0,30}") {
            let machine = Machine::with(&[
                ("proc/net/fib_trie", &trie),
                ("proc/net/ipv6_route", &six),
                ("proc/sys/net/ipv6/ip_nonlocal_bind", "1"),
            ]);
            prop_assert!(is_local(&machine.root(), Ipv4Addr::LOCALHOST.into()));
        }
    }
}
