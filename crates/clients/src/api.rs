//! The HTTP API of the control clients, for curl.
//!
//! | request | response |
//! |---|---|
//! | `POST /clients` with the form `ws=ws://HOST:PORT/PATH&count=5` | the paths of the new clients |
//! | `GET /clients` | the paths of clients in a state; `?state=live` (the default), `connected`, `lost` or `all` |
//! | `GET /clients/n` | `{ "url", "ws", "connected", "sent": […last 5], "received": […last 5] }`; `lost`: the reason |
//! | `POST /clients/n` with a text | sends it; returns the client |
//! | `DELETE /clients/n` | closes it; returns the client |
//! | `GET /metrics` | metrics in the Prometheus text format |
//! | `GET /tick` | the same as stored by runs: exact histograms, which can be merged over several agents |

use std::{future, io, net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, RawQuery, State, rejection::BytesRejection},
    http::{
        StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER},
    },
    middleware,
    response::{AppendHeaders, IntoResponse, Response},
    routing::get,
};
use exporters::prometheus;
use serde::Serialize;
use units::Nanos;
use webserver::{Opens, Web};

use crate::{
    clients::{Clients, Refused},
    form::Wanted,
    order::{Filter, NotSent, View},
};

/// Maximum size of a request's body in bytes: a form, or a text to send.
const LARGEST_BODY: usize = 64 * 1024;

/// The running API.
pub struct Api {
    web: Web,
}

impl Api {
    /// Serves at this address; returns it with the actual port. `opens`: the token that every request must show; without one, the
    /// caller has to ensure that the address is on loopback.
    ///
    /// # Errors
    /// The address is in use, or `bind` fails otherwise.
    pub fn start(
        at: SocketAddr,
        clients: Arc<Clients>,
        opens: Option<Opens>,
    ) -> io::Result<(Api, SocketAddr)> {
        let (web, at) = Web::start(at, routes(clients, opens), future::ready(()))?;
        Ok((Api { web }, at))
    }

    /// Ends within a time limit.
    pub fn end(self) {
        self.web.end();
    }
}

fn routes(clients: Arc<Clients>, opens: Option<Opens>) -> Router {
    Router::new()
        .route("/", get(async || USAGE))
        .route("/clients", get(list).post(add))
        .route("/clients/{number}", get(show).post(send).delete(delete))
        .route("/metrics", get(metrics))
        .route("/tick", get(tick))
        .fallback(async || (StatusCode::NOT_FOUND, USAGE))
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, USAGE))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(opens, webserver::guard))
        .with_state(clients)
}

/// The text served at `/`, and for unknown paths.
const USAGE: &str = "\
curl ADDR/clients --data 'ws=ws://HOST:PORT/PATH&count=5'   connect clients
curl ADDR/clients                                           list them; ?state=live, connected, lost or all
curl ADDR/clients/1                                         show one
curl ADDR/clients/1 -H content-type:text/plain --data TEXT  send a text on it
curl ADDR/clients/1 -X DELETE                               close it
curl ADDR/metrics                                           metrics for Prometheus
curl ADDR/tick                                              the same as runs store it
";

/// A client as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    url: String,
    ws: &'a str,
    connected: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'a str>,
    sent: Vec<&'a str>,
    received: Vec<&'a str>,
}

fn path(number: u32) -> String {
    format!("/clients/{number}")
}

fn shown(view: &View) -> Response {
    let shown = Shown {
        url: path(view.number),
        ws: &view.ws,
        connected: view.connected,
        lost: view.lost.as_deref(),
        sent: view.sent.iter().map(|text| &**text).collect(),
        received: view.received.iter().map(|text| &**text).collect(),
    };
    let json = serde_json::to_string_pretty(&shown).expect("it is data");
    ([(CONTENT_TYPE, "application/json")], json + "\n").into_response()
}

fn paths(numbers: Vec<u32>) -> Response {
    Json(numbers.into_iter().map(path).collect::<Vec<_>>()).into_response()
}

/// A request that cannot be served.
struct NotServed {
    status: StatusCode,
    why: String,
    /// When to try again; `None`: no such time.
    after: Option<Nanos>,
}

impl NotServed {
    fn new(status: StatusCode, why: impl Into<String>) -> NotServed {
        NotServed { status, why: why.into(), after: None }
    }

    fn unknown(number: &str) -> NotServed {
        let why = format!("/clients/{number}: no such client; GET /clients?state=all lists them");
        NotServed::new(StatusCode::NOT_FOUND, why)
    }
}

impl From<Refused> for NotServed {
    fn from(refused: Refused) -> NotServed {
        match refused {
            Refused::Wrong(lines) => NotServed::new(StatusCode::BAD_REQUEST, lines.join("\n")),
            Refused::Forbidden(why) => NotServed::new(StatusCode::FORBIDDEN, why.to_string()),
            Refused::Machine(why) => NotServed::new(StatusCode::SERVICE_UNAVAILABLE, why),
            Refused::Later(why, after) => {
                NotServed { after: Some(after), ..NotServed::new(StatusCode::TOO_MANY_REQUESTS, why) }
            }
        }
    }
}

impl From<BytesRejection> for NotServed {
    fn from(why: BytesRejection) -> NotServed {
        match why.status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => {
                NotServed::new(status, format!("a body has at most {LARGEST_BODY} bytes"))
            }
            status => NotServed::new(status, why.body_text()),
        }
    }
}

impl IntoResponse for NotServed {
    fn into_response(self) -> Response {
        let after = self.after.map(|after| [(RETRY_AFTER, after.secs_f64().ceil().to_string())]);
        (self.status, after.map(AppendHeaders), self.why + "\n").into_response()
    }
}

type Served = Result<Response, NotServed>;

async fn add(State(clients): State<Arc<Clients>>, form: Result<Bytes, BytesRejection>) -> Served {
    let wanted = Wanted::parse(&form?).map_err(Refused::Wrong)?;
    // Blocking: it resolves names and waits for threads.
    let added = tokio::task::spawn_blocking(move || clients.add(&wanted)).await;
    Ok(paths(added.expect("adding clients does not panic")?))
}

async fn list(State(clients): State<Arc<Clients>>, RawQuery(query): RawQuery) -> Served {
    let mut filter = Filter::default();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let read = (name == "state").then(|| Filter::parse(&value)).flatten();
        filter = read.ok_or_else(|| {
            let why = format!("use state=live, connected, lost or all: {name}={value}");
            NotServed::new(StatusCode::BAD_REQUEST, why)
        })?;
    }
    Ok(paths(clients.list(filter).await))
}

async fn show(State(clients): State<Arc<Clients>>, Path(number): Path<String>) -> Served {
    let view = match number.parse() {
        Ok(number) => clients.get(number).await,
        Err(_) => None,
    };
    view.as_ref().map(shown).ok_or_else(|| NotServed::unknown(&number))
}

async fn send(
    State(clients): State<Arc<Clients>>,
    Path(number): Path<String>,
    text: Result<Bytes, BytesRejection>,
) -> Served {
    let text = text?;
    let Ok(text) = std::str::from_utf8(&text) else {
        return Err(NotServed::new(StatusCode::BAD_REQUEST, "a text message is UTF-8"));
    };
    let sent = match number.parse() {
        Ok(number) => clients.send(number, text).await,
        Err(_) => None,
    };
    match sent.ok_or_else(|| NotServed::unknown(&number))? {
        Ok(view) => Ok(shown(&view)),
        Err(NotSent::Lost) => {
            Err(NotServed::new(StatusCode::CONFLICT, "this client is lost; GET shows the reason"))
        }
        Err(NotSent::Busy) => {
            let why = "this client has texts that the server has not taken yet; try again";
            Err(NotServed::new(StatusCode::SERVICE_UNAVAILABLE, why))
        }
    }
}

async fn delete(State(clients): State<Arc<Clients>>, Path(number): Path<String>) -> Served {
    let view = match number.parse() {
        Ok(number) => clients.delete(number).await,
        Err(_) => None,
    };
    view.as_ref().map(shown).ok_or_else(|| NotServed::unknown(&number))
}

async fn metrics(State(clients): State<Arc<Clients>>) -> impl IntoResponse {
    let (header, total) = clients.counted().await;
    ([(CONTENT_TYPE, prometheus::FORMAT)], prometheus::exposition(&header, &total))
}

async fn tick(State(clients): State<Arc<Clients>>) -> impl IntoResponse {
    Json(clients.counted().await.1)
}
