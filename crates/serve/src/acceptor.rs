//! Accepts connections: limits the number of pending accepts and their rate, and stops accepting when the server is stopped or
//! paused.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use net::{Close, Cx, Gone, Io, Key};
use units::{Nanos, Rate};

use crate::{
    counters::{Counters, Stats},
    knobs::Knobs,
};

/// How often a stopped or paused server checks for new orders.
pub(crate) const ORDERS_INTERVAL: Nanos = Nanos::from_millis(100);
/// Number of accepts that wait for a peer, in each shard.
const ACCEPTS: u32 = 256;
/// Delay after an accept failed for lack of memory or files.
const PAUSE_AFTER_FAILURE: Nanos = Nanos::from_millis(100);
/// Burst of a rate-limited server. After a delay or an idle period it accepts at once the connections that its rate allows in this
/// time, plus one; longer periods give no further credit.
const CATCH_UP: Nanos = Nanos::from_millis(10);

/// The acceptor of a shard.
pub(crate) struct Acceptor {
    counters: Arc<Counters>,
    shard: usize,
    stopping: bool,
    /// Number of accepts that wait for a peer.
    accepting: u32,
    paused_until: Nanos,
    most_open: Option<u64>,
    /// The accept rate, if limited.
    slow: Option<Slots>,
}

/// When accepts may be submitted at a limited rate.
struct Slots {
    /// Time between accepts of the whole server.
    interval: Nanos,
    /// When the next accept of this shard may be submitted.
    next: Nanos,
}

impl Slots {
    fn of(rate: Rate) -> Slots {
        Slots { interval: Nanos(((1e9 / rate.per_s_f64()) as u64).max(1)), next: Nanos::ZERO }
    }

    /// When the next accept may be submitted in one of `shards`. The `waiting` accepts that are already pending complete as soon as
    /// peers arrive, so they count towards the burst of [`CATCH_UP`]. [`Nanos::NEVER`]: not before one of them completes.
    fn due(&mut self, now: Nanos, waiting: u32, shards: u64) -> Nanos {
        let interval = self.interval.0.saturating_mul(shards);
        let taken = interval.saturating_mul(waiting.into());
        self.next = self.next.max(Nanos(now.0.saturating_add(taken).saturating_sub(CATCH_UP.0)));
        if taken > CATCH_UP.0 { Nanos::NEVER } else { self.next }
    }

    /// Counts an accept as submitted.
    fn take(&mut self, shards: u64) {
        self.next = Nanos(self.next.0.saturating_add(self.interval.0.saturating_mul(shards)));
    }
}

impl Acceptor {
    /// The acceptor of shard number `shard`, which publishes to `counters`.
    pub(crate) fn new(counters: Arc<Counters>, shard: u32, knobs: &Knobs) -> Acceptor {
        Acceptor {
            counters,
            shard: shard as usize,
            stopping: false,
            accepting: 0,
            paused_until: Nanos::ZERO,
            most_open: knobs.most_open,
            slow: knobs.slow_accept.map(Slots::of),
        }
    }

    /// Whether the server has been stopped: nothing is accepted any more.
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

    /// The counts of all shards; those of this shard are up to date.
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
        let shards = self.counters.shards();
        while self.accepting < ACCEPTS {
            let next = self.slow.as_mut().map_or(now, |slots| slots.due(now, self.accepting, shards));
            if next > now {
                return next;
            }
            if !cx.accept() {
                break;
            }
            self.accepting += 1;
            self.slow.iter_mut().for_each(|slots| slots.take(shards));
        }
        Nanos::NEVER
    }

    /// A peer was accepted at `k`. Returns false if there are too many: it has been closed.
    pub(crate) fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stats: &mut Stats) -> bool {
        let shards = self.counters.shards();
        // The time for which this accept was pending gives no credit.
        if let Some(slots) = &mut self.slow {
            slots.due(cx.now(), self.accepting, shards);
        }
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

    /// An accept failed. That is no error if the listener was closed to stop the server, or the peer had reset the connection.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// The times at which a shard accepts peers that arrive at `peers`, with a turn every millisecond.
    fn accepted(rate: Rate, shards: u64, peers: &[Nanos]) -> Vec<Nanos> {
        let (mut slots, mut waiting, mut accepted) = (Slots::of(rate), 0, Vec::new());
        let mut now = Nanos::ZERO;
        while accepted.len() < peers.len() {
            let here = peers.partition_point(|at| *at <= now);
            // Peers that arrive meanwhile are accepted in the same turn.
            loop {
                while waiting < ACCEPTS && slots.due(now, waiting, shards) <= now {
                    waiting += 1;
                    slots.take(shards);
                }
                if waiting == 0 || accepted.len() == here {
                    break;
                }
                slots.due(now, waiting, shards);
                waiting -= 1;
                accepted.push(now);
            }
            now = now + MS(1);
        }
        accepted
    }

    /// After any idle period, only the burst of [`CATCH_UP`] plus one is accepted at once, then connections at the configured rate.
    #[test]
    fn an_idle_server_saves_up_no_accepts() {
        for (per_s, shards) in [(20, 1), (50, 2), (1_000, 1), (2_000, 4), (20_000, 1)] {
            let own_per_s = per_s as f64 / shards as f64;
            let peers = vec![MS(1_000); (own_per_s * 2.0) as usize];
            let times = accepted(Rate::per_s(per_s), shards, &peers);
            for over in [0, 1, 10, 100, 1_000].map(MS) {
                // Both ends are included, and turns are whole milliseconds.
                let most = own_per_s * (over + MS(1) + CATCH_UP).secs_f64() + 1.0;
                for (nth, from) in times.iter().enumerate() {
                    let n = times.partition_point(|at| *at <= *from + over) - nth;
                    assert!(
                        n as f64 <= most + 1e-6,
                        "{n} of at most {most} in {over} from {from}, {per_s}/s"
                    );
                }
            }
            let took = times[times.len() - 1].since(MS(1_000)).secs_f64();
            assert!((1.9..2.1).contains(&took), "{per_s}/s in {shards} shards: {took} s instead of 2 s");
        }
    }

    #[test]
    fn peers_that_come_slower_than_the_rate_do_not_wait() {
        let peers: Vec<Nanos> = (0..200).map(|n| MS(25 * n)).collect();
        assert_eq!(accepted(Rate::per_s(50), 1, &peers), peers);
    }
}
