//! What an agent has not received yet: parts of lost agents, and values of tables and files.

use units::Nanos;

use super::PREPARES;
use crate::message::{Assign, Incarnation, TakeOver};

/// Parts of others that an agent is to take over, one after the other.
#[derive(Default)]
pub(super) struct Takes {
    pub(super) parts: Vec<TakeOver>,
    /// Number of parts that it took over, or failed to, by its entries in the log.
    pub(super) settled: usize,
    /// Deadline for the next one.
    pub(super) by: Nanos,
}

impl Takes {
    pub(super) fn add(&mut self, now: Nanos, of: &Incarnation, assign: Assign) {
        let number = self.parts.len() as u32;
        self.parts.push(TakeOver { number, of: of.clone(), assign });
        self.go_on(now);
    }

    pub(super) fn get(&self, number: u32) -> Option<&TakeOver> {
        self.parts.get(number as usize)
    }

    /// Extends the deadline: a part was added, or there was progress.
    pub(super) fn go_on(&mut self, now: Nanos) {
        self.by = now + PREPARES;
    }

    /// Notes that the next part was taken over, or never will be.
    pub(super) fn settle(&mut self) {
        self.settled += 1;
    }

    pub(super) fn are_settled(&self) -> bool {
        self.settled >= self.parts.len()
    }
}

/// The values being sent to a member.
pub(super) struct Supplied {
    pub(super) number: Option<u32>,
    pub(super) rows: plan::Rows,
}

/// Progress of the values for an agent's original part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) values: u64,
    pub(crate) of: u64,
}
