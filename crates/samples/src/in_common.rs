//! What the slow, wrong or missing responses have in common.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What is bad about a share of requests.
    #[derive(Default)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    Bad {
        /// A response that took far longer than the others.
        #[default]
        Slow = "slow",
        /// A wrong response, or a fault other than a timeout.
        Wrong = "wrong",
        /// No response in time.
        Missing = "missing",
    }
}

/// What a share of requests has in common, and the others have not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct InCommon {
    /// What is bad about them.
    pub of: Bad,
    /// How many there are.
    pub count: u64,
    /// Their share of all requests that ended.
    pub share: f64,
    /// By what they differ from the others: `destination`, `source`, `connection`, `moment`, `open` (connections), `number` (of the
    /// request on its connection), `pause` (before it), `step`, `size` (of the response) or `part` (of the response).
    pub dimension: String,
    /// How likely a difference like this is by chance, before the correction for the number of dimensions that were tested.
    pub p: f64,
    /// It in one sentence: `all of the 33 % that took 301 ms went to 127.0.0.3:80`.
    pub sentence: String,
    /// The buckets of the dimension, those with the largest shares of bad ones first; moments in the order of time.
    pub rows: Vec<InCommonRow>,
}

/// A bucket of a dimension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct InCommonRow {
    /// `127.0.0.3:80`.
    pub name: String,
    /// Bad requests in it.
    pub bad: u64,
    /// All others in it.
    pub others: u64,
}
