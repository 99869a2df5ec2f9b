//! `throng serve`.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::Relaxed},
    time::Duration,
};

use host::Root;
use net::Backend;
use plan::IoChoice;
use serve::{Server, Settings};
use units::{Bytes, Count};

use crate::{Failure, answer, args::ServeArgs, say, signals};

/// Memory that a server leaves to the machine: the larger of a share of all and a fixed amount.
const LEAST_MEMORY: u64 = 256 << 20;
const LEAST_SHARE: u64 = 50;
/// Kernel memory of a socket: no more connections than that fit, so no larger tables are reserved.
const BYTES_A_SOCKET: u64 = 3_900;
/// How often memory and the order to stop are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Serves until a signal; returns the exit status.
pub(crate) fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let (listen, threads, io) = words(args)?;
    let (io, because) = ::run::choose_io(io, &Root::real()).map_err(Failure::machine)?;
    if let Some(because) = because {
        say(&format!("throng: {because}"));
    }
    let memory = host::memory(&Root::real()).map_err(Failure::machine)?;
    let connections = (memory.total / BYTES_A_SOCKET).clamp(1 << 16, 1 << 26) as u32;
    let slots = net::raise_open_files().unwrap_or(1024);
    let settings = Settings { listen, threads, connections, slots, io };
    let server = Server::start(settings).map_err(|e| Failure::machine(format!("--listen {listen}: {e}")))?;
    let stop = Arc::new(AtomicBool::new(false));
    let order = stop.clone();
    signals::on_signal(move || order.store(true, Relaxed)).map_err(Failure::machine)?;
    if args.until_stdin_ends {
        let order = stop.clone();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            order.store(true, Relaxed);
        });
    }
    // Last: who reads this line may send a signal at once.
    let io = if io == Backend::Uring { "io_uring" } else { "epoll" };
    answer(&format!("listening on http://{}/ with {threads} threads, {io}\n", server.address))?;
    guard(&server, &stop);
    server.stop();
    Ok(0)
}

fn words(args: &ServeArgs) -> Result<(SocketAddr, u32, IoChoice), Failure> {
    let mut mistakes = Vec::new();
    if args.what != "http" {
        mistakes.push(format!("{:?} cannot be served: write http", args.what));
    }
    let listen = args.listen.parse().map_err(|_| {
        mistakes.push(format!("--listen: {:?} is not an address: write 127.0.0.1:8000", args.listen));
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let threads = args.threads.as_deref().map_or(Ok(Count(cores)), Count::parse);
    let threads = match threads {
        Ok(Count(n @ 1..=1024)) => n as u32,
        _ => {
            let text = args.threads.as_deref().unwrap_or_default();
            mistakes.push(format!("--threads: {text:?} is not a number of threads: write 1 to 1024"));
            0
        }
    };
    let io = IoChoice::parse(&args.io).unwrap_or_else(|misread| {
        mistakes.push(format!("--io: {misread}"));
        IoChoice::Auto
    });
    match listen {
        Ok(listen) if mistakes.is_empty() => Ok((listen, threads, io)),
        _ => Err(Failure::words(mistakes)),
    }
}

/// Until the order to stop: accepts nobody while memory is short, and says so.
fn guard(server: &Server, stop: &AtomicBool) {
    let mut accepting = true;
    while !stop.load(Relaxed) {
        std::thread::sleep(LOOK);
        if let Some(why) = server.counters.take_failure() {
            let open = Count(server.counters.read().open);
            say(&format!("an accept failed ({why:?}), trying again: {open} connections open"));
        }
        let Ok(memory) = host::memory(&Root::real()) else { continue };
        let least = LEAST_MEMORY.max(memory.total / LEAST_SHARE);
        let enough = memory.available > if accepting { least } else { least * 3 / 2 };
        if enough != accepting {
            accepting = enough;
            server.counters.set_accepting(accepting);
            let open = Count(server.counters.read().open);
            let (left, what) = (Bytes(memory.available).brief(), if enough { "again" } else { "nobody" });
            say(&format!("accepting {what}: {left} of memory left, {open} connections open"));
        }
    }
}
