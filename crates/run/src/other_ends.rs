//! Whether the target's ends of our connections are on this host.

use units::Nanos;

/// Ticks of all threads have come within it: what the last ones said of open connections is not outdated.
const OUTDATED: Nanos = Nanos::from_millis(500);

/// Whether the target's ends of our connections are in this network namespace.
#[derive(Debug, Default)]
pub(crate) struct OtherEnds {
    /// They were seen, or cannot be.
    pub(crate) are_known: bool,
    missing_since: Option<Nanos>,
}

impl OtherEnds {
    /// Whether they are elsewhere, when the kernel lists this number (none: unknown) of the connections that were open in the last tick.
    /// A target that has just closed them all has no ends either, which the tick did not know yet: at the end of the load nothing more
    /// can be seen, before it they have to be missing for a while.
    pub(crate) fn are_elsewhere(&mut self, listed: Option<u64>, now: Nanos, is_end: bool) -> bool {
        // If the kernel does not report it now, it will not later.
        self.are_known = listed != Some(0);
        if self.are_known {
            return false;
        }
        let since = *self.missing_since.get_or_insert(now);
        is_end || now.since(since) >= OUTDATED
    }

    /// No connection was open in the last tick.
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
        // Just closed: they may only have gone.
        check(&[(Some(0), 1_000, false), (Some(0), 1_499, false)], &[false, false]);
        check(&[(Some(0), 1_000, false), (Some(0), 1_500, false)], &[false, true]);
        check(&[(Some(0), 1_000, true)], &[true]);
        check(&[(Some(3), 1_000, false)], &[false]);
        check(&[(None, 1_000, true)], &[false]);
        // In between there were none that could be missing.
        let mut ends = OtherEnds::default();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(1_000), false));
        ends.none_open();
        assert!(!ends.are_elsewhere(Some(0), Nanos::from_millis(3_000), false));
        assert!(ends.are_elsewhere(Some(0), Nanos::from_millis(3_500), false) && !ends.are_known);
    }
}
