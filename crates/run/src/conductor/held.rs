//! The held connections of a worker: those open when its full load ended. A state machine, so that late reports, lost workers and workers
//! that come back are counted exactly once.

use samples::{Phase, Tick};

/// What is known of a worker's held connections. Connections that it closes while other workers still apply their load count as held.
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
