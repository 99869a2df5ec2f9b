//! When signs (of possible causes) and failures began, in seconds of the run. A sign explains a failure only if it was present when the
//! failure began.

use samples::FaultCount;
use units::Nanos;

use record::signs::{Sign, Signs};

/// Seconds between samples: a sample covers everything since the previous one.
const LOOK_S: f64 = 1.0;

/// Times of signs and of first failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    signs: Signs,
    started: Nanos,
    /// Each fault with the line in which it first occurred: from and until.
    failed: Vec<(FaultCount, f64, f64)>,
    timeout_s: f64,
}

impl Timeline {
    pub(crate) fn new(
        signs: Signs,
        started: Nanos,
        failed: impl Iterator<Item = (FaultCount, Nanos, Nanos)>,
        timeout: Nanos,
    ) -> Timeline {
        let s = |at: Nanos| at.since(started).secs_f64();
        let failed = failed.map(|(fault, from, until)| (fault, s(from), s(until))).collect();
        Timeline { signs, started, failed, timeout_s: timeout.secs_f64() }
    }

    /// From and until when the first of the matching faults began. A timeout began `timeout` before it was counted.
    pub(crate) fn failing(&self, is_it: impl Fn(&FaultCount) -> bool) -> Option<(f64, f64)> {
        let times = self.failed.iter().filter(|(fault, ..)| is_it(fault)).map(|(fault, from, until)| {
            let waited_s = if fault.kind == samples::Kind::Timeout { self.timeout_s } else { 0.0 };
            ((from - waited_s).max(0.0), *until)
        });
        times.reduce(|one, other| if other.1 < one.1 { other } else { one })
    }

    /// When a sign was first seen that was present when things began to fail, and `true`; otherwise when it was first seen at all, and
    /// `false`.
    pub(crate) fn first(&self, sign: Sign, failing: Option<(f64, f64)>) -> Option<(f64, bool)> {
        let s = |at: Nanos| at.since(self.started).secs_f64();
        let times = || self.signs.times(sign).iter().map(|(from, until)| (s(*from), s(*until)));
        let was_there = |(from, until): &(f64, f64)| {
            failing.is_none_or(|(begins, ends)| *from <= ends + LOOK_S && *until >= begins)
        };
        let explains = times().find(was_there).map(|(from, _)| (from, true));
        explains.or_else(|| times().next().map(|(from, _)| (from, false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture::fault;
    use samples::{Kind, Stage};

    #[test]
    fn a_sign_explains_failures_while_it_lasts() {
        let s = Nanos::from_secs;
        let mut signs = Signs::default();
        // In seconds 2 to 3 and 8 to 9 of the run.
        for at in [12, 13, 18, 19] {
            signs.note(Sign::Queue, s(at), true);
        }
        let reset = fault(Stage::Exchange, Kind::Reset, 1);
        let late = fault(Stage::Exchange, Kind::Timeout, 1);
        let failed = [(reset, s(15), s(16)), (late, s(17), s(18))];
        let timeline = Timeline::new(signs, s(10), failed.into_iter(), s(1));
        assert_eq!(timeline.failing(|fault| fault.kind == Kind::Timeout), Some((6.0, 8.0)));
        assert_eq!(timeline.failing(|_| true), Some((5.0, 6.0)));
        assert_eq!(timeline.failing(|fault| fault.kind == Kind::Refused), None);
        let first = |failing| timeline.first(Sign::Queue, failing);
        assert_eq!(first(None), Some((2.0, true)));
        assert_eq!(first(Some((2.5, 4.0))), Some((2.0, true)));
        assert_eq!(first(Some((6.0, 8.0))), Some((8.0, true)));
        assert_eq!(first(Some((5.0, 6.0))), Some((2.0, false)));
        assert_eq!(timeline.first(Sign::Ended, None), None);
    }
}
