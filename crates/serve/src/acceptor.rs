//! Accepts that wait for a peer: how many, how fast, and when not; until the order to stop.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use net::{Close, Cx, Gone, Io, Key};
use units::Nanos;

use crate::{
    counters::{Counters, Stats},
    knobs::Knobs,
};

/// How often a stopped or paused server checks for new orders.
pub(crate) const ORDERS_INTERVAL: Nanos = Nanos::from_millis(100);
/// Accepts waiting for a peer at once, in each shard.
const ACCEPTS: u32 = 256;
/// Delay after an accept failed for lack of memory or files.
const PAUSE_AFTER_FAILURE: Nanos = Nanos::from_millis(100);
/// A slow server that was not dialled for a while catches up by at most this.
const CATCH_UP: Nanos = Nanos::from_millis(10);

/// One shard's.
pub(crate) struct Acceptor {
    counters: Arc<Counters>,
    shard: usize,
    stopping: bool,
    /// Accepts that wait for a peer.
    accepting: u32,
    paused_until: Nanos,
    most_open: Option<u64>,
    /// Where accepts are slow: the time from one to the next in the whole server.
    interval: Option<Nanos>,
    /// When the next slow accept may begin.
    next_slot: Nanos,
}

impl Acceptor {
    /// Of shard number `shard`, which publishes to `counters`.
    pub(crate) fn new(counters: Arc<Counters>, shard: u32, knobs: &Knobs) -> Acceptor {
        Acceptor {
            counters,
            shard: shard as usize,
            stopping: false,
            accepting: 0,
            paused_until: Nanos::ZERO,
            most_open: knobs.most_open,
            interval: knobs.slow_accept.map(|rate| Nanos((1e9 / rate.per_s_f64()) as u64)),
            next_slot: Nanos::ZERO,
        }
    }

    /// After the order to stop: nothing is accepted any more.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Checks for commands, accepts, and publishes; returns when to call it again.
    pub(crate) fn pace<I: Io>(&mut self, cx: &mut Cx<I>, stats: &Stats) -> Nanos {
        if !self.stopping && self.counters.stop.load(Relaxed) {
            self.stopping = true;
            cx.unlisten();
        }
        let next = if self.stopping { Nanos::NEVER } else { self.accept(cx) };
        self.counters.publish(self.shard, stats);
        next.min(cx.now() + ORDERS_INTERVAL)
    }

    /// The counts of all shards, this one's up to now.
    pub(crate) fn read(&self, stats: &Stats) -> Stats {
        self.counters.publish(self.shard, stats);
        self.counters.read()
    }

    /// Submits accepts for as many peers as allowed; returns when to call it again.
    fn accept<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let now = cx.now();
        if self.counters.pause.load(Relaxed) || now < self.paused_until {
            return Nanos::NEVER;
        }
        self.next_slot = self.next_slot.max(Nanos(now.0.saturating_sub(CATCH_UP.0)));
        let interval = self.interval.map_or(0, |interval| interval.0 * self.counters.shards());
        while self.accepting < ACCEPTS {
            if interval > 0 && self.next_slot > now {
                return self.next_slot;
            }
            if !cx.accept() {
                break;
            }
            self.accepting += 1;
            self.next_slot = self.next_slot + Nanos(interval);
        }
        Nanos::NEVER
    }

    /// A peer came in at `k`. False where there are too many: it has been closed.
    pub(crate) fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stats: &mut Stats) -> bool {
        self.accepting -= 1;
        if self.most_open.is_some_and(|most| !self.counters.come_in(most)) {
            stats.refused += 1;
            cx.close(k, Close::Graceful);
            return false;
        }
        stats.accepted += 1;
        stats.open += 1;
        true
    }

    /// A peer has gone.
    pub(crate) fn left(&mut self, stats: &mut Stats) {
        stats.open -= 1;
        stats.closed += 1;
        if self.most_open.is_some() {
            self.counters.go_out();
        }
    }

    /// An accept came to nothing; of a listener that was closed for the order to stop, that is no failure.
    pub(crate) fn failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone, stats: &mut Stats) {
        self.accepting -= 1;
        if !self.stopping && why != Gone::Reset {
            stats.errors += 1;
            self.counters.tell_failure(why);
            self.paused_until = cx.now() + PAUSE_AFTER_FAILURE;
        }
        cx.close(k, Close::Graceful);
    }
}
