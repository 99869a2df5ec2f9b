//! The same connections counted at both ends, where the target's end can be seen.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use net::{
    Segments,
    io::tun::{Stuck, Watch},
};
use plan::{Route, SourcePool};
use units::Nanos;

/// The kernel lists this many connections in some hundred milliseconds; more are not counted.
pub(crate) const MAX_COUNTED: u64 = 200_000;

/// The same connections counted at both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BothSides {
    pub(crate) here: u64,
    pub(crate) there: u64,
}

/// What the kernel counts of connections that are sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnCounts {
    /// SYNs that were sent again.
    pub(crate) syns_again: u64,
    /// Messages of ICMP.
    pub(crate) icmp: u64,
}

/// Ticks of all threads have come within it: what the last ones said of open connections is not outdated.
const OUTDATED: Nanos = Nanos::from_millis(500);

/// Whether the target's ends of our connections are in this network namespace.
#[derive(Debug, Default)]
pub(crate) struct OtherEnds {
    /// They were seen, or cannot be.
    pub(crate) are_known: bool,
    missing_since: Option<Nanos>,
}

impl OtherEnds {
    /// Whether they are elsewhere, when the kernel lists this number (none: unknown) of the connections that were open in the last tick.
    /// A target that has just closed them all has no ends either, which the tick did not know yet: at the end of the load nothing more
    /// can be seen, before it they have to be missing for a while.
    pub(crate) fn are_elsewhere(&mut self, listed: Option<u64>, now: Nanos, is_end: bool) -> bool {
        // If the kernel does not report it now, it will not later.
        self.are_known = listed != Some(0);
        if self.are_known {
            return false;
        }
        let since = *self.missing_since.get_or_insert(now);
        is_end || now.since(since) >= OUTDATED
    }

    /// No connection was open in the last tick.
    pub(crate) fn none_open(&mut self) {
        self.missing_since = None;
    }
}

/// Where the connections of a run come from: by that the target's ends of them are known among others.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pools: Vec<SourcePool>,
    /// By port: whether it may be dialled from. Most ports may.
    ports: Vec<bool>,
    /// Of shards with a device: their connections are no sockets, and their addresses none of this machine.
    watches: Vec<Arc<Watch>>,
}

impl Sources {
    /// Adds those of a shard.
    pub(crate) fn add(&mut self, routes: &[Route]) {
        for route in routes {
            if !self.pools.contains(&route.pool) {
                self.pools.push(route.pool.clone());
                self.ports.resize(usize::from(u16::MAX) + 1, false);
                route.ports.list.iter().for_each(|port| self.ports[usize::from(*port)] = true);
            }
        }
    }

    /// The shard has a device.
    pub(crate) fn watch(&mut self, watches: impl IntoIterator<Item = Arc<Watch>>) {
        self.watches.extend(watches);
    }

    /// What [`net::segments_to`] finds where connections are sockets: of `open` connections, on which this many requests wait. None where
    /// they are.
    pub(crate) fn segments(&self, now: Nanos, open: u64, waiting: u64) -> Option<Segments> {
        let came = self.watches.iter().map(|watch| watch.came()).max()?;
        let stuck = self.watches.iter().map(|watch| watch.stuck());
        let all = stuck.fold(Stuck::default(), |all, stuck| Stuck {
            syns: all.syns + stuck.syns,
            unacknowledged: all.unacknowledged + stuck.unacknowledged,
        });
        let quiet = Some(Duration::from_nanos(now.since(came).0));
        Some(Segments { quiet, ..segments(all, open, waiting) })
    }

    /// SYNs that shards with a device sent again, and messages of ICMP that they received: the kernel counts neither.
    pub(crate) fn own_counts(&self) -> OwnCounts {
        self.watches.iter().fold(OwnCounts::default(), |sum, watch| OwnCounts {
            syns_again: sum.syns_again + watch.syns_again(),
            icmp: sum.icmp + watch.icmp(),
        })
    }

    fn has(&self, from: SocketAddr) -> bool {
        self.ports.get(usize::from(from.port())) == Some(&true)
            && self.pools.iter().any(|pool| pool.has(from.ip()))
    }

    /// An address that a socket may be bound to and `to` is dialled from; none where that is the kernel's choice.
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

    /// How many of our connections end at these destinations in this network namespace, according to the kernel; none if it
    /// does not report them. A target behind address translation has its ends elsewhere: that is 0. Other connections at
    /// its port, to or from other addresses, are not counted. The query stops at `most`.
    pub(crate) fn ends_there(&self, most: u64, destinations: &[SocketAddr]) -> Option<u64> {
        let destinations: HashSet<SocketAddr> = destinations.iter().copied().collect();
        let ports: HashSet<u16> = destinations.iter().map(SocketAddr::port).collect();
        let mut count = 0;
        for port in ports {
            let walked = net::established(port, |near, far| {
                count += u64::from(destinations.contains(&near) && self.has(far));
                count < most
            });
            walked.ok()?;
        }
        Some(count)
    }
}

/// Of `open` connections, on which this many requests wait.
fn segments(stuck: Stuck, open: u64, waiting: u64) -> Segments {
    let Stuck { syns, unacknowledged } = stuck;
    Segments {
        // What a shard notes of them is up to 0.1 s old: those that it has given up since are open no more.
        connections: open.max(unacknowledged),
        unacknowledged,
        // Requests of several streams wait for the same acknowledgement.
        unanswered: waiting.min(open).saturating_sub(unacknowledged),
        quiet: None,
        syns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Ports;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn ends_are_elsewhere_if_they_stay_missing() {
        let check = |looks: &[(Option<u64>, u64, bool)], expected: &[bool]| {
            let mut ends = OtherEnds::default();
            let look = |&(listed, ms, is_end)| ends.are_elsewhere(listed, Nanos::from_millis(ms), is_end);
            assert_eq!(looks.iter().map(look).collect::<Vec<_>>(), expected, "{looks:?}");
        };
        // Just closed: they may only have gone.
        check(&[(Some(0), 1_000, false), (Some(0), 1_499, false)], &[false, false]);
        check(&[(Some(0), 1_000, false), (Some(0), 1_500, false)], &[false, true]);
        check(&[(Some(0), 1_000, true)], &[true]);
        check(&[(Some(3), 1_000, false)], &[false]);
        check(&[(None, 1_000, true)], &[false]);
        // In between there were none that could be missing.
        let mut ends = OtherEnds::default();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(1_000), false));
        ends.none_open();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(3_000), false));
        assert!(ends.are_elsewhere(Some(0), Nanos::from_millis(3_500), false) && !ends.are_known);
    }

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
        let port = |stream: &TcpStream| stream.local_addr().expect("it is bound").port();
        let ports: Vec<u16> = dialled.iter().map(port).collect();
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
        sources.add(&[Route { pool, ports, destinations: vec![0], numbers: vec![0] }]);
        sources
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
