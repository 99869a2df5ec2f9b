//! Connections in the summary.

use crate::{counts::Counts, encode, merge::merged};

merged! {
    /// Connections over the whole run.
    pub struct Connections {
        /// Planned.
        pub wanted: u64,
        /// Those of them that arrive at a rate, and are closed after their requests; absent if there are none.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub arriving: u64,
        /// Dialled successfully for the first time.
        pub opened: u64,
        /// Failed dials.
        pub failed: u64,
        /// Dials under way when the run ended; absent if there are none.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub given_up: u64,
        /// Most open at once.
        pub peak: u64,
        /// Open at the end of the hold.
        pub held: u64,
        /// Lost without notice.
        pub dropped: u64,
        /// Those of them that were lost after the end of the load, while the last responses were waited for: not from `held`.
        pub dropped_in_drain: u64,
        /// Closed by the server with an announcement.
        pub closed: u64,
        /// Dialled again after that, or after a loss.
        pub redialled: u64,
        /// Closed by throng as planned: its calls were done, or fewer connections were wanted.
        pub finished: u64,
        /// Of agents of a fleet that were lost, those that they had open by their last reports; absent if there are none.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub lost: u64,
        /// Opened per second over the ramp.
        pub open_per_s: f64,
        /// Dialled in an adaptive ramp before the target limited it, because SYNs were lost, or first responses came too late for more
        /// connections; absent if it did not.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub bent_at: Option<u64>,
        /// Opened per second by an adaptive ramp while SYNs were lost, which is what the target, or a firewall before it, accepts; absent if
        /// there was no whole second of that.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub accept_per_s: f64,
        /// Dialled at a fixed rate after an adaptive ramp had reached its deadline, or had got nowhere for one timeout; absent if there are
        /// none.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub forced: u64,
        /// Open at the end of the hold as the target's host counts them; none where that cannot be seen.
        pub seen_by_target: Option<u64> => always most,
        /// Established at the end of the hold by the kernel only: they were in the target's accept queue, and are not among
        /// those `held`; none if its queue cannot be read.
        pub unaccepted: Option<u64>,
        /// Seconds from the last packet of the target, if only an acknowledgement, on any of a sample of the connections held,
        /// to the end of the hold; null if this cannot be seen.
        pub quiet_s: Option<f64> => always alone,
    }
}

impl Connections {
    /// The counts, without the figures that need more than them.
    pub fn new(counts: &Counts) -> Connections {
        Connections {
            opened: counts.opened,
            failed: counts.failed,
            given_up: counts.given_up,
            forced: counts.forced,
            dropped: counts.dropped,
            closed: counts.closed,
            redialled: counts.redialled,
            finished: counts.finished,
            ..Connections::default()
        }
    }

    /// Whether all connections arrive at a rate: then none is held, and those open at the end of the load are in use.
    pub fn all_arrive(&self) -> bool {
        self.arriving > 0 && self.arriving == self.wanted
    }

    /// Connections that were dialled, each counted once.
    pub fn dialled(&self) -> u64 {
        self.opened + self.failed + self.given_up
    }
}
