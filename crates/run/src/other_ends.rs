//! Decides whether the target's ends of throng's connections are in this network namespace, or elsewhere behind address translation.

use units::Nanos;

/// Within this time all threads have delivered ticks: the reported number of open connections is up to date.
const OUTDATED: Nanos = Nanos::from_millis(500);

/// State of this decision.
#[derive(Debug, Default)]
pub(crate) struct OtherEnds {
    /// The ends were seen, or cannot be listed.
    pub(crate) are_known: bool,
    missing_since: Option<Nanos>,
}

impl OtherEnds {
    /// Whether the ends are elsewhere. `listed`: the number listed by the kernel (`None`: unknown) of the connections open in the last
    /// tick. A target that has just closed all of them has no ends either, which the tick may not reflect yet. Therefore ends must be
    /// missing for a while, except at the end of the load, when nothing more can be seen.
    pub(crate) fn are_elsewhere(&mut self, listed: Option<u64>, now: Nanos, is_end: bool) -> bool {
        // If the kernel cannot list them now, it will not later.
        self.are_known = listed != Some(0);
        if self.are_known {
            return false;
        }
        let since = *self.missing_since.get_or_insert(now);
        is_end || now.since(since) >= OUTDATED
    }

    /// Notes that no connection was open in the last tick.
    pub(crate) fn none_open(&mut self) {
        self.missing_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_elsewhere_if_they_stay_missing() {
        let check = |looks: &[(Option<u64>, u64, bool)], expected: &[bool]| {
            let mut ends = OtherEnds::default();
            let look = |&(listed, ms, is_end)| ends.are_elsewhere(listed, Nanos::from_millis(ms), is_end);
            assert_eq!(looks.iter().map(look).collect::<Vec<_>>(), expected, "{looks:?}");
        };
        // They may just have been closed.
        check(&[(Some(0), 1_000, false), (Some(0), 1_499, false)], &[false, false]);
        check(&[(Some(0), 1_000, false), (Some(0), 1_500, false)], &[false, true]);
        check(&[(Some(0), 1_000, true)], &[true]);
        check(&[(Some(3), 1_000, false)], &[false]);
        check(&[(None, 1_000, true)], &[false]);
        // In between, no connection could be missing.
        let mut ends = OtherEnds::default();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(1_000), false));
        ends.none_open();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(3_000), false));
        assert!(ends.are_elsewhere(Some(0), Nanos::from_millis(3_500), false) && !ends.are_known);
    }
}
