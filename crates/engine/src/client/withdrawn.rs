//! Requests that the server has not acted on, for it had announced the end of their connection, or that it has redirected with the last
//! response of one: they are due again since they were due first, on the connection that replaces it.

use std::collections::{BTreeMap, VecDeque};

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::exchange::{Begun, Exchange};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) due: Nanos,
    /// Which operation it is.
    pub(super) at: u16,
    /// Redirects that were followed.
    pub(super) followed: u32,
    /// When part of a response has come: one that redirects.
    pub(super) begun: Begun,
    /// Octets that its last response is to have.
    pub(super) expected: u64,
}

/// Those of a shard, in the order in which they began, by the index of their connection: no more than it has streams.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    by_index: BTreeMap<u32, VecDeque<Again>>,
    len: u64,
}

impl Again {
    /// The exchange in which it is sent, or dialled for.
    pub(super) fn exchange(self, started: Nanos) -> Exchange {
        let Again { due, at, followed, begun, expected } = self;
        Exchange { at, nth: followed, begun, expected, ..Exchange::new(due, started) }
    }
}

impl Withdrawn {
    pub(super) fn add(&mut self, index: u32, again: Again) {
        self.by_index.entry(index).or_default().push_back(again);
        self.len += 1;
    }

    /// How many there are, of all connections.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are any of a connection.
    pub(super) fn has(&self, index: u32) -> bool {
        self.by_index.contains_key(&index)
    }

    /// Takes those of a connection.
    pub(super) fn take(&mut self, index: u32) -> VecDeque<Again> {
        let all = self.by_index.remove(&index).unwrap_or_default();
        self.len -= all.len() as u64;
        all
    }

    /// They are to be sent on the connection at this index.
    pub(super) fn put(&mut self, index: u32, all: VecDeque<Again>) {
        all.into_iter().for_each(|again| self.add(index, again));
    }

    /// Takes the first of a connection.
    fn pop(&mut self, index: u32) -> Option<Again> {
        let mut all = self.take(index);
        let first = all.pop_front();
        self.put(index, all);
        first
    }
}

impl Client {
    /// Sends what was withdrawn of the connection before, beside what has begun on this one.
    pub(super) fn send_withdrawn<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        while self.may_send_withdrawn(cx, k)
            && let Some(again) = self.withdrawn.pop(k.index)
        {
            self.conn(k).at = again.at;
            self.start_request(cx, k, again.exchange(cx.now()));
        }
    }

    /// Whether one of them may begin on a connection beside what is under way: it was due before a pause, or the end of the load.
    fn may_send_withdrawn<I: Io>(&self, cx: &Cx<I>, k: Key) -> bool {
        cx.is_open(k) && self.conns.has_place(k.index) && !self.is_used_up(k)
    }

    /// Those of a connection that has ended are not sent again.
    pub(super) fn drop_withdrawn(&mut self, k: Key) {
        let destination = self.conns[k.index].destination;
        for again in self.withdrawn.take(k.index) {
            self.miss_withdrawn(again, destination);
        }
    }
}
