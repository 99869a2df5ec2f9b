//! The broker in virtual time: messages may be lost, repeated and late; logs last.

use std::collections::BTreeMap;

use units::{Nanos, Random};

use super::chaos::Chaos;
use crate::message::{Down, Entry, Up};
use crate::outbox::Ticket;

/// Something in transit.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    Down(usize, Box<Down>),
    Up(usize, Box<Up>),
    /// An entry for the log, with its sender (`None`: the coordinator) and its ticket.
    Store(Option<usize>, Ticket, Box<Entry>),
    /// The outcome of storing an entry.
    Stored(Option<usize>, Ticket, bool),
}

/// An entry of the log.
pub(super) struct Logged {
    /// When it was stored.
    pub(super) at: Nanos,
    /// The same by the broker's wall clock.
    pub(super) stamp: Nanos,
    pub(super) entry: Entry,
}

/// The broker between a coordinator and its agents.
pub(super) struct Carrier {
    random: Random,
    chaos: Chaos,
    /// Parcels in transit, by the time of their arrival and their number.
    on_their_way: BTreeMap<(Nanos, u64), Parcel>,
    sent: u64,
    pub(super) log: Vec<Logged>,
    /// By how much its wall clock is ahead of virtual time.
    pub(super) ahead: Nanos,
    /// It is unreachable until this time.
    pub(super) away_until: Nanos,
}

impl Carrier {
    pub(super) fn new(seed: u64, chaos: Chaos) -> Carrier {
        Carrier {
            random: Random::new(seed),
            chaos,
            on_their_way: BTreeMap::new(),
            sent: 0,
            log: Vec::new(),
            ahead: Nanos::ZERO,
            away_until: Nanos::ZERO,
        }
    }

    fn of_a_thousand(&mut self, n: u64) -> bool {
        self.random.below(1_000) < n
    }

    /// Sends a message, which may not arrive.
    pub(super) fn send(&mut self, now: Nanos, parcel: Parcel) {
        let is_lost = self.of_a_thousand(self.chaos.lost) || now < self.away_until;
        if !is_lost {
            self.put(now, parcel.clone());
        }
        if self.of_a_thousand(self.chaos.doubled) {
            self.put(now, parcel);
        }
    }

    /// Stores an entry. Its author receives the outcome, or a failure if nothing arrives.
    pub(super) fn store(&mut self, now: Nanos, from: Option<usize>, ticket: Ticket, entry: Entry) {
        if now < self.away_until || self.of_a_thousand(self.chaos.unstored) {
            return self.put(now + Nanos::from_secs(1), Parcel::Stored(from, ticket, false));
        }
        self.put(now, Parcel::Store(from, ticket, Box::new(entry)));
    }

    fn put(&mut self, now: Nanos, parcel: Parcel) {
        let at = now + Nanos(self.random.below(self.chaos.delay.0));
        self.on_their_way.insert((at, self.sent), parcel);
        self.sent += 1;
    }

    /// Whether nothing is in transit.
    pub(super) fn is_empty(&self) -> bool {
        self.on_their_way.is_empty()
    }

    /// The next parcel that arrives now, except at the log.
    pub(super) fn poll(&mut self, now: Nanos) -> Option<Parcel> {
        while let Some(next) = self.on_their_way.first_entry().filter(|next| next.key().0 <= now) {
            match next.remove() {
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
