//! Sessions: the state of HTTP/2 connections.

use units::Nanos;
use wire::http2::{Connection, Scratch, Table};

use super::exchange::{Exchange, NONE};

/// The state of one connection.
pub(crate) struct Session {
    pub(super) machine: Connection,
    /// The HPACK table of a client that has not acknowledged the server's SETTINGS yet and uses one.
    pub(super) table: Option<Box<Table>>,
    /// Index of the first exchange of its chain.
    pub(super) first: u32,
}

const _: () = assert!(size_of::<Session>() <= 72, "an idle connection with HTTP/2 has one");

/// The sessions of a shard and their exchanges. Freed entries are reused, so the tables never exceed the peak of simultaneous use.
#[derive(Default)]
pub(crate) struct Sessions {
    pub(super) list: Vec<Session>,
    free: Vec<u32>,
    pub(super) exchanges: Vec<Exchange>,
    free_exchanges: Vec<u32>,
    pub(super) scratch: Scratch,
}

impl Sessions {
    pub(super) fn begin(&mut self, machine: Connection) -> u32 {
        let session = Session { machine, table: None, first: NONE };
        put(&mut self.list, &mut self.free, session)
    }

    /// The connection of a session has ended.
    pub(crate) fn end(&mut self, session: u32) {
        while self.at(session).first != NONE {
            let first = self.at(session).first;
            self.remove(session, Some(first));
        }
        self.at(session).table = None;
        self.free.push(session);
    }

    pub(super) fn at(&mut self, session: u32) -> &mut Session {
        &mut self.list[session as usize]
    }

    /// The exchange on the stream with this number.
    pub(super) fn find(&self, session: u32, id: u32) -> Option<u32> {
        let mut at = self.list[session as usize].first;
        while at != NONE {
            let exchange = &self.exchanges[at as usize];
            if exchange.stream.id() == id {
                return Some(at);
            }
            at = exchange.next;
        }
        None
    }

    /// Makes streaming calls due now, so that they end; returns whether there are any.
    pub(super) fn end_streams(&mut self, session: u32, now: Nanos) -> bool {
        let (mut at, mut any) = (self.at(session).first, false);
        while at != NONE {
            let exchange = &mut self.exchanges[at as usize];
            if exchange.call.is_some() && exchange.due != Nanos::NEVER {
                (exchange.due, any) = (now, true);
            }
            at = exchange.next;
        }
        any
    }

    pub(super) fn add(&mut self, session: u32, mut exchange: Exchange) -> u32 {
        exchange.next = self.list[session as usize].first;
        let at = put(&mut self.exchanges, &mut self.free_exchanges, exchange);
        self.list[session as usize].first = at;
        at
    }

    /// Removes an exchange from its chain.
    pub(super) fn remove(&mut self, session: u32, at: Option<u32>) {
        let Some(at) = at else { return };
        let next = self.exchanges[at as usize].next;
        let first = &mut self.list[session as usize].first;
        if *first == at {
            *first = next;
        } else {
            let mut before = *first;
            while self.exchanges[before as usize].next != at {
                before = self.exchanges[before as usize].next;
            }
            self.exchanges[before as usize].next = next;
        }
        let exchange = &mut self.exchanges[at as usize];
        (exchange.pending, exchange.echo, exchange.call) = (Vec::new(), None, None);
        self.free_exchanges.push(at);
    }
}

/// Puts `item` into a free place; returns its index.
fn put<T>(items: &mut Vec<T>, free: &mut Vec<u32>, item: T) -> u32 {
    if let Some(at) = free.pop() {
        items[at as usize] = item;
        return at;
    }
    items.push(item);
    (items.len() - 1) as u32
}
