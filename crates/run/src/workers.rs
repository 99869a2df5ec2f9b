//! The workers that drive the connections of a run, as a trait: threads of this machine, simulated shards, or agents on other machines.
//! The conductor controls any of them.

mod threads;

use std::sync::Arc;

use observe::Sources;
use plan::Role;
use samples::{AgentSummary, AgentTicks, Tick};
use units::Nanos;

use crate::schedule::Order;

pub use threads::Threads;

/// Maximum time for a worker that was ordered to stop to deliver its last tick.
pub(crate) const STOPS_WITHIN: Nanos = Nanos::from_secs(10);

/// A set of workers, each of which drives connections of one population or of the probe.
pub trait Workers {
    /// The role of each worker; its index is the worker's number.
    fn role(&self) -> Vec<Role>;

    /// The number of threads of each worker.
    fn threads(&self) -> Vec<u32> {
        vec![1; self.role().len()]
    }

    /// Maximum time between [giving an order](Workers::order) and its application by every worker.
    fn notice(&self) -> Nanos;

    /// The usual length of a worker's tick.
    fn period(&self) -> Nanos;

    /// Whether the run continues without a lost worker; otherwise it ends.
    fn carries_on(&self) -> bool {
        false
    }

    /// Whether others may still take over the load of a lost worker, as workers that [join](Update::Joined). Becomes false within bounded
    /// time.
    fn hands_over(&self) -> bool {
        false
    }

    /// Whether a lost worker may still [come back](Update::Back) with its connections. Becomes false within bounded time.
    fn may_come_back(&self) -> bool {
        false
    }

    /// Whether reports arrive: the connection to the workers is up, and no report waits to be stored.
    fn is_connected(&self) -> bool {
        true
    }

    /// The agents that the workers run on; empty on this machine.
    fn agents(&self) -> Vec<AgentSummary> {
        Vec::new()
    }

    /// What each agent did since the last call, up to this [second](crate::second_of).
    fn take_seconds(&mut self, _until: u64) -> Option<Box<AgentTicks>> {
        None
    }

    /// The time by the clock of the workers' ticks.
    fn now(&self) -> Nanos;

    /// Gives an order to its recipients; each gets its share of a load.
    fn order(&mut self, order: Order);

    /// Makes workers keep their connections open when they stop, until [release](Workers::release). Returns whether that is supported.
    fn keep(&mut self) -> bool {
        false
    }

    /// Closes every other kept connection.
    fn close_half(&mut self) {}

    /// Closes all kept connections.
    fn release(&mut self) {}

    /// Waits until `until` for the next update of any worker. If `until` is past, returns only what has already arrived.
    fn next(&mut self, until: Nanos) -> Update<'_>;
}

/// Facts about the workers for the record of a run.
#[derive(Clone)]
pub struct Ground {
    /// When the workers began, by their clock.
    pub start: Nanos,
    /// The kernel interface in use: `uring`, `epoll` or `tun`.
    pub io: &'static str,
    /// Number of threads.
    pub(crate) threads: u32,
    /// Where the connections are dialled from; `None` if other processes dial.
    pub(crate) sources: Option<Arc<Sources>>,
}

impl Ground {
    /// Facts about workers on other machines.
    pub fn elsewhere(start: Nanos, io: &'static str, threads: u32) -> Ground {
        Ground { start, io, threads, sources: None }
    }
}

/// An update from the workers.
#[derive(Debug)]
pub enum Update<'a> {
    /// A worker's tick.
    Tick(u32, &'a Tick),
    /// A worker has ended without being ordered to, or is silent. Its later ticks count as late.
    Lost(u32),
    /// A lost worker was only disconnected, and continues.
    Back(u32),
    /// A worker with this role was added.
    Joined(Role),
    /// Nothing arrived in time.
    Nothing,
    /// All workers have ended; no further update follows.
    Ended,
}

/// Stops the workers; `take` receives the remaining updates.
pub fn stop(workers: &mut dyn Workers, take: impl FnMut(Update)) {
    stop_unless(workers, STOPS_WITHIN, take, |_, _| true);
}

/// Stops the workers. Whenever nothing has arrived for `look`, `gives_up` gets the time since the last update, and decides whether to
/// stop waiting.
pub(crate) fn stop_unless(
    workers: &mut dyn Workers,
    look: Nanos,
    mut take: impl FnMut(Update),
    mut gives_up: impl FnMut(&dyn Workers, Nanos) -> bool,
) {
    workers.order(Order::STOP);
    let mut heard = workers.now();
    loop {
        match workers.next(workers.now() + look) {
            Update::Ended => return,
            Update::Nothing => {
                let quiet = workers.now().since(heard);
                if gives_up(&*workers, quiet) {
                    return;
                }
            }
            update => {
                take(update);
                heard = workers.now();
            }
        }
    }
}

/// Stops the workers and waits for at most `within`; discards the remaining updates.
pub(crate) fn stop_within(workers: &mut dyn Workers, within: Nanos) {
    workers.order(Order::STOP);
    let until = workers.now() + within;
    while !matches!(workers.next(until), Update::Nothing | Update::Ended) {}
}
