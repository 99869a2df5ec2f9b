//! The listening sockets of this machine, and which of them a dial would reach. Only listeners are queried, so that the cost does not
//! depend on the number of connections.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
};

use host::{Listener, Root};

/// All listeners, from the kernel by netlink. Where that is forbidden, from `/proc`, which is slow with millions of sockets and has no
/// backlogs.
pub fn listeners(root: &Root) -> Vec<Listener> {
    query().unwrap_or_else(|_| host::listeners(root))
}

/// All listeners with the length of their accept queues, by netlink only: cheap enough to be read every second. Empty where that is
/// forbidden.
pub fn queues() -> Vec<Listener> {
    query().unwrap_or_default()
}

fn query() -> std::io::Result<Vec<Listener>> {
    let listener = |l: net::Listening| Listener {
        address: l.address.ip(),
        port: l.address.port(),
        is_only_ipv6: l.is_only_ipv6,
        inode: l.inode,
        backlog: Some(l.backlog.into()),
        waiting: Some(l.waiting.into()),
        dropped: Some(l.dropped.into()),
    };
    Ok(net::listening()?.into_iter().map(listener).collect())
}

/// The listeners that dials to these destinations would reach on this machine. Where several listen on a port, the kernel chooses the
/// most specific address, and distributes connections among all listeners with that address (`SO_REUSEPORT`).
pub(crate) fn listeners_at(listeners: Vec<Listener>, destinations: &[SocketAddr]) -> Vec<Listener> {
    let mut on: HashMap<u16, Vec<Listener>> =
        destinations.iter().map(|destination| (destination.port(), Vec::new())).collect();
    for listener in &listeners {
        if let Some(same_port) = on.get_mut(&listener.port) {
            same_port.push(*listener);
        }
    }
    let mut reached: HashSet<u64> = HashSet::new();
    for destination in destinations {
        let to = destination.ip().to_canonical();
        let same_port = &on[&destination.port()];
        if let Some(nearest) = same_port.iter().filter_map(|listener| distance(listener, to)).min() {
            let nearest = same_port.iter().filter(|listener| distance(listener, to) == Some(nearest));
            reached.extend(nearest.map(|listener| listener.inode));
        }
    }
    listeners.into_iter().filter(|listener| reached.contains(&listener.inode)).collect()
}

/// Whether a dial to this address would reach one of the listeners on this machine.
pub(crate) fn is_reached(listeners: &[Listener], destination: SocketAddr) -> bool {
    let to = destination.ip().to_canonical();
    let is_at = |listener: &Listener| listener.port == destination.port() && distance(listener, to).is_some();
    listeners.iter().any(is_at)
}

/// How specific a listener's address is for a dial to `to`, as the kernel scores it (`__inet_lookup_listener`, `compute_score`): 0 for
/// this very address, 1 for the wildcard of its family, 2 for the IPv6 wildcard that includes IPv4. `None`: the dial does not reach it.
fn distance(listener: &Listener, to: IpAddr) -> Option<u8> {
    let at = listener.address;
    if at == to {
        return Some(0);
    }
    if !at.is_unspecified() {
        return None;
    }
    match (at.is_ipv6(), to.is_ipv6()) {
        (false, false) | (true, true) => Some(1),
        (true, false) => (!listener.is_only_ipv6).then_some(2),
        (false, true) => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A listener at `ADDRESS:PORT`; `[::]!:PORT` is for IPv6 only.
    pub(crate) fn listener_at(place: &str, inode: u64) -> Listener {
        let at: SocketAddr = place.replace('!', "").parse().expect("an address and a port");
        Listener {
            address: at.ip(),
            port: at.port(),
            is_only_ipv6: place.contains('!'),
            inode,
            backlog: Some(128),
            waiting: None,
            dropped: None,
        }
    }

    #[test]
    fn a_dial_reaches_the_nearest_listeners() {
        let check = |listening: &[&str], dialled: &[&str], expected: &[u64]| {
            let listeners = (1..).zip(listening).map(|(inode, place)| listener_at(place, inode)).collect();
            let dialled: Vec<SocketAddr> = dialled.iter().map(|at| at.parse().expect("an address")).collect();
            let reached = listeners_at(listeners, &dialled);
            let inodes: Vec<u64> = reached.iter().map(|listener| listener.inode).collect();
            assert_eq!(inodes, expected, "{listening:?}, {dialled:?}");
        };
        // One listener per family, as nginx has.
        let both = ["0.0.0.0:80", "[::]:80"];
        check(&both, &["127.0.0.1:80"], &[1]);
        check(&both, &["[::1]:80"], &[2]);
        check(&both, &["[::ffff:127.0.0.1]:80"], &[1]);
        check(&both, &["127.0.0.1:80", "[::1]:80"], &[1, 2]);
        check(&both, &["127.0.0.1:81"], &[]);
        // One listener for both families.
        check(&["[::]:80"], &["127.0.0.1:80"], &[1]);
        check(&["[::]!:80"], &["127.0.0.1:80"], &[]);
        check(&["[::]!:80"], &["[::1]:80"], &[1]);
        check(&["0.0.0.0:80"], &["[::1]:80"], &[]);
        // A specific address takes precedence, in any order.
        check(&["0.0.0.0:80", "127.0.0.1:80", "[::]:80"], &["127.0.0.1:80"], &[2]);
        check(&["127.0.0.1:80", "0.0.0.0:80"], &["127.0.0.1:80", "127.0.0.2:80"], &[1, 2]);
        check(&["[::1]:80", "[::]:80"], &["[::1]:80", "127.0.0.1:80"], &[1, 2]);
        check(&["[::1]:80", "127.0.0.2:80"], &["127.0.0.1:80"], &[]);
        let reached = |to: &str| {
            is_reached(
                &[listener_at("127.0.0.1:80", 1), listener_at("[::]!:81", 2)],
                to.parse().expect("an address"),
            )
        };
        assert!(["127.0.0.1:80", "[::ffff:127.0.0.1]:80", "[::1]:81"].into_iter().all(reached));
        assert!(!["127.0.0.2:80", "127.0.0.1:81", "[::1]:80"].into_iter().any(reached));
        // Listeners on the same address share its connections.
        let shared = ["0.0.0.0:80", "0.0.0.0:80", "[::]:80", "0.0.0.0:81"];
        check(&shared, &["127.0.0.1:80", "127.0.0.2:80"], &[1, 2]);
        check(&[], &["127.0.0.1:80"], &[]);
    }
}
