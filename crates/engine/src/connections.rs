//! The connections of a shard: records, sessions and exchanges, and the number of connections in each state.
//!
//! A connection has up to three kinds of records: [`Conn`] always, a [`Session`] while the protocol keeps state, and an
//! [`Exchange`] for each dial or request under way. The exchanges of a session form a chain; most protocols allow only one.

use std::ops::{Index, IndexMut};

use samples::Detail;
use units::Nanos;

use crate::{
    exchange::Exchange,
    pool::{NOTHING, Pool},
    protocol::{Session, Speaks},
};

mod conn;

pub(crate) use conn::{Conn, State};

/// Connection records by index, and the counters that must agree with them. States change only in [`Connections::transition`],
/// which updates the counters.
pub(crate) struct Connections {
    records: Vec<Conn>,
    sessions: Pool<Held>,
    exchanges: Pool<Exchange>,
    /// Number of records in each state.
    in_state: [u32; State::COUNT],
    /// Most connections open at once since the last [`Connections::take_most_open`].
    most_open: u64,
    /// First dials and first requests whose outcome is not known.
    outstanding: u32,
    /// First dials whose outcome is known.
    resolved: u64,
}

/// A session and the chain of its exchanges.
#[derive(Debug)]
struct Held {
    session: Session,
    /// Indices of the exchanges that began first and last: the ends of the chain. Servers mostly respond in request order, so the
    /// one that ends is usually the first, found without a search.
    oldest: u32,
    latest: u32,
}

const _: () = {
    let size = size_of::<Held>() + size_of::<Exchange>();
    assert!(size <= 88, "each connection of a closed loop has both");
};

impl Connections {
    /// Empty, with capacity for this many connections; memory is touched only when used.
    pub(crate) fn new(places: u32) -> Connections {
        Connections {
            records: Vec::with_capacity(places as usize),
            sessions: Pool::new(places),
            exchanges: Pool::new(places),
            in_state: [0; State::COUNT],
            most_open: 0,
            outstanding: 0,
            resolved: 0,
        }
    }

    /// Puts a connection at a free index, in its state; for a dialled one, [`Connections::begin`] an exchange next.
    pub(crate) fn insert(&mut self, index: u32, conn: Conn) {
        let at = index as usize;
        if at >= self.records.len() {
            self.in_state[State::None as usize] += (at + 1 - self.records.len()) as u32;
            self.records.resize(at + 1, Conn::NONE);
        }
        assert!(self.records[at].state == State::None, "one connection an index: {index}");
        self.records[at] = conn;
        self.records[at].state = State::None;
        self.transition(index, conn.state);
    }

    /// Changes the state of a connection, and its counters. Exchanges and session end if the new state has none.
    pub(crate) fn transition(&mut self, index: u32, to: State) {
        let from = std::mem::replace(&mut self.records[index as usize].state, to);
        self.in_state[from as usize] -= 1;
        self.in_state[to as usize] += 1;
        self.most_open = self.most_open.max(self.open());
        let conn = &mut self.records[index as usize];
        if conn.session != NOTHING {
            let held = self.sessions.at(conn.session);
            if held.oldest != NOTHING {
                let first = self.exchanges.seen(held.oldest).first;
                self.resolved += u64::from(first && from.is_opening() && !to.is_opening());
            }
            while held.oldest != NOTHING && !to.is_under_way() {
                let Exchange { first, next, .. } = *self.exchanges.seen(held.oldest);
                self.outstanding -= u32::from(first);
                self.exchanges.end(held.oldest);
                held.oldest = next;
            }
            if held.oldest == NOTHING {
                held.latest = NOTHING;
            }
            let stays = to.is_under_way() || to == State::Idle && !held.session.is_between_messages();
            if to == State::Idle {
                held.session.rest();
            }
            if !stays {
                // Frees what the session owns.
                held.session = Session::none();
                self.sessions.end(conn.session);
                conn.session = NOTHING;
            }
        }
        if to == State::None {
            *conn = Conn::NONE;
        }
    }

    /// Gives the connection a session, unless it has one: input has begun to arrive.
    pub(crate) fn open_session(&mut self, index: u32, session: impl FnOnce() -> Session) {
        let conn = &mut self.records[index as usize];
        if conn.session == NOTHING {
            conn.session = self.sessions.begin(Held { session: session(), oldest: NOTHING, latest: NOTHING });
        }
    }

    /// Begins an exchange, for which the session must have a place; opens a session if there is none. Returns the exchange's
    /// index.
    pub(crate) fn begin(&mut self, index: u32, exchange: Exchange, session: impl FnOnce() -> Session) -> u32 {
        self.open_session(index, session);
        let held = self.sessions.at(self.records[index as usize].session);
        assert!(held.oldest == NOTHING || held.session.has_place(), "no place for an exchange: {index}");
        self.outstanding += u32::from(exchange.first);
        let at = self.exchanges.begin(Exchange { next: NOTHING, ..exchange });
        match held.latest {
            NOTHING => held.oldest = at,
            before => self.exchanges.at(before).next = at,
        }
        held.latest = at;
        at
    }

    /// Ends an exchange. With its last one, the connection becomes idle.
    pub(crate) fn end_exchange(&mut self, index: u32, at: u32) -> Exchange {
        let exchange = *self.exchanges.seen(at);
        let held = self.sessions.at(self.records[index as usize].session);
        if held.oldest == at && exchange.next == NOTHING {
            self.transition(index, State::Idle);
            return exchange;
        }
        if held.oldest == at {
            held.oldest = exchange.next;
        } else {
            let mut before = held.oldest;
            while self.exchanges.seen(before).next != at {
                before = self.exchanges.seen(before).next;
            }
            self.exchanges.at(before).next = exchange.next;
            if held.latest == at {
                held.latest = before;
            }
        }
        self.outstanding -= u32::from(exchange.first);
        self.exchanges.end(at);
        exchange
    }

    fn held(&self, index: u32) -> &Held {
        self.sessions.seen(self[index].session)
    }

    /// The session of a connection that has one.
    pub(crate) fn session(&mut self, index: u32) -> &mut Session {
        &mut self.sessions.at(self.records[index as usize].session).session
    }

    /// The session of a connection, if it has one.
    pub(crate) fn find_session(&mut self, index: u32) -> Option<&mut Session> {
        let session = self.records[index as usize].session;
        (session != NOTHING).then(|| &mut self.sessions.at(session).session)
    }

    /// Whether earlier output of the connection waits for the server's windows (not only for the socket).
    pub(crate) fn is_blocked(&self, index: u32) -> bool {
        self[index].session != NOTHING && self.held(index).session.is_blocked()
    }

    /// Whether an idle connection needs no more than its record.
    pub(crate) fn is_between_messages(&self, index: u32) -> bool {
        self[index].session == NOTHING || self.held(index).session.is_between_messages()
    }

    /// Whether another request may begin beside those under way.
    pub(crate) fn has_place(&self, index: u32) -> bool {
        self[index].session != NOTHING && self.held(index).session.has_place()
    }

    /// Whether a request may begin on a connection from the free list, or one that is dialled for it.
    pub(crate) fn may_begin(&self, index: u32) -> bool {
        self[index].state() != State::Busy || self.has_place(index)
    }

    /// When the protocol's timer of a connection is due; never, if it has none.
    pub(crate) fn poll_timeout(&self, index: u32) -> Nanos {
        if self[index].session == NOTHING { Nanos::NEVER } else { self.held(index).session.poll_timeout() }
    }

    /// The error code with which the server announced the end of the session; `NONE` if none.
    pub(crate) fn error(&self, index: u32) -> Detail {
        if self[index].session == NOTHING { Detail::NONE } else { self.held(index).session.error() }
    }

    /// Why the server ended the session, as far as it said.
    pub(crate) fn reason(&self, index: u32) -> Detail {
        if self[index].session == NOTHING { Detail::NONE } else { self.held(index).session.reason() }
    }

    /// Index of the last exchange begun on a connection that has one.
    pub(crate) fn latest(&self, index: u32) -> u32 {
        self.held(index).latest
    }

    /// Index of the first exchange begun on a connection that has one; [`Exchange::next`] leads to the others.
    pub(crate) fn oldest(&self, index: u32) -> u32 {
        self.held(index).oldest
    }

    /// The same for any connection: [`NOTHING`] if nothing is under way.
    pub(crate) fn first_stream(&self, index: u32) -> u32 {
        if self[index].session == NOTHING { NOTHING } else { self.oldest(index) }
    }

    /// Whether more than one exchange is under way on a connection that has one.
    pub(crate) fn has_several(&self, index: u32) -> bool {
        self.oldest(index) != self.latest(index)
    }

    /// The last exchange begun on a connection that has one: the only one, if the protocol allows no more.
    pub(crate) fn exchange(&self, index: u32) -> &Exchange {
        self.exchanges.seen(self.latest(index))
    }

    /// The same, mutable.
    pub(crate) fn exchange_mut(&mut self, index: u32) -> &mut Exchange {
        let at = self.latest(index);
        self.exchanges.at(at)
    }

    /// The exchange with index `at`.
    pub(crate) fn at(&self, at: u32) -> &Exchange {
        self.exchanges.seen(at)
    }

    /// The same, mutable.
    pub(crate) fn at_mut(&mut self, at: u32) -> &mut Exchange {
        self.exchanges.at(at)
    }

    /// The exchanges of a connection with their indices, oldest first.
    pub(crate) fn exchanges(&self, index: u32) -> impl Iterator<Item = (u32, &Exchange)> {
        let seen = |at: u32| (at != NOTHING).then(|| (at, self.exchanges.seen(at)));
        std::iter::successors(seen(self.first_stream(index)), move |(_, exchange)| seen(exchange.next))
    }

    /// The exchange that the next input belongs to (its index, and itself if there is one), with the record and session of the
    /// connection.
    pub(crate) fn reading(&mut self, index: u32) -> (u32, &mut Conn, &mut Session, Option<&mut Exchange>) {
        let Held { session, latest, .. } = self.held(index);
        let at = session.reads(*latest);
        let (conn, session, exchange) = self.parts(index, at);
        (at, conn, session, exchange)
    }

    /// The record and session of a connection that has one, and the exchange at `at` unless that is [`NOTHING`].
    pub(crate) fn parts(&mut self, index: u32, at: u32) -> (&mut Conn, &mut Session, Option<&mut Exchange>) {
        let conn = &mut self.records[index as usize];
        let Held { session, .. } = self.sessions.at(conn.session);
        let exchange = (at != NOTHING).then(|| self.exchanges.at(at));
        (conn, session, exchange)
    }

    /// The outcome of a first request is known before the request ends (the first message of a streaming call).
    pub(crate) fn first_is_known(&mut self, at: u32) {
        let exchange = self.exchanges.at(at);
        self.outstanding -= u32::from(std::mem::take(&mut exchange.first));
    }

    /// Number of records, in use or not.
    pub(crate) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    /// The connections in a state, with their indices.
    pub(crate) fn iter_in(&self, state: State) -> impl Iterator<Item = (u32, &Conn)> {
        (0..).zip(&self.records).filter(move |(_, conn)| conn.state == state)
    }

    fn count(&self, states: &[State]) -> u64 {
        states.iter().map(|state| u64::from(self.in_state[*state as usize])).sum()
    }

    /// Connections that are open now.
    pub(crate) fn open(&self) -> u64 {
        self.count(&[State::Busy, State::Idle])
    }

    /// Most connections open at once since the last call.
    pub(crate) fn take_most_open(&mut self) -> u64 {
        let now = self.open();
        std::mem::replace(&mut self.most_open, now)
    }

    /// Dials and handshakes under way, including redials.
    pub(crate) fn dialling(&self) -> u64 {
        self.count(&State::OPENING)
    }

    /// Connections without a socket, to be dialled again.
    pub(crate) fn disconnected(&self) -> u64 {
        self.count(&[State::Disconnected])
    }

    /// Requests that await their response: exchanges that are not dials.
    pub(crate) fn waiting(&self) -> u64 {
        self.exchanges.len() as u64 - self.dialling()
    }

    /// Open connections with nothing under way.
    pub(crate) fn idle(&self) -> u64 {
        self.count(&[State::Idle])
    }

    /// First dials and first requests whose outcome is not known.
    pub(crate) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// First dials whose outcome is known.
    pub(crate) fn resolved(&self) -> u64 {
        self.resolved
    }
}

impl Index<u32> for Connections {
    type Output = Conn;

    fn index(&self, index: u32) -> &Conn {
        &self.records[index as usize]
    }
}

impl IndexMut<u32> for Connections {
    fn index_mut(&mut self, index: u32) -> &mut Conn {
        &mut self.records[index as usize]
    }
}

#[cfg(test)]
mod tests;
