//! The same connections counted at both ends, where the target's end can be seen.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
};

use plan::{Route, SourcePool};

/// The kernel lists this many connections in some hundred milliseconds; more are not counted.
pub(crate) const MAX_COUNTED: u64 = 200_000;

/// The same connections counted at both ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BothSides {
    pub(crate) here: u64,
    pub(crate) there: u64,
}

/// Where the connections of a run come from: by that the target's ends of them are known among others.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pools: Vec<SourcePool>,
    ports: HashSet<u16>,
}

impl Sources {
    pub(crate) fn new<'a>(routes: impl Iterator<Item = &'a Route>) -> Sources {
        let mut sources = Sources::default();
        for route in routes {
            if !sources.pools.contains(&route.pool) {
                sources.pools.push(route.pool.clone());
                sources.ports.extend(&route.ports.list);
            }
        }
        sources
    }

    fn has(&self, from: SocketAddr) -> bool {
        self.ports.contains(&from.port()) && self.pools.iter().any(|pool| pool.has(from.ip()))
    }

    /// An address that `to` is dialled from; none where that is the kernel's choice.
    pub(crate) fn towards(&self, to: SocketAddr) -> Option<IpAddr> {
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
            let route = Route { pool, ports, destinations: vec![0], numbers: vec![0] };
            Sources::new([&route].into_iter()).ends_there(u64::MAX, &[at])
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
        let route = Route {
            pool: here(),
            ports: Ports { list: ports, inside: 0 },
            destinations: vec![0],
            numbers: vec![0],
        };
        assert_eq!(Sources::new([&route].into_iter()).ends_there(u64::MAX, &[elsewhere]), Some(0));
    }
}
