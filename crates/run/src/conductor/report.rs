//! What the conductor knows of a worker.

use plan::Role;
use samples::{Phase, Tick};
use units::Nanos;

use super::{held::Held, lines::second_of};

/// The last report of a worker.
#[derive(Clone, Copy)]
pub(super) struct Report {
    pub(super) role: Role,
    pub(super) open: u64,
    /// Open connections that were opened recently.
    pub(super) fresh: u64,
    pub(super) held: Held,
    /// Connections closed before the end of the load because they had nothing more to send.
    pub(super) released: u64,
    pub(super) resolved: u64,
    pub(super) waiting: u64,
    pub(super) owed: u64,
    pub(super) unsettled: u64,
    /// Connections closed as announced (or after their calls), minus those redialled.
    pub(super) to_redial: i64,
    /// `to_redial` at the end of the full load; before that, its current value.
    pub(super) disconnected: i64,
    pub(super) ramped_at: Nanos,
    pub(super) until: Nanos,
    pub(super) phase: Phase,
    /// When the full load ended; [`Nanos::NEVER`] before.
    pub(super) drained_at: Nanos,
    /// The worker is lost: nothing is expected from it.
    pub(super) is_lost: bool,
    /// Open connections of a lost worker by its last report.
    pub(super) left: u64,
    /// The phase before the loss, while the worker is lost and, if it comes back, until its next report.
    pub(super) before: Option<Phase>,
    /// Second of the last tick, and the last second whose line contains the worker's connections (`shown`).
    pub(super) second: u64,
    pub(super) shown: u64,
}

impl Report {
    /// The report of a worker after its latest tick.
    pub(super) fn of(role: Role, tick: &Tick, drained_at: Nanos) -> Report {
        let &Tick { open, resolved, waiting, owed, unsettled, ramped_at, until, phase, .. } = tick;
        Report {
            role,
            open,
            fresh: tick.pushes.fresh,
            held: Held::Now(open),
            released: 0,
            resolved,
            waiting,
            owed,
            unsettled,
            to_redial: to_redial(tick),
            disconnected: to_redial(tick),
            ramped_at,
            until,
            phase,
            drained_at,
            is_lost: false,
            left: 0,
            before: None,
            second: second_of(tick),
            shown: 0,
        }
    }

    /// The state of a worker that has not reported yet.
    pub(super) fn none(role: Role) -> Report {
        let before = Tick { ramped_at: Nanos::NEVER, ..Tick::default() };
        Report { second: 0, ..Report::of(role, &before, Nanos::NEVER) }
    }
}

/// The connections of a tick that closed as announced, or after their calls, minus those redialled.
pub(super) fn to_redial(tick: &Tick) -> i64 {
    (tick.counts.closed + tick.counts.left) as i64 - tick.counts.redialled as i64
}
