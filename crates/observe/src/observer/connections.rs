//! Additional checks of the connections when something seems wrong: connections that wait without progress, rejected dials, connections
//! that the target has not accepted, a target that is elsewhere. Costly checks are limited by the number of connections, or made only at
//! the end.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc::channel},
    thread,
    time::Duration,
};

use plan::Plan;
use record::{
    ends::BothSides,
    rejection::Rejection,
    rows::first_of,
    segments::{Lossy, Segments},
};
use samples::TargetSeen;
use units::Nanos;

use super::Observer;
use crate::{
    both_sides::{Ends, MAX_COUNTED, Sources},
    path::Resets,
};

/// Maximum number of connections per query of TCP's state; it takes a few milliseconds.
const MAX_SEGMENTS: u64 = 2_000;
/// Maximum number of connections to list shortly before the end: the kernel lists this many in about ten milliseconds.
const MAX_LISTED_EARLIER: u64 = 20_000;
/// Interval between lines, plus a tolerance: if the load lasts longer than this, another line comes before its end.
const LINE: Nanos = Nanos::from_millis(1_200);
/// Timeout of the query for the target's own count.
const PATIENCE: Duration = Duration::from_millis(500);
/// Within this time all threads have delivered ticks: the reported number of open connections is up to date.
const OUTDATED: Nanos = Nanos::from_millis(500);

/// Decides whether the target's ends of throng's connections are in this network namespace, or elsewhere behind address translation.
#[derive(Debug, Default)]
pub(super) struct OtherEnds {
    /// The ends were seen, or cannot be listed.
    pub(super) are_known: bool,
    missing_since: Option<Nanos>,
}

impl OtherEnds {
    /// Whether the ends are elsewhere. `listed`: the number listed by the kernel (`None`: unknown) of the connections open in the last
    /// tick. A target that has just closed all of them has no ends either, which the tick may not reflect yet. Therefore ends must be
    /// missing for a while, except at the end of the load, when nothing more can be seen.
    pub(super) fn are_elsewhere(&mut self, listed: Option<u64>, now: Nanos, is_end: bool) -> bool {
        // If the kernel cannot list them now, it will not later.
        self.are_known = listed != Some(0);
        if self.are_known {
            return false;
        }
        let since = *self.missing_since.get_or_insert(now);
        is_end || now.since(since) >= OUTDATED
    }

    /// Notes that no connection was open in the last tick.
    pub(super) fn none_open(&mut self) {
        self.missing_since = None;
    }
}

impl Observer {
    /// Notes where this process dials the plan's connections from; `None` if other processes dial.
    pub fn note_sources(&mut self, plan: &Plan, sources: Option<Arc<Sources>>) {
        self.resets = Resets::of(plan, sources.is_some());
        self.sources = sources;
    }

    /// Once a second, with the numbers of open connections and of outstanding requests: queries TCP's state if something `seems_wrong`.
    /// Connections without a process at the target may time out and close at the end of the load: they are listed shortly before.
    pub fn look_closer(
        &mut self,
        now: Nanos,
        (open, waiting): (u64, u64),
        seems_wrong: bool,
        ends_at: Nanos,
    ) {
        if seems_wrong {
            self.sample_segments(now, (open, waiting));
        } else if waiting > 0 && self.resets.are_far() {
            self.segments(now, (open, waiting)).into_iter().for_each(|seen| self.take_lossy(seen));
        }
        self.resets.look();
        if (1..=MAX_LISTED_EARLIER).contains(&open) && ends_at <= now + LINE {
            self.earlier = self.ends(open, None);
        }
    }

    /// ICMP messages so far that reported a destination as unreachable or prohibited.
    pub fn icmp_unreachable(&mut self) -> u64 {
        self.count_own();
        let by_kernel = self.known.seen.host.as_ref().map_or(0, |host| host.tcp().icmp_unreachable);
        by_kernel + self.known.own_counts.icmp
    }

    /// Adds the counts of connections over a TUN device, which the kernel does not count.
    pub(super) fn count_own(&mut self) {
        self.known.own_counts = self.sources.as_ref().map(|own| own.own_counts()).unwrap_or_default();
    }

    /// Starts extra dials to the first destination that is counted in this row, to find out what rejects them.
    pub fn ask_who_rejects(&mut self, row: usize) {
        let at = self.destinations.get(first_of(row, self.destinations.len())).copied();
        if let Some(at) = at {
            let from = self.sources.as_ref().and_then(|sources| sources.towards(at));
            self.rejections.investigate(from, at);
        }
    }

    /// Whether the end of the run should wait for the result of these dials.
    pub fn awaits_rejection(&mut self, now: Nanos) -> bool {
        self.rejections.is_pending(now)
    }

    /// The result of these dials.
    pub fn take_rejection(&mut self) -> Option<Rejection> {
        std::mem::take(&mut self.rejections).finish(|address| host::is_local(&self.root, address))
    }

    /// TCP's state of the connections, by the shards over a TUN device, or else by the kernel; `None` if it is unavailable.
    fn segments(&self, now: Nanos, (open, waiting): (u64, u64)) -> Option<net::Segments> {
        let of_device = self.sources.as_ref().and_then(|sources| sources.segments(now, open, waiting));
        of_device.or_else(|| net::segments_to(&self.destinations, MAX_SEGMENTS).ok())
    }

    /// Samples TCP's state of the connections, given the numbers of open connections and of outstanding requests. Returns for how long
    /// none of them has received anything; `None` if that is unknown.
    pub fn sample_segments(&mut self, now: Nanos, of: (u64, u64)) -> Option<Nanos> {
        let seen = self.segments(now, of)?;
        let waiting = |seen: &Segments| seen.unacknowledged + seen.unanswered + seen.syns;
        let net::Segments { connections, unacknowledged, unanswered, quiet, syns, .. } = seen;
        let quiet = quiet.map(|quiet| Nanos(quiet.as_nanos() as u64));
        let lossy = self.known.segments.lossy;
        let new = Segments { connections, unacknowledged, unanswered, quiet, syns, lossy };
        if waiting(&new) >= waiting(&self.known.segments) {
            self.known.segments = new;
        }
        self.take_lossy(seen);
        quiet
    }

    /// Keeps the signs of lost segments.
    fn take_lossy(&mut self, seen: net::Segments) {
        let net::Segments { connections, unacknowledged: stuck, stuck_for, disordered, slow, .. } = seen;
        let stuck_for = Nanos(stuck_for.unwrap_or_default().as_nanos() as u64);
        let lossy = Lossy { connections, stuck, stuck_for, disordered, ..Lossy::default() };
        self.known.segments.lossy.take(lossy, slow);
    }

    /// Checks whether the target is on this host, by the target's ends of the connections. If the dialled address is translated (as for a
    /// published container port), these ends are in another network namespace, and a listener at that address here is not the target.
    /// Returns whether it was found to be elsewhere just now; its samples are then discarded.
    pub fn finds_target_elsewhere(&mut self, now: Nanos, open: u64, is_end: bool) -> bool {
        // After an accept queue overflow, only throng's ends may exist: the peer has dropped the ACK that completes the handshake.
        if self.other_ends.are_known || !self.known.both_here || self.was_dialled_here() {
            return false;
        }
        if open == 0 {
            self.other_ends.none_open();
            return false;
        }
        let Some(sources) = &self.sources else { return false };
        let listed = sources.ends_there(1, &self.destinations);
        // The ends of a target that has exited are gone as well; that does not mean that it was elsewhere.
        let is_elsewhere = self.other_ends.are_elsewhere(listed, now, is_end) && !self.has_target_ended();
        if is_elsewhere {
            self.lose_target();
        }
        is_elsewhere
    }

    /// Whether the listener on this host was seen to receive throng's dials: they waited in an accept queue, or overflowed it.
    fn was_dialled_here(&self) -> bool {
        let overflows = self.known.seen.host.as_ref().map_or(0, |host| host.tcp().listen_overflows);
        self.known.accepts.has_queued() || overflows > 0
    }

    /// The target's ends of `open` connections in this network namespace, if they are expected here and few enough to count.
    fn ends(&self, open: u64, earlier: Option<(&Ends, u64)>) -> Option<Ends> {
        let is_cheap = self.known.both_here && (1..=MAX_COUNTED).contains(&open);
        let sources = self.sources.as_ref().filter(|_| is_cheap)?;
        sources.ends(open, &self.destinations, earlier)
    }

    /// At the end of the load: the target's ends of the `open` connections, including those of `held` ones that were closed just before.
    pub fn last_ends(&mut self, open: u64, held: u64) -> Option<Ends> {
        let earlier = self.earlier.take();
        self.ends(open, earlier.as_ref().map(|earlier| (earlier, held)))
    }

    /// The number of connections at both ends. The target's end is counted by the kernel, if it is on this host and the number is small
    /// enough (`ends`); otherwise by the target, if it is `throng serve`. No other target is queried.
    pub fn both_sides(&self, open: u64, ends: Option<&Ends>) -> Option<BothSides> {
        if open == 0 {
            return None;
        }
        let is_ours = || self.known.seen.target.as_ref().is_some_and(TargetSeen::is_ours);
        let by_target =
            || if self.ports.len() == 1 && is_ours() { counted_there(self.destinations[0]) } else { None };
        let there = ends.map(|ends| ends.there).or_else(by_target)?;
        Some(BothSides { here: open, there })
    }

    /// Number of the `open` connections in the target's accept queue; `None` if it cannot be read. The queue may still contain connections
    /// counted by `dropped`, unless it is known by `listed`.
    pub fn unaccepted(&self, open: u64, dropped: u64, listed: Option<u64>) -> Option<u64> {
        let stands = self.known.accepts.stands();
        if !self.known.both_here {
            let queue = self.known.seen.target.as_ref().and_then(|target| target.latest().accept_queue);
            return queue.map(|queue| queue.min(stands).saturating_sub(dropped).min(open));
        }
        let queues = self.queues();
        let is_seen = self.ports.iter().all(|port| queues.iter().any(|queue| queue.port == *port));
        if !is_seen || stands == 0 || open > MAX_COUNTED {
            return is_seen.then(|| stands.saturating_sub(dropped).min(open));
        }
        Some(listed.or_else(|| unaccepted_at(&self.ports))?.min(stands).min(open))
    }

    /// Number of connections in the accept queues that throng has not given up.
    pub(super) fn live(&self, queued: u64) -> u64 {
        unaccepted_at(&self.ports).map_or(queued, |live| live.min(queued))
    }
}

/// Open connections at these ports that no process has accepted; `None` if the kernel does not list them.
fn unaccepted_at(ports: &[u16]) -> Option<u64> {
    ports.iter().map(|port| net::unaccepted_at(*port)).sum::<Result<u64, _>>().ok()
}

/// The number of open connections by `throng serve`; `None` if it does not respond within the timeout.
fn counted_there(address: SocketAddr) -> Option<u64> {
    let (sender, receiver) = channel();
    let body = move || {
        net::block_signals();
        units::failpoint("count");
        sender.send(host::remote::open_connections(address))
    };
    thread::Builder::new().name("count".to_owned()).spawn(body).ok()?;
    receiver.recv_timeout(PATIENCE).ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_elsewhere_if_they_stay_missing() {
        let check = |looks: &[(Option<u64>, u64, bool)], expected: &[bool]| {
            let mut ends = OtherEnds::default();
            let look = |&(listed, ms, is_end)| ends.are_elsewhere(listed, Nanos::from_millis(ms), is_end);
            assert_eq!(looks.iter().map(look).collect::<Vec<_>>(), expected, "{looks:?}");
        };
        // They may just have been closed.
        check(&[(Some(0), 1_000, false), (Some(0), 1_499, false)], &[false, false]);
        check(&[(Some(0), 1_000, false), (Some(0), 1_500, false)], &[false, true]);
        check(&[(Some(0), 1_000, true)], &[true]);
        check(&[(Some(3), 1_000, false)], &[false]);
        check(&[(None, 1_000, true)], &[false]);
        // In between, no connection could be missing.
        let mut ends = OtherEnds::default();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(1_000), false));
        ends.none_open();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(3_000), false));
        assert!(ends.are_elsewhere(Some(0), Nanos::from_millis(3_500), false) && !ends.are_known);
    }
}
