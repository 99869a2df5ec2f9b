//! The connections of a shard: their records, their sessions and exchanges, and how many of them are in which state.
//!
//! Three records, by how long they are needed: [`Conn`] always, a [`Session`] while the protocol keeps something of the
//! connection, an [`Exchange`] while a dial or a request is under way. The exchanges of a session are a chain; most protocols
//! allow one at a time.

use std::ops::{Index, IndexMut};

use samples::Detail;
use units::Nanos;

use crate::{
    exchange::Exchange,
    pool::{NOTHING, Pool},
    protocol::Session,
};

mod conn;

pub(crate) use conn::{Conn, State};

/// Records by index, with what must agree with them. A state changes in [`Connections::transition`] only, so that no
/// counter can part ways with it.
pub(crate) struct Connections {
    records: Vec<Conn>,
    sessions: Pool<Held>,
    exchanges: Pool<Exchange>,
    /// Records in each state.
    in_state: [u32; State::COUNT],
    /// The most that were connected at once, since it was taken.
    most_open: u64,
    /// First dials and first requests whose outcome is not known.
    outstanding: u32,
    /// First dials whose outcome is known.
    resolved: u64,
}

/// A session, and what is under way on it.
#[derive(Debug)]
struct Held {
    session: Session,
    /// Indices of the exchanges under way that began first and last: the two ends of their chain. Servers mostly respond in the order
    /// of the requests, so that the one that ends is the first, and is found at once.
    oldest: u32,
    latest: u32,
}

const _: () = {
    let size = size_of::<Held>() + size_of::<Exchange>();
    assert!(size <= 88, "each connection of a closed loop has both");
};

impl Connections {
    /// Empty, with capacity for this many; memory is touched as they come.
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

    /// Puts a connection at a free index, in this state; one that is dialled [begins](Connections::begin) an exchange next.
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

    /// The connection changes its state: its counters change with it, and its exchanges and its session end where the state has
    /// none.
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
                // What it has of its own, it gives back.
                held.session = Session::Tcp;
                self.sessions.end(conn.session);
                conn.session = NOTHING;
            }
        }
        if to == State::None {
            *conn = Conn::NONE;
        }
    }

    /// The connection gets a session, unless it has one: part of a message has come.
    pub(crate) fn open_session(&mut self, index: u32, session: impl FnOnce() -> Session) {
        let conn = &mut self.records[index as usize];
        if conn.session == NOTHING {
            conn.session = self.sessions.begin(Held { session: session(), oldest: NOTHING, latest: NOTHING });
        }
    }

    /// The connection gets an exchange, for which there must be a place, and so does its session, unless there is one.
    /// Returns its index.
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

    /// An exchange of a connection ends; the connection is idle with its last one.
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

    /// The session of a connection, where it has one.
    pub(crate) fn find_session(&mut self, index: u32) -> Option<&mut Session> {
        let session = self.records[index as usize].session;
        (session != NOTHING).then(|| &mut self.sessions.at(session).session)
    }

    /// Whether something of an earlier order waits for the server, besides what waits for the socket.
    pub(crate) fn is_blocked(&self, index: u32) -> bool {
        self[index].session != NOTHING && self.held(index).session.is_blocked()
    }

    /// Whether an idle connection keeps nothing but its record.
    pub(crate) fn is_between_messages(&self, index: u32) -> bool {
        self[index].session == NOTHING || self.held(index).session.is_between_messages()
    }

    /// Whether a further request may begin on a connection beside those under way.
    pub(crate) fn has_place(&self, index: u32) -> bool {
        self[index].session != NOTHING && self.held(index).session.has_place()
    }

    /// Whether a request may begin on a connection that is free, or is dialled for it.
    pub(crate) fn may_begin(&self, index: u32) -> bool {
        self[index].state() != State::Busy || self.has_place(index)
    }

    /// When the protocol's own timer of a connection is due.
    pub(crate) fn poll_timeout(&self, index: u32) -> Nanos {
        if self[index].session == NOTHING { Nanos::NEVER } else { self.held(index).session.poll_timeout() }
    }

    /// The error with which the server has announced the end of a connection's session, if it has.
    pub(crate) fn error(&self, index: u32) -> Detail {
        if self[index].session == NOTHING { Detail::NONE } else { self.held(index).session.error() }
    }

    /// Why the server has ended a connection's session, as far as it has said.
    pub(crate) fn reason(&self, index: u32) -> Detail {
        if self[index].session == NOTHING { Detail::NONE } else { self.held(index).session.reason() }
    }

    /// Index of the exchange that began last on a connection which has one.
    pub(crate) fn latest(&self, index: u32) -> u32 {
        self.held(index).latest
    }

    /// Index of the exchange that began first on a connection which has one; its successor is [`Exchange::next`].
    pub(crate) fn oldest(&self, index: u32) -> u32 {
        self.held(index).oldest
    }

    /// The same of any connection: [`NOTHING`] where nothing is under way.
    pub(crate) fn first_stream(&self, index: u32) -> u32 {
        if self[index].session == NOTHING { NOTHING } else { self.oldest(index) }
    }

    /// Whether several are under way on a connection which has one.
    pub(crate) fn has_several(&self, index: u32) -> bool {
        self.oldest(index) != self.latest(index)
    }

    /// The exchange that began last on a connection which has one: its only one, where the protocol allows no more.
    pub(crate) fn exchange(&self, index: u32) -> &Exchange {
        self.exchanges.seen(self.latest(index))
    }

    /// The same, to work on.
    pub(crate) fn exchange_mut(&mut self, index: u32) -> &mut Exchange {
        let at = self.latest(index);
        self.exchanges.at(at)
    }

    /// The exchange at `at`.
    pub(crate) fn at(&self, at: u32) -> &Exchange {
        self.exchanges.seen(at)
    }

    /// The same, to work on.
    pub(crate) fn at_mut(&mut self, at: u32) -> &mut Exchange {
        self.exchanges.at(at)
    }

    /// The exchanges of a connection, each with its index; the oldest first.
    pub(crate) fn exchanges(&self, index: u32) -> impl Iterator<Item = (u32, &Exchange)> {
        let seen = |at: u32| (at != NOTHING).then(|| (at, self.exchanges.seen(at)));
        std::iter::successors(seen(self.first_stream(index)), move |(_, exchange)| seen(exchange.next))
    }

    /// A connection that has a session, with it and the exchange that input belongs to where there is one, and its index.
    pub(crate) fn reading(&mut self, index: u32) -> (u32, &mut Conn, &mut Session, Option<&mut Exchange>) {
        let Held { session, latest, .. } = self.held(index);
        let at = session.reads(*latest);
        let (conn, session, exchange) = self.parts(index, at);
        (at, conn, session, exchange)
    }

    /// A connection that has a session, with it and the exchange at `at`, where that is one.
    pub(crate) fn parts(&mut self, index: u32, at: u32) -> (&mut Conn, &mut Session, Option<&mut Exchange>) {
        let conn = &mut self.records[index as usize];
        let Held { session, .. } = self.sessions.at(conn.session);
        let exchange = (at != NOTHING).then(|| self.exchanges.at(at));
        (conn, session, exchange)
    }

    /// The outcome of a first request is known before the request has ended.
    pub(crate) fn first_is_known(&mut self, at: u32) {
        let exchange = self.exchanges.at(at);
        self.outstanding -= u32::from(std::mem::take(&mut exchange.first));
    }

    /// Records, in use or not.
    pub(crate) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    /// Those in a state, each with its index.
    pub(crate) fn iter_in(&self, state: State) -> impl Iterator<Item = (u32, &Conn)> {
        (0..).zip(&self.records).filter(move |(_, conn)| conn.state == state)
    }

    fn count(&self, states: &[State]) -> u64 {
        states.iter().map(|state| u64::from(self.in_state[*state as usize])).sum()
    }

    /// Connected now.
    pub(crate) fn open(&self) -> u64 {
        self.count(&[State::Busy, State::Idle])
    }

    /// The most that were connected at once since the last call.
    pub(crate) fn take_most_open(&mut self) -> u64 {
        let now = self.open();
        std::mem::replace(&mut self.most_open, now)
    }

    /// Dials and handshakes under way, redials included.
    pub(crate) fn dialling(&self) -> u64 {
        self.count(&State::OPENING)
    }

    /// Without a socket, to be dialled again.
    pub(crate) fn disconnected(&self) -> u64 {
        self.count(&[State::Disconnected])
    }

    /// Requests that wait for their response: all that is under way but for dials.
    pub(crate) fn waiting(&self) -> u64 {
        self.exchanges.len() as u64 - self.dialling()
    }

    /// Connected, with nothing under way.
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
