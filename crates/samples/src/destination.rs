//! What happened at each destination of a target that has several. Beyond [`MAX_DESTINATIONS`], neighbouring destinations share a row, so
//! memory stays bounded.

use serde::{Deserialize, Serialize};

use crate::{
    encode,
    fault::{FaultCount, Faults},
    latency::{Latency, Took},
    merge::{Merge, merged},
    quantiles::Quantiles,
};

/// Most rows of destinations: one per destination, or per group of neighbouring ones.
pub const MAX_DESTINATIONS: usize = 64;

merged! {
    /// What happened at a destination in a period, or at a group of neighbouring ones where there are more than
    /// [`MAX_DESTINATIONS`]; merges as a tick does.
    pub struct Destination {
        /// Dials that led to a connection for the first time.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub opened: u64,
        /// Dials that did not.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub failed: u64,
        /// Connections lost without notice.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub dropped: u64,
        /// Connections closed by the server with an announcement.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub closed: u64,
        /// Dialled again successfully, after that or after a loss.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub redialled: u64,
        /// Connections that throng closed as planned.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub finished: u64,
        /// Requests sent; one that was withdrawn and is sent again, twice.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub sent: u64,
        /// Of those, the ones that the server has not acted on, or that throng has revoked.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub withdrawn: u64,
        /// Right and wrong responses, complete ones.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub answered: u64,
        /// What went wrong.
        #[cfg_attr(test, ts(type = "FaultCount[]"))]
        #[serde(skip_serializing_if = "Faults::is_empty")]
        pub faults: Faults,
        /// From due to the whole response, of requests due at full load, to two significant digits; those that ended without a
        /// response are censored.
        #[serde(skip_serializing_if = "Latency::is_empty")]
        pub latency: Latency = Latency::coarse(),
    }
}

impl Destination {
    /// Adds another shard's or period's figures.
    pub fn merge(&mut self, other: &Destination) {
        Merge::merge(self, other);
    }

    /// Counts a response; `latency` is given if its request was due at full load.
    pub fn response(&mut self, latency: Option<Took>) {
        self.answered += 1;
        latency.into_iter().for_each(|latency| self.latency.record_seen(latency));
    }

    /// Connections that are still open.
    pub fn open(&self) -> u64 {
        (self.opened + self.redialled).saturating_sub(self.dropped + self.closed + self.finished)
    }
}

/// The row of a destination among `destinations`: neighbours share one if there are more than [`MAX_DESTINATIONS`].
pub const fn row_of(destination: usize, destinations: usize) -> usize {
    if destinations <= MAX_DESTINATIONS { destination } else { destination * MAX_DESTINATIONS / destinations }
}

/// Name of a destination, or of a group from `first` to `last`: `127.0.0.1:9001`, or `127.0.0.1:9001 to 127.0.0.1:9016`.
pub fn name_of(first: &str, last: &str) -> String {
    if first == last { first.to_owned() } else { format!("{first} to {last}") }
}

/// A destination in the summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct DestinationSummary {
    /// Address and port; of a group the first.
    pub destination: String,
    /// The last of a group; the same as the first where it is no group.
    pub last: String,
    /// Dials that led to a connection for the first time.
    pub opened: u64,
    /// Dials that did not.
    pub failed: u64,
    /// Connections lost without notice.
    pub dropped: u64,
    /// Connections closed by the server with an announcement.
    pub closed: u64,
    /// Dialled again successfully.
    pub redialled: u64,
    /// Open at the end of the run.
    pub open: u64,
    /// Requests sent; one that met an announced close, and is sent again, counts twice.
    pub sent: u64,
    /// Responses, right and wrong ones.
    pub answered: u64,
    /// What went wrong.
    pub faults: Vec<FaultCount>,
    /// From due to the response, of requests due at full load, to two significant digits; `censored`: those that had none.
    pub latency_us: Quantiles,
}

impl DestinationSummary {
    /// The figures counted at `destination`, or at the group from it to `last`.
    pub fn new(destination: String, last: String, counted: &Destination) -> DestinationSummary {
        DestinationSummary {
            destination,
            last,
            opened: counted.opened,
            failed: counted.failed,
            dropped: counted.dropped,
            closed: counted.closed,
            redialled: counted.redialled,
            open: counted.open(),
            sent: counted.sent.saturating_sub(counted.withdrawn),
            answered: counted.answered,
            faults: counted.faults.clone().into(),
            latency_us: counted.latency.quantiles(),
        }
    }

    /// `127.0.0.1:9001`, or `127.0.0.1:9001 to 127.0.0.1:9016`.
    pub fn name(&self) -> String {
        name_of(&self.destination, &self.last)
    }

    /// Number of faults.
    pub fn fault_count(&self) -> u64 {
        self.faults.iter().map(|fault| fault.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_bounded_and_in_order() {
        for n in [1, 2, 63, 64, 65, 1_000, 65_536] {
            let rows: Vec<usize> = (0..n).map(|at| row_of(at, n)).collect();
            assert!(rows.is_sorted() && rows[0] == 0, "{n}");
            assert_eq!(rows[n - 1], n.min(MAX_DESTINATIONS) - 1, "{n}");
            assert!(rows.windows(2).all(|two| two[1] - two[0] <= 1), "{n}: no row is empty");
        }
    }
}
