//! The live page: follows a run from any point in time, and sends it commands.
//!
//! | path | response |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /events` | server-sent events (HTML, 9.2): `run`, all until now; then `tick`, `summary`, `end` |
//! | `POST /control` | `{"ask": "pause"}`, resume, up, down, drain or stop; 204 |

mod access;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    middleware,
    response::{
        Html, IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use exporters::web::Web;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use samples::{Command, Header, RunRecord, Samples, Sink, Summary, Tick, TickRecord};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};

use crate::report::Report;

pub use exporters::web::Opens;

/// The page.
const PAGE: &str = include_str!("../../../web/dist/live.html");
/// Seconds that may wait for the page's thread, and for a follower: then it starts again with the whole run so far.
const WAITING: usize = 60;
/// An event without data is none (HTML, 9.2.6).
const NOTHING: &str = "null";
/// Commands that may wait for the run, which checks many times a second.
const MAX_COMMANDS: usize = 16;

/// The sink that shows a run to browsers.
pub struct Dashboard {
    events: Option<mpsc::Sender<RunEvent>>,
    commands: Receiver<Command>,
    web: Web,
}

/// Events of a run.
enum RunEvent {
    Begun(Box<Header>),
    Tick(Box<TickRecord<'static>>),
    Over(Box<Summary>),
}

/// A server-sent event: its name and data.
type SseEvent = (&'static str, Arc<str>);

/// State shared by all followers.
struct Room {
    /// The run so far, and its followers: under one lock, so that no event is missed or sent twice.
    stage: Mutex<Stage>,
    commands: SyncSender<Command>,
}

struct Stage {
    report: Report,
    followers: Option<broadcast::Sender<SseEvent>>,
}

impl Dashboard {
    /// Serves the page of a run that is about to start; also returns its address, with the port. `opens`: the token for
    /// access; without it any peer that reaches it has access.
    ///
    /// # Errors
    /// Another one listens there, or another error of bind.
    pub fn start(
        at: SocketAddr,
        run: RunRecord,
        opens: Option<Opens>,
    ) -> io::Result<(Dashboard, SocketAddr)> {
        let (sender, commands) = sync_channel(MAX_COMMANDS);
        let (event_sender, events_in) = mpsc::channel(WAITING);
        let followers = Some(broadcast::channel(WAITING).0);
        let stage = Mutex::new(Stage { report: Report::new(run), followers });
        let room = Arc::new(Room { stage, commands: sender });
        let routes = Router::new()
            .route("/", get(async || Html(PAGE)))
            .route("/events", get(events))
            .route("/control", post(control))
            .layer(middleware::from_fn_with_state(opens, access::guard))
            .with_state(room.clone());
        let (web, at) = Web::start(at, routes, forward(room, events_in))?;
        Ok((Dashboard { events: Some(event_sender), commands, web }, at))
    }

    /// Notifies all followers of the end, within bounds.
    pub fn end(mut self) {
        self.events = None;
        self.web.end();
    }

    /// The page's thread has a minute to take it; what it does not, pages do not have, and the store does.
    fn send(&self, event: RunEvent) {
        if let Some(to) = &self.events {
            let _ = to.try_send(event);
        }
    }
}

impl Sink for Dashboard {
    fn begin(&mut self, header: &Header) {
        self.send(RunEvent::Begun(Box::new(header.clone())));
    }

    fn tick(&mut self, tick: &Tick, samples: &Samples) {
        let record = TickRecord { tick: Cow::Borrowed(tick), looks: Cow::Borrowed(samples) };
        self.send(RunEvent::Tick(Box::new(TickRecord::coarse(&record))));
    }

    fn ask(&mut self) -> Option<Command> {
        self.commands.try_recv().ok()
    }

    fn finish(&mut self, summary: &Summary) {
        self.send(RunEvent::Over(Box::new(summary.clone())));
    }
}

/// Takes events of the run until the end, and forwards them.
async fn forward(room: Arc<Room>, mut events: mpsc::Receiver<RunEvent>) {
    while let Some(event) = events.recv().await {
        let mut stage = room.stage.lock();
        let message = match event {
            RunEvent::Begun(header) => {
                stage.report.begin(&header);
                ("run", stage.report.run_json())
            }
            RunEvent::Tick(record) => {
                let json = record.to_json();
                stage.report.add(*record);
                ("tick", json)
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
            // Without followers it is not sent.
            let _ = followers.send((name, data.into()));
        }
    }
}

/// All until now, and then whatever comes.
async fn events(State(room): State<Arc<Room>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (now, receiver) = {
        let stage = room.stage.lock();
        let now: SseEvent = ("run", stage.report.run_json().into());
        (now, stage.followers.as_ref().map(broadcast::Sender::subscribe))
    };
    let over = stream::iter(receiver.is_none().then(|| ("end", NOTHING.into())));
    let later = stream::unfold(receiver, async |receiver| {
        let mut receiver = receiver?;
        // A follower that is too slow is disconnected: the page reconnects, and gets the run so far.
        let next = receiver.recv().await.ok()?;
        Some((next, Some(receiver)))
    });
    let all = stream::iter([now]).chain(over).chain(later);
    let events = all.map(|(name, data)| Ok(Event::default().event(name).data(data)));
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// A request of the page.
#[derive(Deserialize)]
struct ControlRequest {
    ask: Command,
}

async fn control(State(room): State<Arc<Room>>, body: Bytes) -> Response {
    let Ok(ControlRequest { ask }) = serde_json::from_slice(&body) else {
        let fix = "use {\"ask\": \"pause\"}, or resume, up, down, drain, stop\n";
        return (StatusCode::BAD_REQUEST, fix).into_response();
    };
    match room.commands.try_send(ask) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the run has ended\n").into_response(),
    }
}
