//! The counts of a server, shown by `/stats`.

use std::sync::{
    Mutex, PoisonError,
    atomic::{
        AtomicBool, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use net::Gone;

/// The counts of one shard, in the order of [`Stats::counted`]; written only by that shard, once a turn.
type Shard = [AtomicU64; 8];

/// Index of the open connections in a [`Shard`].
const OPEN: usize = 0;

/// The counts of all shards, and the server's two commands: stop and pause.
#[derive(Debug)]
pub struct Counters {
    shards: Vec<Shard>,
    /// Number of shards in use.
    entered: AtomicU32,
    peak: AtomicU64,
    /// Exact number of open connections in all shards; maintained only if it is limited.
    limited: AtomicU64,
    pub(crate) stop: AtomicBool,
    pub(crate) pause: AtomicBool,
    /// Why the last accept failed; taken by [`Counters::take_failure`].
    failure: Mutex<Option<Gone>>,
}

/// A snapshot: the fields of `/stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections open now.
    pub open: u64,
    /// Most open at once, to within a turn of the loop.
    pub peak: u64,
    /// Accepted so far.
    pub accepted: u64,
    /// Closed so far.
    pub closed: u64,
    /// Requests, upgrades, messages and pings that got a response.
    pub requests: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Accepted and closed at once, because the limit was reached.
    pub refused: u64,
    /// Invalid requests, and failed accepts.
    pub errors: u64,
}

impl Counters {
    /// For this many shards.
    pub fn new(shards: u32) -> Counters {
        Counters::growing(shards, shards)
    }

    /// For this many shards now, and up to `most` later.
    pub fn growing(shards: u32, most: u32) -> Counters {
        Counters {
            shards: (0..most).map(|_| Shard::default()).collect(),
            entered: AtomicU32::new(shards),
            peak: AtomicU64::new(0),
            limited: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            pause: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Adds a shard: returns its number; `None` if there are as many as there may be.
    pub(crate) fn enter(&self) -> Option<u32> {
        let next = |n: u32| ((n as usize) < self.shards.len()).then_some(n + 1);
        self.entered.fetch_update(Relaxed, Relaxed, next).ok()
    }

    fn entered(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().take(self.entered.load(Relaxed) as usize)
    }

    /// Number of shards in use.
    pub(crate) fn shards(&self) -> u64 {
        self.entered.load(Relaxed).into()
    }

    /// Open connections of one shard.
    pub(crate) fn open(&self, shard: u32) -> u64 {
        self.shards[shard as usize][OPEN].load(Relaxed)
    }

    /// Publishes the counts of a shard. `open` is stored last and [`Counters::read`] loads it first: a connection counted as gone
    /// has all its requests counted.
    pub(crate) fn publish(&self, shard: usize, s: &Stats) {
        let mut s = *s;
        self.shards[shard].iter().zip(s.counted()).rev().for_each(|(to, count)| to.store(*count, Release));
        let open = self.entered().map(|s| s[OPEN].load(Relaxed)).sum();
        if open > self.peak.load(Relaxed) {
            self.peak.fetch_max(open, Relaxed);
        }
    }

    /// The sum over all shards.
    pub fn read(&self) -> Stats {
        let mut stats = Stats { peak: self.peak.load(Relaxed), ..Stats::default() };
        for shard in self.entered() {
            stats.counted().into_iter().zip(shard).for_each(|(sum, count)| *sum += count.load(Acquire));
        }
        stats
    }

    /// Counts another open connection, unless there are `most`.
    pub(crate) fn come_in(&self, most: u64) -> bool {
        self.limited.fetch_update(Relaxed, Relaxed, |open| (open < most).then_some(open + 1)).is_ok()
    }

    /// Counts a limited connection as gone.
    pub(crate) fn go_out(&self) {
        self.limited.fetch_sub(1, Relaxed);
    }

    pub(crate) fn tell_failure(&self, why: Gone) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// Why an accept failed since the last call; `None` if all succeeded.
    pub fn take_failure(&self) -> Option<Gone> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Orders the server to stop accepting, send what it owes, and end.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether to accept now; false while memory is short.
    pub fn set_accepting(&self, on: bool) {
        self.pause.store(!on, Relaxed);
    }
}

impl Stats {
    /// The counts that each shard has; the peak is that of all shards together.
    fn counted(&mut self) -> [&mut u64; 8] {
        let Stats { open, peak: _, accepted, closed, requests, bytes_in, bytes_out, refused, errors } = self;
        [open, accepted, closed, requests, bytes_in, bytes_out, refused, errors]
    }

    /// The response of `/stats`.
    pub fn to_json(&self) -> String {
        let Stats { open, peak, accepted, closed, requests, bytes_in, bytes_out, refused, errors } = self;
        format!(
            "{{\"open\":{open},\"peak\":{peak},\"accepted\":{accepted},\"closed\":{closed},\
             \"requests\":{requests},\"bytes_in\":{bytes_in},\"bytes_out\":{bytes_out},\
             \"refused\":{refused},\"errors\":{errors}}}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_come_in_than_may() {
        let c = Counters::new(1);
        assert!(c.come_in(2) && c.come_in(2) && !c.come_in(2));
        c.go_out();
        assert!(c.come_in(2) && !c.come_in(2));
    }

    #[test]
    fn shards_add_up_and_the_peak_stays() {
        let c = Counters::new(3);
        for (shard, open) in [(0, 5), (1, 7), (2, 1), (1, 2)] {
            c.publish(shard, &Stats { open, requests: 10, ..Stats::default() });
        }
        let s = c.read();
        assert_eq!((s.open, s.peak, s.requests), (8, 13, 30));
        assert!(s.to_json().starts_with("{\"open\":8,\"peak\":13,"));
    }

    #[test]
    fn shards_enter_until_all_have() {
        let c = Counters::growing(1, 3);
        c.publish(0, &Stats { open: 5, ..Stats::default() });
        assert_eq!((c.enter(), c.enter(), c.enter()), (Some(1), Some(2), None));
        c.publish(2, &Stats { open: 7, ..Stats::default() });
        assert_eq!((c.read().open, c.open(2), c.open(1)), (12, 7, 0));
    }
}
