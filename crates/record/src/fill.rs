//! How full something is.

use serde::{Deserialize, Serialize};

/// A process is out of files a few before its limit: servers that count them keep some (our reference nine), but no more than a sixteenth of
/// a small limit.
const FILES_KEPT: u64 = 10;
/// As above.
const PART_KEPT: u64 = 16;

/// How full something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fill {
    /// Taken.
    pub used: u64,
    /// The most that may be.
    pub limit: u64,
}

impl Fill {
    /// None where one of the two is not known.
    pub fn of(used: Option<u64>, limit: Option<u64>) -> Option<Fill> {
        Some(Fill { used: used?, limit: limit? })
    }

    /// Whether a queue takes no more; one without a limit is never full.
    pub fn is_full(self) -> bool {
        self.limit > 0 && self.used >= self.limit
    }

    /// Whether this many open files count as all.
    pub fn is_out_of_files(self) -> bool {
        let kept = FILES_KEPT.min(self.limit / PART_KEPT).max(self.limit / 100);
        self.used.min(self.limit) + kept >= self.limit
    }
}
