//! A load of which nothing is left.

use plan::{Population, Reconnect};
use units::Nanos;

use super::{Conductor, report::Report};

impl Conductor<'_> {
    /// Whether all connections are gone, for good: there is nothing to wait for.
    pub(super) fn is_void(&self) -> bool {
        let stays_away = |population: &Population| {
            !population.comes_and_goes() && !matches!(population.reconnect, Reconnect::Backoff(_))
        };
        let is_settled = self.schedule.is_last() && !self.schedule.is_moving() && !self.hands_over;
        is_settled
            && self.open() == 0
            && self.plan.populations.iter().all(stays_away)
            && self.of_load().all(|report| self.opens_none(report))
    }

    /// Whether a worker without a connection opens none any more.
    fn opens_none(&self, report: &Report) -> bool {
        match report.is_lost {
            // It may come back, and has what it reports then.
            true => !self.may_come_back,
            // One that is back has that too, one that has just joined dials first, and what was closed with an announcement is
            // dialled again.
            false => report.before.is_none() && report.ramped_at != Nanos::NEVER && report.to_redial == 0,
        }
    }

    /// Whether a connection of the load was lost, not only closed as planned.
    pub(super) fn has_lost(&self) -> bool {
        self.record.populations.iter().any(|measured| measured.sum(|counts| counts.dropped) > 0)
    }
}
