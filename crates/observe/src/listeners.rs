//! Finds listeners: the listening sockets of this machine, those that a dial would reach, and the address family of a name that is
//! served. Only listeners are queried, so that the cost does not depend on the number of connections.

use std::{
    cell::LazyCell,
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use host::{Listener, Root};
use net::DialOutcome;
use plan::{Plan, Target};

/// Maximum number of destinations to try per family; a range of ports may have thousands.
const MAX_TRIED: usize = 4;
/// Timeout of a dial. A target that does not respond within it is no reason to use the other family.
const PATIENCE: Duration = Duration::from_secs(1);

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
pub fn listeners_at(listeners: Vec<Listener>, destinations: &[SocketAddr]) -> Vec<Listener> {
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

/// Switches a name that has both address families, such as `localhost`, to its other one if connections are accepted there but not in
/// the preferred one, as curl does. Loopback listeners are queried from the kernel; other targets are dialled once, if `dials` allows it.
/// Changes are passed to `say`, one line each.
pub fn settle(plan: &mut Plan, root: &Root, dials: bool, say: &mut dyn FnMut(&str)) {
    let listeners = LazyCell::new(|| listeners(root));
    let serves = |at: &SocketAddr| is_served(&listeners, *at) || dials && accepts(*at);
    let mut said: Vec<String> = Vec::new();
    let probes = plan.probe.iter_mut().flat_map(|probe| &mut probe.populations);
    for population in plan.populations.iter_mut().chain(probes) {
        let line = choose(&mut population.target, serves);
        said.extend(line.filter(|line| !said.contains(line)));
    }
    said.iter().for_each(|line| say(line));
}

fn accepts(at: SocketAddr) -> bool {
    net::try_dial(at, None, PATIENCE) == DialOutcome::Accepted
}

fn is_served(listeners: &[Listener], at: SocketAddr) -> bool {
    at.ip().is_loopback() && is_reached(listeners, at)
}

/// Swaps the families if necessary, and returns the notice for the user.
fn choose(target: &mut Target, serves: impl Fn(&SocketAddr) -> bool) -> Option<String> {
    let tried = |all: &[SocketAddr]| all.iter().take(MAX_TRIED).copied().collect::<Vec<_>>();
    let (own, others) = (tried(&target.destinations), tried(&target.others));
    if others.is_empty() || own.iter().any(&serves) || !others.iter().any(&serves) {
        return None;
    }
    std::mem::swap(&mut target.destinations, &mut target.others);
    let line = "does not accept connections, but";
    Some(format!("{}: {} {line} {} does; dialling only that one", target.host, own[0], others[0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Environment, Flags};

    /// A listener at `ADDRESS:PORT`; `[::]!:PORT` is for IPv6 only.
    fn listener_at(place: &str, inode: u64) -> Listener {
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

    /// Checks the destination chosen for `http://localhost:8000/`, with a hosts file that has only 127.0.0.1, when the `served` ones
    /// accept; and whether a change was reported.
    fn check(served: &[&str], expected: &str, is_said: bool) {
        let names = |_: &str| Ok(vec![[127, 0, 0, 1].into()]);
        let flags = Flags::new("http://localhost:8000/");
        let plan = plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &names });
        let mut target = plan.expect("it is right").populations.remove(0).target;
        let line = choose(&mut target, |at| served.contains(&at.to_string().as_str()));
        let all: Vec<String> = target.destinations.iter().map(ToString::to_string).collect();
        assert_eq!((all.join(","), line.is_some()), (expected.to_owned(), is_said), "{served:?}: {line:?}");
    }

    #[test]
    fn the_family_that_is_served_is_dialled() {
        check(&["127.0.0.1:8000"], "127.0.0.1:8000", false);
        check(&["127.0.0.1:8000", "[::1]:8000"], "127.0.0.1:8000", false);
        check(&["[::1]:8000"], "[::1]:8000", true);
        check(&[], "127.0.0.1:8000", false);
    }

    #[test]
    fn a_listener_of_any_address_serves_its_own_family() {
        let check = |listens: &str, at: &str, expected: bool| {
            let listener = listener_at(listens, 1);
            assert_eq!(is_served(&[listener], at.parse().expect("an address")), expected, "{listens} {at}");
        };
        check("0.0.0.0:80", "127.0.0.1:80", true);
        check("0.0.0.0:80", "[::1]:80", false);
        check("[::]:80", "127.0.0.1:80", true);
        check("[::]!:80", "127.0.0.1:80", false);
        check("[::1]:80", "127.0.0.1:80", false);
        check("[::1]:80", "[::1]:80", true);
        check("127.0.0.1:81", "127.0.0.1:80", false);
    }
}
