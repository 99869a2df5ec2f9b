//! A part whose values of tables are on their way.

use crate::message::{Assign, Incarnation, Rows};

/// A part that waits for the values that it uses.
pub(super) struct Filling {
    pub(super) assign: Assign,
    /// Its number, and whose it was, where it is taken over.
    pub(super) of: Option<(u32, Incarnation)>,
    /// How many values it needs; those that came.
    pub(super) needed: u64,
    pub(super) values: Vec<String>,
}

impl Filling {
    /// How many values came.
    pub(super) fn has(&self) -> u64 {
        self.values.len() as u64
    }

    /// Takes the values that follow; others came before, or too early, or are of another part.
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
