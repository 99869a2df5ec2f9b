//! Pushes metrics to a server: one POST per second.
//!
//! A failed POST is repeated with the next second's. Seconds that exceed the queue are counted as missed and sent from the run store
//! after the run.

#[cfg(test)]
mod tests;

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
    time::Duration,
};

use parking_lot::Mutex;
use samples::{Header, Tell};
use store::{Store, StoredRun};
use units::{Clock, Nanos};

use crate::{
    influx,
    metrics::{MetricsState, Snapshot},
    otlp,
};

/// Timeout of a POST, including the connection. After it, the next attempt includes the seconds that have arrived meanwhile.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Maximum number of seconds to hold back for the next attempt; older ones are sent from the store after the run.
const WAITING: usize = 60;
/// Number of seconds in a POST that is sent from the store: about half a megabyte.
const BATCH: usize = 30;
/// Maximum time to send missed seconds from the store after the run.
const MAKING_UP: Nanos = Nanos::from_secs(20);
/// Maximum number of bytes of a response that are read.
const MAX_RESPONSE: usize = 4 << 10;

/// The format of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// InfluxDB's line protocol.
    Influx,
    /// OpenTelemetry's protocol (OTLP) over HTTP, as JSON.
    Otlp,
}

impl Form {
    const fn flag(self) -> &'static str {
        match self {
            Form::Influx => "--influx",
            Form::Otlp => "--otlp",
        }
    }

    const fn content_type(self) -> &'static str {
        match self {
            Form::Influx => "text/plain; charset=utf-8",
            Form::Otlp => "application/json",
        }
    }

    /// The body of a POST with these seconds.
    fn body(self, header: &Header, rows: &[Arc<Snapshot>]) -> String {
        match self {
            Form::Influx => influx::body(header, rows),
            Form::Otlp => otlp::body(header, rows),
        }
    }
}

/// A server to push to.
#[derive(Clone)]
pub struct PushServer {
    /// The format it accepts.
    pub form: Form,
    /// Its address.
    pub at: SocketAddr,
    /// Host and port as the user wrote them.
    pub host: String,
    /// Path and query of the POST.
    pub path: String,
    /// The token, if it requires one.
    pub token: Option<String>,
}

/// Seconds that were not delivered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Missed {
    /// The first and the last of them, by the run's clock.
    range: Option<(Nanos, Nanos)>,
    pub(super) seconds: u64,
    why: String,
}

impl Missed {
    pub(super) fn add(&mut self, elapsed: Nanos, why: &str) {
        let (from, to) = self.range.unwrap_or((elapsed, elapsed));
        self.range = Some((from.min(elapsed), to.max(elapsed)));
        self.seconds += 1;
        why.clone_into(&mut self.why);
    }
}

/// The missed seconds, shared by the pushing thread and the late sender.
pub(super) type Missing = Arc<Mutex<Missed>>;

/// The body of the pushing thread: pushes snapshots until the channel is closed. The first failure is reported; seconds that cannot
/// be delivered are counted as missed.
pub(super) fn push(
    server: &PushServer,
    header: &Header,
    rows: &Receiver<Arc<Snapshot>>,
    missing: &Missing,
    report: &Tell,
) {
    let mut pending: Vec<Arc<Snapshot>> = Vec::new();
    let mut reported = false;
    let mut is_over = false;
    while !is_over {
        // Waits for one snapshot, then takes all others that are queued.
        match rows.recv() {
            Ok(row) => pending.push(row),
            Err(_) => is_over = true,
        }
        loop {
            match rows.try_recv() {
                Ok(row) => pending.push(row),
                Err(TryRecvError::Disconnected) => break is_over = true,
                Err(TryRecvError::Empty) => break,
            }
        }
        match server.post(header, &pending) {
            Ok(()) => pending.clear(),
            Err(Rejected { why, for_good }) => {
                if !std::mem::replace(&mut reported, true) {
                    report(&format!("{}: retrying, the run continues: {why}", server.name()));
                }
                let kept = if is_over || for_good { 0 } else { WAITING };
                let mut missed = missing.lock();
                let oldest = pending.len().saturating_sub(kept);
                pending.drain(..oldest).for_each(|row| missed.add(row.elapsed, &why));
            }
        }
    }
}

/// A failed POST.
struct Rejected {
    why: String,
    /// Whether the server would reject the same points again.
    for_good: bool,
}

/// Seconds that were not delivered during the run.
pub struct Backlog {
    pub(super) server: PushServer,
    pub(super) missed: Missed,
}

impl Backlog {
    /// `None` if nothing is missing.
    pub(super) fn new(server: PushServer, missed: Missed) -> Option<Backlog> {
        missed.range.is_some().then_some(Backlog { server, missed })
    }

    /// Sends the missing seconds from the store, within a bounded time, and returns a message with the result. Points that the server
    /// already has are overwritten with the same values.
    pub fn make_up(self, kept: Option<(&Store, &StoredRun)>) -> String {
        let Backlog { server, missed } = self;
        let (name, seconds) = (server.name(), missed.seconds);
        let Some((store, run)) = kept else {
            return format!("{name}: {seconds} seconds of the run are missing: {}", missed.why);
        };
        match server.send_part(store, run, missed.range.unwrap_or_default(), MAKING_UP) {
            Ok(()) => format!("{name}: {seconds} seconds of the run were delivered late"),
            Err(why) => format!(
                "{name}: {seconds} seconds of the run are missing; send them with `throng replay {} {} \
                URL`: {why}",
                run.id,
                server.form.flag(),
            ),
        }
    }
}

impl PushServer {
    /// The server's name in messages.
    pub fn name(&self) -> String {
        format!("{} {}", self.form.flag(), self.host)
    }

    /// Sends a complete stored run, with the same points as during the run.
    ///
    /// # Errors
    /// The store is damaged, or a batch was rejected; then the rest is not sent.
    pub fn send(&self, store: &Store, run: &StoredRun) -> Result<(), String> {
        self.send_part(store, run, (Nanos::ZERO, Nanos::NEVER), Nanos::NEVER)
    }

    /// Sends the seconds of a range, until a timeout.
    fn send_part(
        &self,
        store: &Store,
        run: &StoredRun,
        (from, to): (Nanos, Nanos),
        within: Nanos,
    ) -> Result<(), String> {
        let (clock, header) = (Clock::start(), &run.record.header);
        let mut metrics_state = MetricsState::new(run.record.began_ms);
        metrics_state.begin(header);
        let (mut batch, mut sent) = (Vec::new(), Ok(()));
        let read = store.ticks(&run.id, &mut |record| {
            let row = metrics_state.tick(&record.tick, &record.looks);
            if (from..=to).contains(&row.elapsed) && sent.is_ok() {
                batch.push(Arc::new(row));
            }
            if batch.len() == BATCH {
                sent = match clock.now() < within {
                    true => self.post(header, &batch).map_err(|untaken| untaken.why),
                    false => Err("timeout".to_owned()),
                };
                batch.clear();
            }
        });
        read.map_err(|trouble| trouble.to_string())?;
        sent?;
        self.post(header, &batch).map_err(|untaken| untaken.why)
    }

    /// Sends these seconds in one POST.
    fn post(&self, header: &Header, rows: &[Arc<Snapshot>]) -> Result<(), Rejected> {
        if rows.is_empty() {
            return Ok(());
        }
        let response = self.exchange(&self.form.body(header, rows)).map_err(|e| {
            let is_late = matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            let why = if is_late { format!("no response within {PATIENCE}") } else { e.to_string() };
            Rejected { why, for_good: false }
        })?;
        let status = response.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap_or_default();
        if status.starts_with('2') {
            return Ok(());
        }
        let reason = response.split_once("\r\n\r\n").map_or(response.as_str(), |(_, body)| body);
        let reason: String =
            reason.trim().chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Err(Rejected { why: format!("rejected: {status} {reason}"), for_good: status == "400" })
    }

    fn exchange(&self, body: &str) -> io::Result<String> {
        let clock = Clock::start();
        let left = || match PATIENCE.since(clock.now()) {
            Nanos::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
            left => Ok(Duration::from_nanos(left.0)),
        };
        let mut stream = TcpStream::connect_timeout(&self.at, left()?)?;
        let token =
            self.token.as_ref().map(|token| format!("Authorization: Token {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n{token}Content-Type: {}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.path,
            self.host,
            self.form.content_type(),
            body.len()
        );
        let request = head + body;
        let mut unsent = request.as_bytes();
        // The server may reject a request and close the connection before it has read all of it. Its response matters more than the
        // failed write.
        let mut cut_off = None;
        while !unsent.is_empty() && cut_off.is_none() {
            stream.set_write_timeout(Some(left()?))?;
            match stream.write(unsent) {
                Ok(n) => unsent = &unsent[n..],
                Err(e) => cut_off = Some(e),
            }
        }
        let (mut response, mut piece) = (Vec::new(), [0; 1024]);
        while response.len() < MAX_RESPONSE {
            stream.set_read_timeout(Some(left()?))?;
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => response.extend_from_slice(&piece[..n]),
                Err(_) if !response.is_empty() => break,
                Err(e) => return Err(cut_off.unwrap_or(e)),
            }
        }
        Ok(String::from_utf8_lossy(&response).into_owned())
    }
}
