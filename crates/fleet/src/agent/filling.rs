//! A part that waits for its table values.

use crate::message::{Assign, Incarnation, Rows};

/// A part that waits for the values that it uses.
pub(super) struct Filling {
    pub(super) assign: Assign,
    /// For a part that is taken over: its number, and the agent that had it.
    pub(super) of: Option<(u32, Incarnation)>,
    /// Number of values needed, and those that have arrived.
    pub(super) needed: u64,
    pub(super) values: Vec<String>,
}

impl Filling {
    /// Number of values that have arrived.
    pub(super) fn has(&self) -> u64 {
        self.values.len() as u64
    }

    /// Takes the next values. Ignores duplicates, values that arrive early, and those of another part.
    pub(super) fn take(&mut self, rows: Rows) {
        let is_own = rows.number == self.of.as_ref().map(|(number, _)| *number);
        let fit = self.has() + rows.values.len() as u64 <= self.needed;
        if is_own && fit && rows.from == self.has() {
            self.values.extend(rows.values);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.has() == self.needed
    }
}
