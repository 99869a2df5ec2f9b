//! Cause: the accept queue overflowed, so dials had to send their SYNs again.

use super::*;
use crate::{dials, queue};

/// A threshold on `connect` failed, or a search by arrival or burst fell short, though dials came through when their SYNs were sent again, and the
/// target's accept queue overflowed meanwhile.
pub(crate) struct QueueSlowedDials {
    pub(crate) backlog: u64,
    pub(crate) times: u64,
}

impl Cause for QueueSlowedDials {
    const ID: &'static str = "queue-slowed-dials";
    const OF: (Side, Name) = (Side::Target, Name::AcceptQueue);
    const YIELDS_TO: &'static str =
        "queue-overflowed queue-unaccepted queue-standing syn-loss open-files target-stopped silent";

    fn find(case: &Case) -> Option<Found<QueueSlowedDials>> {
        let times = queue::overflows_of_slow_dials(case.summary, case.evidence)?;
        if !dials::are_judged(case) || !dials::have_waited(case) {
            return None;
        }
        let certainty = if queue::is_full(case.evidence) { Certainty::Seen } else { Certainty::Inferred };
        let backlog = case.evidence.accept_queue.map_or(0, |queue| queue.limit);
        Some(Found::seen(QueueSlowedDials { backlog, times }, case.left()).certain(certainty))
    }

    fn sentence(&self) -> String {
        super::queue_overflowed::sentence(self.backlog, self.times)
    }

    fn detail(&self, case: &Case) -> String {
        let (of, times) = (queue::backlog(case.evidence), some(self.times, "time"));
        format!("its accept queue{of} overflowed {times}: {}", dials::connecting_took(case.summary))
    }

    fn fix(&self, case: &Case) -> String {
        queue::longer(case.evidence)
    }
}
