//! A load of which nothing is left.

use plan::{Population, Reconnect, Role};
use units::Nanos;

use super::{Conductor, report::Report};

impl Conductor<'_> {
    /// Whether all connections are gone, for good: there is nothing to wait for.
    pub(super) fn is_void(&self) -> bool {
        let stays_away = |population: &Population| {
            !population.comes_and_goes() && !matches!(population.reconnect, Reconnect::Backoff(_))
        };
        let is_settled = self.schedule.is_last() && !self.schedule.is_moving() && !self.hands_over;
        // A last stage without connections lasts as long as it says.
        let are_wanted = (0..self.plan.populations.len() as u16).any(|nth| self.schedule.wanted(nth) > 0);
        is_settled
            && are_wanted
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
            false => {
                let redials_none = self.to_redial(report) == 0 || self.redials_none(report.role);
                report.before.is_none() && report.ramped_at != Nanos::NEVER && redials_none
            }
        }
    }

    /// Connections of a worker that are to be dialled again. Whose those of the steps of a search before are is not known.
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

    /// Whether not even what was closed with an announcement is dialled again.
    fn redials_none(&self, role: Role) -> bool {
        matches!(role, Role::Population(nth) if self.plan.populations[usize::from(nth)].reconnect == Reconnect::Never)
    }

    /// Whether a connection of the load is gone that throng did not close as planned.
    pub(super) fn has_lost(&self) -> bool {
        (0..).zip(&self.record.populations).any(|(nth, measured)| {
            let closed = if self.redials_none(Role::Population(nth)) {
                measured.sum(|counts| counts.closed)
            } else {
                0
            };
            measured.sum(|counts| counts.dropped) + closed > 0
        })
    }
}
