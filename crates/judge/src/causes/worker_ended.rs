//! Cause: one of the target's processes ended, and its connections were lost.

use super::*;

/// Connections were lost, and one of the target's processes had ended just then while others are alive.
pub(crate) struct WorkerEnded {
    pub(crate) lost: u64,
}

impl Cause for WorkerEnded {
    const ID: &'static str = "worker-ended";
    const OF: (Side, Name) = (Side::Target, Name::Ended);
    const FIX: &'static str = "check its log, and the log of what started it, for why that process ended";

    fn find(case: &Case) -> Option<Found<WorkerEnded>> {
        let is_lost =
            case.trouble == Trouble::Lost && case.failing().is_some() && case.evidence.target.is_some();
        let ended = case.evidence.timeline.first(Sign::Worker, case.failing());
        ended.filter(|(_, explains)| *explains && is_lost)?;
        let found = WorkerEnded { lost: case.count };
        Some(Found::inferred(found, case.peak()).began(Began::Seen(Sign::Worker)))
    }

    fn sentence(&self) -> String {
        format!("one of the target's processes exited, and {} with it", connections(self.lost))
    }

    fn detail(&self, case: &Case) -> String {
        format!("one of the processes of process {} ended during the run; others are alive", case.pid())
    }
}
