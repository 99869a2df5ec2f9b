//! The shards of this machine, a thread each.

use std::{sync::mpsc, thread::JoinHandle};

use engine::{Arrivals, Client, Control, Job, Remote};
use net::{
    Shard,
    io::uring::{self, Uring},
};
use plan::{Part, Plan, Tuples};
use units::{Clock, Nanos};

use crate::prepare::{Prepared, Refusal};

/// Running shards.
pub(crate) struct Workers {
    pub(crate) clock: Clock,
    /// When the first dial is due.
    pub(crate) start: Nanos,
    pub(crate) arrivals: Arrivals,
    pub(crate) remotes: Vec<Remote>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Gives all shards an order.
    pub(crate) fn order(&self, control: Control) {
        for remote in &self.remotes {
            // A shard that has ended takes no orders.
            let _ = remote.control.send(control);
        }
    }

    /// Waits for the threads to end.
    pub(crate) fn join(self) {
        for thread in self.threads {
            thread.join().expect("a shard panicked");
        }
    }
}

/// Starts a shard for each part of the plan; all of them stand when this returns.
pub(crate) fn start(plan: &Plan, prepared: &Prepared) -> Result<Workers, Refusal> {
    // No shard without a connection.
    let shards = plan.threads.min(plan.connections);
    let clock = Clock::start();
    let (links, arrivals) = engine::links(shards);
    let mut workers =
        Workers { clock, start: Nanos::ZERO, arrivals, remotes: Vec::new(), threads: Vec::new() };
    let mut starters = Vec::new();
    for (part, (link, remote)) in plan.parts(shards).into_iter().zip(links) {
        let destinations = plan.target.destinations.len();
        let tuples = Tuples::new(
            prepared.pool.clone(),
            prepared.ports.clone(),
            destinations,
            part.shard,
            part.shards,
            prepared.salt,
        );
        let (ready, is_ready) = mpsc::channel();
        let (starter, start) = mpsc::channel();
        let (plan, slots) = (plan.clone(), prepared.slots);
        let body = move || {
            // A ring belongs to the thread that made it.
            let settings = uring::Settings { connections: part.connections, slots, by_hand: false };
            match Uring::new(settings, clock) {
                Err(e) => ready.send(Err(e)).unwrap_or_default(),
                Ok(io) => {
                    ready.send(Ok(())).unwrap_or_default();
                    if let Ok(start) = start.recv() {
                        work(io, &part, Client::new(&plan, &part, Job::new(&plan), tuples, link, start));
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("run-{}", part.shard)).spawn(body);
        workers.threads.push(thread.map_err(|e| Refusal::Failed(format!("no further thread: {e}")))?);
        workers.remotes.push(remote);
        starters.push(starter);
        let up = is_ready.recv().unwrap_or_else(|_| Err(std::io::Error::other("a shard ended at once")));
        up.map_err(|e| Refusal::Failed(format!("io_uring cannot be set up: {e}")))?;
    }
    workers.start = clock.now();
    for starter in starters {
        starter.send(workers.start).expect("a shard that is ready waits for its start");
    }
    Ok(workers)
}

fn work(io: Uring, part: &Part, client: Client) {
    net::sharpen_timers();
    let mut shard = Shard::new(io, part.connections, client);
    while !shard.program().is_finished() {
        shard.turn(Nanos::NEVER);
    }
}
