//! TUN devices for `--io tun`: each shard has its own, with a network to dial from that belongs to no other host. TCP then runs in throng
//! instead of the kernel.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc};

use net::io::tun::TunDevice;
use plan::{Network, Part, Plan, Role, Route, SourcePool, Sources};
use units::Clock;

use super::Refusal;

/// The block reserved for benchmarks (RFC 2544, RFC 6815), so that it collides with no real network. A shard uses one of its 512 networks
/// of 254 addresses, with 16 million 4-tuples towards each destination.
const BLOCK4: &str = "198.18.0.0/15";
const PIECE4: u8 = 24;
/// The corresponding IPv6 block (RFC 5180).
const BLOCK6: &str = "2001:2::/48";
const PIECE6: u8 = 112;
/// Maximum number of networks to try; a network in use belongs to a shard of another run.
const TRIED: u64 = 1 << 10;

/// The sources for dialling `to`, of which each shard takes a part.
///
/// # Errors
/// A device cannot reach `to`.
pub(crate) fn block(sources: &Sources, to: SocketAddr) -> Result<SourcePool, Refusal> {
    if to.ip().is_loopback() && to.is_ipv6() {
        let why = "the kernel lets nothing in to ::1 from a device";
        let fix = "use 127.0.0.1, or another address of this machine (ip -brief address)";
        return Err(Refusal::Failed(format!("no way to {to} with --io tun: {why}; {fix}")));
    }
    let networks = match sources {
        Sources::Automatic => vec![automatic(to.is_ipv4()).0],
        Sources::Listed(networks) => {
            networks.iter().filter(|network| network.is_v4() == to.is_ipv4()).copied().collect()
        }
    };
    Ok(SourcePool::Listed(networks))
}

/// The default block, and the prefix length of a shard's part.
fn automatic(is_v4: bool) -> (Network, u8) {
    let (block, piece) = if is_v4 { (BLOCK4, PIECE4) } else { (BLOCK6, PIECE6) };
    (Network::parse(block).expect("it is a network"), piece)
}

/// The parts of its role's block that shard `nth` of `of` may use, in the order in which they are tried. The networks of an entry are
/// used together.
fn pieces(sources: &Sources, is_v4: bool, nth: u32, of: u32) -> Vec<Vec<Network>> {
    match sources {
        Sources::Automatic => {
            let (block, prefix) = automatic(is_v4);
            (0..TRIED).map_while(|piece| Some(vec![block.piece(piece, prefix)?])).collect()
        }
        Sources::Listed(networks) => {
            let own = |network: &Network| {
                let prefix = network.base_and_prefix().1.checked_add(of.next_power_of_two().ilog2() as u8)?;
                network.piece(nth.into(), prefix)
            };
            let own: Option<Vec<Network>> = networks.iter().map(own).collect();
            own.into_iter().collect()
        }
    }
}

/// The number of connections that the networks suffice for. The part with the fewest 4-tuples per connection limits all of them.
pub(crate) fn tuples(plan: &Plan, routes: &HashMap<Role, Vec<Route>>) -> u64 {
    let parts = plan.parts(|nth| shards(plan, nth));
    let of = parts.len() as u32;
    let given = |(nth, part): (u32, &Part)| {
        let has = |route: &Route| {
            let is_v4 = plan.population(part.role).target.is_v4();
            let pieces = pieces(&plan.sources, is_v4, nth, of);
            let addresses: u64 = pieces.first().into_iter().flatten().map(Network::count).sum();
            addresses
                .saturating_mul(route.ports.list.len() as u64)
                .saturating_mul(route.destinations.len() as u64)
        };
        let all: u64 = routes[&part.role].iter().map(has).fold(0, u64::saturating_add);
        let times = u128::from(all) * u128::from(plan.places()) / u128::from(part.places.max(1));
        u64::try_from(times).unwrap_or(u64::MAX)
    };
    (0..).zip(&parts).map(given).min().unwrap_or(0)
}

/// Number of shards of a population.
fn shards(plan: &Plan, nth: u16) -> u32 {
    plan.threads.min(plan.populations[usize::from(nth)].most_open())
}

/// The device of a shard, with its sources and destinations.
pub(crate) struct Own {
    pub(crate) device: TunDevice,
    pub(crate) routes: Vec<Route>,
    pub(crate) settings: net::io::tun::Settings,
}

/// Creates the device of part `nth` of `of`, whose role has these routes.
///
/// # Errors
/// An operation that the kernel refuses, with the fix.
pub(crate) fn make(
    plan: &Plan,
    part: &Part,
    (nth, of): (u32, u32),
    routes: &[Route],
    clock: Clock,
) -> Result<Own, Refusal> {
    let failed = |what: &str, e: io::Error| Refusal::Failed(format!("--io tun: {what}: {e}"));
    let device = TunDevice::open(clock).map_err(|e| failed("no TUN device", e))?;
    let target = &plan.population(part.role).target;
    let networks = take(&device, pieces(&plan.sources, target.is_v4(), nth, of))?;
    if target.destinations.iter().any(|to| to.ip().is_loopback()) {
        let what = "127.0.0.0/8 cannot be reached from a device here; use another address of this machine";
        device.allow_loopback().map_err(|e| failed(what, e))?;
    }
    // A failure is harmless if the target is on this machine. Otherwise, if /proc/sys is read-only, a finding reports it.
    let _ = device.allow_forwarding(target.is_v4());
    let pool = SourcePool::Listed(networks.clone());
    let settings = net::io::tun::Settings {
        connections: part.places,
        networks: networks.iter().map(Network::base_and_prefix).collect(),
        destinations: target.destinations.clone(),
        mtu: net::io::tun::mtu_to(&target.destinations),
        secret: [units::system_random(), units::system_random()],
        watch: Arc::default(),
    };
    let routes = routes.iter().map(|route| Route { pool: pool.clone(), ..route.clone() }).collect();
    Ok(Own { device, routes, settings })
}

/// Routes the first available of these networks to the device.
fn take(device: &TunDevice, pieces: Vec<Vec<Network>>) -> Result<Vec<Network>, Refusal> {
    let mut taken = None;
    for networks in pieces {
        let mut routed =
            networks.iter().map(|network| device.route(network.base_and_prefix()).map_err(|e| (*network, e)));
        match routed.find_map(Result::err) {
            None => return Ok(networks),
            // Another run uses it.
            Some((network, e)) if e.kind() == io::ErrorKind::AlreadyExists => taken = Some(network),
            Some((network, e)) => {
                return Err(Refusal::Failed(format!("--io tun: no route to {network}: {e}")));
            }
        }
    }
    Err(Refusal::Failed(match taken {
        Some(network) => format!(
            "--io tun: {network} has a route already, of another run or of this machine (ip route); use other --sources"
        ),
        None => "--io tun: --sources has fewer addresses than there are shards; use a larger network, or fewer --threads"
            .to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags, flag};

    fn text(pieces: &[Vec<Network>]) -> Vec<String> {
        pieces.iter().map(|all| all.iter().map(Network::to_string).collect::<Vec<_>>().join(",")).collect()
    }

    #[test]
    fn each_shard_has_a_network_of_its_own() {
        let all = text(&pieces(&Sources::Automatic, true, 3, 4));
        assert_eq!((all.len(), &*all[0], &*all[511]), (512, "198.18.0.0/24", "198.19.255.0/24"));
        let all = text(&pieces(&Sources::Automatic, false, 0, 1));
        assert_eq!((all.len(), &*all[0], &*all[1023]), (1024, "2001:2::/112", "2001:2::3ff:0/112"));
        let check = |sources: &str, nth, of, expected: &[&str]| {
            let sources = Sources::parse(sources).unwrap();
            assert_eq!(text(&pieces(&sources, true, nth, of)), expected, "{sources:?} {nth} of {of}");
        };
        check("10.9.0.0/16", 0, 1, &["10.9.0.0/16"]);
        check("10.9.0.0/16", 2, 3, &["10.9.128.0/18"]);
        check("10.9.0.0/16,10.10.0.8/29", 1, 2, &["10.9.128.0/17,10.10.0.12/30"]);
        check("10.9.0.7", 0, 1, &["10.9.0.7"]);
        check("10.9.0.7", 0, 2, &[]);
        check("10.9.0.0/16,10.10.0.7", 0, 2, &[]);
    }

    #[test]
    fn capacity_is_that_of_the_tightest_shard() {
        let check = |threads: u32, sources: &str, expected: u64| {
            let flags =
                Flags::new("tcp://127.0.0.1:9").with(&flag::CONNECTIONS, 100).with(&flag::THREADS, threads);
            let flags = if sources.is_empty() { flags } else { flags.with(&flag::SOURCES, sources) };
            let resolve = |_: &str| unreachable!("the target is an address");
            let plan =
                plan::from_flags(&flags, &Environment { cores: 2, seed: 1, resolve: &resolve }).unwrap();
            let route = Route {
                pool: block(&plan.sources, plan.destinations()[0]).unwrap(),
                ports: plan::Ports::unshared(),
                destinations: vec![0],
                numbers: vec![0],
                further: None,
            };
            let routes: HashMap<Role, Vec<Route>> =
                plan.parts(|_| 1).into_iter().map(|part| (part.role, vec![route.clone()])).collect();
            assert_eq!(tuples(&plan, &routes), expected, "{threads} {sources}");
        };
        check(1, "", 254 * 64_512);
        check(4, "", 4 * 254 * 64_512);
        // Shards of 34, 33 and 33 connections.
        check(3, "", 254 * 64_512 * 100 / 34);
        check(2, "10.9.0.0/30", 2 * 2 * 64_512);
        check(2, "10.9.0.9", 0);
    }

    #[test]
    fn the_loopback_of_ipv6_is_refused() {
        let refused = block(&Sources::Automatic, "[::1]:80".parse().unwrap()).map_err(|why| why.to_string());
        assert!(refused.is_err_and(|why| why.contains("use 127.0.0.1, or another address of this machine")));
        assert!(block(&Sources::Automatic, "[fd77::1]:80".parse().unwrap()).is_ok());
    }
}
