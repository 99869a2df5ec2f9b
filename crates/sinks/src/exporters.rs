//! Where the metrics of a run go, each way with a thread of its own: whatever becomes of it, the run goes on.

mod prometheus;
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

use samples::{Ask, Generator, Header, Looks, Sink, Tick};
use units::Date;

use crate::{
    metrics::{Book, Snapshot},
    rows,
};
use prometheus::Endpoint;

/// Seconds of a run that may wait to be taken away.
const WAITING: usize = 60;
/// What is left when the run is over may take so long to be taken away.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sink that hands the metrics of a run to all who want them.
pub struct Exporters {
    book: Book,
    /// Those that begin with the run.
    ready: Vec<(String, Work)>,
    lanes: Vec<Lane>,
    endpoint: Option<Endpoint>,
    troubles: Vec<String>,
}

/// What an exporter does, from the series before the run and all that come, until there are no more.
type Work = Box<dyn FnOnce(&Snapshot, &Receiver<Arc<Snapshot>>) -> io::Result<()> + Send>;

impl Exporters {
    /// For nobody yet; of a run that began then.
    pub fn new(began: Date) -> Exporters {
        let (ready, lanes, troubles) = (Vec::new(), Vec::new(), Vec::new());
        Exporters { book: Book::new(began), ready, lanes, endpoint: None, troubles }
    }

    /// A line of CSV a second to `out`; `name`: what it is called where it makes trouble.
    pub fn csv(&mut self, name: String, mut out: impl Write + Send + 'static) {
        self.ready.push((name, Box::new(move |blank, rows| rows::csv(&mut out, blank, rows))));
    }

    /// A JSON object a second, a line each; `name` as of [`Exporters::csv`].
    pub fn jsonl(&mut self, name: String, mut out: impl Write + Send + 'static) {
        self.ready.push((name, Box::new(move |_, rows| rows::jsonl(&mut out, rows))));
    }

    /// An endpoint for Prometheus, at once and as long as this lives; where it is, the port that it got included.
    ///
    /// # Errors
    /// Another one listens there, or what else bind says.
    pub fn prometheus(&mut self, at: SocketAddr) -> io::Result<SocketAddr> {
        let (endpoint, at) = Endpoint::bind(at)?;
        self.endpoint = Some(endpoint);
        Ok(at)
    }

    /// Waits until all is taken away, within bounds; what could not be, a line each.
    pub fn end(self) -> Vec<String> {
        let Exporters { lanes, mut troubles, .. } = self;
        troubles.extend(lanes.into_iter().filter_map(Lane::end));
        troubles
    }
}

impl Sink for Exporters {
    fn begin(&mut self, header: &Header) {
        self.book.begin(header);
        if self.ready.is_empty() && self.endpoint.is_none() {
            return;
        }
        let blank = Arc::new(self.book.blank());
        if let Some(endpoint) = &self.endpoint {
            endpoint.show(&blank);
        }
        for (name, work) in self.ready.drain(..) {
            match Lane::start(name, blank.clone(), work) {
                Ok(lane) => self.lanes.push(lane),
                Err(why) => self.troubles.push(why),
            }
        }
    }

    fn look(&mut self, looks: &Looks) {
        self.book.look(looks);
    }

    fn tick(&mut self, tick: &Tick, own: &Generator) -> Ask {
        if !self.lanes.is_empty() || self.endpoint.is_some() {
            let snapshot = Arc::new(self.book.tick(tick, own));
            if let Some(endpoint) = &self.endpoint {
                endpoint.show(&snapshot);
            }
            self.lanes.iter_mut().for_each(|lane| lane.offer(&snapshot));
        }
        Ask::CarryOn
    }
}

/// A thread of its own, behind a queue that never makes the run wait.
struct Lane {
    name: String,
    queue: SyncSender<Arc<Snapshot>>,
    done: Receiver<io::Result<()>>,
    /// Found the queue full.
    missed: u64,
}

impl Lane {
    fn start(name: String, blank: Arc<Snapshot>, work: Work) -> Result<Lane, String> {
        let (queue, rows) = sync_channel(WAITING);
        let (tell, done) = sync_channel(1);
        let work = move || {
            let _ = tell.send(work(&blank, &rows));
        };
        match thread::Builder::new().name("exporter".to_owned()).spawn(work) {
            Ok(_) => Ok(Lane { name, queue, done, missed: 0 }),
            Err(e) => Err(format!("{name}: no thread for it: {e}")),
        }
    }

    fn offer(&mut self, snapshot: &Arc<Snapshot>) {
        // One that has ended says why at the end.
        if let Err(TrySendError::Full(_)) = self.queue.try_send(snapshot.clone()) {
            self.missed += 1;
        }
    }

    /// What went wrong, if anything did.
    fn end(self) -> Option<String> {
        let Lane { name, queue, done, missed } = self;
        drop(queue);
        match done.recv_timeout(PATIENCE) {
            Ok(Err(e)) => Some(format!("{name}: {e}")),
            Ok(Ok(())) => (missed > 0).then(|| format!("{name}: too slow: {missed} seconds are not in it")),
            Err(RecvTimeoutError::Timeout) => Some(format!("{name}: does not end within {PATIENCE:?}")),
            Err(RecvTimeoutError::Disconnected) => Some(format!("{name}: its thread ended early")),
        }
    }
}
