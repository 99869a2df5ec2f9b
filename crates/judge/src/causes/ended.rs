//! Cause: the target's process ended.

use super::*;

/// The target's process is gone, and it said nothing in its log of memory that it lacked.
pub(crate) struct Ended {
    pub(crate) at: u64,
}

impl Cause for Ended {
    const ID: &'static str = "ended";
    const OF: (Side, Name) = (Side::Target, Name::Ended);
    const YIELDS_TO: &'static str = "oom-killed";
    const FIX: &'static str = "check its log and exit status";

    fn find(case: &Case) -> Option<Found<Ended>> {
        let at = case.peak();
        let has_ended = case.evidence.target.is_some_and(|target| target.ended) && case.is_short();
        // If its log says why it ended, that is the cause.
        let says_why = [LogKind::Heap, LogKind::Memory].iter().any(|kind| case.logged(*kind).is_some());
        (has_ended && !says_why).then(|| Found::seen(Ended { at }, at).began(Began::Seen(Sign::Ended)))
    }

    fn sentence(&self) -> String {
        format!("the target's process exited at {}", connections(self.at))
    }

    fn detail(&self, case: &Case) -> String {
        format!("process {} ended during the run", case.pid())
    }
}
