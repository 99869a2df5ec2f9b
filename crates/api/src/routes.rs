//! The routes; each is described in `openapi.json`, which a test compares with them.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, State, rejection::BytesRejection},
    http::{
        HeaderMap, StatusCode,
        header::{CONTENT_TYPE, LOCATION},
    },
    middleware,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use exporters::web::{Opens, guard};
use serde_json::{Value, json};

use crate::{
    problem::Problem,
    request,
    runs::{Run, Runs},
};

/// What is served here, as OpenAPI 3.1 describes it.
pub(crate) const DESCRIPTION: &str = include_str!("openapi.json");

/// Bytes of a body: a scenario, with the tables that it reads.
pub(crate) const LARGEST_BODY: usize = 16 * 1024 * 1024;

const USAGE: &str = "\
curl ADDR/runs --data-binary @load.toml                     start a run of a scenario file
curl ADDR/runs --json '{\"target\": \"http://…\", \"flags\": {\"connections\": \"10k\"}}'
curl ADDR/runs                                              list runs
curl ADDR/runs/ID                                           its state and its summary
curl ADDR/runs/ID/events                                    follow it (server-sent events)
curl ADDR/runs/ID -X PATCH --json '{\"load\": \"50%\"}'         set its load; {\"ask\": \"pause\"}, resume, drain, stop
curl ADDR/runs/ID -X DELETE                                 stop it; once it is over: forget it
curl ADDR/agents                                            list the agents
curl ADDR/openapi.json                                      all of this as OpenAPI 3.1
ADDR/runs/ID/page in a browser: the live page
";

type Shared = State<Arc<Runs>>;
type Served = Result<Response, Problem>;

pub(crate) fn router(runs: Arc<Runs>, opens: Option<Opens>) -> Router {
    let guarded = Router::new()
        .route("/", get(async || USAGE))
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json")], DESCRIPTION)))
        .route("/agents", get(agents))
        .route("/runs", get(list).post(start))
        .route("/runs/{id}", get(show).patch(change).delete(delete))
        .route("/runs/{id}/events", get(events))
        .route("/runs/{id}/control", axum::routing::post(change))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "no such path; GET / lists them"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not this method; GET / lists them")
        })
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(opens, guard));
    // The page is the same for everybody; what it shows comes by the other paths.
    guarded.route("/runs/{id}/page", get(page)).with_state(runs)
}

/// Where a thread may block.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("what blocks does not panic")
}

async fn agents(State(runs): Shared) -> Served {
    let agents = apart(move || runs.agents()).await?;
    Ok(Json(agents).into_response())
}

async fn list(State(runs): Shared) -> Json<Vec<Value>> {
    Json(runs.list().iter().map(|run| run.json(false)).collect())
}

async fn start(State(runs): Shared, headers: HeaderMap, body: Result<Bytes, BytesRejection>) -> Served {
    let is = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let spec = request::spec(is.contains("json"), &body?)?;
    // It resolves names.
    let (run, forward) = apart(move || runs.start(&spec)).await?;
    tokio::spawn(forward);
    Ok((StatusCode::CREATED, [(LOCATION, run.url())], Json(run.json(false))).into_response())
}

async fn show(State(runs): Shared, Path(id): Path<String>) -> Served {
    Ok(Json(runs.get(&id)?.json(true)).into_response())
}

async fn events(State(runs): Shared, Path(id): Path<String>) -> Served {
    Ok(apart(move || runs.followed(&id)).await?.events().into_response())
}

async fn change(State(runs): Shared, Path(id): Path<String>, body: Result<Bytes, BytesRejection>) -> Served {
    let run: Arc<Run> = runs.get(&id)?;
    run.command(request::change(&body?, run.connections())?)?;
    Ok((StatusCode::ACCEPTED, Json(run.json(false))).into_response())
}

async fn delete(State(runs): Shared, Path(id): Path<String>) -> Served {
    let was_over = runs.delete(&id)?;
    if was_over {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok((StatusCode::ACCEPTED, Json(json!({ "id": id, "state": "stopping" }))).into_response())
}

async fn page() -> Response {
    let mut response = Html(view::LIVE_PAGE).into_response();
    view::page_headers(response.headers_mut());
    response
}
