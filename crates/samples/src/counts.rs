//! Counters of a period: the accounts of requests, dials and connections, and the equations that they satisfy.

use crate::merge::{Merge, merged};

merged! {
    /// Things counted in a period.
    #[derive(Eq)]
    pub struct Counts {
        /// Dials that led to a connection for the first time.
        pub opened: u64,
        /// Dials that did not.
        pub failed: u64,
        /// Connections lost without notice.
        pub dropped: u64,
        /// Connections closed by the server with an announcement.
        pub closed: u64,
        /// Dialled again successfully, after that or after a loss.
        pub redialled: u64,
        /// Connections that throng closed as planned: their calls were done, or fewer are wanted.
        pub finished: u64,
        /// Of those, the ones that have nothing more to do, and are not dialled again.
        pub done: u64,
        /// Of those, too, the ones that are dialled again if there is more to do.
        pub left: u64,
        /// Idle connections that ended after the load had, while responses to others were awaited: by the server, or by throng, so
        /// that the others have their turn.
        pub ended_after: u64,
        /// First dials after an adaptive ramp gave up: no dial had succeeded for a whole timeout.
        pub forced: u64,
        /// Local addresses that turned out to be taken; the next was used.
        pub addresses_skipped: u64,
        /// Dials that began; see [`crate::books`] for what becomes of them.
        pub dialled: u64,
        /// Those whose outcome was not known when the run ended.
        pub given_up: u64,
        /// Connections that were to arrive and were not dialled: the load ended before throng came to them.
        pub undialled: u64,
        /// Faults of connections that no request was due on; each other one is a request's.
        pub connection_faults: u64,
        /// Requests due: each is sent, or missed, and stands in one account at any time; see [`crate::books`].
        pub due: u64,
        /// Requests sent; one that was withdrawn and is sent again, twice.
        pub sent: u64,
        /// Sent, and due again: the server ended the connection with an announcement before it acted on them.
        pub withdrawn: u64,
        /// Sent, and ended by throng without a fault: calls that stay open, and messages listened for, when the load ends.
        pub revoked: u64,
        /// Sent, and ended by a fault without a complete response.
        pub failed_requests: u64,
        /// Sent, with neither a response nor a fault when the run ended.
        pub unanswered: u64,
        /// Fire-and-forget messages; not among the requests.
        pub told: u64,
        /// Messages that the server sent without a request; bytes without framing are none.
        pub pushed: u64,
        /// Messages that servers send without a request for each: of responses of gRPC, and of WebSockets those of
        /// [`Tick::pushes`].
        pub messages: u64,
        /// Due and never sent: no connection was free in time, or none could be dialled.
        pub missed: u64,
        /// Complete responses, correct or not.
        pub answered: u64,
        /// Of those, the ones that are not as expected, or lack what their connection needs.
        pub wrong: u64,
        /// Of those, the ones that came at full load.
        pub answered_at_load: u64,
        /// Responses after which the connection was kept.
        pub kept: u64,
        /// Bytes received, heads included.
        pub bytes_in: u64,
        /// Bytes sent.
        pub bytes_out: u64,
        /// Bytes of complete responses without their heads.
        pub body_bytes_in: u64,
    }
}

/// Current contents of the accounts that a later event will settle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Requests that were sent and have no outcome yet.
    pub under_way: u64,
    /// Requests that are due and not sent: they wait for a connection, or were withdrawn.
    pub waiting: u64,
    /// Dials and handshakes without an outcome yet.
    pub dialling: u64,
    /// Open connections.
    pub open: u64,
}

merged! {
    /// By how much the books of a shard, since its start, do not balance; zeros if they do. Merged: the worst shard's.
    #[derive(Copy, Eq)]
    pub struct Imbalance {
        /// Requests due that stand in no account, or in two.
        pub due: u64 => always most,
        /// Requests sent, of which the same is true.
        pub sent: u64 => always most,
        /// Dials.
        pub dials: u64 => always most,
        /// Connections.
        pub connections: u64 => always most,
    }
}

impl Imbalance {
    /// The accounts that do not balance, and their difference: `requests due: 3`; empty if all balance.
    pub fn accounts(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("requests due", self.due),
            ("requests sent", self.sent),
            ("dials", self.dials),
            ("connections", self.connections),
        ];
        all.into_iter().filter(|(_, by)| *by > 0).collect()
    }

    /// Whether the books balance.
    pub fn is_none(&self) -> bool {
        *self == Imbalance::default()
    }
}

impl Counts {
    /// The differences between these counts, which cover everything since the start, and the current contents of accounts.
    pub fn balance(&self, now: &Standing) -> Imbalance {
        let (settled, missed) = (self.settled(), self.missed);
        let ends = self.dropped + self.closed + self.finished + self.ended_after;
        let connected = self.opened + self.redialled;
        Imbalance {
            due: self.due.abs_diff(settled + now.under_way + now.waiting),
            sent: self.sent.abs_diff(settled - missed + self.withdrawn + now.under_way),
            dials: self.dialled.abs_diff(connected + self.failed + self.given_up + now.dialling),
            connections: connected.abs_diff(ends + now.open),
        }
    }

    /// Requests whose account is final.
    pub fn settled(&self) -> u64 {
        self.answered + self.without_response() + self.revoked
    }

    /// Due requests that ended without a response. In distributions of latency they are censored.
    pub fn without_response(&self) -> u64 {
        self.failed_requests + self.unanswered + self.missed
    }

    /// Due requests, without those that throng revoked.
    pub fn due(&self) -> u64 {
        self.due.saturating_sub(self.revoked)
    }

    /// Requests that were sent, each counted once, without those that throng revoked. Saturates at 0: in a step of a search, requests left
    /// by the step before may be withdrawn without being sent in this one.
    pub fn sent(&self) -> u64 {
        self.sent.saturating_sub(self.withdrawn + self.revoked)
    }
}

impl std::ops::AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        Merge::merge(self, other);
    }
}
