//! Cause: the target's accept queue overflowed.

use super::*;
use crate::queue::{self, Queued};

/// The target's accept queue was seen full; it overflowed (`ListenOverflows`, `ListenDrops`, `TCPReqQFullDrop`, or its listener's own counter);
/// or connections that are open at throng's end do not exist at the target's.
pub(crate) struct QueueOverflowed {
    pub(crate) backlog: u64,
    pub(crate) times: u64,
}

/// The sentence about an overflowed queue, for the results.
pub(super) fn sentence(backlog: u64, times: u64) -> String {
    let of = if backlog == 0 { String::new() } else { format!(" of {}", Count(backlog)) };
    format!("the target's accept queue{of} was full: it overflowed {}", some(times, "time"))
}

impl Cause for QueueOverflowed {
    const ID: &'static str = "queue-overflowed";
    const OF: (Side, Name) = (Side::Target, Name::AcceptQueue);
    const YIELDS_TO: &'static str = "heap open-files logged logged-connections thread-ended target-stopped throng-stopped \
        shared-processors";

    fn find(case: &Case) -> Option<Found<QueueOverflowed>> {
        let Queued::Overflowed(times) = queue::limits(case)? else { return None };
        let e = case.evidence;
        // The counters alone cover all listeners together.
        let is_its_own = queue::is_full(e) || e.queue_drops > 0 || e.has_missing();
        let backlog = e.accept_queue.map_or(0, |queue| queue.limit);
        let certainty = if is_its_own { Certainty::Seen } else { Certainty::Inferred };
        let found = Found::seen(QueueOverflowed { backlog, times }, case.served());
        Some(found.certain(certainty).began(Began::Seen(Sign::Queue)))
    }

    fn sentence(&self) -> String {
        sentence(self.backlog, self.times)
    }

    fn detail(&self, case: &Case) -> String {
        let e = case.evidence;
        let rate = e.accepts_per_s.map_or(String::new(), |rate| format!("; it accepts a steady {rate:.0}/s"));
        let half_open = e.missing.filter(|missing| *missing > 0).map_or(String::new(), |missing| {
            format!(
                "; {} established on this machine only, and unknown to the target's host",
                Count(missing).were("connection")
            )
        });
        let times = some(self.times, "time");
        format!("its accept queue{} was full: it overflowed {times}{rate}{half_open}", queue::backlog(e))
    }

    fn fix(&self, case: &Case) -> String {
        let longer = queue::longer(case.evidence);
        format!(
            "check whether its own limit on connections (max-connections) keeps it from accepting; otherwise {longer}"
        )
    }
}
