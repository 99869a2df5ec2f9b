//! An endpoint that Prometheus scrapes: its text format 0.0.4, over just enough HTTP.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use units::{Clock, Nanos};

use crate::metrics::{BOUNDS, Sample, Snapshot, Times, Value, plain, series};

/// The longest head that is read, bytes.
const MOST_HEAD: usize = 8 << 10;
/// A scrape has so long to be asked for, and as long to be taken; meanwhile others wait.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// The order to stop is looked at this often.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Listens from the beginning, answers while the run lasts.
pub(super) struct Endpoint {
    latest: Arc<Mutex<Arc<Snapshot>>>,
    stop: Arc<AtomicBool>,
}

impl Endpoint {
    /// Listens, and answers from a thread of its own with what is [shown](Endpoint::show) last. Also where: the port
    /// that it got.
    ///
    /// # Errors
    /// What bind says, or there can be no further thread.
    pub(super) fn bind(address: SocketAddr) -> io::Result<(Endpoint, SocketAddr)> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let (latest, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let endpoint = Endpoint { latest: Arc::clone(&latest), stop: stop.clone() };
        thread::Builder::new()
            .name("prometheus".to_owned())
            .spawn(move || serve(&listener, &latest, &stop))?;
        Ok((endpoint, at))
    }

    /// What the next scrape sees.
    pub(super) fn show(&self, snapshot: &Arc<Snapshot>) {
        // The lock is held for the time of a copied pointer, here and there.
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = snapshot.clone();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

/// Answers one after the other, until the order to stop.
fn serve(listener: &TcpListener, latest: &Mutex<Arc<Snapshot>>, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        if let Ok((mut stream, _)) = listener.accept() {
            let snapshot = || latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // Who hangs up or says nothing gets no answer; the next one does.
            let _ = answer(&mut stream, snapshot);
        }
    }
}

fn answer(stream: &mut TcpStream, snapshot: impl FnOnce() -> Arc<Snapshot>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let (status, body) = match head(stream) {
        Ok(head) => reply(&head, snapshot),
        Err(e) if e.kind() == ErrorKind::FileTooLarge => {
            ("431 Request Header Fields Too Large", String::new())
        }
        Err(e) if e.kind() == ErrorKind::TimedOut => ("408 Request Timeout", String::new()),
        Err(e) => return Err(e),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    send(stream, (head + &body).as_bytes())
}

/// Reads up to the empty line.
fn head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (clock, mut bytes, mut piece) = (Clock::start(), Vec::new(), [0; 1024]);
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left(&clock)?))?;
        match stream.read(&mut piece).map_err(timed_out)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            n if bytes.len() + n > MOST_HEAD => return Err(ErrorKind::FileTooLarge.into()),
            n => bytes.extend_from_slice(&piece[..n]),
        }
    }
    Ok(bytes)
}

/// Sends all of it, or as much as is taken in time.
fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let clock = Clock::start();
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(&clock)?))?;
        let n = stream.write(bytes).map_err(timed_out)?;
        bytes = &bytes[n..];
    }
    Ok(())
}

/// Of [`PATIENCE`]: a peer that dribbles has no more time than one that is quick.
fn left(clock: &Clock) -> io::Result<Duration> {
    match PATIENCE.since(clock.now()) {
        Nanos::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(Duration::from_nanos(left.0)),
    }
}

fn timed_out(e: io::Error) -> io::Error {
    if e.kind() == ErrorKind::WouldBlock { ErrorKind::TimedOut.into() } else { e }
}

fn reply(head: &[u8], snapshot: impl FnOnce() -> Arc<Snapshot>) -> (&'static str, String) {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET", b"/metrics") => ("200 OK", text(&snapshot())),
        (_, b"/metrics") => ("405 Method Not Allowed\r\nAllow: GET", "read only: write GET\n".to_owned()),
        _ => ("404 Not Found", "only /metrics is here\n".to_owned()),
    }
}

/// As Prometheus reads it ("Exposition formats", text-based format).
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    let mut told = None;
    for sample in snapshot.samples.iter().filter(|sample| sample.value != Value::Unknown) {
        let metric = sample.metric();
        if told.replace(sample.row) != Some(sample.row) {
            let (name, kind) = (metric.name, metric.kind.name());
            line(&mut text, format_args!("# HELP {name} {}\n# TYPE {name} {kind}", metric.help));
        }
        match &sample.value {
            Value::Number(n) => line(&mut text, format_args!("{} {}", sample.series(""), plain(*n))),
            Value::Times(times) => histogram(&mut text, sample, times),
            Value::Unknown => {}
        }
    }
    text
}

fn histogram(text: &mut String, sample: &Sample, times: &Times) {
    let bounds = BOUNDS.iter().map(|bound| bound.secs_f64().to_string()).chain(["+Inf".to_owned()]);
    for (bound, n) in bounds.zip(times.up_to.iter().chain([&times.count])) {
        let labels = sample.labels.iter().map(|(name, says)| (*name, says.as_str())).chain([("le", &*bound)]);
        line(text, format_args!("{} {n}", series(sample.metric().name, "_bucket", labels)));
    }
    line(text, format_args!("{} {}", sample.series("_sum"), plain(times.sum)));
    line(text, format_args!("{} {}", sample.series("_count"), times.count));
}

fn line(text: &mut String, what: std::fmt::Arguments) {
    writeln!(text, "{what}").expect("a String takes it");
}

#[cfg(test)]
mod tests {
    use std::{fs, net::Shutdown, path::Path};

    use super::*;
    use crate::metrics::made_up::two_seconds;

    #[test]
    fn the_text_is_as_it_was() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/metrics.txt");
        let (_, [_, last]) = two_seconds();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, text(&last)).unwrap();
        }
        let golden = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(text(&last), golden, "not what {} has: UPDATE_GOLDEN=1 writes it", file.display());
    }

    #[test]
    fn nothing_is_an_empty_text() {
        assert_eq!(text(&Snapshot::default()), "");
    }

    /// What is answered to this, as far as it is.
    fn ask(at: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        // It may have its answer before all is said.
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn only_a_scrape_is_answered_with_the_metrics() {
        let (endpoint, at) = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (_, [first, last]) = two_seconds();
        for snapshot in [first, last].map(Arc::new) {
            endpoint.show(&snapshot);
            for target in ["/metrics", "/metrics?format=text"] {
                let answer = ask(at, format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
                let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                assert!(
                    head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"),
                    "{head}"
                );
                assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
                assert_eq!(body, text(&snapshot));
            }
        }
        let check = |request: &[u8], status: &str| {
            let answer = ask(at, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {answer}");
        };
        check(b"GET / HTTP/1.1\r\n\r\n", "404 ");
        check(b"POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed\r\nAllow: GET\r\n");
        check(b"\xff\0\r\n\r\n", "404 ");
        check(&[b'a'; MOST_HEAD + 1], "431 ");
        check(b"GET /metrics HTTP/1.1\r\n", "408 ");
    }

    #[test]
    fn who_hangs_up_does_not_keep_the_next_one_out() {
        let (endpoint, at) = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        for _ in 0..100 {
            TcpStream::connect(at).unwrap().shutdown(Shutdown::Both).unwrap();
        }
        assert!(ask(at, b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
        drop(endpoint);
        // The listener goes with the thread: then nobody is there.
        let clock = Clock::start();
        while TcpStream::connect(at).is_ok() {
            assert!(clock.now() < Nanos::from_secs(10), "still listening");
        }
    }
}
