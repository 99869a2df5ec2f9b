//! Cause: at the end of the hold, only the kernel had accepted some connections.

use super::*;
use crate::{
    queue::{self, Queued},
    starved::Starved,
};

/// Connections were accepted only by the kernel at the end of the hold (`connections.unaccepted`).
pub(crate) struct QueueUnaccepted {
    pub(crate) count: u64,
    /// Those that had no response while the others had many.
    pub(crate) most: Option<Starved>,
}

impl Cause for QueueUnaccepted {
    const ID: &'static str = "queue-unaccepted";
    const OF: (Side, Name) = (Side::Target, Name::AcceptQueue);
    const YIELDS_TO: &'static str = super::queue_overflowed::QueueOverflowed::YIELDS_TO;
    const FIX: &'static str = queue::UNACCEPTED;

    fn find(case: &Case) -> Option<Found<QueueUnaccepted>> {
        let count = case.evidence.unaccepted;
        let most = case.most_starved().filter(|most| most.count >= count).cloned();
        let at = most.as_ref().map_or(case.held(), |most| most.served);
        let is_it = queue::limits(case)? == Queued::Unaccepted;
        is_it.then(|| Found::seen(QueueUnaccepted { count, most }, at).began(Began::Seen(Sign::Queue)))
    }

    fn sentence(&self) -> String {
        if let Some(most) = &self.most {
            return most.of_which_queued(self.count);
        }
        let (it, they_wait) = (connections(self.count), Count(self.count).one_or("it waits", "they wait"));
        format!("the target's process did not accept {it}: {they_wait} in its accept queue")
    }

    fn detail(&self, case: &Case) -> String {
        let (were, of) = (Count(self.count).were("connection"), queue::backlog(case.evidence));
        format!(
            "{were} accepted by the kernel only, in the target's accept queue{of}, and not by its process"
        )
    }
}
