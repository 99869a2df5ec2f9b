//! The workers that drive the connections of a run. Threads of this machine are one kind, the simulation's shards another;
//! a conductor controls any of them.

mod threads;

use std::sync::Arc;

use plan::Role;
use samples::{AgentSummary, AgentTicks, Tick};
use units::Nanos;

use crate::{both_sides::Sources, schedule::Order};

pub use threads::Threads;

/// A worker that was ordered to stop hands over its last tick within this time.
pub(crate) const STOPS_WITHIN: Nanos = Nanos::from_secs(10);

/// Workers, each of which drives connections of one population, or the probe.
pub trait Workers {
    /// What each of them drives; a worker's number is its place here.
    fn role(&self) -> Vec<Role>;

    /// How many threads each of them has.
    fn threads(&self) -> Vec<u32> {
        vec![1; self.role().len()]
    }

    /// Every worker applies an order within this time after it was [given](Workers::order).
    fn notice(&self) -> Nanos;

    /// The usual length of a worker's tick.
    fn period(&self) -> Nanos;

    /// The run goes on without a worker that is lost; otherwise it ends.
    fn carries_on(&self) -> bool {
        false
    }

    /// Whether others are still to take over what a lost worker did: as workers that [join](Update::Joined), unless it turns out that
    /// they cannot. Never for ever.
    fn hands_over(&self) -> bool {
        false
    }

    /// Whether a worker that is lost may still [come back](Update::Back) with its connections. Never for ever.
    fn may_come_back(&self) -> bool {
        false
    }

    /// Whether the workers' reports arrive: the connection to them is up, and no report waits to be stored.
    fn is_connected(&self) -> bool {
        true
    }

    /// The agents that they run on; none on this machine.
    fn agents(&self) -> Vec<AgentSummary> {
        Vec::new()
    }

    /// What each of those did up to this [second](crate::second_of), and since the last call.
    fn take_seconds(&mut self, _until: u64) -> Option<Box<AgentTicks>> {
        None
    }

    /// The time, by the clock of the workers' ticks.
    fn now(&self) -> Nanos;

    /// Gives an order to its recipients; each gets its share of a load.
    fn order(&mut self, order: Order);

    /// Keeps connections open when the workers stop, until they are [released](Workers::release); whether it can.
    fn keep(&mut self) -> bool {
        false
    }

    /// Closes every other connection that is kept.
    fn close_half(&mut self) {}

    /// Closes those that are kept.
    fn release(&mut self) {}

    /// Waits for the next tick of any worker, until then at most. A time that is over: takes what is there.
    fn next(&mut self, until: Nanos) -> Update<'_>;
}

/// What the record of a run says of its workers.
#[derive(Clone)]
pub struct Ground {
    /// When they began, by their clock.
    pub start: Nanos,
    /// The kernel interface that they drive: `uring`, `epoll`.
    pub io: &'static str,
    /// How many threads they are.
    pub(crate) threads: u32,
    /// Where they dial from; none if that is not this process.
    pub(crate) sources: Option<Arc<Sources>>,
}

impl Ground {
    /// Of workers on other machines.
    pub fn elsewhere(start: Nanos, io: &'static str, threads: u32) -> Ground {
        Ground { start, io, threads, sources: None }
    }
}

/// What came from workers.
#[derive(Debug)]
pub enum Update<'a> {
    /// A worker's tick.
    Tick(u32, &'a Tick),
    /// A worker has ended without an order to, or is silent: what comes of it is late.
    Lost(u32),
    /// A worker that was lost was only away: it goes on.
    Back(u32),
    /// There is one more worker, which does this.
    Joined(Role),
    /// Nothing in time.
    Nothing,
    /// All of them have ended, and nothing will come any more.
    Ended,
}

/// Stops them; `take` is given what still comes.
pub fn stop(workers: &mut dyn Workers, take: impl FnMut(Update)) {
    stop_unless(workers, STOPS_WITHIN, take, |_, _| true);
}

/// The same; `gives_up` decides, whenever nothing has come for as long as a `look`, and is given for how long nothing has.
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

/// Stops them, and waits for this long at most; what still comes is of no use.
pub(crate) fn stop_within(workers: &mut dyn Workers, within: Nanos) {
    workers.order(Order::STOP);
    let until = workers.now() + within;
    while !matches!(workers.next(until), Update::Nothing | Update::Ended) {}
}
