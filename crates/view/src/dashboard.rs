//! The live page, on which a run can be followed from any point in time, and controlled.
//!
//! | path | response |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /events` | server-sent events (HTML, 9.2): `run`, all until now; then `tick`, `late` (a tick that adds to an earlier one), `summary`, `end` |
//! | `POST /control` | a [`Change`]: `{"ask": "pause"}`, `{"load": "50%"}` or `{"connections": 20000}`; 204 |

pub(crate) mod access;
mod change;
mod followed;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::StatusCode,
    middleware,
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use samples::RunRecord;
use webserver::Web;

pub use access::page_headers;
pub use change::Change;
pub use followed::{Feed, Followed};
pub use webserver::Opens;

/// The page, which uses `events` and `control` relative to its address.
pub const LIVE_PAGE: &str = include_str!("../../../web/dist/live.html");

/// A server that shows a run to browsers.
pub struct Dashboard(Web);

impl Dashboard {
    /// Serves the page of a run that is about to start; also returns the sink that feeds it, and the actual address, with its port.
    /// `opens` is the token for access; without it, any client that can reach the address has access.
    ///
    /// # Errors
    /// The address is in use, or another error of bind.
    pub fn start(
        at: SocketAddr,
        run: RunRecord,
        opens: Option<Opens>,
    ) -> io::Result<(Dashboard, Feed, SocketAddr)> {
        let (followed, feed, forward) = Followed::new(run);
        let access = access::Access { opens, is_page: |path| path == "/" };
        let routes = Router::new()
            .route("/", get(async || Html(LIVE_PAGE)))
            .route("/events", get(async |State(followed): State<Followed>| followed.events()))
            .route("/control", post(control).route_layer(middleware::from_fn(access::own)))
            .layer(middleware::from_fn_with_state(access, access::guard))
            .with_state(followed);
        let (web, at) = Web::start(at, routes, forward)?;
        Ok((Dashboard(web), feed, at))
    }

    /// Sends the end of the run to all followers, and ends the server within a bounded time.
    pub fn end(self, feed: Feed) {
        drop(feed);
        self.0.end();
    }
}

async fn control(State(followed): State<Followed>, body: Bytes) -> Response {
    let planned = followed.header().map_or(0, |header| header.connections);
    match Change::read(&body).and_then(|change| change.command(planned)) {
        Err(why) => (StatusCode::BAD_REQUEST, why + "\n").into_response(),
        Ok(command) if followed.command(command) => StatusCode::NO_CONTENT.into_response(),
        Ok(_) => (StatusCode::SERVICE_UNAVAILABLE, "the run has ended\n").into_response(),
    }
}
