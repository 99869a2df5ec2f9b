//! The stored runs in a browser: a list, a single run, the comparison of two groups, and the trend of a tag.
//!
//! | path | response |
//! |---|---|
//! | `GET /`, `/run/RUN`, `/compare/BASE/OTHER`, `/trend/TAG` | the page, which chooses its content by its address |
//! | `GET /api/runs?target=&verdict=&tag=&before=` | the latest runs that match all given filters (`throng.runs/1`) |
//! | `GET /api/runs/RUN` | one run (`throng.report/1`) |
//! | `GET /api/compare/BASE/OTHER` | both runs or groups, with their comparison as by `throng compare` (`throng.report/1`) |
//! | `GET /api/trend/TAG` | figures of the runs with a tag, oldest first (`throng.trend/1`) |

mod answers;
mod query;
#[cfg(test)]
mod tests;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State, rejection::PathRejection},
    http::{StatusCode, Uri, header::CONTENT_TYPE},
    middleware,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use futures_util::stream;
use store::Store;
use tokio::{sync::Semaphore, task, time};
use webserver::{Opens, Web};

use crate::dashboard::access;

/// The page, which requests its data from `/api`.
const PAGE: &str = include_str!("../../../web/dist/ui.html");
/// Maximum number of simultaneous queries to the store; others wait.
const MAX_QUERIES: usize = 2;
/// Maximum time for which a query waits.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which the response to an unfinished query begins, so that clients do not time out: a run of a day takes longer to read.
const BEGIN: Duration = Duration::from_secs(1);

/// The existing paths, for messages.
const PATHS: &str = "/, /run/RUN, /compare/BASE/OTHER or /trend/TAG; their JSON is at /api/runs, /api/runs/RUN, \
                     /api/compare/BASE/OTHER and /api/trend/TAG";

/// Selects the arguments of a command line that define the load.
pub type LoadArgs = fn(&[String]) -> Vec<String>;

/// A server that shows a run store to browsers.
pub struct Ui(Web);

impl Ui {
    /// Serves the runs in this file; also returns the actual address, with its port. `opens` is the token for access; without it, any
    /// client that can reach the address has access.
    ///
    /// # Errors
    /// The address is in use, or another error of bind.
    pub fn start(
        at: SocketAddr,
        store: PathBuf,
        load_args: LoadArgs,
        opens: Option<Opens>,
    ) -> io::Result<(Ui, SocketAddr)> {
        let runs = Runs { store: store.into(), load_args, turns: Arc::new(Semaphore::new(MAX_QUERIES)) };
        let (web, at) = Web::start(at, routes(runs, opens), async {})?;
        Ok((Ui(web), at))
    }

    /// Ends the server, within a bounded time.
    pub fn end(self) {
        self.0.end();
    }
}

fn routes(runs: Runs, opens: Option<Opens>) -> Router {
    let page = || get(async || Html(PAGE));
    let access = access::Access { opens, is_page: |path| !path.starts_with("/api/") };
    Router::new()
        .route("/", page())
        .route("/run/{run}", page())
        .route("/compare/{base}/{other}", page())
        .route("/trend/{tag}", page())
        .route("/api/runs", get(list))
        .route("/api/runs/{run}", get(one))
        .route("/api/compare/{base}/{other}", get(compare))
        .route("/api/trend/{tag}", get(trend))
        .fallback(async || refused(Refusal(StatusCode::NOT_FOUND, format!("no such path; use {PATHS}"))))
        .method_not_allowed_fallback(async || {
            refused(Refusal(StatusCode::METHOD_NOT_ALLOWED, "method not allowed; use GET".to_owned()))
        })
        .layer(middleware::from_fn_with_state(access, access::guard))
        .with_state(runs)
}

/// The store, with the limit on simultaneous queries.
#[derive(Clone)]
struct Runs {
    store: Arc<std::path::Path>,
    load_args: LoadArgs,
    turns: Arc<Semaphore>,
}

/// The status and message of a failed query.
#[derive(Debug, PartialEq, Eq)]
struct Refusal(StatusCode, String);

impl Refusal {
    fn store(why: impl ToString) -> Refusal {
        Refusal(StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
    }
}

/// The JSON of a response, or the reason for a failure.
type Answer = Result<String, Refusal>;

async fn list(State(runs): State<Runs>, uri: Uri) -> Response {
    let filter = match query::filter(uri.query().unwrap_or_default()) {
        Ok(filter) => filter,
        Err(why) => return refused(Refusal(StatusCode::BAD_REQUEST, why)),
    };
    runs.answer(move |store, _| answers::list(store, &filter, units::date().into())).await
}

/// A parameter in a path, or the error if it is not UTF-8.
type Named<T> = Result<Path<T>, PathRejection>;

async fn one(State(runs): State<Runs>, run: Named<String>) -> Response {
    match run {
        Ok(Path(run)) => runs.answer(move |store, _| answers::one(store, &run)).await,
        Err(why) => unnamed(&why),
    }
}

async fn compare(State(runs): State<Runs>, groups: Named<(String, String)>) -> Response {
    match groups {
        Ok(Path((base, other))) => {
            runs.answer(move |store, load_args| answers::compare(store, &[base, other], load_args)).await
        }
        Err(why) => unnamed(&why),
    }
}

async fn trend(State(runs): State<Runs>, tag: Named<String>) -> Response {
    match tag {
        Ok(Path(tag)) => runs.answer(move |store, _| answers::trend(store, &tag)).await,
        Err(why) => unnamed(&why),
    }
}

impl Runs {
    /// Reads a response from the store, on a thread that may block.
    async fn answer(self, read: impl FnOnce(&Store, LoadArgs) -> Answer + Send + 'static) -> Response {
        let Ok(Ok(turn)) = time::timeout(PATIENCE, self.turns.clone().acquire_owned()).await else {
            let why = "the store is busy with other queries; try again".to_owned();
            return refused(Refusal(StatusCode::SERVICE_UNAVAILABLE, why));
        };
        let mut reading = task::spawn_blocking(move || {
            let _turn = turn;
            let store = Store::existing(&self.store).map_err(Refusal::store)?;
            let gone = || Refusal::store(format!("there is no store any more: {}", self.store.display()));
            read(&store.ok_or_else(gone)?, self.load_args)
        });
        let json = [(CONTENT_TYPE, "application/json")];
        match time::timeout(BEGIN, &mut reading).await {
            Ok(Ok(Ok(text))) => (json, text).into_response(),
            Ok(Ok(Err(refusal))) => refused(refusal),
            Ok(Err(panic)) => refused(Refusal::store(panic)),
            Err(_) => {
                let later = async move {
                    let text = match reading.await {
                        Ok(Ok(text)) => text,
                        // The status has been sent already.
                        Ok(Err(Refusal(_, why))) => problem(&why),
                        Err(panic) => problem(&panic.to_string()),
                    };
                    Ok::<_, io::Error>(Bytes::from(text))
                };
                (json, Body::from_stream(stream::once(later))).into_response()
            }
        }
    }
}

fn problem(why: &str) -> String {
    serde_json::json!({ "error": why }).to_string()
}

fn unnamed(why: &PathRejection) -> Response {
    refused(Refusal(why.status(), why.body_text()))
}

fn refused(Refusal(status, why): Refusal) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], problem(&why)).into_response()
}
