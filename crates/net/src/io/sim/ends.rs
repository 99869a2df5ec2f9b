//! The ends of the simulated network's connections.

use std::{
    collections::VecDeque,
    ops::{Index, IndexMut},
};

use units::Nanos;

use super::ports::Tuple;
use crate::{io::Gone, slab::Key};

/// Not the index of an end.
pub(super) const NO_PEER: u32 = u32::MAX;

/// One side of a connection.
pub(super) struct End {
    pub(super) host: u16,
    pub(super) key: Key,
    /// The peer; `NO_PEER` before it exists and after it is gone or cut off.
    pub(super) peer: u32,
    /// Nothing sent later may arrive earlier.
    pub(super) arrives_after: Nanos,
    pub(super) inbox: VecDeque<u8>,
    /// Bytes sent by the peer and not read here yet, under way included.
    pub(super) unread: u32,
    /// How the peer ended it, reported once the inbox is empty.
    pub(super) over: Option<Gone>,
    /// `over` has been reported.
    pub(super) end_reported: bool,
    pub(super) reading: bool,
    /// In the host's queue of readable ends.
    pub(super) queued: bool,
    /// It has ended its sending side, and discards what arrives.
    pub(super) half_closed: bool,
    pub(super) dead: bool,
    pub(super) used: bool,
    /// The dialler's end holds the 4-tuple.
    pub(super) owner: bool,
    /// How many connections have used this slot before.
    pub(super) generation: u32,
    pub(super) tuple: Tuple,
}

/// All ends, by index; that of a removed one is used again, in another generation.
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
