//! The live page: follows a run from wherever one joins it, and asks things of it.
//!
//! | path | answer |
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
        Arc, Mutex, MutexGuard, PoisonError,
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
use samples::{Ask, Header, Looks, RunRecord, Sink, Summary, Tick, TickRecord};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};

use crate::report::Report;

pub use access::Opens;

/// The page.
const PAGE: &str = include_str!("../../../web/dist/live.html");
/// Seconds that may wait for the page's thread, and for one who follows: then it begins anew with all until now.
const WAITING: usize = 60;
/// An event without data is none (HTML, 9.2.6).
const NOTHING: &str = "null";
/// Asks that may wait for the run, which looks many times a second.
const ASKS: usize = 16;

/// The sink that shows a run to browsers.
pub struct Dashboard {
    news: Option<mpsc::Sender<News>>,
    asks: Receiver<Ask>,
    web: Web,
}

/// What a run says.
enum News {
    Begun(Box<Header>),
    Tick(Box<TickRecord<'static>>),
    Over(Box<Summary>),
}

/// A server-sent event: its name and data.
type Told = (&'static str, Arc<str>);

/// What all who follow have in common.
struct Room {
    /// The run until now, and who is told what comes then: under one lock, so that nothing is missed or told twice.
    stage: Mutex<Stage>,
    asks: SyncSender<Ask>,
}

struct Stage {
    report: Report,
    followers: Option<broadcast::Sender<Told>>,
}

impl Room {
    /// Nobody panics while holding it.
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dashboard {
    /// Serves the page of a run that is about to begin; also where, the port that it got included. `opens`: who may see
    /// and ask; without it everyone who reaches it may.
    ///
    /// # Errors
    /// Another one listens there, or what else bind says.
    pub fn start(
        at: SocketAddr,
        run: RunRecord,
        opens: Option<Opens>,
    ) -> io::Result<(Dashboard, SocketAddr)> {
        let (ask, asks) = sync_channel(ASKS);
        let (news, heard) = mpsc::channel(WAITING);
        let followers = Some(broadcast::channel(WAITING).0);
        let stage = Mutex::new(Stage { report: Report::new(run), followers });
        let room = Arc::new(Room { stage, asks: ask });
        let routes = Router::new()
            .route("/", get(async || Html(PAGE)))
            .route("/events", get(events))
            .route("/control", post(control))
            .layer(middleware::from_fn_with_state(opens, access::guard))
            .with_state(room.clone());
        let (web, at) = Web::start(at, routes, gather(room, heard))?;
        Ok((Dashboard { news: Some(news), asks, web }, at))
    }

    /// Tells all who follow that it is over, within bounds.
    pub fn end(mut self) {
        self.news = None;
        self.web.end();
    }

    /// The page's thread has a minute to take it; what it does not, pages do not have, and the store does.
    fn tell(&self, news: News) {
        if let Some(to) = &self.news {
            let _ = to.try_send(news);
        }
    }
}

impl Sink for Dashboard {
    fn begin(&mut self, header: &Header) {
        self.tell(News::Begun(Box::new(header.clone())));
    }

    fn tick(&mut self, tick: &Tick, looks: &Looks) {
        let record = TickRecord { tick: Cow::Borrowed(tick), looks: Cow::Borrowed(looks) };
        self.tell(News::Tick(Box::new(TickRecord::coarse(&record))));
    }

    fn ask(&mut self) -> Option<Ask> {
        self.asks.try_recv().ok()
    }

    fn finish(&mut self, summary: &Summary) {
        self.tell(News::Over(Box::new(summary.clone())));
    }
}

/// Takes what the run says until there is no more, and tells it on.
async fn gather(room: Arc<Room>, mut news: mpsc::Receiver<News>) {
    while let Some(news) = news.recv().await {
        let mut stage = room.stage();
        let told = match news {
            News::Begun(header) => {
                stage.report.begin(&header);
                ("run", stage.report.run_json())
            }
            News::Tick(record) => {
                let json = record.to_json();
                stage.report.add(*record);
                ("tick", json)
            }
            News::Over(summary) => {
                stage.report.finish(&summary);
                ("summary", crate::summary::json(&summary).replace('\n', ""))
            }
        };
        stage.tell(told);
    }
    let mut stage = room.stage();
    stage.tell(("end", NOTHING.to_owned()));
    stage.followers = None;
}

impl Stage {
    fn tell(&self, (name, data): (&'static str, String)) {
        if let Some(followers) = &self.followers {
            // Without anybody there it is said to nobody.
            let _ = followers.send((name, data.into()));
        }
    }
}

/// All until now, and then whatever comes.
async fn events(State(room): State<Arc<Room>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (now, news) = {
        let stage = room.stage();
        let now: Told = ("run", stage.report.run_json().into());
        (now, stage.followers.as_ref().map(broadcast::Sender::subscribe))
    };
    let over = stream::iter(news.is_none().then(|| ("end", NOTHING.into())));
    let later = stream::unfold(news, async |news| {
        let mut news = news?;
        // Whoever is too slow for what comes is let go: the page comes back, and has all until then.
        let told = news.recv().await.ok()?;
        Some((told, Some(news)))
    });
    let all = stream::iter([now]).chain(over).chain(later);
    let events = all.map(|(name, data)| Ok(Event::default().event(name).data(data)));
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// What a page asks.
#[derive(Deserialize)]
struct Asked {
    ask: String,
}

async fn control(State(room): State<Arc<Room>>, body: Bytes) -> Response {
    let word = serde_json::from_slice(&body).map_or(String::new(), |Asked { ask }| ask);
    let ask = match word.as_str() {
        "pause" => Ask::Pause,
        "resume" => Ask::Resume,
        "up" => Ask::Up,
        "down" => Ask::Down,
        "drain" => Ask::Drain,
        "stop" => Ask::Stop,
        _ => {
            let cure = "use {\"ask\": \"pause\"}, or resume, up, down, drain, stop\n";
            return (StatusCode::BAD_REQUEST, cure).into_response();
        }
    };
    match room.asks.try_send(ask) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the run has ended\n").into_response(),
    }
}
