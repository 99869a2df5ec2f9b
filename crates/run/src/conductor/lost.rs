//! Workers that are lost, come back, or join.

use plan::Role;
use samples::{Phase, Tick};
use units::Nanos;

use super::{Conductor, held::Held, report::Report};
use record::{FAILURE, LOST_WORKER};

impl Conductor<'_> {
    /// A worker is lost, with its connections: the run ends before its time, unless it carries on.
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

    /// Throng itself has failed: the run ends at once, with what there is.
    pub(crate) fn handle_failure(&mut self) {
        self.patience.shorten(Nanos(2 * self.latency.0));
        self.ends_by.get_or_insert(FAILURE);
    }

    /// The same of a run that was not led to its end.
    pub(crate) fn end_now(&mut self, now: Nanos) {
        if self.record.ended != Nanos::NEVER {
            return;
        }
        self.draining.get_or_insert(now);
        self.record.interrupted.get_or_insert(FAILURE.into());
        self.reports.iter_mut().for_each(|report| report.drained_at = report.drained_at.min(now));
        self.end_load();
    }

    /// A worker that was lost was only away.
    pub(super) fn handle_back(&mut self, worker: u32) {
        let report = &mut self.reports[worker as usize];
        // Its connections are those of its next tick; it has ended its load only if it had before.
        let phase = report.before.unwrap_or_default();
        let drained_at = if phase == Phase::Drain { report.drained_at } else { Nanos::NEVER };
        *report = Report { is_lost: false, left: 0, phase, drained_at, ..*report };
        // The load of the others has ended meanwhile, and it was not among them.
        if let (Role::Population(nth), true) = (report.role, self.record.ended != Nanos::NEVER) {
            self.record.populations[usize::from(nth)].held += report.held.count();
        }
    }

    /// The load has not ended with that of those that are left: others are to take over what a lost worker did; or all are lost, and
    /// some may come back.
    pub(super) fn waits_for_the_lost(&self) -> bool {
        self.carries_on && !self.none_is_left && (self.hands_over || self.are_all_lost())
    }

    /// No worker of the load is left.
    pub(crate) fn are_all_lost(&self) -> bool {
        self.of_load().all(|report| report.is_lost)
    }

    /// What comes of a lost worker after the run's load has ended, as it was known: where it was lost with all others, it is known now that
    /// the load lasted longer.
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

    /// The connections that lost workers had, except those that were held: each is counted once.
    pub(super) fn count_lost(&mut self) {
        let lost = self.reports.iter().filter(|report| report.is_lost && report.held != Held::Counted);
        for report in lost {
            if let Role::Population(nth) = report.role {
                self.record.populations[usize::from(nth)].lost += report.left;
            }
        }
    }

    /// There is one more worker.
    pub(super) fn handle_joined(&mut self, role: Role) {
        self.reports.push(Report::none(role));
    }
}
