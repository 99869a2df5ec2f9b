//! A server with several shards, a thread each, on one port. Over epoll, shards are added as file tables fill up.

use std::{
    io,
    mem::ManuallyDrop,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering::Relaxed, mpsc},
    thread::JoinHandle,
};

use net::{
    Backend, Io, Shard, SharedListener,
    io::{
        epoll::{self, Epoll},
        uring::{self, Uring},
    },
};
use units::{Clock, Nanos, failpoint};

use crate::{
    counters::Counters,
    delay::Delay,
    http::Http,
    knobs::Knobs,
    shard::{Handler, ServerShard},
};

/// Time limit for what the server still owes after the order to stop.
const GRACE: Nanos = Nanos::from_secs(60);

/// What to serve.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// HTTP and WebSocket.
    Http,
    /// One fixed response, a given time after the first bytes.
    Delay(Nanos),
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The service.
    pub service: Service,
    /// Deliberate misbehaviour.
    pub knobs: Knobs,
    /// Address to listen on; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Number of shards at the start.
    pub threads: u32,
    /// Maximum connections of one shard (over epoll, of all shards together); memory is touched only when used.
    pub connections: u32,
    /// Maximum files or direct descriptors of one table: RLIMIT_NOFILE.
    pub slots: u32,
    /// The I/O backend of the shards.
    pub io: Backend,
    /// TLS configuration; `None` without TLS.
    pub tls: Option<tls::Server>,
}

/// A running server.
pub struct Server {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Its counts.
    pub counters: Arc<Counters>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts the shards. Returns when all of them listen.
    ///
    /// # Errors
    /// The error of `io_uring_setup`, `epoll_create1`, `bind` or `listen`.
    pub fn start(settings: Settings) -> io::Result<Server> {
        if settings.listen.port() != 0 {
            net::check_free(settings.listen)?;
        }
        let size = Size::of(&settings);
        let counters = Arc::new(Counters::growing(settings.threads, size.shards));
        let mut server = Server { address: settings.listen, counters, threads: Vec::new() };
        for shard in 0..settings.threads {
            let settings = Settings { listen: server.address, ..settings.clone() };
            let config = ShardConfig { settings, size, shard, counters: server.counters.clone() };
            match start(config, None) {
                Ok((thread, address)) => {
                    server.threads.push(thread);
                    server.address = address;
                }
                Err(e) => {
                    server.stop();
                    return Err(e);
                }
            }
        }
        Ok(server)
    }

    /// Stops accepting, sends what is owed, and ends the threads.
    pub fn stop(self) {
        self.counters.stop();
        for thread in self.threads {
            thread.join().expect("a server thread panicked");
        }
    }
}

/// The size of shards, and how many there may be.
#[derive(Clone, Copy)]
struct Size {
    /// Connections of one shard.
    places: u32,
    shards: u32,
    /// Whether each thread has its own table of open files.
    own_files: bool,
}

impl Size {
    fn of(s: &Settings) -> Size {
        if s.io == Backend::Uring {
            return Size { places: s.connections, shards: s.threads, own_files: false };
        }
        if net::probe_own_open_files().is_err() {
            let places = (epoll::room(s.slots) / s.threads).clamp(1, s.connections);
            return Size { places, shards: s.threads, own_files: false };
        }
        let places = epoll::room(s.slots).min(s.connections);
        Size { places, shards: s.connections.div_ceil(places).max(s.threads), own_files: true }
    }

    /// The number of open connections at which another shard is started: early enough that it runs before this one is full.
    fn enough(self) -> u64 {
        u64::from(self.places).div_ceil(4) * 3
    }
}

/// The configuration of a shard.
#[derive(Clone)]
struct ShardConfig {
    settings: Settings,
    size: Size,
    shard: u32,
    counters: Arc<Counters>,
}

/// Starts a shard that accepts at `shared_listener` or at its own listener. Returns once it listens, with its address.
fn start(
    config: ShardConfig,
    shared_listener: Option<SharedListener>,
) -> io::Result<(JoinHandle<()>, SocketAddr)> {
    let (ready, is_ready) = mpsc::channel();
    let thread = std::thread::Builder::new().name(format!("serve-{}", config.shard));
    let thread = thread.spawn(move || {
        net::block_signals();
        match config.settings.io {
            Backend::Uring => config.over_uring(&ready),
            Backend::Epoll => config.over_epoll(shared_listener, &ready),
            Backend::Tun => unreachable!("usage errors were reported before"),
        }
    })?;
    let address =
        is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("a server thread ended at once")))?;
    Ok((thread, address))
}

type Ready = mpsc::Sender<io::Result<SocketAddr>>;

impl ShardConfig {
    fn over_uring(&self, ready: &Ready) {
        let Settings { connections, slots, .. } = self.settings;
        let (clock, date) = (Clock::start(), units::since_1970());
        let io = Uring::new(uring::Settings::new(connections, slots), clock);
        let io = io.and_then(|mut io| io.listen(self.settings.listen).map(|address| (io, address)));
        if let Some(io) = self.listening(io, ready) {
            self.serve(io, date, |_| {});
        }
    }

    /// When its file table fills up, the shard starts a successor on the same listener, and the successor does the same, so that
    /// peers always find a shard with room.
    fn over_epoll(&self, shared_listener: Option<SharedListener>, ready: &Ready) {
        let (clock, date) = (Clock::start(), units::since_1970());
        let Some(io) = self.listening(self.epoll(shared_listener, clock), ready) else { return };
        let mut successor = None;
        let mut grown = false;
        self.serve(io, date, |io| {
            if !grown && self.counters.open(self.shard) >= self.size.enough() {
                grown = true;
                successor = self.start_successor(io.shared_listener());
            }
        });
        if let Some(successor) = successor {
            successor.join().expect("a server thread panicked");
        }
    }

    fn epoll(
        &self,
        shared_listener: Option<SharedListener>,
        clock: Clock,
    ) -> io::Result<(Epoll, SocketAddr)> {
        let shared = if self.size.own_files { net::own_open_files(shared_listener)? } else { None };
        let settings = epoll::Settings { connections: self.size.places, by_millis: false };
        let mut io = Epoll::new(settings, clock)?;
        let address = match shared {
            Some(listener) => {
                io.share(listener);
                self.settings.listen
            }
            None => io.listen(self.settings.listen)?,
        };
        Ok((io, address))
    }

    /// `None` if there are as many shards as there may be, or no thread can be started.
    fn start_successor(&self, shared_listener: Option<SharedListener>) -> Option<JoinHandle<()>> {
        let shared_listener = shared_listener?;
        let shard = self.counters.enter()?;
        start(ShardConfig { shard, ..self.clone() }, Some(shared_listener)).ok().map(|(thread, _)| thread)
    }

    /// Reports on `ready` whether listening has succeeded; returns the I/O if so.
    fn listening<I: Io>(&self, io: io::Result<(I, SocketAddr)>, ready: &Ready) -> Option<I> {
        let (io, started) = match io {
            Ok((io, address)) => (Some(io), Ok(address)),
            Err(e) => (None, Err(e)),
        };
        ready.send(started).unwrap_or_default();
        io
    }

    /// Serves over this I/O, whose clock started at this date, until stopped; calls `after_turn` with it after each turn.
    fn serve<I: Io>(&self, io: I, date: Nanos, after_turn: impl FnMut(&I)) {
        let (counters, knobs) = (self.counters.clone(), &self.settings.knobs);
        match self.settings.service {
            Service::Http => {
                let http = Http::shard(counters, self.shard, self.size.places, knobs);
                self.drive(io, http.starting(date), after_turn)
            }
            Service::Delay(after) => {
                self.drive(io, Delay::shard(counters, self.shard, after, knobs), after_turn)
            }
        }
    }

    /// Runs the shard until it is stopped and owes nothing; calls `after_turn` with its I/O after each turn.
    fn drive<I: Io, H: Handler>(&self, io: I, program: ServerShard<H>, mut after_turn: impl FnMut(&I)) {
        let program = match &self.settings.tls {
            None => program,
            Some(tls) => {
                let layer = tls.layer().expect("it was checked when it was made");
                program.with_layer(layer.with_capacity(self.size.places))
            }
        };
        // A panic drops neither buffers nor rings: the kernel may still use them.
        let mut shard = ManuallyDrop::new(Shard::new(io, self.size.places, program));
        let mut stopped_at = Nanos::NEVER;
        let mut last_turn = false;
        loop {
            // Output of a turn leaves with the next one, so there is one more turn after nothing is owed.
            let now = shard.turn(if last_turn { Nanos::ZERO } else { Nanos::NEVER });
            after_turn(shard.io());
            let (program, cx) = shard.parts();
            if self.counters.stop.load(Relaxed) && stopped_at == Nanos::NEVER {
                stopped_at = now;
            }
            let finished = program.is_finished(cx);
            if finished && last_turn || now.since(stopped_at) > GRACE {
                break;
            }
            last_turn = finished;
            failpoint("serve");
        }
        drop(ManuallyDrop::into_inner(shard));
    }
}
