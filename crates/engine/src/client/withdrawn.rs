//! Withdrawn requests: the server announced the end of their connection before acting on them, or redirected them with its last
//! response. They keep their original due time and are sent on the connection that replaces it.

use std::collections::{BTreeMap, VecDeque};

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::exchange::{Begun, Exchange};

/// A withdrawn request, to be sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) due: Nanos,
    /// Index of the operation.
    pub(super) at: u16,
    /// Number of redirects followed so far.
    pub(super) followed: u32,
    /// When the first byte of the redirecting response arrived, if any.
    pub(super) begun: Begun,
    /// Expected content length of the final response, in octets.
    pub(super) expected: u64,
}

/// The withdrawn requests of a shard, by connection index, in the order in which they began: at most as many as the connection
/// has streams.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    by_index: BTreeMap<u32, VecDeque<Again>>,
    len: u64,
}

impl Again {
    /// The exchange for sending it, or for the dial.
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

    /// Number of withdrawn requests on all connections.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether a connection has withdrawn requests.
    pub(super) fn has(&self, index: u32) -> bool {
        self.by_index.contains_key(&index)
    }

    /// Takes all of a connection.
    pub(super) fn take(&mut self, index: u32) -> VecDeque<Again> {
        let all = self.by_index.remove(&index).unwrap_or_default();
        self.len -= all.len() as u64;
        all
    }

    /// Adds requests that are to be sent on the connection at this index.
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
    /// Sends requests withdrawn from the previous connection, beside those that have begun on this one.
    pub(super) fn send_withdrawn<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        while self.may_send_withdrawn(cx, k)
            && let Some(again) = self.withdrawn.pop(k.index)
        {
            self.conn(k).at = again.at;
            self.start_request(cx, k, again.exchange(cx.now()));
        }
    }

    /// Whether a withdrawn request may begin now. Neither a pause nor the end of the load matters: it was due before.
    fn may_send_withdrawn<I: Io>(&self, cx: &Cx<I>, k: Key) -> bool {
        cx.is_open(k) && self.conns.has_place(k.index) && !self.is_used_up(k)
    }

    /// Counts the withdrawn requests of an ended connection as missed.
    pub(super) fn drop_withdrawn(&mut self, k: Key) {
        let destination = self.conns[k.index].destination;
        for again in self.withdrawn.take(k.index) {
            self.miss_withdrawn(again, destination);
        }
    }
}
