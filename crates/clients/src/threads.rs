//! The threads of client shards, one each.

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
    /// Its channel for orders.
    pub(crate) orders: Sender<Order>,
    /// Number of clients that have a place in it.
    pub(crate) taken: Arc<AtomicU32>,
    room: u32,
    thread: JoinHandle<()>,
}

impl ShardThread {
    /// Starts the nth shard, for at most `most` clients; over epoll, for as many as its file table takes. Returns once its I/O is
    /// ready.
    ///
    /// # Errors
    /// The kernel refuses the thread, or its I/O.
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

    /// Number of further clients that it can take.
    pub(crate) fn free(&self) -> u32 {
        self.room.saturating_sub(self.taken.load(Relaxed))
    }

    /// Closes its clients, and waits for the thread.
    ///
    /// # Panics
    /// The shard has panicked, and no other failure was recorded.
    pub(crate) fn stop(self) {
        // A shard that has panicked takes no orders.
        let _ = self.orders.send(Order::Stop);
        let ended = self.thread.join();
        if Failure::first().is_none() {
            ended.expect("a shard of clients panicked");
        }
    }
}

/// An epoll instance for this many connections, with a file table of this thread or that of the process.
fn epoll(connections: u32, own_files: bool, clock: Clock) -> io::Result<Epoll> {
    if own_files {
        net::own_open_files(None)?;
    }
    Epoll::new(epoll::Settings { connections, by_millis: false }, clock)
}

/// The body of a shard's thread: reports whether its I/O is ready, then runs until stopped.
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
    // Hands over the close frames of the last turn, so that the target receives them.
    ManuallyDrop::into_inner(shard).hand_over();
}
