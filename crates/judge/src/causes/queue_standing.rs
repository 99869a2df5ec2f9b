//! Cause: connections are stuck in an accept queue that is not full.

use super::*;
use crate::{
    queue::{self, Queued},
    starved::Starved,
};

/// Connections were stuck in the target's accept queue, which was not full, half as many as timed out, or more.
pub(crate) struct QueueStanding {
    pub(crate) served: u64,
    /// Those that were in it.
    pub(crate) stood: u64,
    /// Those that waited there; none where connections take turns, and `served` is the most that it may be.
    pub(crate) count: Option<u64>,
    /// Those that had no response while the others had many.
    pub(crate) most: Option<Starved>,
    pub(crate) in_turns: bool,
}

impl Cause for QueueStanding {
    const ID: &'static str = "queue-standing";
    const OF: (Side, Name) = (Side::Target, Name::AcceptQueue);
    const YIELDS_TO: &'static str = super::queue_overflowed::QueueOverflowed::YIELDS_TO;
    const FIX: &'static str = queue::UNACCEPTED;

    fn find(case: &Case) -> Option<Found<QueueStanding>> {
        if queue::limits(case)? != Queued::Standing {
            return None;
        }
        let (most, stood, c) = (case.most_starved().cloned(), case.evidence.stood, &case.summary.connections);
        let served = most.as_ref().map_or(case.served(), |most| most.served);
        // If throng gives up connections, their places go to others, which waited until then.
        let in_turns = most.as_ref().map_or(c.redialled > 0, |most| most.in_turns);
        // The probe's fresh connections wait in the queue, too.
        let others = if case.summary.probe.is_some() { u64::MAX } else { c.wanted.saturating_sub(served) };
        let count = Some(stood.min(others)).filter(|_| !in_turns && others > 0);
        let found = QueueStanding { served, stood, count, most, in_turns };
        Some(Found::seen(found, served).began(Began::Seen(Sign::Queue)))
    }

    fn sentence(&self) -> String {
        let served = connections(self.served);
        match (&self.most, self.count) {
            (Some(most), _) => most.of_which_queued(self.stood),
            (None, Some(count)) => format!(
                "the target serves {served} at a time: {} {} in its accept queue",
                Count(count),
                Count(count).one_or("other waits", "others wait")
            ),
            (None, None) => {
                format!("the target serves at most {served} at a time: others wait in its accept queue")
            }
        }
    }

    fn detail(&self, case: &Case) -> String {
        let (were, of) = (Count(self.stood).were("connection"), queue::backlog(case.evidence));
        let (at_most, all) = (if self.in_turns { "at most " } else { "" }, Count(self.served));
        format!(
            "{were} in its accept queue{of} and not accepted although it was not full: the target serves {at_most}{all} at a time"
        )
    }
}
