//! A run that can be followed from any point in time, and accepts commands from its followers.

use std::{
    borrow::Cow,
    convert::Infallible,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use samples::{Command, Header, RunRecord, Samples, Sink, Summary, Tick, TickRecord};
use tokio::sync::{broadcast, mpsc};

use crate::report::Report;

/// Capacity of the queues to the page's thread and to each follower, in seconds. A follower that falls behind reconnects and gets the
/// whole run so far.
const WAITING: usize = 60;
/// The data of an event without content; browsers ignore events with empty data (HTML, 9.2.6).
const NOTHING: &str = "null";
/// Maximum number of commands that wait for the run, which checks for them many times a second.
pub(super) const MAX_COMMANDS: usize = 16;

/// The run as its followers receive it. Clones refer to the same run.
#[derive(Clone)]
pub struct Followed(Arc<Room>);

/// The sink that feeds it. Dropping it ends the run for all followers.
pub struct Feed {
    events: mpsc::Sender<RunEvent>,
    commands: Receiver<Command>,
}

/// Events of a run.
enum RunEvent {
    Begun(Box<Header>),
    Tick(Box<TickRecord<'static>>),
    /// Measurements of a tick that arrived late.
    Late(Box<TickRecord<'static>>),
    Over(Box<Summary>),
}

/// A server-sent event: its name and data.
type SseEvent = (&'static str, Arc<str>);

/// State shared by all followers.
struct Room {
    /// The run so far and its followers, under one lock, so that no event is missed or sent twice.
    stage: Mutex<Stage>,
    commands: SyncSender<Command>,
}

struct Stage {
    report: Report,
    has_begun: bool,
    followers: Option<broadcast::Sender<SseEvent>>,
}

impl Followed {
    /// A run that is about to start, the sink that feeds it, and the future that forwards its events, which the caller must spawn.
    pub fn new(run: RunRecord) -> (Followed, Feed, impl Future<Output = ()> + Send + 'static) {
        let (sender, commands) = sync_channel(MAX_COMMANDS);
        let (events, events_in) = mpsc::channel(WAITING);
        let followers = Some(broadcast::channel(WAITING).0);
        let stage = Mutex::new(Stage { report: Report::new(run), has_begun: false, followers });
        let room = Arc::new(Room { stage, commands: sender });
        (Followed(room.clone()), Feed { events, commands }, forward(room, events_in))
    }

    /// A run that is over.
    pub fn over(report: Report) -> Followed {
        let stage = Mutex::new(Stage { report, has_begun: true, followers: None });
        Followed(Arc::new(Room { stage, commands: sync_channel(0).0 }))
    }

    /// Sends a command to the run; false if the run has ended, or too many commands are waiting.
    pub fn command(&self, command: Command) -> bool {
        self.0.commands.try_send(command).is_ok()
    }

    /// What was known before the first tick; `None` before the run has begun.
    pub fn header(&self) -> Option<Header> {
        let stage = self.0.stage.lock();
        stage.has_begun.then(|| stage.report.header().clone())
    }

    /// The report of the run so far.
    pub fn report(&self) -> Report {
        self.0.stage.lock().report.clone()
    }

    /// The run so far, followed by new events: `run`, `tick`, `late`, `summary`, `end`.
    pub fn events(&self) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<>> {
        let (now, receiver) = {
            let stage = self.0.stage.lock();
            let now: SseEvent = ("run", stage.report.run_json().into());
            (now, stage.followers.as_ref().map(broadcast::Sender::subscribe))
        };
        let over = stream::iter(receiver.is_none().then(|| ("end", NOTHING.into())));
        let later = stream::unfold(receiver, async |receiver| {
            let mut receiver = receiver?;
            // A follower that is too slow is disconnected; its page reconnects and gets the run so far.
            let next = receiver.recv().await.ok()?;
            Some((next, Some(receiver)))
        });
        let all = stream::iter([now]).chain(over).chain(later);
        let events = all.map(|(name, data)| Ok(Event::default().event(name).data(data)));
        Sse::new(events).keep_alive(KeepAlive::default())
    }
}

impl Feed {
    /// If the queue is full, the event is dropped: pages lack it, but the store does not.
    fn send(&self, event: RunEvent) {
        let _ = self.events.try_send(event);
    }
}

impl Sink for Feed {
    fn begin(&mut self, header: &Header) {
        self.send(RunEvent::Begun(Box::new(header.clone())));
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        let record = TickRecord { tick: Cow::Borrowed(tick), looks: Cow::Borrowed(samples) };
        self.send(RunEvent::Tick(Box::new(TickRecord::coarse(&record))));
    }

    fn late(&mut self, tick: &Tick) {
        self.send(RunEvent::Late(Box::new(TickRecord::coarse(&TickRecord::of(tick)))));
    }

    fn ask(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    fn finish(&mut self, summary: &Summary) {
        self.send(RunEvent::Over(Box::new(summary.clone())));
    }
}

/// Forwards the events of the run to its followers until the end.
async fn forward(room: Arc<Room>, mut events: mpsc::Receiver<RunEvent>) {
    while let Some(event) = events.recv().await {
        let mut stage = room.stage.lock();
        let message = match event {
            RunEvent::Begun(header) => {
                stage.report.begin(&header);
                stage.has_begun = true;
                ("run", stage.report.run_json())
            }
            RunEvent::Tick(record) => {
                let json = record.to_json();
                stage.report.add(*record);
                ("tick", json)
            }
            RunEvent::Late(record) => {
                stage.report.amend(&record);
                ("late", record.to_json())
            }
            RunEvent::Over(summary) => {
                stage.report.finish(&summary);
                ("summary", crate::summary::json(&summary).replace('\n', ""))
            }
        };
        stage.send(message);
    }
    let mut stage = room.stage.lock();
    stage.send(("end", NOTHING.to_owned()));
    stage.followers = None;
}

impl Stage {
    fn send(&self, (name, data): (&'static str, String)) {
        if let Some(followers) = &self.followers {
            // Fails harmlessly if there are no followers.
            let _ = followers.send((name, data.into()));
        }
    }
}
