//! The listeners of this machine.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
};

use host::{Listener, Root};

/// From the kernel by netlink; where that is forbidden, from `/proc`, which is slow with millions of sockets
/// and has no backlogs.
pub fn listeners(root: &Root) -> Vec<Listener> {
    query().unwrap_or_else(|_| host::listeners(root))
}

/// The same with what waits in their queues, from netlink alone: cheap enough for each second, and empty where that is
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

/// Those that dials to these destinations reach, were they on this machine. Where several listen on a port, the kernel passes a
/// connection to the nearest, and to all of the nearest in turn where these share an address (`SO_REUSEPORT`).
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

/// Whether a dial to this address, were it on this machine, reaches one of them.
pub(crate) fn is_reached(listeners: &[Listener], destination: SocketAddr) -> bool {
    let to = destination.ip().to_canonical();
    let is_at = |listener: &Listener| listener.port == destination.port() && distance(listener, to).is_some();
    listeners.iter().any(is_at)
}

/// How near a listener is to an address that is dialled, as the kernel scores it (`__inet_lookup_listener`, `compute_score`): at
/// this address, at all of its family, or at all of IPv6 with IPv4 among them. `None`: no dial to the address reaches it.
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

    /// A listener at `ADDRESS:PORT`; with `[::]!:PORT`, for IPv6 alone.
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
        // One for each family, as nginx and many others have them.
        let both = ["0.0.0.0:80", "[::]:80"];
        check(&both, &["127.0.0.1:80"], &[1]);
        check(&both, &["[::1]:80"], &[2]);
        check(&both, &["[::ffff:127.0.0.1]:80"], &[1]);
        check(&both, &["127.0.0.1:80", "[::1]:80"], &[1, 2]);
        check(&both, &["127.0.0.1:81"], &[]);
        // One for both.
        check(&["[::]:80"], &["127.0.0.1:80"], &[1]);
        check(&["[::]!:80"], &["127.0.0.1:80"], &[]);
        check(&["[::]!:80"], &["[::1]:80"], &[1]);
        check(&["0.0.0.0:80"], &["[::1]:80"], &[]);
        // An address of its own goes first, whatever the order.
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
        // Listeners that share an address share its connections.
        let shared = ["0.0.0.0:80", "0.0.0.0:80", "[::]:80", "0.0.0.0:81"];
        check(&shared, &["127.0.0.1:80", "127.0.0.2:80"], &[1, 2]);
        check(&[], &["127.0.0.1:80"], &[]);
    }
}
