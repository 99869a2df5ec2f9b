//! The same connections counted at both ends, if the target's end is on this host. The kernel lists sockets by netlink; throng's
//! connections are recognised among others by their source addresses and ports. The difference shows connections that the target has not
//! accepted, or does not have at all.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use net::{
    Segments,
    io::tun::{Stuck, Watch},
};
use plan::{Role, Route, SourcePool, TupleShare, Tuples};
use record::ends::OwnCounts;
use units::Nanos;

/// Maximum number of connections to list: the kernel lists this many in about a hundred milliseconds.
pub const MAX_COUNTED: u64 = 200_000;

/// Open connections that the target's process does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absent {
    /// In the accept queue of the target's kernel.
    pub unaccepted: u64,
    /// Open at throng's end only: the accept queue was full, and the target's kernel dropped the ACK that completes the handshake.
    pub missing: u64,
}

impl Absent {
    fn all(self) -> u64 {
        self.unaccepted + self.missing
    }
}

/// The target's ends of throng's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// Number of ends, including the probe's.
    pub(crate) there: u64,
    /// Absent connections by role.
    absent: HashMap<Role, Absent>,
    /// Whether missing connections could be counted.
    pub are_paired: bool,
}

impl Ends {
    /// Absent connections of each population, for `count` populations.
    pub fn of_populations(&self, count: usize) -> Vec<Absent> {
        let of = |nth| self.absent.get(&Role::Population(nth)).copied().unwrap_or_default();
        (0..).map(of).take(count).collect()
    }

    /// Whether any connection is absent.
    fn has_absent(&self) -> bool {
        self.absent.values().any(|absent| absent.all() > 0)
    }

    /// Adds connections that were absent earlier and that throng has closed since because their requests timed out, up to `gone`.
    fn add_gone(&mut self, earlier: &Ends, mut gone: u64) {
        for (role, was) in &earlier.absent {
            let own = self.absent.entry(*role).or_default();
            let lacking = was.all().saturating_sub(own.all()).min(gone);
            own.missing += lacking;
            gone -= lacking;
        }
    }
}

/// The sources of a run's connections, by which the target's ends are recognised among others.
#[derive(Debug, Default)]
pub struct Sources {
    shares: Vec<Share>,
    pools: Vec<SourcePool>,
    /// Shards with a device: their connections are not sockets, and their addresses do not belong to this machine.
    watches: Vec<Arc<Watch>>,
}

/// The 4-tuples of a shard on one of its routes.
#[derive(Debug)]
struct Share {
    role: Role,
    tuples: Tuples,
    /// Index among this route's destinations, by index among the run's destinations.
    places: HashMap<u32, u32>,
}

impl Sources {
    /// Adds the sources of a shard, with its share of the 4-tuples and their salt.
    pub fn add(&mut self, role: Role, routes: &[Route], share: TupleShare, salt: u64) {
        for route in routes {
            if !self.pools.contains(&route.pool) {
                self.pools.push(route.pool.clone());
            }
            let (first, further) = route.tuples(share, salt);
            let places: HashMap<u32, u32> = route.numbers.iter().copied().zip(0..).collect();
            let of = |tuples| Share { role, tuples, places: places.clone() };
            self.shares.extend([first].into_iter().chain(further).map(of));
        }
    }

    /// Adds the device of a shard.
    pub fn watch(&mut self, watches: impl IntoIterator<Item = Arc<Watch>>) {
        self.watches.extend(watches);
    }

    /// For connections over a device, what [`net::segments_to`] returns for sockets. `open`: connections; `waiting`: outstanding
    /// requests. `None` if the connections are sockets.
    pub(crate) fn segments(&self, now: Nanos, open: u64, waiting: u64) -> Option<Segments> {
        let came = self.watches.iter().map(|watch| watch.came()).max()?;
        let stuck = self.watches.iter().map(|watch| watch.stuck());
        let all = stuck.fold(Stuck::default(), |all, stuck| Stuck {
            syns: all.syns + stuck.syns,
            unacknowledged: all.unacknowledged + stuck.unacknowledged,
        });
        let quiet = Some(Duration::from_nanos(now.since(came).0));
        // Nothing was received on the stuck connections either.
        let stuck_for = quiet.filter(|_| all.unacknowledged > 0);
        Some(Segments { quiet, stuck_for, ..segments(all, open, waiting) })
    }

    /// SYN retransmissions and received ICMP messages of shards with a device, which the kernel does not count.
    pub(crate) fn own_counts(&self) -> OwnCounts {
        self.watches.iter().fold(OwnCounts::default(), |sum, watch| OwnCounts {
            syns_again: sum.syns_again + watch.syns_again(),
            icmp: sum.icmp + watch.icmp(),
        })
    }

    /// The role that dials this destination (an index) from this address; `None` if throng does not.
    fn role(&self, destination: u32, from: SocketAddr) -> Option<Role> {
        let dials = |share: &&Share| {
            share.places.get(&destination).is_some_and(|place| share.tuples.has_source(from, *place))
        };
        self.shares.iter().find(dials).map(|share| share.role)
    }

    /// A local address to bind to for dialling `to`; `None` if the kernel chooses it.
    pub(crate) fn towards(&self, to: SocketAddr) -> Option<IpAddr> {
        if !self.watches.is_empty() {
            return None;
        }
        self.pools.iter().find_map(|pool| match pool {
            SourcePool::Loopback4 => None,
            SourcePool::Listed(networks) => {
                let first = networks.first()?.nth(0);
                let leads = first.is_ipv4() == to.is_ipv4() && first.is_loopback() == to.ip().is_loopback();
                leads.then_some(first)
            }
        })
    }

    /// Number of throng's connections that end at these destinations in this network namespace, by the kernel's list; `None` if that is
    /// unavailable. It is 0 if the target is behind address translation. Other connections at the same ports are not counted. Stops
    /// counting at `most`.
    pub(crate) fn ends_there(&self, most: u64, destinations: &[SocketAddr]) -> Option<u64> {
        let mut count = 0;
        self.for_each_end_there(&Destinations::new(destinations), |_, _| {
            count += 1;
            count < most
        })?;
        Some(count)
    }

    /// Lists these ends, and finds which of `open` load connections the target's process does not have. `earlier`: a previous list, and
    /// the number of connections held when the load ended, to include connections closed since.
    pub(crate) fn ends(
        &self,
        open: u64,
        destinations: &[SocketAddr],
        earlier: Option<(&Ends, u64)>,
    ) -> Option<Ends> {
        let destinations = Destinations::new(destinations);
        let mut ends = Ends { are_paired: self.watches.is_empty(), ..Ends::default() };
        let mut of_load = 0;
        self.for_each_end_there(&destinations, |role, end| {
            ends.there += 1;
            of_load += u64::from(matches!(role, Role::Population(_)));
            ends.absent.entry(role).or_default().unaccepted += u64::from(!end.is_accepted);
            true
        })?;
        // The kernel does not list connections over a device.
        if ends.are_paired && of_load < open {
            let missing = self.missing(&destinations)?;
            missing.into_iter().for_each(|role| ends.absent.entry(role).or_default().missing += 1);
        }
        if let Some((earlier, held)) = earlier.filter(|(earlier, _)| ends.are_paired && earlier.has_absent())
        {
            let here = self.dialled(&destinations)?.into_values();
            let here = here.filter(|role| matches!(role, Role::Population(_))).count() as u64;
            ends.add_gone(earlier, held.saturating_sub(here));
        }
        Some(ends)
    }

    /// Roles of the connections that are established at throng's end and have no end at the target. A connection that the target closes
    /// meanwhile is no longer established here, so only connections listed both before and after the target's ends count.
    fn missing(&self, destinations: &Destinations) -> Option<Vec<Role>> {
        let before = self.dialled(destinations)?;
        let mut there = HashSet::new();
        // While connections come and go, the kernel's list may skip one.
        for _ in 0..2 {
            self.for_each_end_there(destinations, |_, end| {
                there.insert((end.far, end.near));
                true
            })?;
        }
        Some(unpaired(&before, &there, self.dialled(destinations)?))
    }

    /// Throng's connections with their roles.
    fn dialled(&self, destinations: &Destinations) -> Option<HashMap<Connection, Role>> {
        let mut found = HashMap::new();
        for port in &destinations.ports {
            let walked = net::dialled(*port, |near, far| {
                let role = destinations.numbers.get(&far).and_then(|number| self.role(*number, near));
                found.extend(role.map(|role| ((near, far), role)));
            });
            walked.ok()?;
        }
        Some(found)
    }

    /// Calls `take` for each target end of throng's connections, with the role that dialled it, until it returns false.
    fn for_each_end_there(
        &self,
        destinations: &Destinations,
        mut take: impl FnMut(Role, net::End) -> bool,
    ) -> Option<()> {
        for port in &destinations.ports {
            let walked = net::established(*port, |end| {
                let number = destinations.numbers.get(&end.near);
                number.and_then(|number| self.role(*number, end.far)).is_none_or(|role| take(role, end))
            });
            walked.ok()?;
        }
        Some(())
    }
}

/// throng's end of a connection, and the target's.
type Connection = (SocketAddr, SocketAddr);

/// Roles of the connections present both `before` and `after`, but not in `there`. A destination without any end here may be translated:
/// its connections are skipped.
fn unpaired(
    before: &HashMap<Connection, Role>,
    there: &HashSet<Connection>,
    after: HashMap<Connection, Role>,
) -> Vec<Role> {
    let reached: HashSet<SocketAddr> = there.iter().map(|(_, to)| *to).collect();
    let is_missing =
        |ends: &Connection| before.contains_key(ends) && !there.contains(ends) && reached.contains(&ends.1);
    after.into_iter().filter(|(ends, _)| is_missing(ends)).map(|(_, role)| role).collect()
}

/// The destinations of a run, with their indices.
struct Destinations {
    numbers: HashMap<SocketAddr, u32>,
    ports: HashSet<u16>,
}

impl Destinations {
    /// From the destinations in the run's order.
    fn new(all: &[SocketAddr]) -> Destinations {
        let numbers =
            all.iter().map(|to| SocketAddr::new(to.ip().to_canonical(), to.port())).zip(0..).collect();
        Destinations { numbers, ports: all.iter().map(SocketAddr::port).collect() }
    }
}

/// TCP's state of `open` connections with `waiting` outstanding requests.
fn segments(stuck: Stuck, open: u64, waiting: u64) -> Segments {
    let Stuck { syns, unacknowledged } = stuck;
    Segments {
        // The shards' counts are up to 0.1 s old, and may include connections closed since.
        connections: open.max(unacknowledged),
        unacknowledged,
        // Requests on several streams wait for the same acknowledgement.
        unanswered: waiting.min(open).saturating_sub(unacknowledged),
        syns,
        ..Segments::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Ports;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_stray_connection_is_none_of_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let at = listener.local_addr().expect("a bound socket has an address");
        let dialled: Vec<TcpStream> =
            (0..5).map(|_| TcpStream::connect(at).expect("somebody listens")).collect();
        let of = |pool: SourcePool, list: Vec<u16>| {
            let ports = Ports { list, inside: 0 };
            sources(pool, ports).ends_there(u64::MAX, &[at])
        };
        let ports = ports(&dialled);
        let here = || [at.ip()].into_iter().collect();
        assert_eq!(of(here(), ports.clone()), Some(5));
        assert_eq!(of(here(), ports[..2].to_vec()), Some(2), "others have other ports");
        assert_eq!(
            of(SourcePool::Loopback4, ports.clone()),
            Some(0),
            "who dials from 127.0.0.1 is not throng"
        );
        assert_eq!(of(here(), Vec::new()), Some(0));
        let elsewhere = SocketAddr::from(([127, 0, 0, 2], at.port()));
        let ours = sources(here(), Ports { list: ports, inside: 0 });
        assert_eq!(ours.ends_there(u64::MAX, &[elsewhere]), Some(0));
    }

    fn sources(pool: SourcePool, ports: Ports) -> Sources {
        let mut sources = Sources::default();
        let route = Route { pool, ports, destinations: vec![0], numbers: vec![0], further: None };
        sources.add(Role::Population(0), &[route], TupleShare::ALL, 0);
        sources
    }

    /// The local ports of these streams, ascending.
    fn ports(dialled: &[TcpStream]) -> Vec<u16> {
        let port = |stream: &TcpStream| stream.local_addr().expect("it is bound").port();
        let mut ports: Vec<u16> = dialled.iter().map(port).collect();
        ports.sort_unstable();
        ports
    }

    /// Twelve connections of two populations from the same address, five of them accepted by the target.
    #[test]
    fn it_is_known_whose_connections_are_not_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let at = listener.local_addr().expect("a bound socket has an address");
        let dialled: Vec<TcpStream> =
            (0..12).map(|_| TcpStream::connect(at).expect("somebody listens")).collect();
        let accepted: Vec<_> = (0..5).map(|_| listener.accept().expect("twelve wait")).collect();
        let mut sources = Sources::default();
        for nth in 0..2 {
            let pool = [at.ip()].into_iter().collect();
            let ports = Ports { list: ports(&dialled), inside: 0 };
            let share = TupleShare { from: nth, of: 2, ..TupleShare::ALL };
            let route = Route { pool, ports, destinations: vec![0], numbers: vec![0], further: None };
            sources.add(Role::Population(nth as u16), &[route], share, 7);
        }
        let waiting = sources.ends(12, &[at], None).expect("the kernel lists them").of_populations(3);
        let unaccepted: Vec<u64> = waiting.iter().map(|own| own.unaccepted).collect();
        // Each population has six of the twelve.
        let own = |nth| {
            let is_own = |far: &SocketAddr| sources.role(0, *far) == Some(Role::Population(nth));
            accepted.iter().filter(|(_, far)| is_own(far)).count() as u64
        };
        assert_eq!(unaccepted, [6 - own(0), 6 - own(1), 0]);
        // A thirteenth connection does not exist.
        assert_eq!(sources.ends(13, &[at], None).map(|ends| ends.of_populations(3)), Some(waiting));
    }

    #[test]
    fn what_is_established_at_one_end_only_is_unpaired() {
        let end = |place: &str| place.parse::<SocketAddr>().expect("an address");
        let ends = |all: &[(u16, &str)]| -> Vec<Connection> {
            all.iter().map(|(from, to)| (SocketAddr::from(([127, 1, 0, 1], *from)), end(to))).collect()
        };
        let here = |all: &[(u16, &str)]| -> HashMap<Connection, Role> {
            let role = |of: &Connection| Role::Population(u16::from(of.0.port() >= 100));
            ends(all).into_iter().map(|of| (of, role(&of))).collect()
        };
        let check =
            |before: &[(u16, &str)], there: &[(u16, &str)], after: &[(u16, &str)], expected: &[u16]| {
                let there = ends(there).into_iter().collect();
                let mut found = unpaired(&here(before), &there, here(after));
                found.sort_by_key(|role| format!("{role:?}"));
                let expected: Vec<Role> = expected.iter().map(|nth| Role::Population(*nth)).collect();
                assert_eq!(found, expected, "{before:?} {there:?} {after:?}");
            };
        let (a, b) = ("127.0.0.1:80", "127.0.0.2:80");
        let four = [(1, a), (2, a), (100, a), (101, a)];
        check(&four, &four, &four, &[]);
        check(&four, &four[1..], &four, &[0]);
        check(&four, &four[..1], &four, &[0, 1, 1]);
        // The target closes the first one meanwhile; the last one is dialled meanwhile.
        check(&four, &four[1..], &four[1..], &[]);
        check(&four[..3], &four[..3], &four, &[]);
        // A translated destination has no end here.
        let other = [(1, a), (2, a), (3, b)];
        check(&other, &other[..2], &other, &[]);
        check(&other, &other[1..], &other, &[0]);
    }

    #[test]
    fn what_throng_has_closed_since_is_absent_all_the_same() {
        let ends = |absent: &[(u16, u64, u64)]| {
            let of = |(nth, unaccepted, missing): &(u16, u64, u64)| {
                (Role::Population(*nth), Absent { unaccepted: *unaccepted, missing: *missing })
            };
            Ends { absent: absent.iter().map(of).collect(), ..Ends::default() }
        };
        let check = |earlier: &[(u16, u64, u64)], now: &[(u16, u64, u64)], gone, missing: u64| {
            let mut ends_now = ends(now);
            ends_now.add_gone(&ends(earlier), gone);
            let found = ends_now.of_populations(2);
            assert_eq!(
                found.iter().map(|absent| absent.missing).sum::<u64>(),
                missing,
                "{earlier:?} {now:?}"
            );
        };
        check(&[(0, 4, 11)], &[], 15, 15);
        // The target has accepted four meanwhile.
        check(&[(0, 4, 11)], &[(0, 0, 11)], 0, 11);
        check(&[(0, 4, 11)], &[(0, 4, 0)], 11, 11);
        check(&[(0, 4, 11), (1, 5, 0)], &[], 18, 18);
        assert!(!ends(&[(0, 0, 0)]).has_absent() && ends(&[(1, 1, 0)]).has_absent());
    }

    #[test]
    fn a_connection_that_the_target_closes_is_not_missing() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let at = listener.local_addr().expect("a bound socket has an address");
        let dialled: Vec<TcpStream> =
            (0..4).map(|_| TcpStream::connect(at).expect("somebody listens")).collect();
        let ours = sources([at.ip()].into_iter().collect(), Ports { list: ports(&dialled), inside: 0 });
        let of =
            |open| ours.ends(open, &[at], None).map(|ends| (ends.there, ends.of_populations(1)[0].missing));
        assert_eq!(of(4), Some((4, 0)));
        // The target closes one: neither end is established any more.
        drop(listener.accept().expect("four wait"));
        assert_eq!(of(4), Some((3, 0)), "that is no half-open connection");
    }

    #[test]
    fn no_socket_is_bound_to_an_address_of_a_device() {
        let to = "127.0.0.1:80".parse().expect("an address");
        let pool: SourcePool = [IpAddr::from([127, 0, 0, 9])].into_iter().collect();
        let mut sources = sources(pool.clone(), Ports::default());
        assert_eq!(sources.towards(to), Some([127, 0, 0, 9].into()));
        assert_eq!(sources.segments(Nanos::ZERO, 5, 5), None);
        sources.watch([Arc::default()]);
        assert_eq!(sources.towards(to), None);
        let quiet = Some(Duration::from_secs(2));
        let seen = Segments { connections: 5, unanswered: 3, quiet, ..Segments::default() };
        assert_eq!(sources.segments(Nanos::from_secs(2), 5, 3), Some(seen));
    }

    #[test]
    fn no_more_connections_are_stuck_than_there_are() {
        let seen = |open| {
            let seen = segments(Stuck { syns: 0, unacknowledged: 10 }, open, open);
            (seen.connections, seen.unacknowledged, seen.unanswered)
        };
        let expected = [(10, 10, 0), (10, 10, 0), (10, 10, 0), (12, 10, 2)];
        assert_eq!([0, 4, 10, 12].map(seen), expected);
    }
}
