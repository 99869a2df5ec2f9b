//! Exporters: write the metrics of a run to files and services.
//!
//! Each exporter has a thread and a bounded queue. A slow or failed exporter loses seconds, which are counted and reported, but never
//! delays or ends the run.

pub mod background;
mod hlog;
mod influx;
mod metrics;
mod otlp;
pub mod prometheus;
mod push;
mod rows;
#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use samples::{Header, Samples, Sink, Tell, Tick};
use units::{Clock, Date, Nanos, failpoint, file_error};

use metrics::{MetricsState, Snapshot};
use prometheus::Endpoint;
use push::Missing;

pub use hlog::{Hlog, HlogFile};
pub use push::{Backlog, Form, PushServer};

/// Capacity of an exporter's queue, in seconds of a run.
const WAITING: usize = 60;
/// Maximum time after the run for the remaining output.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// The sink that computes the metrics of a run and passes them to the exporters.
pub struct Exporters {
    metrics_state: MetricsState,
    /// Exporters that start when the run begins.
    ready: Vec<Ready>,
    threads: Vec<ExporterThread>,
    endpoint: Option<Endpoint>,
    pushes: Vec<(PushServer, Missing)>,
    /// Whether to wait for slow exporters instead of dropping seconds.
    is_patient: bool,
    troubles: Vec<String>,
}

/// The result after the run.
pub struct Leftover {
    /// Failures, one message each.
    pub troubles: Vec<String>,
    /// Seconds that still have to be sent.
    pub behind: Vec<Backlog>,
}

/// An exporter before the run begins.
struct Ready {
    name: String,
    work: Work,
    /// Counter of missed seconds, for an exporter that shares it with the late sender.
    missing: Option<Missing>,
}

/// The body of an exporter's thread. Its arguments are the header, the series before the run, and a channel of snapshots that is
/// closed at the end.
type Work = Box<dyn FnOnce(&Header, &Snapshot, &Receiver<Arc<Snapshot>>) -> io::Result<()> + Send>;

impl Exporters {
    /// No exporters yet, for a run that began at this date.
    pub fn new(began: Date) -> Exporters {
        Exporters {
            metrics_state: MetricsState::new(began),
            ready: Vec::new(),
            threads: Vec::new(),
            endpoint: None,
            pushes: Vec::new(),
            is_patient: false,
            troubles: Vec::new(),
        }
    }

    /// As [`Exporters::new`], for a stored run: waits for slow exporters instead of dropping seconds.
    pub fn patient(began: Date) -> Exporters {
        Exporters { is_patient: true, ..Exporters::new(began) }
    }

    /// Writes a line of CSV per second to `out`; `name` identifies the output in messages.
    pub fn csv(&mut self, name: String, mut out: impl Write + Send + 'static) {
        let work: Work = Box::new(move |_, blank, rows| rows::csv(&mut out, blank, rows));
        self.ready.push(Ready { name, work, missing: None });
    }

    /// Writes a line with a JSON object per second to `out`; `name` as for [`Exporters::csv`].
    pub fn jsonl(&mut self, name: String, mut out: impl Write + Send + 'static) {
        let work: Work = Box::new(move |_, _, rows| rows::jsonl(&mut out, rows));
        self.ready.push(Ready { name, work, missing: None });
    }

    /// Writes a row of Parquet per second to `out`, readable after the run; `name` as for [`Exporters::csv`].
    #[cfg(feature = "parquet")]
    pub fn parquet(&mut self, name: String, out: impl Write + Send + 'static) {
        let work: Work = Box::new(move |_, blank, rows| rows::parquet::write(out, blank, rows));
        self.ready.push(Ready { name, work, missing: None });
    }

    /// Opens an endpoint for Prometheus, from now until this is dropped. Returns its address, with the actual port.
    ///
    /// # Errors
    /// The address is in use, or another error of bind.
    pub fn prometheus(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        let (endpoint, at) = Endpoint::bind(at)?;
        self.endpoint = Some(endpoint);
        Ok(at)
    }

    /// Sends a POST per second to `server`; `report` is called with the first failure.
    pub fn push(&mut self, server: PushServer, report: Tell) {
        let (name, missing) = (server.name(), Missing::default());
        self.pushes.push((server.clone(), missing.clone()));
        let count = missing.clone();
        let work: Work = Box::new(move |header, _, rows| {
            push::push(&server, header, rows, &count, &report);
            Ok(())
        });
        self.ready.push(Ready { name, work, missing: Some(missing) });
    }

    /// Waits, for a bounded time, until the exporters have written everything.
    pub fn end(self) -> Leftover {
        let Exporters { threads, mut troubles, pushes, .. } = self;
        // Closes all queues at once, so that one timeout covers all exporters.
        let ending: Vec<Ending> = threads.into_iter().map(|thread| thread.ending).collect();
        let clock = Clock::start();
        troubles.extend(ending.into_iter().filter_map(|thread| thread.wait(PATIENCE.since(clock.now()))));
        let behind = |(server, missing): (PushServer, Missing)| {
            let missed = std::mem::take(&mut *missing.lock());
            Backlog::new(server, missed)
        };
        let behind = pushes.into_iter().filter_map(behind).collect();
        Leftover { troubles, behind }
    }
}

impl Sink for Exporters {
    fn begin(&mut self, header: &Header) {
        self.metrics_state.begin(header);
        if self.ready.is_empty() && self.endpoint.is_none() {
            return;
        }
        let blank = Arc::new(self.metrics_state.blank());
        if let Some(endpoint) = &self.endpoint {
            endpoint.show(&blank);
        }
        for ready in self.ready.drain(..) {
            match ExporterThread::start(ready, header.clone(), blank.clone()) {
                Ok(thread) => self.threads.push(thread),
                Err(why) => self.troubles.push(why),
            }
        }
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        if !self.threads.is_empty() || self.endpoint.is_some() {
            let snapshot = Arc::new(self.metrics_state.tick(tick, samples));
            if let Some(endpoint) = &self.endpoint {
                endpoint.show(&snapshot);
            }
            for thread in &mut self.threads {
                if self.is_patient { thread.give(&snapshot) } else { thread.offer(&snapshot) }
            }
        }
    }

    fn late(&mut self, tick: &Tick) {
        self.metrics_state.late(tick);
    }
}

/// An exporter's thread with its queue.
struct ExporterThread {
    /// Dropping this closes the queue.
    queue: SyncSender<Arc<Snapshot>>,
    ending: Ending,
}

/// An exporter that may still have output to write.
struct Ending {
    name: String,
    done: Receiver<io::Result<()>>,
    missing: Missing,
    /// Whether missing seconds are sent and reported elsewhere, from the store.
    makes_up: bool,
}

impl ExporterThread {
    fn start(ready: Ready, header: Header, blank: Arc<Snapshot>) -> Result<ExporterThread, String> {
        let Ready { name, work, missing } = ready;
        let (queue, rows) = sync_channel(WAITING);
        let (report, done) = sync_channel(1);
        let work = move || {
            failpoint("exporter");
            let _ = report.send(work(&header, &blank, &rows));
        };
        let (makes_up, missing) = (missing.is_some(), missing.unwrap_or_default());
        match thread::Builder::new().name("exporter".to_owned()).spawn(work) {
            Ok(_) => Ok(ExporterThread { queue, ending: Ending { name, done, missing, makes_up } }),
            Err(e) => Err(format!("{name}: cannot start its thread: {e}")),
        }
    }

    fn give(&mut self, snapshot: &Arc<Snapshot>) {
        // If the exporter has ended, its reason is reported at the end.
        let _ = self.queue.send(snapshot.clone());
    }

    fn offer(&mut self, snapshot: &Arc<Snapshot>) {
        // If the exporter has ended, its reason is reported at the end.
        if let Err(TrySendError::Full(_)) = self.queue.try_send(snapshot.clone()) {
            self.ending.missing.lock().add(snapshot.elapsed, "it is too slow");
        }
    }
}

impl Ending {
    /// Waits for the exporter; returns a message if it failed or dropped seconds.
    fn wait(self, patience: Nanos) -> Option<String> {
        let Ending { name, done, missing, makes_up } = self;
        let ended = done.recv_timeout(Duration::from_nanos(patience.0));
        let missed = missing.lock().seconds;
        match ended {
            Ok(Err(e)) => Some(format!("{name}: incomplete: {}", file_error(&e))),
            Ok(Ok(())) if missed > 0 && !makes_up => {
                Some(format!("{name}: too slow: {missed} seconds dropped"))
            }
            Ok(Ok(())) => None,
            Err(RecvTimeoutError::Timeout) => Some(format!("{name}: did not finish within {PATIENCE}")),
            Err(RecvTimeoutError::Disconnected) => Some(format!("{name}: its thread ended early")),
        }
    }
}
