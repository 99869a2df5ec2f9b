//! What a run knows of a worker.

use plan::Role;
use samples::{Phase, Tick};
use units::Nanos;

use super::{held::Held, lines::second_of};

/// What a worker reported last.
#[derive(Clone, Copy)]
pub(super) struct Report {
    pub(super) role: Role,
    pub(super) open: u64,
    /// Of those, the ones that were opened lately.
    pub(super) fresh: u64,
    pub(super) held: Held,
    /// Connections that it closed before its load had ended, for they had nothing more to send.
    pub(super) released: u64,
    pub(super) resolved: u64,
    pub(super) waiting: u64,
    pub(super) owed: u64,
    pub(super) unsettled: u64,
    /// Connections that were closed with an announcement, less those that were dialled again.
    pub(super) to_redial: i64,
    /// The same when its full load ended; before that, now.
    pub(super) disconnected: i64,
    pub(super) ramped_at: Nanos,
    pub(super) until: Nanos,
    pub(super) phase: Phase,
    /// When its full load ended; never, before it has.
    pub(super) drained_at: Nanos,
    /// It reports no more, and nothing is waited for from it.
    pub(super) is_lost: bool,
    /// Of one that is lost, the connections that it had by its last report.
    pub(super) left: u64,
    /// Of one that was lost and is back, the phase before, until it reports again.
    pub(super) before: Option<Phase>,
    /// The second of its last tick, and the last one whose line has its connections.
    pub(super) second: u64,
    pub(super) shown: u64,
}

impl Report {
    /// Of a worker whose last tick this is.
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

    /// Of a worker that has not reported yet.
    pub(super) fn none(role: Role) -> Report {
        let before = Tick { ramped_at: Nanos::NEVER, ..Tick::default() };
        Report { second: 0, ..Report::of(role, &before, Nanos::NEVER) }
    }
}

/// Of the connections of a tick, how many more were closed with an announcement, or after their calls, than were dialled again.
pub(super) fn to_redial(tick: &Tick) -> i64 {
    (tick.counts.closed + tick.counts.left) as i64 - tick.counts.redialled as i64
}
