//! The connections of a shard: their records, their exchanges, and how many of them are in which state.

use std::ops::{Index, IndexMut};

use crate::exchange::{Exchange, Exchanges};

mod conn;

pub(crate) use conn::{Conn, State};

/// Records by index, with what must agree with them. A state changes in [`Connections::transition`] only, so that no
/// counter can part ways with it.
pub(crate) struct Connections {
    records: Vec<Conn>,
    exchanges: Exchanges,
    /// Records in each state.
    in_state: [u32; State::COUNT],
    /// First dials and first requests whose outcome is not known.
    outstanding: u32,
    /// First dials whose outcome is known.
    resolved: u64,
}

impl Connections {
    /// None, with room for so many; memory is touched as they come.
    pub(crate) fn new(places: u32) -> Connections {
        Connections {
            records: Vec::with_capacity(places as usize),
            exchanges: Exchanges::new(places),
            in_state: [0; State::COUNT],
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

    /// The connection changes its state: its counters change with it, and its exchange ends where the state has none.
    pub(crate) fn transition(&mut self, index: u32, to: State) {
        let conn = &mut self.records[index as usize];
        let from = std::mem::replace(&mut conn.state, to);
        self.in_state[from as usize] -= 1;
        self.in_state[to as usize] += 1;
        // What the probe lane has is no exchange of ours.
        let is_probe = from == State::Probe || to == State::Probe;
        if !is_probe && conn.exchange != Conn::NONE.exchange {
            let exchange = self.exchanges.at(conn.exchange);
            self.resolved += u64::from(exchange.first && from.is_opening() && !to.is_opening());
            if exchange.first && !to.is_under_way() {
                exchange.first = false;
                self.outstanding -= 1;
            }
            let stays = to.is_under_way() || to == State::Idle && !exchange.is_between_messages();
            if !stays {
                self.exchanges.end(conn.exchange);
                conn.exchange = Conn::NONE.exchange;
            }
        }
        if to == State::None {
            *conn = Conn::NONE;
        }
    }

    /// The connection gets an exchange; it must have none.
    pub(crate) fn begin(&mut self, index: u32, exchange: Exchange) {
        let conn = &mut self.records[index as usize];
        assert!(conn.exchange == Conn::NONE.exchange, "one exchange a connection: {index}");
        self.outstanding += u32::from(exchange.first);
        conn.exchange = self.exchanges.begin(exchange);
    }

    pub(crate) fn has_exchange(&self, index: u32) -> bool {
        self[index].exchange != Conn::NONE.exchange
    }

    /// The exchange of a connection that has one.
    pub(crate) fn exchange(&self, index: u32) -> &Exchange {
        self.exchanges.seen(self[index].exchange)
    }

    /// The same, with its connection, to work on.
    pub(crate) fn with_exchange(&mut self, index: u32) -> (&mut Conn, &mut Exchange) {
        let conn = &mut self.records[index as usize];
        let exchange = self.exchanges.at(conn.exchange);
        (conn, exchange)
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

    /// Dials and handshakes under way, redials included.
    pub(crate) fn dialling(&self) -> u64 {
        self.count(&[State::Dialling, State::Upgrading])
    }

    /// Without a socket, to be dialled again.
    pub(crate) fn resting(&self) -> u64 {
        self.count(&[State::Resting])
    }

    /// Requests that wait for their response.
    pub(crate) fn waiting(&self) -> u64 {
        self.count(&[State::Busy])
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
