//! The workers of this machine: one thread per shard. Threads share nothing; orders and ticks go through channels. A thread creates its
//! rings or its file table itself, reports that it is ready, and waits for the common start.

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

use engine::{Arrivals, Client, Control, Job, Remote, Transcriber};
use net::{
    Backend, Io, Shard,
    io::{
        epoll::{self, Epoll},
        tun::Tun,
        uring::{self, Uring},
    },
};
use observe::Sources;
use plan::{Dials, Part, Plan, ProbeKind, Role, TupleShare};
use samples::Tick;
use units::{Clock, Failure, Nanos, failpoint};

use super::{Ground, Update, Workers};
use crate::{
    prepare::{Prepared, Refusal, Shards, devices},
    schedule::Order,
};

/// Maximum time until a shard applies an order: it checks for orders at least every 100 ms.
const NOTICE: Nanos = Nanos::from_millis(120);

/// Maximum wait for the next thread to close half of its kept connections; the rest closes later.
const CLOSES_WITHIN: Duration = Duration::from_secs(1);

/// Shards that are set up, and run once they have [begun](Threads::begin).
pub struct Threads {
    clock: Clock,
    /// When the shards began.
    start: Nanos,
    arrivals: Arrivals,
    /// The tick that was returned last, with its shard, to be given back for reuse.
    read: Option<(u32, Box<Tick>)>,
    /// `uring`, `epoll` or `tun`.
    io: &'static str,
    /// Where connections are dialled from.
    sources: Arc<Sources>,
    threads: Vec<Thread>,
    keeps: bool,
    /// No thread has been ordered to stop.
    all_run: bool,
}

/// A thread with its shard.
struct Thread {
    handle: JoinHandle<()>,
    /// The part of the plan that the shard carries out.
    part: Part,
    remote: Remote,
    /// Sends the thread the time of its start, which it waits for.
    starter: Option<Sender<Nanos>>,
    /// As long as it exists, a thread that has stopped keeps its connections open.
    keeper: Option<Keeper>,
    /// It ended without being ordered to, and was reported.
    is_lost: bool,
}

/// The run's side of a stopped thread that keeps its connections.
struct Keeper {
    /// Each message closes every other remaining connection.
    halves: Sender<Sender<()>>,
    has_stopped: Arc<AtomicBool>,
}

/// The thread's side of the [`Keeper`].
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
        self.threads.iter().map(|thread| thread.part.role).collect()
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
        for thread in &self.threads {
            if let Some(control) = order.to(&thread.part) {
                // A shard that has ended takes no orders.
                let _ = thread.remote.control.send(control);
            }
        }
    }

    fn keep(&mut self) -> bool {
        // Connections over a device end together with the loop that drives it.
        self.keeps = self.io != Backend::Tun.name();
        self.keeps
    }

    fn close_half(&mut self) {
        let (done, are_done) = mpsc::channel();
        for keeper in self.threads.iter().filter_map(|thread| thread.keeper.as_ref()) {
            // A thread that has panicked has no connections.
            let _ = keeper.halves.send(done.clone());
        }
        drop(done);
        while are_done.recv_timeout(CLOSES_WITHIN).is_ok() {}
    }

    fn release(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.keeper = None);
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        if let Some((shard, tick)) = self.read.take() {
            let _ = self.threads[shard as usize].remote.used.try_send(tick);
        }
        let has_stopped = |keeper: &Keeper| keeper.has_stopped.load(Relaxed);
        let has_ended =
            |own: &Thread| own.handle.is_finished() || own.keeper.as_ref().is_some_and(has_stopped);
        let have_ended = self.threads.iter().all(has_ended);
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
    /// Returns a thread that has panicked, each one once.
    fn lost(&mut self) -> Option<u32> {
        let mut threads = (0..).zip(&mut self.threads).filter(|_| self.all_run);
        let (nth, lost) = threads.find(|(_, thread)| thread.handle.is_finished() && !thread.is_lost)?;
        lost.is_lost = true;
        Some(nth)
    }

    /// Starts a shard for each part of the plan.
    ///
    /// # Errors
    /// See [`Threads::ready`].
    pub(crate) fn start(plan: &Plan, prepared: &Prepared) -> Result<Threads, Refusal> {
        let parts = plan.parts(|population| prepared.shards.counts[usize::from(population)]);
        let mut threads = Threads::ready(plan, prepared, parts)?;
        threads.begin();
        Ok(threads)
    }

    /// Sets up a shard for each given part of the plan. When this returns, all are ready and none has begun.
    ///
    /// # Errors
    /// The kernel refuses a thread, or the setup of its I/O.
    pub fn ready(plan: &Plan, prepared: &Prepared, parts: Vec<Part>) -> Result<Threads, Refusal> {
        Threads::transcribed(plan, prepared, parts, None)
    }

    /// As [`Threads::ready`]; the only shard writes a transcript, if there is a `transcriber`.
    pub(crate) fn transcribed(
        plan: &Plan,
        prepared: &Prepared,
        parts: Vec<Part>,
        mut transcriber: Option<Transcriber>,
    ) -> Result<Threads, Refusal> {
        let (clock, date) = (Clock::start(), units::since_1970());
        let (links, arrivals) = engine::links(parts.len() as u32);
        let Prepared { backend, slots, shards: Shards { own_files, .. }, .. } = *prepared;
        let (io, max_segment) = (backend.name(), plan.max_segment);
        let of = parts.len() as u32;
        let (mut sources, mut threads) = (Sources::default(), Vec::new());
        for (nth, (part, (link, remote))) in (0..).zip(parts.into_iter().zip(links)) {
            let routes = &prepared.routes[&part.role];
            let own = match backend {
                Backend::Tun => Some(devices::make(plan, &part, (nth, of), routes, clock)?),
                _ => None,
            };
            // Device addresses belong to one shard, so it uses all of their tuples.
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
            let transcriber = transcriber.take();
            let client = move |start| {
                let client = Client::new(&part, job, tuples, link, start);
                transcriber.into_iter().fold(client, Client::with_transcript)
            };
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
            let handle = std::thread::Builder::new().name(name(&part)).spawn(body);
            let handle = handle.map_err(|e| format!("cannot start another thread: {e}"))?;
            let (starter, keeper) = (Some(starter), Some(keeper));
            threads.push(Thread { handle, part, remote, starter, keeper, is_lost: false });
            let up = is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("a shard exited immediately")));
            up.map_err(|e| format!("{io} cannot be set up: {e}"))?;
        }
        let (start, sources) = (Nanos::ZERO, Arc::new(sources));
        Ok(Threads { clock, start, arrivals, read: None, io, sources, threads, keeps: false, all_run: true })
    }

    /// Begins the run of all shards.
    pub fn begin(&mut self) {
        self.start = self.clock.now();
        for starter in self.threads.iter_mut().filter_map(|thread| thread.starter.take()) {
            starter.send(self.start).expect("a shard that is ready waits for its start");
        }
    }

    /// When the shards began, by their clock.
    pub fn began(&self) -> Nanos {
        self.start
    }

    /// The kernel interface in use: `uring`, `epoll` or `tun`.
    pub fn io(&self) -> &'static str {
        self.io
    }

    /// Facts about these shards for the record of a run.
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
    /// If a thread has panicked and the failure was not recorded elsewhere.
    pub fn join(mut self) {
        // Threads that have not begun exit once their starter is gone.
        self.threads.iter_mut().for_each(|thread| (thread.starter, thread.keeper) = (None, None));
        for thread in self.threads {
            let ended = thread.handle.join();
            if Failure::first().is_none() {
                ended.expect("a shard panicked");
            }
        }
    }
}

/// The thread's name as the kernel shows it, at most 15 bytes.
fn name(part: &Part) -> String {
    match part.role {
        Role::Population(0) => format!("run-{}", part.shard),
        Role::Population(nth) => format!("run-{nth}-{}", part.shard),
        Role::Probe(ProbeKind::Fresh) => "run-probe-fresh".to_owned(),
        Role::Probe(ProbeKind::Kept) => "run-probe-kept".to_owned(),
    }
}

/// The epoll backend for this number of connections, with a file table of this thread or that of the process.
fn epoll(connections: u32, own_files: bool, max_segment: Option<u16>, clock: Clock) -> io::Result<Epoll> {
    if own_files {
        net::own_open_files(None)?;
    }
    let io = Epoll::new(epoll::Settings { connections, by_millis: false }, clock)?;
    Ok(io.with_max_segment(max_segment))
}

/// The thread's control channels: it reports that it is ready, receives its start, and keeps its connections at the end.
type Leads<'a> = (&'a Sender<io::Result<()>>, &'a Receiver<Nanos>, &'a Kept);

/// The body of a shard's thread: reports whether its I/O is ready, waits for the start, and runs to the end.
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
    // A panic must not drop buffers or rings: the kernel may still use them.
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
    // Ensures that close frames sent in the last turn reach the target.
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
