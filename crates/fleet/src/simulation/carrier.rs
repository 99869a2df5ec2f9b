//! A carrier in virtual time: messages that may be lost, repeated and late, and logs that last.

use std::{cmp::Reverse, collections::BinaryHeap};

use units::{Nanos, Random};

use super::chaos::Chaos;
use crate::message::{Down, Entry, Up};
use crate::outbox::Ticket;

/// What is on its way.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    Down(usize, Box<Down>),
    Up(usize, Box<Up>),
    /// An entry, to the log; whose it is, and how it is called there.
    Store(Option<usize>, Ticket, Box<Entry>),
    /// What became of it.
    Stored(Option<usize>, Ticket, bool),
}

/// An entry of the log.
pub(super) struct Logged {
    /// When it was stored.
    pub(super) at: Nanos,
    /// The same by the carrier's wall clock.
    pub(super) stamp: Nanos,
    pub(super) entry: Entry,
}

/// Between a coordinator and its agents.
pub(super) struct Carrier {
    random: Random,
    chaos: Chaos,
    on_their_way: BinaryHeap<Reverse<(Nanos, u64)>>,
    parcels: std::collections::HashMap<u64, Parcel>,
    sent: u64,
    pub(super) log: Vec<Logged>,
    /// What its wall clock shows more than the world's.
    pub(super) ahead: Nanos,
    /// It is away until then.
    pub(super) away_until: Nanos,
}

impl Carrier {
    pub(super) fn new(seed: u64, chaos: Chaos) -> Carrier {
        Carrier {
            random: Random::new(seed),
            chaos,
            on_their_way: BinaryHeap::new(),
            parcels: std::collections::HashMap::new(),
            sent: 0,
            log: Vec::new(),
            ahead: Nanos::ZERO,
            away_until: Nanos::ZERO,
        }
    }

    fn of_a_thousand(&mut self, n: u64) -> bool {
        self.random.below(1_000) < n
    }

    /// A message, that may not arrive.
    pub(super) fn send(&mut self, now: Nanos, parcel: Parcel) {
        let is_lost = self.of_a_thousand(self.chaos.lost) || now < self.away_until;
        if !is_lost {
            self.put(now, parcel.clone());
        }
        if self.of_a_thousand(self.chaos.doubled) {
            self.put(now, parcel);
        }
    }

    /// An entry: its author hears whether it is stored, at last that nothing is heard.
    pub(super) fn store(&mut self, now: Nanos, from: Option<usize>, ticket: Ticket, entry: Entry) {
        if now < self.away_until || self.of_a_thousand(self.chaos.unstored) {
            return self.put(now + Nanos::from_secs(1), Parcel::Stored(from, ticket, false));
        }
        self.put(now, Parcel::Store(from, ticket, Box::new(entry)));
    }

    fn put(&mut self, now: Nanos, parcel: Parcel) {
        let at = now + Nanos(self.random.below(self.chaos.delay.0));
        self.on_their_way.push(Reverse((at, self.sent)));
        self.parcels.insert(self.sent, parcel);
        self.sent += 1;
    }

    /// Nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// What arrives now, other than at the log.
    pub(super) fn poll(&mut self, now: Nanos) -> Option<Parcel> {
        while let Some(Reverse((at, number))) = self.on_their_way.peek().copied()
            && at <= now
        {
            self.on_their_way.pop();
            match self.parcels.remove(&number).expect("it is on its way") {
                Parcel::Store(from, ticket, entry) => {
                    self.log.push(Logged { at: now, stamp: now + self.ahead, entry: *entry });
                    let is_heard = !self.of_a_thousand(self.chaos.unheard);
                    let wait = if is_heard { Nanos::ZERO } else { Nanos::from_secs(1) };
                    self.put(now + wait, Parcel::Stored(from, ticket, is_heard));
                }
                parcel => return Some(parcel),
            }
        }
        None
    }
}
