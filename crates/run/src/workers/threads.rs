//! The shards of this machine, a thread each.

use std::{
    io,
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::Duration,
};

use engine::{Arrivals, Client, Control, Job, Remote};
use net::{
    Backend, Io, Shard,
    io::{
        epoll::{self, Epoll},
        tun::Tun,
        uring::{self, Uring},
    },
};
use plan::{Dials, Part, Plan, ProbeKind, Role, TupleShare};
use samples::Tick;
use units::{Clock, Failure, Nanos, failpoint};

use super::{Ground, Update, Workers};
use crate::{
    backend::Shards, both_sides::Sources, devices, prepare::Prepared, refusal::Refusal, schedule::Order,
};

/// A shard checks for commands at least every 100 ms.
const NOTICE: Nanos = Nanos::from_millis(120);

/// Threads that keep their connections close half of them within this time, however many they are; what is not closed by then is later.
const CLOSES_WITHIN: Duration = Duration::from_secs(1);

/// Shards that are ready, and run once they were [begun](Threads::begin).
pub struct Threads {
    clock: Clock,
    /// Each waits for its start.
    starters: Vec<Sender<Nanos>>,
    /// When they began.
    start: Nanos,
    arrivals: Arrivals,
    /// The tick that was read last, and whose it is.
    read: Option<(u32, Box<Tick>)>,
    remotes: Vec<Remote>,
    /// What each of them does.
    parts: Vec<Part>,
    /// `uring`, `epoll` or `tun`.
    io: &'static str,
    /// Where connections are dialled from.
    sources: Arc<Sources>,
    threads: Vec<JoinHandle<()>>,
    /// While these exist, threads that have stopped keep their connections.
    keepers: Vec<Keeper>,
    keeps: bool,
    /// No thread is to end.
    all_run: bool,
    /// Threads that have ended nevertheless, and were reported.
    lost: Vec<u32>,
}

/// The run's end of a thread that has stopped.
struct Keeper {
    /// Each message closes every other connection that is left.
    halves: Sender<Sender<()>>,
    has_stopped: Arc<AtomicBool>,
}

/// The thread's end.
struct Kept {
    halves: Receiver<Sender<()>>,
    has_stopped: Arc<AtomicBool>,
}

fn keeper() -> (Keeper, Kept) {
    let ((halves, receiver), has_stopped) = (mpsc::channel(), Arc::<AtomicBool>::default());
    (Keeper { halves, has_stopped: has_stopped.clone() }, Kept { halves: receiver, has_stopped })
}

impl Workers for Threads {
    fn role(&self) -> Vec<Role> {
        self.parts.iter().map(|part| part.role).collect()
    }

    fn notice(&self) -> Nanos {
        NOTICE
    }

    fn period(&self) -> Nanos {
        Job::PERIOD
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn order(&mut self, order: Order) {
        let stops = order == Order::All(Control::Stop);
        self.all_run &= !stops;
        if stops && !self.keeps {
            self.release();
        }
        for (part, remote) in self.parts.iter().zip(&self.remotes) {
            if let Some(control) = order.to(part) {
                // A shard that has ended takes no orders.
                let _ = remote.control.send(control);
            }
        }
    }

    fn keep(&mut self) -> bool {
        // Connections over a device end with what drives it.
        self.keeps = self.io != Backend::Tun.name();
        self.keeps
    }

    fn close_half(&mut self) {
        let (done, are_done) = mpsc::channel();
        for keeper in &self.keepers {
            // A thread that has failed has no connections.
            let _ = keeper.halves.send(done.clone());
        }
        drop(done);
        while are_done.recv_timeout(CLOSES_WITHIN).is_ok() {}
    }

    fn release(&mut self) {
        self.keepers.clear();
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        if let Some((shard, tick)) = self.read.take() {
            let _ = self.remotes[shard as usize].used.try_send(tick);
        }
        // One that has failed keeps its end of the channel.
        let keepers = self.keepers.iter().map(Some).chain(std::iter::repeat(None));
        let has_stopped = |keeper: Option<&Keeper>| keeper.is_some_and(|own| own.has_stopped.load(Relaxed));
        let have_ended =
            self.threads.iter().zip(keepers).all(|(thread, own)| thread.is_finished() || has_stopped(own));
        let wait = until.since(self.clock.now());
        match self.arrivals.recv_timeout(Duration::from_nanos(wait.0)) {
            Ok(read) => {
                let (shard, tick) = &*self.read.insert(read);
                Update::Tick(*shard, tick)
            }
            Err(RecvTimeoutError::Timeout) => match self.lost() {
                Some(lost) => Update::Lost(lost),
                None if have_ended => Update::Ended,
                None => Update::Nothing,
            },
            Err(RecvTimeoutError::Disconnected) => Update::Ended,
        }
    }
}

impl Threads {
    /// A thread that panicked, each once.
    fn lost(&mut self) -> Option<u32> {
        let is_lost = |nth: &u32| self.threads[*nth as usize].is_finished() && !self.lost.contains(nth);
        let lost = (0..self.threads.len() as u32).filter(|_| self.all_run).find(is_lost)?;
        self.lost.push(lost);
        Some(lost)
    }

    /// Starts a shard for each part of the plan.
    ///
    /// # Errors
    /// As [`Threads::ready`].
    pub(crate) fn start(plan: &Plan, prepared: &Prepared) -> Result<Threads, Refusal> {
        let parts = plan.parts(|population| prepared.shards.counts[usize::from(population)]);
        let mut threads = Threads::ready(plan, prepared, parts)?;
        threads.begin();
        Ok(threads)
    }

    /// Sets up a shard for each of these parts of the plan; all are ready when this returns, and none has begun.
    ///
    /// # Errors
    /// The kernel refuses a thread, or its I/O.
    pub fn ready(plan: &Plan, prepared: &Prepared, parts: Vec<Part>) -> Result<Threads, Refusal> {
        let (clock, date) = (Clock::start(), units::since_1970());
        let (links, arrivals) = engine::links(parts.len() as u32);
        let Prepared { backend, slots, shards: Shards { own_files, .. }, .. } = *prepared;
        let (io, max_segment) = (backend.name(), plan.max_segment);
        let mut workers = Threads {
            clock,
            starters: Vec::new(),
            start: Nanos::ZERO,
            arrivals,
            read: None,
            remotes: Vec::new(),
            parts: parts.clone(),
            io,
            sources: Arc::default(),
            threads: Vec::new(),
            keepers: Vec::new(),
            keeps: false,
            all_run: true,
            lost: Vec::new(),
        };
        let of = parts.len() as u32;
        let mut sources = Sources::default();
        for (nth, (part, (link, remote))) in (0..).zip(parts.into_iter().zip(links)) {
            let routes = &prepared.routes[&part.role];
            let own = match backend {
                Backend::Tun => Some(devices::make(plan, &part, (nth, of), routes, clock)?),
                _ => None,
            };
            // No other shard has addresses of a device.
            let (routes, share) = match &own {
                Some(own) => (&own.routes, TupleShare::ALL),
                None => (routes, part.tuple_share),
            };
            sources.add(part.role, routes, share, prepared.salt);
            sources.watch(own.iter().map(|own| own.settings.watch.clone()));
            let tuples = Dials::new(routes.clone(), share, prepared.salt);
            let (ready, is_ready) = mpsc::channel();
            let (starter, start) = mpsc::channel();
            let (keeper, kept) = keeper();
            let job = Job::new(plan, part.role).starting(date);
            let client = move |start| Client::new(&part, job, tuples, link, start);
            // Rings and file tables belong to the thread that creates them.
            let body = move || {
                net::block_signals();
                let ends = (&ready, &start, &kept);
                match backend {
                    Backend::Uring => {
                        let settings = uring::Settings::new(part.places, slots);
                        work(Uring::new(settings, clock), &part, ends, client);
                    }
                    Backend::Epoll => {
                        work(epoll(part.places, own_files, max_segment, clock), &part, ends, client);
                    }
                    Backend::Tun => {
                        let devices::Own { device, settings, .. } = own.expect("it was made above");
                        work(Ok(Tun::new(device, settings)), &part, ends, client);
                    }
                }
            };
            let thread = std::thread::Builder::new().name(name(&part)).spawn(body);
            workers
                .threads
                .push(thread.map_err(|e| Refusal::Failed(format!("cannot start another thread: {e}")))?);
            workers.remotes.push(remote);
            workers.starters.push(starter);
            workers.keepers.push(keeper);
            let up = is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("a shard exited immediately")));
            up.map_err(|e| Refusal::Failed(format!("{io} cannot be set up: {e}")))?;
        }
        workers.sources = Arc::new(sources);
        Ok(workers)
    }

    /// Begins the run of all shards.
    pub fn begin(&mut self) {
        self.start = self.clock.now();
        for starter in self.starters.drain(..) {
            starter.send(self.start).expect("a shard that is ready waits for its start");
        }
    }

    /// When they began, by their clock.
    pub fn began(&self) -> Nanos {
        self.start
    }

    /// The kernel interface that they drive.
    pub fn io(&self) -> &'static str {
        self.io
    }

    /// What these shards are, for the record of a run.
    pub(crate) fn ground(&self) -> Ground {
        Ground {
            start: self.start,
            io: self.io,
            threads: self.threads.len() as u32,
            sources: Some(self.sources.clone()),
        }
    }

    /// Waits for the threads to end.
    ///
    /// # Panics
    /// One of them has panicked, and nobody else learns of it.
    pub fn join(self) {
        // Those that were not begun end without their beginning.
        drop((self.starters, self.keepers));
        for thread in self.threads {
            let ended = thread.join();
            if Failure::first().is_none() {
                ended.expect("a shard panicked");
            }
        }
    }
}

/// As the kernel shows a thread, in 15 letters.
fn name(part: &Part) -> String {
    match part.role {
        Role::Population(0) => format!("run-{}", part.shard),
        Role::Population(nth) => format!("run-{nth}-{}", part.shard),
        Role::Probe(ProbeKind::Fresh) => "run-probe-fresh".to_owned(),
        Role::Probe(ProbeKind::Kept) => "run-probe-kept".to_owned(),
    }
}

/// For this many connections, with a file table of this thread's own or the one of the process.
fn epoll(connections: u32, own_files: bool, max_segment: Option<u16>, clock: Clock) -> io::Result<Epoll> {
    if own_files {
        net::own_open_files(None)?;
    }
    let io = Epoll::new(epoll::Settings { connections, by_millis: false }, clock)?;
    Ok(io.with_max_segment(max_segment))
}

/// What a thread is led by: it reports that it is ready, is started, and keeps its connections at the end.
type Leads<'a> = (&'a Sender<io::Result<()>>, &'a Receiver<Nanos>, &'a Kept);

/// A shard's thread: reports whether its I/O is ready, waits for the start, runs to the end.
fn work<I: Io>(
    io: io::Result<I>,
    part: &Part,
    (ready, start, kept): Leads,
    client: impl FnOnce(Nanos) -> Client,
) {
    let io = match io {
        Ok(io) => io,
        Err(e) => return ready.send(Err(e)).unwrap_or_default(),
    };
    ready.send(Ok(())).unwrap_or_default();
    let Ok(start) = start.recv() else { return };
    net::sharpen_timers();
    // A panic drops neither buffers nor rings: the kernel may still use them.
    let mut shard = ManuallyDrop::new(Shard::new(io, part.places, client(start)));
    while !shard.program().is_finished() {
        shard.turn(Nanos::NEVER);
        failpoint("shard");
    }
    kept.has_stopped.store(true, Relaxed);
    while let Ok(done) = kept.halves.recv() {
        shard.close_every_other(part.places);
        let _ = done.send(());
    }
    // A close frame that was sent in the last turn is one that the target receives.
    ManuallyDrop::into_inner(shard).hand_over();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_were_not_begun_can_be_joined() {
        let plan = record::fixture::plan(&[]);
        let prepared = crate::prepare(&plan, &host::Root::real()).unwrap();
        let parts = plan.parts(|population| prepared.shards()[usize::from(population)]);
        Threads::ready(&plan, &prepared, parts).unwrap().join();
    }
}
