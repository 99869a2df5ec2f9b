//! Pushed metrics: a POST per second, retried if it fails, and finally sent from the store.

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

/// A batch must be taken within this, the connection included; then the next try begins with what has come meanwhile.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Seconds of a run that may wait for it; older ones are sent from the store when the run is over.
const WAITING: usize = 60;
/// Seconds of a run in one POST, from the store: half a megabyte or so.
const BATCH: usize = 30;
/// For what is sent from the store when the run is over.
const MAKING_UP: Nanos = Nanos::from_secs(20);
/// Maximum of a response that is read.
const MAX_RESPONSE: usize = 4 << 10;

/// What is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// InfluxDB's line protocol.
    Influx,
    /// OpenTelemetry's protocol over HTTP, as JSON.
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

    /// These seconds of a run as one body.
    fn body(self, header: &Header, rows: &[Arc<Snapshot>]) -> String {
        match self {
            Form::Influx => influx::body(header, rows),
            Form::Otlp => otlp::body(header, rows),
        }
    }
}

/// Where metrics go.
#[derive(Clone)]
pub struct PushServer {
    /// What it takes.
    pub form: Form,
    /// Where it listens.
    pub at: SocketAddr,
    /// Host and port as the user wrote them.
    pub host: String,
    /// Path and query of its writes.
    pub path: String,
    /// Its token.
    pub token: Option<String>,
}

/// Seconds of a run that are not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Missed {
    /// The first and the last of them, by the run's time.
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

/// What is missing, shared by the pushing thread and the late sender.
pub(super) type Missing = Arc<Mutex<Missed>>;

/// Pushes snapshots until the end; a failure is reported once, retried each second, and finally counted as missed.
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
        // One is waited for, and whatever came meanwhile goes with it.
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

/// Why points were rejected.
struct Rejected {
    why: String,
    /// It would reject the same points again.
    for_good: bool,
}

/// What was not delivered during the run.
pub struct Backlog {
    pub(super) server: PushServer,
    pub(super) missed: Missed,
}

impl Backlog {
    /// None if nothing is missing.
    pub(super) fn new(server: PushServer, missed: Missed) -> Option<Backlog> {
        missed.range.is_some().then_some(Backlog { server, missed })
    }

    /// Sends it from the store, within bounds; returns the result as a message. Points that exist already are written
    /// again, unchanged.
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
    /// Its name for the user.
    pub fn name(&self) -> String {
        format!("{} {}", self.form.flag(), self.host)
    }

    /// Sends a complete stored run, as during the run.
    ///
    /// # Errors
    /// The store is damaged, or a batch was rejected: nothing is sent after it.
    pub fn send(&self, store: &Store, run: &StoredRun) -> Result<(), String> {
        self.send_part(store, run, (Nanos::ZERO, Nanos::NEVER), Nanos::NEVER)
    }

    /// A range of its seconds, with a timeout.
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

    /// Posts these seconds once.
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
        // The server may reject the request and close before it has all of it: its response matters more than the failed write.
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
