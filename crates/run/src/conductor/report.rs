//! The conductor's state of a worker: its last report, and its held connections.

use plan::Role;
use samples::{Phase, Tick};
use units::Nanos;

use super::LINE;

/// The second to which a tick belongs, counted from 1. The middle of the tick decides, since workers end their ticks a little after the
/// full second, or earlier at the end of their load. Of a tick longer than a second, only its last second counts.
pub fn second_of(tick: &Tick) -> u64 {
    let until = tick.until.0;
    let from = tick.from.0.clamp(until.saturating_sub(LINE.0), until);
    (from + (until - from) / 2) / LINE.0 + 1
}

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

/// What is known of a worker's held connections, those open when its full load ended. A state machine, so that late reports, lost workers
/// and workers that come back are counted exactly once. Connections that it closes while other workers still apply their load count as held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// The load continues; holds the number of connections open now.
    Now(u64),
    /// The load has ended; holds the number of connections open at that time.
    AtEnd(u64),
    /// The worker was lost before its load ended.
    Unknown,
    /// The worker was lost after the run's load had ended: its connections are already in the run's total, and are not added again if it
    /// comes back.
    Counted,
}

impl Held {
    /// The number of held connections, 0 if unknown or already counted.
    pub(super) fn count(self) -> u64 {
        match self {
            Held::Now(open) | Held::AtEnd(open) => open,
            Held::Unknown | Held::Counted => 0,
        }
    }

    /// The state after a tick of a worker that is not lost. `released`: connections that it closed before its load ended, because they
    /// had nothing more to send.
    pub(super) fn after(self, tick: &Tick, released: u64) -> Held {
        match (self, tick.phase) {
            (Held::AtEnd(1..), Phase::Drain) => self,
            (_, Phase::Drain) => Held::AtEnd(tick.open + released),
            _ => Held::Now(tick.open + released),
        }
    }

    /// The state after a late tick of a lost worker, whose load may have ended meanwhile.
    pub(super) fn after_late(self, tick: &Tick) -> Held {
        match (self, tick.phase) {
            (Held::Unknown, Phase::Drain) => Held::AtEnd(tick.open),
            _ => self,
        }
    }

    /// The state when the worker is lost now. `is_over`: the run's load has ended.
    pub(super) fn lost(self, is_over: bool) -> Held {
        match self {
            Held::AtEnd(_) if is_over => Held::Counted,
            Held::AtEnd(_) | Held::Counted => self,
            Held::Now(_) | Held::Unknown => Held::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(phase: Phase, open: u64) -> Tick {
        Tick { phase, open, ..Tick::default() }
    }

    #[test]
    fn those_open_when_the_load_ended_were_held() {
        let check = |ticks: &[(Phase, u64)], expected: Held| {
            let held =
                ticks.iter().fold(Held::Now(0), |held, (phase, open)| held.after(&tick(*phase, *open), 0));
            assert_eq!(held, expected, "{ticks:?}");
        };
        check(&[(Phase::Ramp, 4), (Phase::Hold, 9)], Held::Now(9));
        check(&[(Phase::Hold, 9), (Phase::Drain, 8), (Phase::Drain, 2)], Held::AtEnd(8));
        check(&[(Phase::Hold, 9), (Phase::Drain, 0), (Phase::Drain, 2)], Held::AtEnd(2));
        let released = Held::Now(9).after(&tick(Phase::Hold, 2), 7).after(&tick(Phase::Drain, 0), 9);
        assert_eq!(released, Held::AtEnd(9));
    }

    #[test]
    fn of_a_lost_worker_it_is_known_once_its_load_has_ended() {
        let check = |before: Held, is_over, late: Phase, expected: Held| {
            let held = before.lost(is_over).after_late(&tick(late, 5));
            assert_eq!(held, expected, "{before:?} {is_over} {late:?}");
        };
        check(Held::Now(9), false, Phase::Hold, Held::Unknown);
        check(Held::Now(9), false, Phase::Drain, Held::AtEnd(5));
        check(Held::AtEnd(9), false, Phase::Drain, Held::AtEnd(9));
        // A worker that was disconnected when the run's load ended, and came back.
        check(Held::Unknown, true, Phase::Drain, Held::AtEnd(5));
        check(Held::AtEnd(9), true, Phase::Drain, Held::Counted);
        assert_eq!([Held::Unknown, Held::Counted, Held::AtEnd(9)].map(Held::count), [0, 0, 9]);
    }
}
