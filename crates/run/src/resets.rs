//! Who sends resets: the target, or a device on the path. Sockets do not show the remaining TTL of a reset. If the target is another
//! host, and this process has the permission, a packet tap does.

use std::{net::SocketAddr, time::Duration};

use net::Tap;
use plan::Plan;
use record::hops::Hops;

/// A packet tap and its results.
#[derive(Debug, Default)]
pub(crate) struct Resets {
    tap: Option<Tap>,
    of: Vec<SocketAddr>,
    hops: Hops,
}

/// Timeout of an echo.
const PATIENCE: Duration = Duration::from_millis(800);
/// Maximum number of packets per call; more show nothing new.
const MOST: usize = 1_000;

impl Resets {
    /// A tap for all destinations of a plan; inactive unless this process dials them (`is_here`).
    pub(crate) fn of(plan: &Plan, is_here: bool) -> Resets {
        let all = plan.populations.iter().flat_map(|own| own.target.destinations.clone());
        let of: Vec<SocketAddr> = all.filter(|at| is_here && !at.ip().is_loopback()).collect();
        let tap = of.first().and_then(|at| Tap::open(at.is_ipv4()).ok());
        Resets { tap, of, hops: Hops::default() }
    }

    /// Whether the target is another host, judging by its addresses.
    pub(crate) fn are_far(&self) -> bool {
        !self.of.is_empty()
    }

    /// Takes the captured packets. Once the distance of the target is known, only resets are captured.
    pub(crate) fn look(&mut self) {
        let Some(tap) = &self.tap else { return };
        let knew = self.hops.has_others();
        let all =
            std::iter::from_fn(|| tap.next()).take(MOST).filter(|control| self.of.contains(&control.from));
        for control in all {
            match control.is_own {
                true if control.is_reset => self.hops.take_own(),
                true => {}
                false => self.hops.take(control.from.ip(), control.ttl, control.is_reset),
            }
        }
        if !knew && self.hops.has_others() {
            // Extra packets do no harm.
            let _ = tap.only_resets();
        }
    }

    /// The results. If only resets were seen from a host, requests an echo to find its distance.
    pub(crate) fn finish(mut self) -> Hops {
        self.look();
        if let Some(host) = self.hops.of_resets_alone()
            && let Ok(Some(ttl)) = net::echo_ttl(host, PATIENCE)
        {
            self.hops.take(host, ttl, false);
        }
        self.hops
    }
}
