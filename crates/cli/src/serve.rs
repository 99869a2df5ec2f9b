//! `throng serve`: the reference servers.

use std::{
    io::{self, Write, stdout},
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use exporters::background::BackgroundFile;
use host::Root;
use net::{Backend, Gone};
use plan::IoChoice;
use serve::{Knobs, Server, Service, Settings};
use units::{Bytes, Clock, Count, Nanos, ParseError};

use crate::{
    Failure, args::ServeArgs, listening, message, mistakes::Mistakes, plans, print_stderr, print_stdout,
    signals,
};

/// Memory that the server leaves to the machine: at least this many bytes, and at least one part in [`MIN_SHARE`] of all.
const MIN_MEMORY: u64 = 256 << 20;
const MIN_SHARE: u64 = 50;
/// Kernel memory per socket in bytes, from which the number of connections is computed for which tables are reserved.
const BYTES_A_SOCKET: u64 = 3_900;
/// Interval between checks of memory and of the stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// Serves until a signal; returns the exit status.
pub(crate) fn serve(args: &ServeArgs) -> Result<u8, Failure> {
    let Wanted { service, knobs, listen, threads, io, tls } = read_args(args)?;
    let (io, because) = ::run::choose_io(io, &Root::real()).map_err(Failure::machine)?;
    if let Some(because) = because {
        message(&because);
    }
    let memory = host::memory(&Root::real()).map_err(Failure::machine)?;
    let connections = (memory.total / BYTES_A_SOCKET).clamp(1 << 16, 1 << 26) as u32;
    let slots = net::raise_open_files().unwrap_or(1024);
    let fingerprint = tls.as_ref().map(tls::Server::fingerprint);
    let settings = Settings { service, knobs, listen, threads, connections, slots, io, tls };
    let server = Server::start(settings).map_err(|e| listening::refused("--listen", listen, &e))?;
    let stop = signals::order_to_stop(args.until_stdin_ends)?;
    // Printed last, because a reader of this line may send a signal at once.
    let url = match (service, &fingerprint) {
        (Service::Http, None) => format!("http://{}/", server.address),
        (Service::Http, Some(_)) => format!("https://{}/", server.address),
        (Service::Delay(_), None) => format!("tcp://{}", server.address),
        (Service::Delay(_), Some(_)) => format!("tls://{}", server.address),
    };
    if let Some(fingerprint) = fingerprint {
        print_stdout(&format!("certificate SHA-256 {fingerprint}\n"))?;
    }
    let threads = Count(threads.into()).of("thread");
    let io = if io == Backend::Uring { "io_uring" } else { "epoll" };
    print_stdout(&format!("listening on {url} with {threads}, {io}\n"))?;
    guard(&server, service, &stop);
    server.stop();
    Ok(0)
}

/// The parsed command line.
struct Wanted {
    service: Service,
    knobs: Knobs,
    listen: SocketAddr,
    threads: u32,
    io: IoChoice,
    tls: Option<tls::Server>,
}

/// The mistakes in the arguments.
pub(crate) fn mistakes(args: &ServeArgs) -> Vec<String> {
    read_args(args).err().map_or_else(Vec::new, |failure| failure.lines)
}

/// Parses the arguments; reports all mistakes at once.
fn read_args(args: &ServeArgs) -> Result<Wanted, Failure> {
    let mut m = Mistakes::default();
    let after = m.read("--after", args.after.as_deref(), Nanos::parse_or_seconds);
    let service = match args.what.as_str() {
        "http" => Service::Http,
        "delay" => Service::Delay(after.unwrap_or(Nanos::from_secs(5))),
        what => {
            let fix = match what.parse::<u16>() {
                Ok(port) => format!("--listen {port}"),
                Err(_) => "http or delay".to_owned(),
            };
            m.add(format!("{what:?} is not a server; use {fix}"));
            Service::Http
        }
    };
    if let (Service::Http, Some(after)) = (service, &args.after) {
        m.add(format!("--after: only for `serve delay`; remove it: {after:?}"));
    }
    let listen = m.address("--listen", &args.listen, "127.0.0.1:8000");
    let threads = m.read("--threads", args.threads.as_deref(), plan::threads);
    let some_rate = |text: &str| plan::a_rate(text, "2k/s");
    let knobs = Knobs {
        most_open: m.read("--max-open", args.max_open.as_deref(), |text| Count::parse(text).map(|n| n.0)),
        idle_cut: m.read("--idle-cut", args.idle_cut.as_deref(), some_time),
        reset_after: m.read("--reset-after", args.reset_after.as_deref(), some_time),
        stalls_of_million: m.read("--stall", args.stall.as_deref(), share).unwrap_or(0),
        slow_accept: m.read("--slow-accept", args.slow_accept.as_deref(), some_rate),
    };
    let io = m.read("--io", Some(&args.io), IoChoice::parse).unwrap_or(IoChoice::Auto);
    if io == IoChoice::Tun {
        m.add(
            "--io: tun is for the dialling end, `throng run --io tun`; use auto, uring or epoll".to_owned(),
        );
    }
    let tls = tls(args, &mut m);
    m.end(Wanted { service, knobs, listen, threads: threads.unwrap_or_else(plans::cores), io, tls })
}

/// The TLS settings: with the given certificate, or with one that is generated now.
fn tls(args: &ServeArgs, m: &mut Mistakes) -> Option<tls::Server> {
    let mut read = |flag: &str, file: &Option<String>| {
        let file = file.as_ref()?;
        let text = plans::pem_text(file.as_ref());
        text.map_err(|e| m.add(format!("{flag}: {file:?} cannot be read: {e}"))).ok()
    };
    let (cert, key) = (read("--tls-cert", &args.tls_cert), read("--tls-key", &args.tls_key));
    let identity = match (&args.tls_cert, &args.tls_key) {
        (None, None) if !args.tls => return None,
        (None, None) => None,
        (Some(_), Some(_)) => Some(tls::Identity { certificates: cert?, key: key? }),
        (Some(_), None) => {
            m.add("--tls-cert: requires --tls-key FILE".to_owned());
            return None;
        }
        (None, Some(_)) => {
            m.add("--tls-key: requires --tls-cert FILE".to_owned());
            return None;
        }
    };
    let with_file = |why: String| match why.split_once(": ") {
        Some((flag @ "--tls-cert", why)) => format!("{flag}: {}", named(&args.tls_cert, why)),
        Some((flag @ "--tls-key", why)) => format!("{flag}: {}", named(&args.tls_key, why)),
        _ => why,
    };
    tls::Server::new(identity, &["h2", "http/1.1"]).map_err(|why| m.add(with_file(why))).ok()
}

/// A message about the contents of a file, with its name.
fn named(file: &Option<String>, why: &str) -> String {
    file.as_ref().map_or_else(|| why.to_owned(), |file| plans::in_file(file, why))
}

fn some_time(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse_or_seconds(text)? {
        Nanos::ZERO => Err(ParseError::new(text, "a time greater than 0", "30s")),
        time => Ok(time),
    }
}

/// Parses a share, `0.01` or `1%`; in millionths.
fn share(text: &str) -> Result<u32, ParseError> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.parse::<f64>().ok().map(|n| n / whole).filter(|n| (0.0..=1.0).contains(n));
    share.map(|n| (n * 1e6).round() as u32).ok_or_else(|| ParseError::new(text, "a share", "0.01 or 1%"))
}

/// Prints every second the same lines as the cl-async server whose experiment the lab `cl-async` repeats: open incoming
/// connections, outgoing ones (always 0), responses so far, and responses per second.
fn show_stats(out: &mut impl Write, server: &Server, now: Nanos, last: &mut (Nanos, u64)) {
    let elapsed = now.since(last.0);
    if elapsed < Nanos::from_secs(1) {
        return;
    }
    let stats = server.counters.read();
    let rate = (stats.requests - last.1) as f64 / elapsed.secs_f64();
    let (open, finished) = (stats.open, stats.requests);
    // A failed write is ignored: the server continues without a reader.
    let shown = format!("incoming: {open}\noutgoing: 0\nfinished: {finished}\nrate: {rate:.3} req/s\n\n");
    let _ = out.write_all(shown.as_bytes());
    *last = (now, stats.requests);
}

/// The reason for a failed accept, with its fix if there is one.
fn in_words(why: Gone) -> String {
    match why {
        Gone::OpenFiles(errno) => format!("{}; raise ulimit -n", io::Error::from_raw_os_error(errno)),
        Gone::NoMemory(errno)
        | Gone::Denied(errno)
        | Gone::Unreachable(errno)
        | Gone::AddressInUse(errno)
        | Gone::Other(errno) => io::Error::from_raw_os_error(errno).to_string(),
        Gone::Ended | Gone::Reset | Gone::Refused | Gone::TimedOut => "the peer is gone".to_owned(),
    }
}

/// Runs until stopped. While memory is short, no connections are accepted, which is reported.
fn guard(server: &Server, service: Service, stop: &AtomicBool) {
    let mut accepting = true;
    let clock = Clock::start();
    let mut shown = (clock.now(), 0);
    // Written in the background, so that neither the server nor its end waits for a reader.
    let mut out = BackgroundFile::new(stdout()).ok();
    while !stop.load(Relaxed) {
        std::thread::sleep(LOOK);
        if let (Service::Delay(_), Some(out)) = (service, &mut out) {
            show_stats(out, server, clock.now(), &mut shown);
        }
        if let Some(why) = server.counters.take_failure() {
            let open = Count(server.counters.read().open).of("connection");
            let why = in_words(why);
            print_stderr(&format!("accept failed, retrying, with {open} open: {why}"));
        }
        let Ok(memory) = host::memory(&Root::real()) else { continue };
        let least = MIN_MEMORY.max(memory.total / MIN_SHARE);
        let enough = memory.available > if accepting { least } else { least * 3 / 2 };
        if enough != accepting {
            accepting = enough;
            server.counters.set_accepting(accepting);
            let open = Count(server.counters.read().open).of("connection");
            let left = Bytes(memory.available).brief();
            let what = if enough { "connections again" } else { "no new connections" };
            print_stderr(&format!("accepting {what}: {left} of memory left, {open} open"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_an_accept_failed_is_said_in_words() {
        let check = |errno, expected: &str| {
            let text = in_words(Gone::from_errno(errno));
            assert!(text.contains(expected), "{errno}: {text}");
        };
        check(24, "Too many open files (os error 24); raise ulimit -n");
        check(12, "Cannot allocate memory");
        check(104, "the peer is gone");
    }
}
