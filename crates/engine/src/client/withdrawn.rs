//! Requests that the server has not acted on, for it had announced the end of their connection: they are due again since they were due
//! first, on the connection that replaces it.

use std::collections::{BTreeMap, VecDeque};

use net::{Cx, Io, Key};
use units::Nanos;

use super::{Client, figures::miss};
use crate::exchange::Exchange;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) due: Nanos,
    /// Which operation it is.
    pub(super) at: u16,
}

/// Those of a shard, in the order in which they began, by the index of their connection: no more than it has streams.
#[derive(Debug, Default)]
pub(super) struct Withdrawn(BTreeMap<u32, VecDeque<Again>>);

impl Again {
    pub(super) fn of(exchange: &Exchange) -> Again {
        Again { due: exchange.due, at: exchange.at }
    }
}

impl Withdrawn {
    pub(super) fn add(&mut self, index: u32, again: Again) {
        self.0.entry(index).or_default().push_back(again);
    }

    /// Takes those of a connection.
    pub(super) fn take(&mut self, index: u32) -> VecDeque<Again> {
        self.0.remove(&index).unwrap_or_default()
    }

    /// They are to be sent on the connection at this index.
    pub(super) fn put(&mut self, index: u32, all: VecDeque<Again>) {
        if !all.is_empty() {
            self.0.insert(index, all);
        }
    }

    /// Takes the first of a connection.
    fn pop(&mut self, index: u32) -> Option<Again> {
        let all = self.0.get_mut(&index)?;
        let first = all.pop_front();
        if all.is_empty() {
            self.0.remove(&index);
        }
        first
    }
}

impl Client {
    /// Sends what was withdrawn of the connection before, beside what has begun on this one.
    pub(super) fn send_withdrawn<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        while !self.pacer.puts_off()
            && self.may_begin_beside(cx, k)
            && let Some(again) = self.withdrawn.pop(k.index)
        {
            self.conn(k).at = again.at;
            self.start_request(cx, k, again.due);
        }
    }

    /// Those of a connection that has ended are not sent again: what a schedule wanted is missed.
    pub(super) fn drop_withdrawn(&mut self, index: u32) {
        let all = self.withdrawn.take(index);
        if self.pacer.is_open_loop() && !self.draining {
            all.iter().for_each(|again| miss(&mut self.tick, &self.full_load, again.due));
        }
    }
}
