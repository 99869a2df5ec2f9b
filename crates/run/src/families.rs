//! Selects the address family of a name that has both, such as `localhost`: the one that is served, as curl does.

use std::{net::SocketAddr, time::Duration};

use host::{Listener, Root};
use net::DialOutcome;
use plan::{Plan, Target};

use crate::listeners::listeners_at;

/// Maximum number of destinations to try per family; a range of ports may have thousands.
const MAX_TRIED: usize = 4;
/// Timeout of a dial. A target that does not respond within it is no reason to use the other family.
const PATIENCE: Duration = Duration::from_secs(1);

/// Switches a name to its other address family if connections are accepted there but not in the preferred one. Loopback listeners are
/// queried from the kernel; other targets are dialled once, if `dials` allows it. Changes are passed to `say`, one line each.
pub fn settle(plan: &mut Plan, root: &Root, dials: bool, say: &mut dyn FnMut(&str)) {
    let listeners = std::cell::LazyCell::new(|| crate::listeners(root));
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
    at.ip().is_loopback() && !listeners_at(listeners.to_vec(), &[at]).is_empty()
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
    use crate::listeners::tests::listener_at;
    use plan::{Environment, Flags};

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
