//! Workers that are lost, come back, or join, and a load with no connections left. The accounts must stay balanced: a lost worker's
//! connections are removed from the open ones, and each is counted once, as held or as lost.

use plan::{Population, Reconnect, Role};
use samples::{Phase, Tick};
use units::Nanos;

use super::{
    Conductor,
    report::{Held, Report},
};
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

    /// Whether all connections are gone and none will be dialled again: the run need not wait for the end of its last stage.
    pub(super) fn is_void(&self) -> bool {
        let stays_away = |population: &Population| {
            !population.comes_and_goes() && !matches!(population.reconnect, Reconnect::Backoff(_))
        };
        let is_settled = self.schedule.is_last() && !self.schedule.is_moving() && !self.hands_over;
        // A last stage without connections lasts for its planned time.
        let are_wanted = self.populations().any(|nth| self.schedule.wanted(nth) > 0);
        is_settled
            && are_wanted
            && self.open() == 0
            && self.plan.populations.iter().all(stays_away)
            && self.of_load().all(|report| self.opens_none(report))
    }

    /// Whether a worker without connections will not open any more.
    fn opens_none(&self, report: &Report) -> bool {
        match report.is_lost {
            // A lost worker may come back with its connections.
            true => !self.may_come_back,
            // A worker that is back may have connections, one that has just joined dials first, and connections closed as announced are
            // redialled.
            false => {
                let redials_none = self.to_redial(report) == 0 || self.redials_none(report.role);
                report.before.is_none() && report.ramped_at != Nanos::NEVER && redials_none
            }
        }
    }

    /// Connections to be redialled by a worker. Those of earlier search steps are known only as a sum per population.
    fn to_redial(&self, report: &Report) -> i64 {
        let Role::Population(nth) = report.role else { return report.to_redial };
        match self.record.populations[usize::from(nth)].to_redial_before {
            0 => report.to_redial,
            before => {
                let own = self.of_load().filter(|other| other.role == report.role);
                before + own.map(|other| other.to_redial).sum::<i64>()
            }
        }
    }

    /// Whether even connections closed as announced are not redialled (`Reconnect::Never`).
    fn redials_none(&self, role: Role) -> bool {
        matches!(role, Role::Population(nth) if self.plan.populations[usize::from(nth)].reconnect == Reconnect::Never)
    }

    /// Whether any connection of the load was lost, that is, not closed by throng as planned.
    pub(super) fn has_lost(&self) -> bool {
        (0..).zip(&self.record.populations).any(|(nth, measured)| {
            let redials_none = self.redials_none(Role::Population(nth));
            measured.sum(|counts| counts.dropped + if redials_none { counts.closed } else { 0 }) > 0
        })
    }
}
