//! The shards of clients, a thread each.

use std::{
    io,
    mem::ManuallyDrop,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{self, Sender},
    },
    thread::JoinHandle,
};

use net::{
    Backend, Io, Shard,
    io::{
        epoll::{self, Epoll},
        uring::{self, Uring},
    },
};
use run::Prepared;
use units::{Clock, Failure, Nanos, failpoint};

use crate::{order::Order, shard::ClientShard};

/// A running shard.
pub(crate) struct ShardThread {
    /// Its orders.
    pub(crate) orders: Sender<Order>,
    /// Clients that have a place in it.
    pub(crate) taken: Arc<AtomicU32>,
    room: u32,
    thread: JoinHandle<()>,
}

impl ShardThread {
    /// Starts the nth one, for at most `most` clients; with epoll, for as many as its table of files takes. Returns when its I/O is
    /// ready.
    ///
    /// # Errors
    /// The kernel refuses a thread, or its I/O.
    pub(crate) fn start(nth: usize, prepared: &Prepared, most: u32, clock: Clock) -> io::Result<ShardThread> {
        let (backend, (slots, own_files)) = (prepared.backend(), prepared.tables());
        let room = if backend == Backend::Uring { most } else { epoll::room(slots).min(most) };
        let (orders, ordered) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let body = move || {
            net::block_signals();
            let shard = ClientShard::new(ordered, units::system_random());
            // Rings and file tables belong to the thread that creates them.
            match backend {
                Backend::Uring => {
                    let io = Uring::new(uring::Settings::new(room, slots), clock);
                    work(io, room, &ready, shard);
                }
                Backend::Epoll => work(epoll(room, own_files, clock), room, &ready, shard),
                Backend::Tun => unreachable!("clients of the control API have no choice of I/O"),
            }
        };
        let thread = std::thread::Builder::new().name(format!("clients-{nth}")).spawn(body)?;
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("a shard exited immediately")))?;
        Ok(ShardThread { orders, taken: Arc::default(), room, thread })
    }

    /// How many more clients it takes.
    pub(crate) fn free(&self) -> u32 {
        self.room.saturating_sub(self.taken.load(Relaxed))
    }

    /// Closes its clients, and waits for it.
    ///
    /// # Panics
    /// It has panicked, and nobody else learns of it.
    pub(crate) fn stop(self) {
        // One that has panicked takes no orders.
        let _ = self.orders.send(Order::Stop);
        let ended = self.thread.join();
        if Failure::first().is_none() {
            ended.expect("a shard of clients panicked");
        }
    }
}

/// For this many connections, with a file table of this thread's own or the one of the process.
fn epoll(connections: u32, own_files: bool, clock: Clock) -> io::Result<Epoll> {
    if own_files {
        net::own_open_files(None)?;
    }
    Epoll::new(epoll::Settings { connections, by_millis: false }, clock)
}

/// A shard's thread: reports whether its I/O is ready, runs to the end.
fn work<I: Io>(io: io::Result<I>, room: u32, ready: &Sender<io::Result<()>>, shard: ClientShard) {
    let io = match io {
        Ok(io) => io,
        Err(e) => return ready.send(Err(e)).unwrap_or_default(),
    };
    ready.send(Ok(())).unwrap_or_default();
    net::sharpen_timers();
    // A panic drops neither buffers nor rings: the kernel may still use them.
    let mut shard = ManuallyDrop::new(Shard::new(io, room, shard));
    while !shard.program().is_finished() {
        shard.turn(Nanos::NEVER);
        failpoint("clients");
    }
    // A close frame that was sent in the last turn is one that the target receives.
    ManuallyDrop::into_inner(shard).hand_over();
}
