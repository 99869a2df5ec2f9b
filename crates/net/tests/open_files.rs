//! Threads with their own file table. The limit applies to the whole process, so only one test runs at a time, in a separate executable.

use std::{
    io::Read,
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use net::{
    Cx, Gone, Io, Key, Program, Shard,
    io::epoll::{self, Epoll},
};
use rustix::process::{Resource, getrlimit, setrlimit};
use units::{Clock, Nanos};

const PATIENCE: Duration = Duration::from_secs(60);

/// The soft limit of open files while this test runs.
struct Limit {
    before: Option<u64>,
    _alone: MutexGuard<'static, ()>,
}

impl Limit {
    fn new(files: u64) -> Limit {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = Limit { before: getrlimit(Resource::Nofile).current, _alone: alone };
        limit.set(Some(files));
        limit
    }

    fn set(&self, files: Option<u64>) {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = files;
        setrlimit(Resource::Nofile, limit).expect("the soft limit may be lowered, and raised again");
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.set(self.before);
    }
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
    rustix::net::listen(&listener, 4096).expect("a listener may be given another queue");
    let at = listener.local_addr().expect("a bound socket has an address");
    (listener, at)
}

#[test]
fn the_limit_is_of_each_thread() {
    const EACH: usize = 80;
    let _limit = Limit::new(100);
    let (_listener, at) = listener();
    let (full, is_full) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (full, (release, released)) = (full.clone(), mpsc::channel::<()>());
            let body = move || {
                net::own_open_files(None).expect("this kernel has it");
                let dial = |n: usize| (0..n).map(|_| TcpStream::connect(at)).collect::<Result<Vec<_>, _>>();
                let held = dial(EACH).expect("the table has room");
                let more = dial(100).expect_err("a limit there is");
                assert_eq!(more.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
                full.send(held.len()).expect("the test waits");
                // Until all threads have opened theirs.
                let _ = released.recv_timeout(PATIENCE);
            };
            (thread::spawn(body), release)
        })
        .collect();
    let held: usize = (0..4).map(|_| is_full.recv_timeout(PATIENCE).expect("a thread says why not")).sum();
    assert_eq!(held, 4 * EACH, "at once, in a process that may have 100");
    for (thread, release) in threads {
        drop(release);
        thread.join().expect("a panic says why");
    }
}

#[test]
fn a_thread_closes_descriptors_that_it_does_not_need() {
    let _limit = Limit::new(200);
    let (listener, at) = listener();
    let (mut reader, writer) = std::io::pipe().expect("descriptors are free");
    let (ready, is_ready) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        net::own_open_files(None).expect("this kernel has it");
        ready.send(()).expect("the test waits");
        let _ = released.recv_timeout(PATIENCE);
    });
    is_ready.recv_timeout(PATIENCE).expect("the thread stands");
    drop((listener, writer));
    assert_eq!(reader.read(&mut [0; 1]).expect("a pipe can be read"), 0, "nobody has the other end");
    let refused = TcpStream::connect(at).expect_err("nobody listens any more");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    release.send(()).expect("the thread still runs");
    thread.join().expect("a panic says why");
}

/// Accepts with all its slots, and counts.
#[derive(Default)]
struct Keeper {
    open: usize,
    failed: Vec<Gone>,
}

impl Program for Keeper {
    fn opened<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {
        self.open += 1;
    }
    fn due<I: Io>(&mut self, _: &mut Cx<I>, _: Key) {
        unreachable!("no timer is set");
    }
    fn bytes<I: Io>(&mut self, _: &mut Cx<I>, _: Key, input: &mut [u8]) -> usize {
        input.len()
    }
    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        if cx.is_open(k) {
            self.open -= 1;
        } else {
            self.failed.push(why);
        }
    }
    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while cx.accept() {}
        Nanos::NEVER
    }
}

fn shard(places: u32, io: Epoll) -> Shard<Epoll, Keeper> {
    Shard::new(io, places, Keeper::default())
}

fn epoll(places: u32) -> Epoll {
    let settings = epoll::Settings { connections: places, by_millis: false };
    Epoll::new(settings, Clock::start()).expect("every kernel has epoll")
}

fn turn_until(shard: &mut Shard<Epoll, Keeper>, over: impl Fn(&Keeper) -> bool) {
    let begun = Instant::now();
    while !over(shard.program()) {
        let Keeper { open, failed } = shard.program();
        assert!(begun.elapsed() < PATIENCE, "{open} open, failed: {failed:?}");
        shard.turn(shard.io().now() + Nanos::from_millis(10));
    }
}

#[test]
fn a_full_table_of_files_neither_spins_nor_loses_peers() {
    const PEERS: usize = 60;
    let limit = Limit::new(300);
    let (address, is_at) = mpsc::channel();
    let (lowered, is_lowered) = mpsc::channel::<()>();
    let (closed, is_closed) = mpsc::channel::<()>();
    let (full, is_full) = mpsc::channel();
    let thread = thread::spawn(move || {
        net::own_open_files(None).expect("this kernel has it");
        let mut io = epoll(100);
        address.send(io.listen("127.0.0.1:0".parse().expect("an address"))).expect("the test waits");
        let mut shard = shard(100, io);
        is_lowered.recv_timeout(PATIENCE).expect("the test goes on");
        turn_until(&mut shard, |keeper| !keeper.failed.is_empty());
        let (open, begun) = (shard.program().open, Instant::now());
        let mut turns = 0;
        while begun.elapsed() < Duration::from_millis(200) {
            shard.turn(shard.io().now() + Nanos::from_millis(200));
            turns += 1;
        }
        let failed = shard.program().failed.clone();
        assert!(failed.iter().all(|why| matches!(why, Gone::OpenFiles(_))), "{failed:?}");
        assert!(turns < 60 && failed.len() < 30, "spins: {turns} turns, {} failures", failed.len());
        assert_eq!(shard.program().open, open, "those that were there still are");
        full.send(open).expect("the test waits");
        is_closed.recv_timeout(PATIENCE).expect("the test goes on");
        turn_until(&mut shard, |keeper| keeper.open == PEERS / 2);
    });
    let at = is_at.recv_timeout(PATIENCE).expect("the shard listens").expect("the loopback has a free port");
    let mut peers: Vec<TcpStream> =
        (0..PEERS).map(|_| TcpStream::connect(at).expect("the queue is long enough")).collect();
    limit.set(Some(40));
    lowered.send(()).expect("the thread runs");
    let open = is_full.recv_timeout(PATIENCE).expect("the thread says why not");
    assert!((30..40).contains(&open), "as many as fit: {open}");
    // The first half is closed, so that the waiting peers are accepted.
    peers.drain(..PEERS / 2);
    closed.send(()).expect("the thread runs");
    thread.join().expect("a panic says why");
}

#[test]
fn a_listener_is_shared_by_two_tables_and_ends_with_the_last() {
    let _limit = Limit::new(200);
    let (address, is_at) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        net::own_open_files(None).expect("this kernel has it");
        // Occupies the lowest numbers: descriptors below the listener must be closed too.
        let below: Vec<OwnedFd> =
            (0..5).map(|_| rustix::io::dup(std::io::stdout()).expect("descriptors are free")).collect();
        let mut io = epoll(2);
        let at = io.listen("127.0.0.1:0".parse().expect("an address")).expect("the loopback has a free port");
        let mut first = shard(2, io);
        let shared_listener = first.io().shared_listener().expect("it listens");
        let (ready, is_ready) = mpsc::channel();
        let second = thread::spawn(move || {
            let listener = net::own_open_files(Some(shared_listener)).expect("this kernel has it");
            ready.send(()).expect("the first waits");
            let free = rustix::io::dup(std::io::stdout()).expect("descriptors are free");
            assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&free), 3, "what lay below the door is closed");
            let mut io = epoll(3);
            io.share(listener.expect("a door was given"));
            let mut second = shard(3, io);
            turn_until(&mut second, |keeper| keeper.open == 3);
            released.recv_timeout(PATIENCE).expect("the test goes on");
        });
        is_ready.recv_timeout(PATIENCE).expect("the second stands");
        address.send(at).expect("the test waits");
        turn_until(&mut first, |keeper| keeper.open == 2);
        // Stops listening here; the other shard still listens.
        first.parts().1.unlisten();
        second.join().expect("a panic says why");
        drop((first, below));
    });
    let at = is_at.recv_timeout(PATIENCE).expect("the shard listens");
    // Two slots and three slots: in any order, no peer may be stranded in a queue from which no shard accepts.
    let peers: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(at).expect("somebody listens")).collect();
    release.send(()).expect("the thread runs");
    thread.join().expect("a panic says why");
    drop(peers);
    let refused = TcpStream::connect(at).expect_err("nobody listens any more");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}
