//! A server of several shards: a thread each, all on one port.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use net::{Cx, Io, Program, Shard, io::uring};
use units::{Clock, Nanos};

use crate::{counters::Counters, delay::Delay, http::Http, knobs::Knobs};

/// A stopped or paused server is looked after this often.
pub(crate) const LOOK_AT_ORDERS: Nanos = Nanos::from_millis(100);

/// After the order to stop, what is owed may take this long.
const GRACE: Nanos = Nanos::from_secs(60);

/// What to serve.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// HTTP and WebSocket.
    Http,
    /// One fixed answer, so long after the first bytes.
    Delay(Nanos),
}

/// A program that can come to its end.
pub(crate) trait Serves: Program {
    /// Whether the shard was told to stop and owes nothing any more.
    fn is_finished<I: Io>(&self, cx: &Cx<I>) -> bool;
}

/// How to serve.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What.
    pub service: Service,
    /// How it misbehaves.
    pub knobs: Knobs,
    /// Where to listen; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// Shards.
    pub threads: u32,
    /// Most connections of one shard; memory is touched only as they come.
    pub connections: u32,
    /// Direct descriptors a ring may have: RLIMIT_NOFILE.
    pub slots: u32,
}

/// A running server.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it counts.
    pub counters: Arc<Counters>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts the shards. Returns when all of them listen.
    ///
    /// # Errors
    /// What `io_uring_setup`, `bind` or `listen` say.
    pub fn start(settings: Settings) -> io::Result<Server> {
        let counters = Arc::new(Counters::new(settings.threads));
        let mut server = Server { address: settings.listen, counters, threads: Vec::new() };
        for shard in 0..settings.threads {
            let (ready, is_ready) = mpsc::channel();
            let counters = server.counters.clone();
            let settings = Settings { listen: server.address, ..settings };
            let body = move || serve(settings, shard, counters, &ready);
            server.threads.push(std::thread::Builder::new().name(format!("serve-{shard}")).spawn(body)?);
            match is_ready.recv().unwrap_or_else(|_| Err(io::Error::other("a server thread ended at once"))) {
                Ok(address) => server.address = address,
                Err(e) => {
                    server.stop();
                    return Err(e);
                }
            }
        }
        Ok(server)
    }

    /// Stops accepting, finishes what is owed, ends the threads.
    pub fn stop(self) {
        self.counters.stop();
        for thread in self.threads {
            thread.join().expect("a server thread panicked");
        }
    }
}

fn serve(s: Settings, shard: u32, counters: Arc<Counters>, ready: &mpsc::Sender<io::Result<SocketAddr>>) {
    let settings = uring::Settings { connections: s.connections, slots: s.slots, by_hand: false };
    let listening = uring::Uring::new(settings, Clock::start()).and_then(|mut io| {
        let address = io.listen(s.listen)?;
        Ok((io, address))
    });
    let (io, address) = match listening {
        Ok(both) => both,
        Err(e) => return ready.send(Err(e)).unwrap_or_default(),
    };
    ready.send(Ok(address)).unwrap_or_default();
    match s.service {
        Service::Http => {
            let http = Http::new(counters.clone(), shard, s.threads, s.connections, &s.knobs);
            turn(Shard::new(io, s.connections, http), &counters);
        }
        Service::Delay(after) => {
            let delay = Delay::new(counters.clone(), shard, s.threads, after, &s.knobs);
            turn(Shard::new(io, s.connections, delay), &counters);
        }
    }
}

/// Turns a shard until it was told to stop and owes nothing.
fn turn<I: Io, P: Serves>(mut shard: Shard<I, P>, counters: &Counters) {
    let mut stopped_at = Nanos::NEVER;
    let mut last_turn = false;
    loop {
        // What the program sent in a turn leaves with the next one: hence one more when it owes nothing.
        let now = shard.turn(if last_turn { Nanos::ZERO } else { Nanos::NEVER });
        let (program, cx) = shard.parts();
        if counters.stop.load(std::sync::atomic::Ordering::Relaxed) && stopped_at == Nanos::NEVER {
            stopped_at = now;
        }
        let finished = program.is_finished(cx);
        if finished && last_turn || now.since(stopped_at) > GRACE {
            return;
        }
        last_turn = finished;
    }
}
