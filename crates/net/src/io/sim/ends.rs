//! The two ends of each simulated connection, in a table whose slots are reused with a new generation.

use std::{
    collections::VecDeque,
    ops::{Index, IndexMut},
};

use units::Nanos;

use super::ports::Tuple;
use crate::{io::Gone, slab::Key};

/// Stands for no end.
pub(super) const NO_PEER: u32 = u32::MAX;

/// One end of a connection.
pub(super) struct End {
    pub(super) host: u16,
    pub(super) key: Key,
    /// The other end; `NO_PEER` before it exists, and after it is gone or cut off.
    pub(super) peer: u32,
    /// The arrival time of the last segment sent: later ones may not arrive earlier.
    pub(super) arrives_after: Nanos,
    pub(super) inbox: VecDeque<u8>,
    /// Bytes that the peer has sent and that were not read here yet, including those in transit.
    pub(super) unread: u32,
    /// How the peer ended the connection; reported once the inbox is empty.
    pub(super) over: Option<Gone>,
    /// Whether the end of the connection was reported.
    pub(super) end_reported: bool,
    pub(super) reading: bool,
    /// Whether it is in the host's queue of readable ends.
    pub(super) queued: bool,
    /// Whether it has closed its sending side, and discards what arrives.
    pub(super) half_closed: bool,
    pub(super) dead: bool,
    pub(super) used: bool,
    /// Whether it is the dialling end, which holds the 4-tuple.
    pub(super) owner: bool,
    /// How many connections have used this slot before.
    pub(super) generation: u32,
    pub(super) tuple: Tuple,
}

/// All ends, by index. The index of a removed end is reused with another generation.
#[derive(Default)]
pub(super) struct Ends {
    all: Vec<End>,
    free: Vec<u32>,
}

impl Ends {
    pub(super) fn insert(&mut self, host: u16, key: Key, peer: u32, tuple: Tuple, now: Nanos) -> u32 {
        let mut end = End {
            host,
            key,
            peer,
            arrives_after: now,
            inbox: VecDeque::new(),
            unread: 0,
            over: None,
            end_reported: false,
            reading: false,
            queued: false,
            half_closed: false,
            dead: false,
            used: true,
            owner: false,
            generation: 0,
            tuple,
        };
        if let Some(at) = self.free.pop() {
            end.generation = self[at].generation + 1;
            self[at] = end;
            return at;
        }
        self.all.push(end);
        (self.all.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, end: u32) {
        self[end].used = false;
        self[end].inbox = VecDeque::new();
        self.free.push(end);
    }

    /// The used ends.
    pub(super) fn used(&self) -> impl Iterator<Item = &End> {
        self.all.iter().filter(|end| end.used)
    }

    /// The used ends of a host.
    pub(super) fn of(&self, host: u16) -> Vec<u32> {
        let used = self.all.iter().enumerate().filter(|(_, end)| end.used && end.host == host);
        used.map(|(at, _)| at as u32).collect()
    }
}

impl Index<u32> for Ends {
    type Output = End;

    fn index(&self, end: u32) -> &End {
        &self.all[end as usize]
    }
}

impl IndexMut<u32> for Ends {
    fn index_mut(&mut self, end: u32) -> &mut End {
        &mut self.all[end as usize]
    }
}
