//! Fill levels: use of a resource against its limit.

use serde::{Deserialize, Serialize};

/// A process runs out of files slightly before its limit: servers that count files keep some in reserve (throng's reference server nine),
/// but at most 1/`PART_KEPT` of a small limit.
const FILES_KEPT: u64 = 10;
/// See `FILES_KEPT`.
const PART_KEPT: u64 = 16;

/// Use of a resource and its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fill {
    /// In use.
    pub used: u64,
    /// Maximum.
    pub limit: u64,
}

impl Fill {
    /// `None` unless both numbers are known.
    pub fn of(used: Option<u64>, limit: Option<u64>) -> Option<Fill> {
        Some(Fill { used: used?, limit: limit? })
    }

    /// Whether a queue is full; a queue without a limit never is.
    pub fn is_full(self) -> bool {
        self.limit > 0 && self.used >= self.limit
    }

    /// Whether so few files are left that the process is practically out of files.
    pub fn is_out_of_files(self) -> bool {
        let kept = FILES_KEPT.min(self.limit / PART_KEPT).max(self.limit / 100);
        self.used.min(self.limit) + kept >= self.limit
    }
}
