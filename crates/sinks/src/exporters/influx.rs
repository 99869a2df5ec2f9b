//! InfluxDB, versions 1 and 2: a POST a second with points in line protocol.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    fmt::Write as _,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, TryRecvError},
    },
    time::Duration,
};

use samples::Header;
use units::{Clock, Nanos};

use crate::{
    metrics::{Book, Kind, Snapshot, plain},
    store::{Store, StoredRun, Tell},
};

/// A batch must be taken within this, the connection included; then the next try begins with what has come meanwhile.
const PATIENCE: Nanos = Nanos::from_secs(2);
/// Seconds of a run that may wait for it; older ones are sent from the store when the run is over.
const WAITING: usize = 60;
/// Seconds of a run in one POST, from the store: half a megabyte or so.
const BATCH: usize = 30;
/// For what is sent from the store when the run is over.
const MAKING_UP: Nanos = Nanos::from_secs(20);
/// As much of an answer is read.
const MOST_ANSWER: usize = 4 << 10;

/// Where points go.
#[derive(Clone)]
pub struct InfluxServer {
    /// Where it listens.
    pub at: SocketAddr,
    /// Host and port as the user wrote them.
    pub host: String,
    /// Path and query of its writes.
    pub path: String,
    /// What it wants to see.
    pub token: Option<String>,
}

/// Seconds of a run that InfluxDB does not have.
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

/// What is missing, for the thread that pushes and for who sends it later.
pub(super) type Missing = Arc<Mutex<Missed>>;

/// Pushes what comes until there is no more; what does not arrive is told once, tried again each second, and at last missed.
pub(super) fn push(
    server: &InfluxServer,
    tags: &Tags,
    rows: &Receiver<Arc<Snapshot>>,
    missing: &Missing,
    tell: &Tell,
) {
    let mut pending: VecDeque<Arc<Snapshot>> = VecDeque::new();
    let mut told = false;
    let mut is_over = false;
    while !is_over {
        // One is waited for, and whatever came meanwhile goes with it.
        match rows.recv() {
            Ok(row) => pending.push_back(row),
            Err(_) => is_over = true,
        }
        loop {
            match rows.try_recv() {
                Ok(row) => pending.push_back(row),
                Err(TryRecvError::Disconnected) => break is_over = true,
                Err(TryRecvError::Empty) => break,
            }
        }
        let points: String = pending.iter().map(|row| points(row, tags)).collect();
        match server.post(&points) {
            Ok(()) => pending.clear(),
            Err(Untaken { why, for_good }) => {
                if !std::mem::replace(&mut told, true) {
                    tell(&format!(
                        "--influx {}: the run goes on, and this is tried again: {why}",
                        server.host
                    ));
                }
                let kept = if is_over || for_good { 0 } else { WAITING };
                let mut missed = super::lock(missing);
                while pending.len() > kept {
                    let oldest = pending.pop_front().expect("there are more than none");
                    missed.add(oldest.elapsed, &why);
                }
            }
        }
    }
}

/// Why points were not taken.
struct Untaken {
    why: String,
    /// It would not take the same points a moment later.
    for_good: bool,
}

/// What InfluxDB did not take while the run lasted.
pub struct Behind {
    pub(super) server: InfluxServer,
    pub(super) missed: Missed,
}

impl Behind {
    /// None if there is nothing that it lacks.
    pub(super) fn new(server: InfluxServer, missed: Missed) -> Option<Behind> {
        missed.range.is_some().then_some(Behind { server, missed })
    }

    /// Sends it from the store, within bounds; what became of it, for the person. Points that are there already are
    /// written again, and are the same.
    pub fn make_up(self, kept: Option<(&Store, &StoredRun)>) -> String {
        let Behind { server, missed } = self;
        let (host, seconds) = (&server.host, missed.seconds);
        let Some((store, run)) = kept else {
            return format!("--influx {host}: {seconds} seconds of the run are not there: {}", missed.why);
        };
        match server.send_part(store, run, missed.range.unwrap_or_default(), MAKING_UP) {
            Ok(()) => format!("--influx {host}: {seconds} seconds of the run were sent late, and are there"),
            Err(why) => format!(
                "--influx {host}: {seconds} seconds of the run are not there, `throng replay {} --influx URL` sends \
                 them: {why}",
                run.id
            ),
        }
    }
}

impl InfluxServer {
    /// Sends a stored run, all of it, as when it ran.
    ///
    /// # Errors
    /// The store is damaged, or the first batch that was not taken: nothing is sent after it.
    pub fn send(&self, store: &Store, run: &StoredRun) -> Result<(), String> {
        self.send_part(store, run, (Nanos::ZERO, Nanos::NEVER), Nanos::NEVER)
    }

    /// Those of its seconds, within a time.
    fn send_part(
        &self,
        store: &Store,
        run: &StoredRun,
        (from, to): (Nanos, Nanos),
        within: Nanos,
    ) -> Result<(), String> {
        let (clock, tags) = (Clock::start(), Tags::of(&run.record.header));
        let mut book = Book::new(run.record.began_ms);
        book.begin(&run.record.header);
        let (mut batch, mut waiting, mut sent) = (String::new(), 0, Ok(()));
        let read = store.ticks(&run.id, &mut |record| {
            book.look(&record.looks);
            let row = book.tick(&record.tick, &record.generator);
            if (from..=to).contains(&row.elapsed) && sent.is_ok() {
                (batch, waiting) = (std::mem::take(&mut batch) + &points(&row, &tags), waiting + 1);
            }
            if waiting == BATCH {
                waiting = 0;
                sent = match clock.now() < within {
                    true => self.post(&std::mem::take(&mut batch)).map_err(|untaken| untaken.why),
                    false => Err("it takes too long".to_owned()),
                };
            }
        });
        read.map_err(|trouble| trouble.to_string())?;
        sent?;
        self.post(&batch).map_err(|untaken| untaken.why)
    }

    /// Posts points once.
    fn post(&self, points: &str) -> Result<(), Untaken> {
        if points.is_empty() {
            return Ok(());
        }
        let answer = self.exchange(points).map_err(|e| {
            let is_late = matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            let why = if is_late { format!("no answer within {PATIENCE}") } else { e.to_string() };
            Untaken { why, for_good: false }
        })?;
        let status = answer.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap_or_default();
        if status.starts_with('2') {
            return Ok(());
        }
        let reason = answer.split_once("\r\n\r\n").map_or(answer.as_str(), |(_, body)| body);
        let reason: String =
            reason.trim().chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Err(Untaken { why: format!("it does not take it: {status} {reason}"), for_good: status == "400" })
    }

    fn exchange(&self, points: &str) -> io::Result<String> {
        let clock = Clock::start();
        let left = || match PATIENCE.since(clock.now()) {
            Nanos::ZERO => Err(io::Error::from(io::ErrorKind::TimedOut)),
            left => Ok(Duration::from_nanos(left.0)),
        };
        let mut stream = TcpStream::connect_timeout(&self.at, left()?)?;
        let token =
            self.token.as_ref().map(|token| format!("Authorization: Token {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n{token}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            self.path,
            self.host,
            points.len()
        );
        let request = head + points;
        let mut rest = request.as_bytes();
        // It may refuse, and hang up, before it has all of it: what it says then is worth more than that.
        let mut cut_off = None;
        while !rest.is_empty() && cut_off.is_none() {
            stream.set_write_timeout(Some(left()?))?;
            match stream.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(e) => cut_off = Some(e),
            }
        }
        let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
        while answer.len() < MOST_ANSWER {
            stream.set_read_timeout(Some(left()?))?;
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(n) => answer.extend_from_slice(&piece[..n]),
                Err(_) if !answer.is_empty() => break,
                Err(e) => return Err(cut_off.unwrap_or(e)),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// What tells the points of a run from those of all others, as line protocol.
#[derive(Clone, Debug, Default)]
pub(super) struct Tags(String);

impl Tags {
    pub(super) fn of(header: &Header) -> Tags {
        Tags(tag("target", &header.target) + &tag("seed", &header.seed.to_string()))
    }
}

/// A tag with a comma before it; one that says nothing is none.
fn tag(name: &str, says: &str) -> String {
    // "Line protocol", special characters: a backslash at the end would escape what follows it.
    let says = says.replace(['\n', '\r'], " ");
    let says = says.trim_end_matches('\\').replace(',', "\\,").replace('=', "\\=").replace(' ', "\\ ");
    if says.is_empty() { String::new() } else { format!(",{name}={says}") }
}

/// All of a second: a measurement for each metric, its field `value`; of a histogram the fields are its parts.
fn points(snapshot: &Snapshot, tags: &Tags) -> String {
    let mut points = String::new();
    for sample in &snapshot.samples {
        let metric = sample.metric();
        let parts = sample.value.parts(metric.kind).into_iter();
        let field =
            |ending: &'static str| if metric.kind == Kind::Histogram { &ending[1..] } else { "value" };
        let fields: Vec<String> =
            parts.filter_map(|(ending, n)| Some(format!("{}={}", field(ending), plain(n?)))).collect();
        if fields.is_empty() {
            continue;
        }
        let own = sample.labels.iter().filter(|(name, _)| !matches!(*name, "target" | "seed"));
        let own: String = own.map(|(name, says)| tag(name, says)).collect();
        let (name, fields, ns) = (metric.name, fields.join(","), u128::from(snapshot.at.0) * 1_000_000);
        writeln!(points, "{name}{}{own} {fields} {ns}", tags.0).expect("a String takes it");
    }
    points
}
