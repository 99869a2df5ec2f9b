//! Detects a load with no connections left, and none to come: the run need not wait for the end of its last stage.

use plan::{Population, Reconnect, Role};
use units::Nanos;

use super::{Conductor, report::Report};

impl Conductor<'_> {
    /// Whether all connections are gone and none will be dialled again.
    pub(super) fn is_void(&self) -> bool {
        let stays_away = |population: &Population| {
            !population.comes_and_goes() && !matches!(population.reconnect, Reconnect::Backoff(_))
        };
        let is_settled = self.schedule.is_last() && !self.schedule.is_moving() && !self.hands_over;
        // A last stage without connections lasts for its planned time.
        let are_wanted = (0..self.plan.populations.len() as u16).any(|nth| self.schedule.wanted(nth) > 0);
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
            let closed = if self.redials_none(Role::Population(nth)) {
                measured.sum(|counts| counts.closed)
            } else {
                0
            };
            measured.sum(|counts| counts.dropped) + closed > 0
        })
    }
}
