//! Finds out what responds in the target's place: the sender of an ICMP message that rejects a dial, and the sender of a reset.
//!
//! The errno of a dial contains neither the sender of an ICMP message nor its full content. Therefore, if dials are rejected, a few extra
//! dials are made on sockets that receive such messages (`IP_RECVERR`). Sockets do not show the remaining TTL of a reset either. If the
//! target is another host, and this process has the permission, a packet tap does.

use std::{
    net::{IpAddr, SocketAddr},
    sync::mpsc::{Receiver, Sender, TryRecvError, channel},
    thread,
    time::Duration,
};

use net::{DialOutcome, Icmp, Tap};
use plan::Plan;
use record::{hops::Hops, rejection::Rejection};
use samples::{Detail, Fault, Faults, Kind, Stage};
use units::Nanos;

/// Maximum number of extra dials. Routers send about one message per second and address, and the load's dials compete for it.
const MAX_DIALS: u32 = 8;
/// Timeout of a dial: longer than the first SYN retransmission.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Pause between two dials.
const APART: Duration = Duration::from_millis(500);
/// Maximum wait for a result at the end of a run, when no dial of the load competes for messages any more.
const LAST_WAIT: Nanos = Nanos::from_millis(2_500);

/// Queries and results.
#[derive(Debug, Default)]
pub(crate) struct Rejections {
    pending: Option<(SocketAddr, Receiver<DialOutcome>)>,
    found: Option<Icmp>,
    /// How long the end of the run may be delayed.
    until: Option<Nanos>,
}

/// Whether these faults may be rejections, given the number of ICMP messages to this machine. A refused dial without any message was
/// reset.
pub fn may_be_rejected(faults: &Faults, messages: u64) -> bool {
    faults.iter().any(|(fault, _)| is_sign(fault, messages))
}

fn is_sign(fault: Fault, messages: u64) -> bool {
    let is_dial = fault.stage == Stage::Dial;
    match fault.kind {
        Kind::Unreachable => is_dial,
        Kind::Denied => is_dial && fault.detail == Detail::new(EACCES),
        Kind::Refused | Kind::Timeout => is_dial && messages > 0,
        _ => false,
    }
}

/// The errno for ICMPv6 *administratively prohibited*.
const EACCES: i32 = 13;

impl Rejections {
    /// Starts extra dials to `at`, if this has not been done yet.
    pub(crate) fn investigate(&mut self, from: Option<IpAddr>, at: SocketAddr) {
        if self.pending.is_some() {
            return;
        }
        let (sender, receiver) = channel();
        let body = move || dial(from, at, &sender);
        // If the thread cannot be started, the source remains unknown.
        if thread::Builder::new().name("rejections".to_owned()).spawn(body).is_ok() {
            self.pending = Some((at, receiver));
        }
    }

    /// Takes the results so far; returns whether no more will follow.
    fn take(&mut self) -> bool {
        let Some((_, outcomes)) = &self.pending else { return true };
        loop {
            match outcomes.try_recv() {
                Ok(DialOutcome::Icmp(icmp)) => self.found = Some(icmp),
                Ok(_) => {}
                Err(e) => return e == TryRecvError::Disconnected,
            }
        }
    }

    /// Whether the end of a run should wait for a result.
    pub(crate) fn is_pending(&mut self, now: Nanos) -> bool {
        let is_done = self.take() || self.found.is_some();
        let until = *self.until.get_or_insert(now + LAST_WAIT);
        !is_done && now < until
    }

    /// The result. `is_here`: whether an address belongs to this machine.
    pub(crate) fn finish(mut self, is_here: impl Fn(IpAddr) -> bool) -> Option<Rejection> {
        self.take();
        let ((at, _), icmp) = (self.pending?, self.found?);
        let Icmp { by, is_v6, kind, code } = icmp;
        Some(Rejection { by, is_v6, kind, code, at, is_ours: by.is_some_and(is_here) })
    }
}

/// Dials until there is a definite outcome, or the receiver is gone.
fn dial(from: Option<IpAddr>, at: SocketAddr, outcomes: &Sender<DialOutcome>) {
    net::block_signals();
    for _ in 0..MAX_DIALS {
        let outcome = net::try_dial(at, from, PATIENCE);
        let is_known = !matches!(outcome, DialOutcome::Silence | DialOutcome::Accepted);
        if outcomes.send(outcome).is_err() || is_known {
            return;
        }
        thread::sleep(APART);
    }
}

/// A packet tap and its results.
#[derive(Debug, Default)]
pub struct Resets {
    tap: Option<Tap>,
    of: Vec<SocketAddr>,
    hops: Hops,
}

/// Timeout of an echo.
const ECHO_PATIENCE: Duration = Duration::from_millis(800);
/// Maximum number of captured packets per call; more show nothing new.
const MAX_PACKETS: usize = 1_000;

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
        let all = std::iter::from_fn(|| tap.next())
            .take(MAX_PACKETS)
            .filter(|control| self.of.contains(&control.from));
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
    pub fn finish(mut self) -> Hops {
        self.look();
        if let Some(host) = self.hops.of_resets_alone()
            && let Ok(Some(ttl)) = net::echo_ttl(host, ECHO_PATIENCE)
        {
            self.hops.take(host, ttl, false);
        }
        self.hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fault: Fault, messages: u64, expected: bool) {
        let mut faults = Faults::default();
        faults.count(fault);
        assert_eq!(may_be_rejected(&faults, messages), expected, "{fault:?}, {messages}");
    }

    #[test]
    fn a_reset_has_no_icmp_message() {
        check(Fault::target(Stage::Dial, Kind::Refused), 0, false);
        check(Fault::target(Stage::Dial, Kind::Refused), 3, true);
        check(Fault::target(Stage::Dial, Kind::Timeout), 0, false);
        check(Fault::target(Stage::Dial, Kind::Timeout), 3, true);
        check(Fault::target(Stage::Exchange, Kind::Timeout), 3, false);
        check(Fault::target(Stage::Dial, Kind::Unreachable), 0, true);
        check(Fault::host(Stage::Dial, Kind::Denied).with(Detail::new(EACCES)), 0, true);
        check(Fault::host(Stage::Dial, Kind::Denied).with(Detail::new(1)), 0, false);
        assert!(!may_be_rejected(&Faults::default(), 9));
    }

    #[test]
    fn a_reset_dial_has_no_message_to_wait_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let at = listener.local_addr().expect("it is bound");
        drop(listener);
        let mut rejections = Rejections::default();
        assert!(!rejections.is_pending(Nanos::ZERO), "nothing was started");
        rejections.investigate(None, at);
        while rejections.is_pending(Nanos::ZERO) {
            thread::yield_now();
        }
        assert_eq!(rejections.finish(|_| true), None);
    }
}
