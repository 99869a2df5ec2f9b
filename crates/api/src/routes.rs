//! The routes of the API. Each is described in `openapi.json`, which a test compares with them.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, FromRequestParts, Path, Request, State, rejection::BytesRejection},
    http::{
        HeaderMap, StatusCode, Uri,
        header::{CONTENT_TYPE, LOCATION},
        request::Parts,
    },
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use view::ReportFormat;
use webserver::{Opens, Refusal, guard_with};

use crate::{
    AgentRequest,
    problem::Problem,
    request,
    runs::{Run, Runs},
};

/// The OpenAPI 3.1 description of this API.
pub(crate) const DESCRIPTION: &str = include_str!("openapi.json");

/// Maximum time until a response begins. It is shorter than the timeout of the HTTP server below, which would close with an empty
/// response.
pub(crate) const PATIENCE: Duration = Duration::from_secs(9);

/// Maximum length of a body, in bytes: a scenario with the tables that it reads.
pub(crate) const LARGEST_BODY: usize = 16 * 1024 * 1024;

const USAGE: &str = "\
curl ADDR/runs --data-binary @load.toml                     start a run of a scenario file
curl ADDR/runs --json '{\"target\": \"http://…\", \"flags\": {\"connections\": \"10k\"}}'
curl ADDR/runs                                              list runs
curl ADDR/runs/ID                                           its state and its summary
curl ADDR/runs/ID/events                                    follow it (server-sent events)
curl ADDR/runs/ID -X PATCH --json '{\"load\": \"50%\"}'         set its load; {\"ask\": \"pause\"}, resume, drain, stop
curl ADDR/runs/ID -X DELETE                                 stop it; once it is over: forget it
curl 'ADDR/runs/ID/report?format=md'                        its report: html, md or json
curl 'ADDR/compare?a=ID&b=ID'                               compare two runs
curl ADDR/searches --json '{\"target\": \"http://…\", \"flags\": {\"by\": \"rate\", \"max\": \"50k\"}}'
                                                            find the largest load that the target sustains
curl ADDR/searches/ID                                       its steps and its result; -X DELETE stops it
curl ADDR/agents                                            list the agents
curl ADDR/agents/ID/doctor                                  check the limits of its machine
curl ADDR/agents/ID/drain -X POST                           let it take no new run; -X DELETE: let it take runs again
curl ADDR/agents/ID/calibrate -X POST                       let it measure what its machine can do
curl ADDR/openapi.json                                      all of this as OpenAPI 3.1
ADDR/runs/ID/page in a browser: the live page
";

type Shared = State<Arc<Runs>>;
type Served = Result<Response, Problem>;

pub(crate) fn router(runs: Arc<Runs>, opens: Option<Opens>, patience: Duration) -> Router {
    let guarded = Router::new()
        .route("/", get(async || USAGE))
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, "application/json")], DESCRIPTION)))
        .route("/agents", get(agents))
        .route("/agents/{id}/doctor", get(doctor))
        .route("/agents/{id}/drain", post(drain).delete(undrain))
        .route("/agents/{id}/calibrate", post(calibrate))
        .route("/runs", get(list).post(start))
        .route("/runs/{id}", get(show).patch(change).delete(delete))
        .route("/runs/{id}/events", get(events))
        .route("/runs/{id}/control", post(change))
        .route("/runs/{id}/report", get(report))
        .route("/compare", get(compare))
        .route("/searches", get(list_searches).post(start_search))
        .route("/searches/{id}", get(show_search).delete(delete_search))
        .fallback(async || no_such_path())
        .method_not_allowed_fallback(not_this_method)
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state((opens, patience), guard));
    // The page itself contains no data, so it needs no token; its requests do.
    guarded.route("/runs/{id}/page", get(page).fallback(not_this_method)).with_state(runs)
}

async fn guard(
    State((opens, patience)): State<(Option<Opens>, Duration)>,
    request: Request,
    next: Next,
) -> Response {
    let written = |(status, why): Refusal| Problem::new(status, why.trim_end()).into_response();
    let response = guard_with(opens, request, next, written);
    tokio::time::timeout(patience, response).await.unwrap_or_else(|_| Problem::late().into_response())
}

fn no_such_path() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no such path; GET / lists them")
}

async fn not_this_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not this method; GET / lists them")
}

/// The identifier in a path.
struct Id(String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Id, Problem> {
        // An identifier that is not UTF-8 does not exist.
        let id = Path::<String>::from_request_parts(parts, state).await;
        id.map(|Path(id)| Id(id)).map_err(|_| no_such_path())
    }
}

/// Runs blocking work on a thread that may block.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("what blocks does not panic")
}

async fn agents(State(runs): Shared) -> Served {
    let agents = apart(move || runs.agents()).await?;
    Ok(Json(agents).into_response())
}

async fn doctor(State(runs): Shared, Id(id): Id) -> Served {
    ask_agent(runs, id, AgentRequest::Doctor, StatusCode::OK).await
}

async fn drain(State(runs): Shared, Id(id): Id) -> Served {
    ask_agent(runs, id, AgentRequest::Drain, StatusCode::OK).await
}

async fn undrain(State(runs): Shared, Id(id): Id) -> Served {
    ask_agent(runs, id, AgentRequest::Undrain, StatusCode::OK).await
}

/// A calibration takes longer than a request may, so its result appears later in the list of agents.
async fn calibrate(State(runs): Shared, Id(id): Id, body: Result<Bytes, BytesRejection>) -> Served {
    let request = AgentRequest::Calibrate(request::calibration(&body?)?);
    ask_agent(runs, id, request, StatusCode::ACCEPTED).await
}

async fn ask_agent(runs: Arc<Runs>, id: String, request: AgentRequest, done: StatusCode) -> Served {
    let agent = apart(move || runs.ask_agent(&id, &request)).await?;
    Ok((done, Json(agent)).into_response())
}

async fn list(State(runs): Shared) -> Json<Vec<Value>> {
    let all = apart(move || runs.list()).await;
    Json(all.iter().map(|run| run.json(false)).collect())
}

/// Whether the content type is JSON.
fn is_json(headers: &HeaderMap) -> bool {
    let is = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    is.contains("json")
}

async fn start(State(runs): Shared, headers: HeaderMap, body: Result<Bytes, BytesRejection>) -> Served {
    let (spec, mistakes) = request::spec(is_json(&headers), &body?)?;
    // A separate task: a run that begins after this request has timed out must have its events forwarded, too.
    let started = tokio::spawn(async move {
        // Blocking, since it resolves names.
        let (run, forward) = apart(move || runs.start(&spec, mistakes)).await?;
        tokio::spawn(forward);
        Ok::<_, Problem>(run)
    });
    let run = started.await.expect("what starts a run does not panic")?;
    Ok((StatusCode::CREATED, [(LOCATION, run.url())], Json(run.json(false))).into_response())
}

async fn list_searches(State(runs): Shared) -> Json<Vec<Value>> {
    Json(runs.searches().iter().map(|search| search.json(false)).collect())
}

async fn start_search(
    State(runs): Shared,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Served {
    let (spec, mistakes) = request::spec(is_json(&headers), &body?)?;
    // Blocking, since it resolves names.
    let search = apart(move || runs.start_search(&spec, mistakes)).await?;
    Ok((StatusCode::CREATED, [(LOCATION, search.url())], Json(search.json(false))).into_response())
}

async fn show_search(State(runs): Shared, Id(id): Id) -> Served {
    Ok(Json(runs.search(&id)?.json(true)).into_response())
}

async fn delete_search(State(runs): Shared, Id(id): Id) -> Served {
    let was_over = runs.delete_search(&id)?;
    Ok(deleted(&id, was_over))
}

async fn show(State(runs): Shared, Id(id): Id) -> Served {
    let run = apart(move || runs.get(&id)).await?;
    Ok(Json(run.json(true)).into_response())
}

async fn events(State(runs): Shared, Id(id): Id) -> Served {
    Ok(apart(move || runs.followed(&id)).await?.events().into_response())
}

async fn change(State(runs): Shared, Id(id): Id, body: Result<Bytes, BytesRejection>) -> Served {
    let run: Arc<Run> = apart(move || runs.get(&id)).await?;
    run.command(request::change(&body?, run.connections())?)?;
    Ok((StatusCode::ACCEPTED, Json(run.json(false))).into_response())
}

async fn delete(State(runs): Shared, Id(id): Id) -> Served {
    let run = id.clone();
    let was_over = apart(move || runs.delete(&run)).await?;
    Ok(deleted(&id, was_over))
}

/// The response to a DELETE: what was over has been removed, and what was in progress is stopping.
fn deleted(id: &str, was_over: bool) -> Response {
    if was_over {
        return StatusCode::NO_CONTENT.into_response();
    }
    (StatusCode::ACCEPTED, Json(json!({ "id": id, "state": "stopping" }))).into_response()
}

async fn report(State(runs): Shared, Id(id): Id, uri: Uri) -> Served {
    let [format] = request::parameters(uri.query(), ["format"])?;
    let format = ReportFormat::parse(format.unwrap_or("html"))
        .map_err(|why| Problem::wrong(vec![format!("format: {why}")]))?;
    let text = apart(move || runs.report(&id, format)).await?;
    let mut response = ([(CONTENT_TYPE, format.media_type())], text).into_response();
    view::page_headers(response.headers_mut());
    Ok(response)
}

async fn compare(State(runs): Shared, uri: Uri) -> Served {
    let [Some(base), Some(other)] = request::parameters(uri.query(), ["a", "b"])? else {
        return Err(Problem::wrong(vec!["use /compare?a=ID&b=ID, with ids of two runs".to_owned()]));
    };
    let (base, other) = (base.to_owned(), other.to_owned());
    let text = apart(move || runs.compare(&base, &other)).await?;
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

async fn page() -> Response {
    let mut response = Html(view::LIVE_PAGE).into_response();
    view::page_headers(response.headers_mut());
    response
}
