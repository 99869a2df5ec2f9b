//! Queries the observer when something seems wrong, and at the end of the load: passes it the conductor's numbers, and the results
//! back to the conductor, so that neither needs to know the other.

use observe::{Ends, may_be_rejected};
use samples::{MAX_DESTINATIONS, Tick};
use units::Nanos;

use super::Environment;
use crate::conductor::Conductor;

impl Environment<'_, '_> {
    /// Once a second: looks closer at the connections if some wait and none receives anything, or if anything failed.
    pub(super) fn look_closer(&mut self, conductor: &Conductor, line: &Tick, now: Nanos) {
        let (waiting, _) = conductor.waiting();
        let wanted = conductor.record.populations.iter().map(|measured| measured.wanted).sum();
        let nothing_comes = waiting > 0 && line.counts.answered == 0;
        let none_opens = conductor.resolved() < wanted && line.counts.opened == 0;
        let seems_wrong = nothing_comes || none_opens || line.faults.total() > 0;
        self.observer.look_closer(now, (conductor.open(), waiting), seems_wrong, conductor.ends_at());
        self.ask_who_rejects(conductor);
    }

    /// If dials are rejected, starts extra dials that find out what rejects them.
    fn ask_who_rejects(&mut self, conductor: &Conductor) {
        let messages = self.observer.icmp_unreachable();
        if conductor.sum(|tick| may_be_rejected(&tick.faults, messages).into()) > 0 {
            let failed =
                |at: usize| conductor.sum(|tick| tick.destinations.get(at).map_or(0, |own| own.failed));
            let rows = 0..self.plan.destinations().len().min(MAX_DESTINATIONS);
            let worst = rows.rev().max_by_key(|row| failed(*row)).unwrap_or(0);
            self.observer.ask_who_rejects(worst);
        }
    }

    /// Samples at the end of the load, while all held connections are still open.
    pub(super) fn sample_at_the_end(&mut self, conductor: &mut Conductor, now: Nanos) {
        self.look_for_the_other_ends(conductor, now, true);
        let (open, (waiting, _)) = (conductor.open(), conductor.waiting());
        let held = conductor.record.populations.iter().map(|measured| measured.held).sum();
        let ends = self.observer.last_ends(open, held);
        conductor.record.both_sides = self.observer.both_sides(open, ends.as_ref());
        self.leave_out_absent(conductor, ends.as_ref());
        conductor.record.quiet = self.observer.sample_segments(now, (open, waiting));
        self.ask_who_rejects(conductor);
    }

    /// Subtracts connections that the target's process does not have from the held ones.
    fn leave_out_absent(&self, conductor: &mut Conductor, ends: Option<&Ends>) {
        let absent = ends.map(|ends| ends.of_populations(self.plan.populations.len()));
        if let Some(absent) = absent.as_ref().filter(|_| ends.is_some_and(|ends| ends.are_paired)) {
            conductor.handle_missing(absent);
        }
        let listed: Option<u64> = absent.as_ref().map(|absent| absent.iter().map(|own| own.unaccepted).sum());
        let dropped = conductor.sum(|tick| tick.counts.dropped);
        let Some(seen) = self.observer.unaccepted(conductor.open(), dropped, listed) else { return };
        // The probe's fresh connections wait in the accept queue too, but are not part of the load.
        let (_, probes) = conductor.waiting();
        let seen = if listed.is_some() { seen } else { seen.saturating_sub(probes) };
        conductor.handle_unaccepted(seen, absent.as_deref());
    }

    /// Checks whether the target is on this host. Skipped if all connections come and go, since all of them may just have left.
    pub(super) fn look_for_the_other_ends(&mut self, conductor: &mut Conductor, now: Nanos, is_end: bool) {
        let stay = self.plan.populations.iter().any(|population| !population.comes_and_goes());
        if stay && self.observer.finds_target_elsewhere(now, conductor.open(), is_end) {
            conductor.record.is_translated = true;
        }
    }
}
