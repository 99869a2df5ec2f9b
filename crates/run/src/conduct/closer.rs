//! Additional checks when something seems wrong: a silent target, connections that wait without progress, rejected dials, connections
//! that the target has not accepted. Costly checks are limited by the number of connections, or made only at the end.

use std::{net::SocketAddr, sync::mpsc::channel, thread, time::Duration};

use samples::{MAX_DESTINATIONS, Tick};
use units::Nanos;

use super::Environment;
use crate::{
    both_sides::{Ends, MAX_COUNTED},
    conductor::Conductor,
    rejections,
};
use record::ends::BothSides;

/// Maximum number of connections to list shortly before the end: the kernel lists this many in about ten milliseconds.
const MAX_LISTED_EARLIER: u64 = 20_000;
/// Interval between lines, plus a tolerance: if the load lasts longer than this, another line comes before its end.
const LINE: Nanos = Nanos::from_millis(1_200);

/// Timeout of the query for the target's own count.
const PATIENCE: Duration = Duration::from_millis(500);

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

impl Environment<'_, '_> {
    /// Samples more often while a population's target is silent.
    pub(super) fn mind_silence(&mut self, conductor: &Conductor) {
        let is_silent =
            conductor.record.populations.iter().any(|measured| measured.silences.lasting().is_some());
        self.observer.is_silent = is_silent;
    }

    /// Once a second: queries TCP's state of the connections if some wait and none receives anything, or if anything failed.
    pub(super) fn look_closer(&mut self, conductor: &Conductor, line: &Tick, now: Nanos) {
        let (waiting, _) = conductor.waiting();
        let wanted = conductor.record.populations.iter().map(|measured| measured.wanted).sum();
        let nothing_comes = waiting > 0 && line.counts.answered == 0;
        let nobody_opens = conductor.resolved() < wanted && line.counts.opened == 0;
        if nothing_comes || nobody_opens || line.faults.total() > 0 {
            self.observer.sample_segments(self.own_segments(conductor, now));
        } else if waiting > 0 && self.resets.are_far() {
            self.observer.sample_losses(self.own_segments(conductor, now));
        }
        self.resets.look();
        self.ask_who_rejects(conductor);
        // Connections without a process at the target may time out and close at the end of the load: list them shortly before.
        if (1..=MAX_LISTED_EARLIER).contains(&conductor.open()) && conductor.ends_at() <= now + LINE {
            self.earlier = self.other_ends(conductor.open(), None);
        }
    }

    /// If dials are rejected, starts an extra dial that finds out by what.
    fn ask_who_rejects(&mut self, conductor: &Conductor) {
        self.count_own();
        let messages = self.observer.icmp_unreachable();
        if conductor.sum(|tick| rejections::may_be(&tick.faults, messages).into()) > 0 {
            let failed =
                |at: usize| conductor.sum(|tick| tick.destinations.get(at).map_or(0, |own| own.failed));
            let rows = 0..self.observer.destinations().len().min(MAX_DESTINATIONS);
            let worst = rows.rev().max_by_key(|row| failed(*row)).unwrap_or(0);
            if let Some(at) = self.observer.destination(worst) {
                let sources = self.sources.as_ref().and_then(|sources| sources.towards(at));
                self.rejections.investigate(sources, at);
            }
        }
    }

    /// Samples at the end of the load, while all held connections are still open.
    pub(super) fn sample_at_the_end(&mut self, conductor: &mut Conductor, now: Nanos) {
        self.look_for_the_other_ends(conductor, now, true);
        let held = conductor.record.populations.iter().map(|measured| measured.held).sum();
        let earlier = self.earlier.take();
        let ends = self.other_ends(conductor.open(), earlier.as_ref().map(|earlier| (earlier, held)));
        conductor.record.both_sides = self.both_sides(conductor, ends.as_ref());
        self.leave_out_absent(conductor, ends.as_ref());
        conductor.record.quiet = self.quiet(conductor, now);
        self.ask_who_rejects(conductor);
    }

    /// For how long no connection has received anything from the target.
    fn quiet(&mut self, conductor: &Conductor, now: Nanos) -> Option<Nanos> {
        let quiet = self.observer.sample_segments(self.own_segments(conductor, now))?.quiet?;
        Some(Nanos(quiet.as_nanos() as u64))
    }

    /// Adds the counts of connections over a TUN device, which the kernel does not count.
    pub(super) fn count_own(&mut self) {
        if let Some(sources) = &self.sources {
            self.observer.set_own_counts(sources.own_counts());
        }
    }

    /// TCP's state of connections over a TUN device, which the kernel does not have.
    fn own_segments(&self, conductor: &Conductor, now: Nanos) -> Option<net::Segments> {
        let (waiting, _) = conductor.waiting();
        self.sources.as_ref()?.segments(now, conductor.open(), waiting)
    }

    /// Subtracts connections that the target's process does not have from the held ones.
    fn leave_out_absent(&self, conductor: &mut Conductor, ends: Option<&Ends>) {
        let absent = ends.map(|ends| ends.of_populations(self.plan.populations.len()));
        if let Some(absent) = absent.as_ref().filter(|_| ends.is_some_and(|ends| ends.are_paired)) {
            conductor.handle_missing(absent);
        }
        let listed: Option<u64> = absent.as_ref().map(|absent| absent.iter().map(|own| own.unaccepted).sum());
        let dropped = conductor.sum(|tick| tick.counts.dropped);
        let seen = self.observer.unaccepted(&self.plan.ports(), conductor.open(), dropped, listed);
        let Some(seen) = seen else { return };
        // The probe's fresh connections wait in the accept queue too, but are not part of the load.
        let (_, probes) = conductor.waiting();
        let seen = if listed.is_some() { seen } else { seen.saturating_sub(probes) };
        conductor.handle_unaccepted(seen, absent.as_deref());
    }

    /// Checks whether the target is on this host, by the target's ends of the connections. If the dialled address is translated (as for a
    /// published container port), these ends are in another network namespace, and a listener at that address here is not the target.
    pub(super) fn look_for_the_other_ends(&mut self, conductor: &mut Conductor, now: Nanos, is_end: bool) {
        if self.ends.are_known || !self.observer.has_both_ends() {
            return;
        }
        // After an accept queue overflow, only throng's ends may exist: the peer has dropped the ACK that completes the handshake.
        if self.observer.was_dialled_here() {
            return;
        }
        if conductor.open() == 0 {
            self.ends.none_open();
            return;
        }
        // Arrivals may all have just left.
        if self.plan.populations.iter().all(|population| population.comes_and_goes()) {
            return;
        }
        let Some(sources) = &self.sources else { return };
        let listed = sources.ends_there(1, self.observer.destinations());
        // The ends of a target that has exited are gone as well; that does not mean that it was elsewhere.
        if self.ends.are_elsewhere(listed, now, is_end) && !self.observer.has_target_ended() {
            conductor.record.is_translated = true;
            self.observer.lose_target();
        }
    }

    /// The target's ends of the connections in this network namespace, if they are expected here and few enough to count.
    fn other_ends(&self, open: u64, earlier: Option<(&Ends, u64)>) -> Option<Ends> {
        let is_cheap = self.observer.has_both_ends() && (1..=MAX_COUNTED).contains(&open);
        let sources = self.sources.as_ref().filter(|_| is_cheap)?;
        sources.ends(open, self.observer.destinations(), earlier)
    }

    /// The number of connections at both ends. The target's end is counted by the kernel, if it is on this host and the number is small
    /// enough; otherwise by the target, if it is `throng serve`. No other target is queried.
    fn both_sides(&self, conductor: &Conductor, ends: Option<&Ends>) -> Option<BothSides> {
        let here = conductor.open();
        if here == 0 {
            return None;
        }
        let there = ends.map(|ends| ends.there).or_else(|| {
            let is_ours = self.observer.target_is_ours() && self.plan.ports().len() == 1;
            if is_ours { counted_there(self.plan.destinations()[0]) } else { None }
        });
        there.map(|there| BothSides { here, there })
    }
}
