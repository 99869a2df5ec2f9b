//! Workers that are lost, come back, or join. The accounts must stay balanced: a lost worker's connections are removed from the open
//! ones, and each is counted once, as held or as lost.

use plan::Role;
use samples::{Phase, Tick};
use units::Nanos;

use super::{Conductor, held::Held, report::Report};
use record::{FAILURE, LOST_WORKER};

impl Conductor<'_> {
    /// Handles the loss of a worker with its connections. The run ends early unless it carries on without lost workers.
    pub(super) fn handle_lost(&mut self, worker: u32) {
        let is_over = self.record.ended != Nanos::NEVER;
        let report = &mut self.reports[worker as usize];
        let drained_at = report.drained_at.min(report.until);
        if let Role::Population(nth) = report.role {
            let measured = &mut self.record.populations[usize::from(nth)];
            (measured.open, measured.fresh) = (measured.open - report.open, measured.fresh - report.fresh);
        }
        *report = Report {
            drained_at,
            phase: Phase::Drain,
            open: 0,
            fresh: 0,
            held: report.held.lost(is_over),
            waiting: 0,
            owed: 0,
            unsettled: 0,
            left: if report.is_lost { report.left } else { report.open },
            is_lost: true,
            before: report.before.or(Some(report.phase)),
            ..*report
        };
        if !self.carries_on {
            self.ends_by = Some(LOST_WORKER);
        }
    }

    /// Handles a failure of throng itself: the run ends at once, with the results so far.
    pub(crate) fn handle_failure(&mut self) {
        self.patience.shorten(Nanos(2 * self.latency.0));
        self.ends_by.get_or_insert(FAILURE);
    }

    /// Ends the load at `now` after a failure, if it has not ended properly.
    pub(crate) fn end_now(&mut self, now: Nanos) {
        if self.record.ended != Nanos::NEVER {
            return;
        }
        self.draining.get_or_insert(now);
        self.record.interrupted.get_or_insert(FAILURE.into());
        self.reports.iter_mut().for_each(|report| report.drained_at = report.drained_at.min(now));
        self.end_load();
    }

    /// Handles the return of a worker that was only disconnected.
    pub(super) fn handle_back(&mut self, worker: u32) {
        let report = &mut self.reports[worker as usize];
        // Its next tick reports its connections. Its load has ended only if it had before the loss.
        let phase = report.before.unwrap_or_default();
        let drained_at = if phase == Phase::Drain { report.drained_at } else { Nanos::NEVER };
        *report = Report { is_lost: false, left: 0, phase, drained_at, ..*report };
        // The run's load ended while this worker was missing from the held connections.
        if let (Role::Population(nth), true) = (report.role, self.record.ended != Nanos::NEVER) {
            self.record.populations[usize::from(nth)].held += report.held.count();
        }
    }

    /// Whether the load continues although that of all remaining workers has ended: others may take over the load of a lost worker, or
    /// all workers are lost and some may come back.
    pub(super) fn waits_for_the_lost(&self) -> bool {
        self.carries_on && !self.none_is_left && (self.hands_over || self.are_all_lost())
    }

    /// Whether all workers of the load are lost.
    pub(crate) fn are_all_lost(&self) -> bool {
        self.of_load().all(|report| report.is_lost)
    }

    /// Handles a late tick of a lost worker, after the recorded end of the load: if responses arrived at load until then, the load lasted
    /// longer.
    pub(super) fn extend_load(&mut self, tick: &Tick) {
        let more = tick.until.since(self.record.ended);
        if tick.counts.answered_at_load == 0 || more == Nanos::ZERO {
            return;
        }
        self.record.ended = tick.until;
        for measured in &mut self.record.populations {
            (measured.at_load, measured.elapsed) = (measured.at_load + more, measured.elapsed + more);
        }
    }

    /// Counts the connections of lost workers as lost, except those already counted as held.
    pub(super) fn count_lost(&mut self) {
        let lost = self.reports.iter().filter(|report| report.is_lost && report.held != Held::Counted);
        for report in lost {
            if let Role::Population(nth) = report.role {
                self.record.populations[usize::from(nth)].lost += report.left;
            }
        }
    }

    /// Handles the addition of a worker.
    pub(super) fn handle_joined(&mut self, role: Role) {
        self.reports.push(Report::none(role));
    }
}
