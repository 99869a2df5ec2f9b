//! After the ramp a shard allocates nothing, neither the client's nor the server's, whatever happens to its connections. All allocations
//! of the thread are counted during a shard's turns; a failure shows where the first one was made.

#![allow(unsafe_code, reason = "an allocator is a trait that only unsafe code can implement")]
#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

#[path = "allocations/tcp.rs"]
mod tcp;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    backtrace::Backtrace,
    cell::{Cell, RefCell},
    io::{self, Write},
    net::SocketAddr,
    sync::Arc,
};

use engine::links;
use net::{
    Close, Done, Io, Key, Program, Scratch, Shard,
    io::{
        epoll::{self, Epoll},
        sim::{self, SimIo, Turn},
        uring::{self, Uring},
    },
};
use plan::{Part, Plan};
use run::Schedule;
use serve::{Counters, Http, Knobs, ServerShard};
use stage::{
    client, network, plan,
    scripted::{Act, Scripted, Then},
};
use units::{Clock, Nanos};

/// The system's allocator, with a count per thread.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static IS_COUNTING: Cell<bool> = const { Cell::new(false) };
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static FIRST: RefCell<Option<Backtrace>> = const { RefCell::new(None) };
}

fn note() {
    if IS_COUNTING.get() {
        COUNT.set(COUNT.get() + 1);
        if COUNT.get() == 1 {
            // Capturing a backtrace allocates too.
            paused(|| FIRST.set(Some(Backtrace::force_capture())));
        }
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator; `note` does not touch its memory, and uses only
// thread-locals that need no destructor before the thread's first allocation is long past.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promises are those that System requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        // SAFETY: as above; `at` came from System.
        unsafe { System.realloc(at, layout, new_size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; `at` came from System.
        unsafe { System.dealloc(at, layout) }
    }
}

fn switched<R>(on: bool, f: impl FnOnce() -> R) -> R {
    let before = IS_COUNTING.replace(on);
    let result = f();
    IS_COUNTING.set(before);
    result
}

fn paused<R>(f: impl FnOnce() -> R) -> R {
    switched(false, f)
}

/// The allocations of this thread while counting since the last call, and the backtrace of the first one.
fn take_count() -> (u64, String) {
    let first = FIRST.take().map_or_else(String::new, |backtrace| backtrace.to_string());
    (COUNT.replace(0), first)
}

/// The load of one client shard, as a run controls it.
struct Load {
    plan: &'static Plan,
    part: Part,
    schedule: Schedule<'static>,
    remote: engine::Remote,
    arrivals: engine::Arrivals,
    /// Responses while counting.
    answered: u64,
    ramped: bool,
    measuring: bool,
}

impl Load {
    /// The load of part `nth` of the plan with these flags; the parts of the probe follow the first one.
    fn new(
        at: SocketAddr,
        (scheme, path): (&str, &str),
        flags: &str,
        seed: u64,
        nth: usize,
    ) -> (Load, engine::Link) {
        // The test ends when everything has been observed.
        let flags = format!("duration=forever {flags}");
        let plan = &*Box::leak(Box::new(plan(&format!("{scheme}://{at}{path}"), &flags, seed)));
        let part = plan.parts(|_| 1)[nth];
        let (mut pairs, arrivals) = links(1);
        let (link, remote) = pairs.remove(0);
        let schedule = Schedule::new(plan, Nanos::ZERO, Nanos::from_millis(120));
        // The probe has no ramp.
        let ramped = nth > 0;
        let load = Load { plan, part, schedule, remote, arrivals, answered: 0, ramped, measuring: false };
        (load, link)
    }

    /// Starts counting again with the next tick.
    fn forget(&mut self) {
        (self.answered, self.measuring) = (0, false);
    }

    /// Between turns: takes the ticks, and orders full load when all connections are open. Returns whether [`EXCHANGES`] have completed
    /// since counting began.
    fn step(&mut self, now: Nanos) -> bool {
        while let Ok((_, tick)) = self.arrivals.try_recv() {
            assert_eq!((tick.faults.total(), tick.counts.dropped), (0, 0), "{:?}", tick.counts);
            self.answered += tick.counts.answered;
            if tick.ramped_at != Nanos::NEVER && !self.ramped {
                self.ramped = true;
                self.schedule.step(now, |_| Some(tick.until));
            } else if self.ramped && !self.measuring {
                // The order was applied in the tick that has just ended.
                (self.measuring, self.answered) = (true, 0);
            }
            self.remote.used.try_send(tick).expect("there is room for each");
        }
        for control in self.schedule.orders().iter().filter_map(|order| order.to(&self.part)) {
            self.remote.control.try_send(control).expect("the shard obeys");
        }
        self.measuring && self.answered >= EXCHANGES
    }
}

/// Targets and think times, common to all backends of [`Io`]: scheme, path, and flags.
const LOADS: [((&str, &str), &str); 7] = [
    (("http", "/"), "connections=500 think=20ms..60ms timeout=60s expect=status=200,length=12"),
    (("http", "/?length={rand 1 4096}"), "connections=500 think=20ms..60ms timeout=60s expect=length=$1"),
    (("http", "/?length={rand 1 4096}"), "connections=50 timeout=60s expect=length=$1"),
    (("http", "/"), "connections=500 rate=5k/s timeout=60s expect=status=200,length=12"),
    (("ws", "/ws/echo"), "connections=500 ping=40ms message=hello timeout=60s"),
    (("ws", "/ws/echo"), "connections=50 ping=0 message=hello timeout=60s"),
    (("ws", "/ws/echo"), "connections=500 ping=40ms message= timeout=60s"),
];
const OK_AND_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 12\r\n\r\nHello World!";
const EXCHANGES: u64 = 5_000;
const PLACES: u32 = 1_000;

/// A server shard.
fn server<I: Io>(io: I) -> Shard<I, ServerShard<Http>> {
    Shard::new(io, PLACES, Http::shard(Arc::new(Counters::new(1)), 0, PLACES, &Knobs::default()))
}

fn assert_nothing_allocated(side: &str, path: (&str, &str), flags: &str) {
    let (count, first) = take_count();
    assert_eq!(
        count, 0,
        "allocations by the {side} in {EXCHANGES} exchanges of {path:?} {flags}, the first at\n{first}"
    );
}

/// Over the kernel: client, server and their I/O, over one ring and over several.
#[test]
fn a_held_shard_allocates_nothing_over_io_uring() {
    let all = net::raise_open_files().unwrap_or(1024);
    for slots in [all, 200] {
        for (path, flags) in LOADS {
            let clock = Clock::start();
            let ring = || Uring::new(uring::Settings::new(PLACES, slots), clock);
            match (ring(), ring()) {
                (Ok(ours), Ok(theirs)) => over_the_kernel(clock, ours, theirs, path, flags),
                (Err(why), _) | (_, Err(why)) => {
                    // Bypasses the test harness, which shows only failed tests.
                    let _ = writeln!(std::io::stderr(), "skipped: io_uring is not allowed here: {why}");
                    return;
                }
            }
        }
    }
}

#[test]
fn a_held_shard_allocates_nothing_over_epoll() {
    let settings = epoll::Settings { connections: PLACES, by_millis: false };
    for (path, flags) in LOADS {
        let clock = Clock::start();
        let epoll = || Epoll::new(settings, clock).unwrap();
        over_the_kernel(clock, epoll(), epoll(), path, flags);
    }
}

fn over_the_kernel<I: Io>(clock: Clock, mut ours: I, theirs: I, path: (&str, &str), flags: &str) {
    let at = ours.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    // Local addresses follow from the seed here. Each load has its own: those of the previous one are in TIME_WAIT.
    let seed = u64::from(std::process::id()) * 1_000_000 + u64::from(at.port());
    let (mut load, link) = Load::new(at, path, flags, seed * 1_000, 0);
    let mut server = server(ours);
    let mut client = client(theirs, load.plan, &load.part, link);
    for side in ["client", "server"] {
        load.forget();
        loop {
            let soon = clock.now() + Nanos::from_micros(200);
            switched(load.measuring && side == "client", || client.turn(soon));
            switched(load.measuring && side == "server", || server.turn(soon));
            if load.step(clock.now()) {
                break;
            }
            assert!(clock.now() < Nanos::from_secs(60), "{path:?} {flags}: too slow");
        }
        assert_nothing_allocated(side, path, flags);
    }
}

/// The simulated network without its own allocations: the loop and the program remain.
struct Aside(SimIo);

#[rustfmt::skip]
impl Io for Aside {
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr) { paused(|| self.0.dial(k, from, to)) }
    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr> { paused(|| self.0.listen(at)) }
    fn accept(&mut self, k: Key) { paused(|| self.0.accept(k)) }
    fn unlisten(&mut self) { paused(|| self.0.unlisten()) }
    fn park(&mut self, k: Key) { paused(|| self.0.park(k)) }
    fn begin_call(&mut self) { paused(|| self.0.begin_call()) }
    fn out(&mut self, kept: usize, room: usize) -> &mut [u8] { paused(|| self.0.out(kept, room)) }
    fn send_out(&mut self, k: Key, len: usize) { paused(|| self.0.send_out(k, len)) }
    fn send_static(&mut self, k: Key, bytes: &'static [u8]) { paused(|| self.0.send_static(k, bytes)) }
    fn is_write_blocked(&self, k: Key) -> bool { paused(|| self.0.is_write_blocked(k)) }
    fn blocked(&self) -> usize { paused(|| self.0.blocked()) }
    fn hold(&mut self, k: Key) { paused(|| self.0.hold(k)) }
    fn resume(&mut self, k: Key) { paused(|| self.0.resume(k)) }
    fn close(&mut self, k: Key, how: Close) { paused(|| self.0.close(k, how)) }
    fn coalesce(&mut self, by: Nanos) { paused(|| self.0.coalesce(by)) }
    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos { paused(|| self.0.wait(until, scratch)) }
    fn next(&mut self) -> Option<Done> { paused(|| self.0.next()) }
    fn now(&self) -> Nanos { paused(|| self.0.now()) }
}

/// A shard whose turns are counted while `counts` is set.
struct Counted<'a, P> {
    shard: Shard<Aside, P>,
    counts: &'a Cell<bool>,
    host: u16,
}

impl<P: Program> Turn for Counted<'_, P> {
    fn wakes_at(&self) -> Nanos {
        self.shard.wakes_at()
    }
    fn turn(&mut self) {
        switched(self.counts.get(), || self.shard.turn(Nanos::ZERO));
    }
    fn host(&self) -> u16 {
        self.host
    }
}

/// Over the simulated network, where one thread does everything in a fixed order.
#[test]
fn a_held_shard_allocates_nothing_by_itself() {
    for (path, flags) in LOADS {
        over_sim(server, path, flags, 0, &["client", "server"]);
    }
    // The first one dials all the time.
    let probed = "connections=500 think=20ms..60ms timeout=60s probe=400/s";
    for probe in [1, 2] {
        over_sim(server, ("http", "/"), probed, probe, &["client"]);
    }
    // Each connection is closed as announced and redialled. The records of the scripted server allocate.
    let closing = |_| Act { send: OK_AND_CLOSE, then: Then::Close(Close::Graceful) };
    over_sim(|io| Shard::new(io, PLACES, Scripted::new(closing)), ("http", "/"), LOADS[0].1, 0, &["client"]);
}

fn over_sim<P: Program>(
    server: impl FnOnce(Aside) -> Shard<Aside, P>,
    path: (&str, &str),
    flags: &str,
    nth: usize,
    sides: &[&str],
) {
    let net = network(1, |_| {});
    let at = "127.0.0.1:8000".parse().unwrap();
    let (mut load, link) = Load::new(at, path, flags, 1, nth);
    let (client_counts, server_counts) = (Cell::new(false), Cell::new(false));
    // Hosts are numbered in order of creation.
    let client = client(Aside(net.host()), load.plan, &load.part, link);
    let mut client = Counted { shard: client, counts: &client_counts, host: 0 };
    let mut ours = Aside(net.host());
    ours.listen(at).unwrap();
    let mut server = Counted { shard: server(ours), counts: &server_counts, host: 1 };
    for side in sides {
        let counts = if *side == "client" { &client_counts } else { &server_counts };
        load.forget();
        let late = net.now() + Nanos::from_secs(60);
        let mut done = false;
        sim::run(&net, &mut [&mut client, &mut server], late, || {
            done = load.step(net.now());
            counts.set(load.measuring);
            done
        });
        counts.set(false);
        assert!(done, "{path:?} {flags}: too slow");
        assert_nothing_allocated(side, path, flags);
    }
}

/// Checks the counter itself: a test for zero proves nothing if the counter cannot count.
#[test]
fn allocations_are_counted() {
    #[inline(never)]
    fn allocated_on_purpose() {
        drop(std::hint::black_box(vec![0u8; 100]));
    }
    allocated_on_purpose();
    assert_eq!(take_count().0, 0, "not while it is off");
    switched(true, || {
        allocated_on_purpose();
        paused(allocated_on_purpose);
        let mut grown = Vec::<u64>::with_capacity(1);
        (0..100).for_each(|n| grown.push(n));
    });
    let (count, first) = take_count();
    assert!((3..20).contains(&count), "{count}");
    assert!(first.contains("allocated_on_purpose"), "{first}");
}
