//! Who sends resets. Sockets do not say how far a reset has come: where the target is another host, and this process may, a tap shows it.

use std::{net::SocketAddr, time::Duration};

use net::Tap;
use plan::Plan;
use record::hops::Hops;

/// A tap, and what has come through it.
#[derive(Debug, Default)]
pub(crate) struct Resets {
    tap: Option<Tap>,
    of: Vec<SocketAddr>,
    hops: Hops,
}

/// How long an echo is waited for.
const PATIENCE: Duration = Duration::from_millis(800);
/// More than these in a second show nothing new.
const MOST: usize = 1_000;

impl Resets {
    /// Of all destinations of a plan; `is_here`: this process dials them.
    pub(crate) fn of(plan: &Plan, is_here: bool) -> Resets {
        let all = plan.populations.iter().flat_map(|own| own.target.destinations.clone());
        let of: Vec<SocketAddr> = all.filter(|at| is_here && !at.ip().is_loopback()).collect();
        let tap = of.first().and_then(|at| Tap::open(at.is_ipv4()).ok());
        Resets { tap, of, hops: Hops::default() }
    }

    /// Whether the target is another host, as far as its addresses show.
    pub(crate) fn are_far(&self) -> bool {
        !self.of.is_empty()
    }

    /// Takes what has come. Once it is known how far the target is, only resets are of interest.
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
            // What comes besides does no harm.
            let _ = tap.only_resets();
        }
    }

    /// All that was seen. A host of which nothing but resets have come is asked for an echo.
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
