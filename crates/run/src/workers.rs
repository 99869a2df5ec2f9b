//! The shards of this machine, a thread each.

use std::{
    io,
    sync::mpsc::{self, Receiver, Sender},
    thread::JoinHandle,
};

use engine::{Arrivals, Client, Control, Job, Remote};
use net::{
    Backend, Io, Shard,
    io::{
        epoll::{self, Epoll},
        uring::{self, Uring},
    },
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
    /// `uring` or `epoll`.
    pub(crate) io: &'static str,
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
    let shards = prepared.shards.count;
    let clock = Clock::start();
    let (links, arrivals) = engine::links(shards);
    let io = prepared.backend.name();
    let mut workers =
        Workers { clock, start: Nanos::ZERO, arrivals, remotes: Vec::new(), io, threads: Vec::new() };
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
        let plan = plan.clone();
        let means = Means::of(prepared, &part, clock);
        let client = move |start| Client::new(&plan, &part, Job::new(&plan), tuples, link, start);
        let body = move || match means.backend {
            Backend::Uring => work(means.uring(), &part, &ready, &start, client),
            Backend::Epoll => work(means.epoll(), &part, &ready, &start, client),
        };
        let thread = std::thread::Builder::new().name(format!("run-{}", part.shard)).spawn(body);
        workers.threads.push(thread.map_err(|e| Refusal::Failed(format!("no further thread: {e}")))?);
        workers.remotes.push(remote);
        starters.push(starter);
        let up = is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("a shard ended at once")));
        up.map_err(|e| Refusal::Failed(format!("{io} cannot be set up: {e}")))?;
    }
    workers.start = clock.now();
    for starter in starters {
        starter.send(workers.start).expect("a shard that is ready waits for its start");
    }
    Ok(workers)
}

/// What a shard's thread makes its I/O of; rings and tables of files belong to the thread that makes them.
#[derive(Clone, Copy)]
struct Means {
    backend: Backend,
    places: u32,
    slots: u32,
    own_files: bool,
    clock: Clock,
}

impl Means {
    fn of(prepared: &Prepared, part: &Part, clock: Clock) -> Means {
        let Prepared { backend, slots, shards, .. } = *prepared;
        Means { backend, places: part.places, slots, own_files: shards.own_files, clock }
    }

    fn uring(self) -> io::Result<Uring> {
        let Means { places, slots, .. } = self;
        Uring::new(uring::Settings { connections: places, slots, by_hand: false }, self.clock)
    }

    fn epoll(self) -> io::Result<Epoll> {
        if self.own_files {
            net::own_open_files(None)?;
        }
        Epoll::new(epoll::Settings { connections: self.places, by_millis: false }, self.clock)
    }
}

/// A shard's thread: says whether its I/O stands, waits for the start, runs to the end.
fn work<I: Io>(
    io: io::Result<I>,
    part: &Part,
    ready: &Sender<io::Result<()>>,
    start: &Receiver<Nanos>,
    client: impl FnOnce(Nanos) -> Client,
) {
    let io = match io {
        Ok(io) => io,
        Err(e) => return ready.send(Err(e)).unwrap_or_default(),
    };
    ready.send(Ok(())).unwrap_or_default();
    let Ok(start) = start.recv() else { return };
    net::sharpen_timers();
    let mut shard = Shard::new(io, part.places, client(start));
    while !shard.program().is_finished() {
        shard.turn(Nanos::NEVER);
    }
}
