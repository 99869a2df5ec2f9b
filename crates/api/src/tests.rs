//! Every documented route and status over a real connection, with a runner of made-up runs.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::Relaxed},
    thread,
    time::Duration,
};

use fixtures::{header, seen};
use parking_lot::Mutex;
use samples::{Command, Samples, Verdict};
use serde_json::{Value, json};

use super::*;
use crate::routes::{DESCRIPTION, LARGEST_BODY};

const PATIENCE: Duration = Duration::from_secs(20);

/// Runs that do as their target says.
#[derive(Default)]
struct MadeUp {
    is_cut_off: Arc<AtomicBool>,
    /// Of all runs that were read.
    ids: Arc<Mutex<Vec<String>>>,
    /// Runs of an earlier process.
    past: Arc<Mutex<Vec<&'static str>>>,
}

impl Runner for MadeUp {
    fn read(&self, spec: &Spec, id: &str) -> Result<Ready, Vec<String>> {
        self.ids.lock().push(id.to_owned());
        let target = spec.target.clone().or(spec.scenario.clone()).unwrap_or_default();
        if target.contains("wrong") {
            return Err(vec!["target: one mistake".to_owned(), "ramp: and another".to_owned()]);
        }
        let is_refused = target.contains("refused");
        let work: Work = Box::new(move |sink| {
            if is_refused {
                return Err(vec!["ports: 3 free".to_owned()]);
            }
            sink.begin(&header());
            let mut loads = Vec::new();
            for second in 1u64.. {
                sink.tick(&seen(second.min(3)).0, &Samples::default());
                thread::sleep(Duration::from_millis(10));
                match sink.ask() {
                    Some(Command::Stop | Command::Drain) => break,
                    Some(command) => loads.push(format!("{command:?}")),
                    None => {}
                }
            }
            let summary = Summary { verdict: Verdict::Interrupted, reasons: loads, ..Summary::default() };
            sink.finish(&summary);
            Ok(Finished { summary, stored: Some("stored-1".to_owned()) })
        });
        Ok(Ready { target, record: RunRecord::default(), work })
    }

    fn past(&self) -> Vec<Past> {
        let past = |stored: &&str| Past {
            id: format!("id-of-{stored}"),
            target: "http://h/".to_owned(),
            began: Date(1),
            connections: 7,
            summary: if *stored == "killed" {
                Value::Null
            } else {
                json!({ "verdict": "fail", "reasons": ["why"] })
            },
            stored: (*stored).to_owned(),
        };
        self.past.lock().iter().map(past).collect()
    }

    fn report(&self, stored: &str) -> Result<Report, String> {
        match stored {
            "killed" => Err("no run killed".to_owned()),
            _ => Ok(Report::new(RunRecord::default())),
        }
    }

    fn forget(&self, stored: &str) -> Result<(), String> {
        if stored == "killed" {
            return Err("the store cannot be written".to_owned());
        }
        self.past.lock().retain(|past| *past != stored);
        Ok(())
    }

    fn agents(&self) -> Result<Vec<Value>, String> {
        if self.is_cut_off.load(Relaxed) {
            Err("no connection".to_owned())
        } else {
            Ok(vec![json!({ "id": "a" })])
        }
    }

    fn most(&self) -> usize {
        1
    }
}

/// What was asked, as the description has it, and what came.
type Seen = BTreeSet<(String, String, u16)>;

struct Server {
    api: Option<Api>,
    at: SocketAddr,
    seen: Seen,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {} {}", self.head, self.body))
    }
}

impl Server {
    fn start(runner: MadeUp, opens: Option<Opens>) -> Server {
        let (api, at) = Api::start("127.0.0.1:0".parse().unwrap(), runner, opens).unwrap();
        Server { api: Some(api), at, seen: Seen::new() }
    }

    fn connect(&self, method: &str, path: &str, fields: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{fields}Connection: close\r\nContent-Length: {length}\r\n\r\n",
            self.at
        );
        // A body that is too long may be refused before it is read.
        let _ = stream.write_all((head + body).as_bytes());
        stream
    }

    /// A request for a path; `{id}` in the description's path is replaced by `id`.
    fn ask(&mut self, method: &str, path: &str, id: &str, fields: &str, body: &str) -> Response {
        let mut stream = self.connect(method, &path.replace("{id}", id), fields, body);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        let response = String::from_utf8(response).unwrap();
        let (head, body) =
            response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {path}: {response}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        self.seen.insert((method.to_lowercase(), path.to_owned(), status));
        let response = Response { status, head: head.to_lowercase(), body: body.to_owned() };
        conforms(method, path, &response);
        response
    }

    fn check(
        &mut self,
        (method, path, id): (&str, &str, &str),
        body: &str,
        status: u16,
        part: &str,
    ) -> Response {
        let fields = if body.starts_with('{') { "Content-Type: application/json\r\n" } else { "" };
        let response = self.ask(method, path, id, fields, body);
        let says = || format!("{method} {path} {body:.100}: {} {:.500}", response.head, response.body);
        assert!(response.status == status && response.body.contains(part), "{}", says());
        response
    }

    /// Waits until a run has a state.
    fn wait(&mut self, id: &str, state: &str) -> Value {
        for _ in 0..2_000 {
            let run = self.check(("GET", "/runs/{id}", id), "", 200, id).json();
            if run["state"] == state {
                return run;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("never {state}: {id}");
    }

    fn start_run(&mut self, body: &str) -> String {
        let response = self.check(("POST", "/runs", ""), body, 201, "\"state\":");
        let id = response.json()["id"].as_str().unwrap().to_owned();
        assert!(response.head.contains(&format!("location: /runs/{id}")), "{}", response.head);
        id
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.api.take().into_iter().for_each(Api::end);
    }
}

fn description() -> Value {
    serde_json::from_str(DESCRIPTION).unwrap()
}

/// What `$ref` names, or the value itself.
fn resolved<'a>(all: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            all.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"))
        }
        None => value,
    }
}

/// A response is as the description has it: its status, its media type, and what its schema requires.
fn conforms(method: &str, path: &str, response: &Response) {
    let all = description();
    let operation = &all["paths"][path][method.to_lowercase()];
    if operation.is_null() {
        return;
    }
    let described = resolved(&all, &operation["responses"][response.status.to_string()]);
    assert!(
        described.is_object(),
        "{method} {path}: {} is not described: {}",
        response.status,
        response.body
    );
    let Some(content) = described["content"].as_object() else {
        return assert_eq!(response.body, "", "{method} {path}");
    };
    let (media, described) = content.iter().next().unwrap();
    assert!(response.head.contains(&format!("content-type: {media}")), "{method} {path}: {}", response.head);
    if media == "application/json" {
        fits(&all, &described["schema"], &response.json(), &format!("{method} {path}"));
    }
}

/// A value fits a schema, as far as the description uses JSON Schema.
fn fits(all: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = resolved(all, schema);
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    assert!(
        schema["type"].is_null() || kinds.contains(&kind.into()),
        "{at}: {value} is not {}",
        schema["type"]
    );
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at}: {value} is not one of {words:?}");
    }
    assert!(schema["const"].is_null() || schema["const"] == *value, "{at}: {value}");
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(value.get(name.as_str().unwrap()).is_some(), "{at}: {name} is missing in {value}");
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let known = schema["properties"].get(name);
        assert!(known.is_some() || schema["properties"].is_null(), "{at}: {name} is not described");
        known.into_iter().for_each(|schema| fits(all, schema, value, &format!("{at}.{name}")));
    }
    if schema["items"].is_object() {
        value.as_array().into_iter().flatten().for_each(|one| fits(all, &schema["items"], one, at));
    }
}

/// All that the description has: method, path and status.
fn documented() -> Seen {
    let all = description();
    let mut documented = Seen::new();
    for (path, item) in all["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            for status in operation["responses"].as_object().unwrap().keys() {
                documented.insert((method.clone(), path.clone(), status.parse().unwrap()));
            }
        }
    }
    documented
}

/// What is asked of runs.
fn exercise(server: &mut Server) {
    let too_long = "x".repeat(LARGEST_BODY + 1);
    server.check(("GET", "/", ""), "", 200, "curl ADDR/runs");
    server.check(("GET", "/openapi.json", ""), "", 200, "\"openapi\": \"3.1.0\"");
    server.check(("GET", "/agents", ""), "", 200, "[{\"id\":\"a\"}]");
    server.check(("GET", "/runs", ""), "", 200, "[]");
    server.check(
        ("POST", "/runs", ""),
        "target = \"wrong\"",
        400,
        "[\"target: one mistake\",\"ramp: and another\"]",
    );
    server.check(("POST", "/runs", ""), "{\"flags\": {}}", 400, "use either target or scenario");
    server.check(("POST", "/runs", ""), &too_long, 413, "errors");
    let id = server.start_run("target = \"http://127.0.0.1:8000/\"");
    server.wait(&id, "running");
    server.check(("POST", "/runs", ""), "{\"target\": \"http://h/\"}", 409, &id);
    server.check(("GET", "/runs/{id}/page", &id), "", 200, "<html");
    let run = ("PATCH", "/runs/{id}", id.as_str());
    server.check(run, "{\"load\": \"50%\"}", 202, "running");
    server.check(run, "{\"load\": \"150%\"}", 400, "up to the plan's");
    server.check(run, &too_long, 413, "errors");
    server.check(
        ("PATCH", "/runs/{id}", "none"),
        "{\"load\": 1}",
        404,
        "no such run; GET /runs lists them: none",
    );
    let control = ("POST", "/runs/{id}/control", id.as_str());
    server.check(control, "{\"ask\": \"pause\"}", 202, "running");
    server.check(control, "{\"ask\": \"fly\"}", 400, "unknown variant");
    server.check(control, &too_long, 413, "errors");
    server.check(("POST", "/runs/{id}/control", "none"), "{\"ask\": \"stop\"}", 404, "no such run");
    server.check(("DELETE", "/runs/{id}", "none"), "", 404, "no such run");
    server.check(("GET", "/runs/{id}", "none"), "", 404, "no such run");
    server.check(("GET", "/runs/{id}/events", "none"), "", 404, "no such run");
    server.check(("DELETE", "/runs/{id}", &id), "", 202, "stopping");
    let over = server.wait(&id, "done");
    assert_eq!((&over["verdict"], &over["stored"]), (&json!("interrupted"), &json!("stored-1")), "{over}");
    assert_eq!(over["reasons"], json!(["Load(500000)", "Pause"]));
    assert_eq!(over["summary"]["verdict"], "interrupted");
    server.check(run, "{\"ask\": \"resume\"}", 409, "this run is over");
    server.check(control, "{\"ask\": \"resume\"}", 409, "this run is over");
    let events = server.check(("GET", "/runs/{id}/events", &id), "", 200, "event: run");
    assert!(events.body.contains("event: end"), "{:.300}", events.body);
    server.check(("DELETE", "/runs/{id}", &id), "", 204, "");
    let refused = server.start_run("{\"target\": \"refused\"}");
    assert_eq!(server.wait(&refused, "refused")["reasons"], json!(["ports: 3 free"]));
    server.check(("GET", "/runs", ""), "", 200, "\"state\":\"refused\"");
    server.check(("GET", "/nothing", ""), "", 404, "no such path");
    server.check(("PUT", "/runs", ""), "", 405, "not this method");
}

#[test]
fn every_documented_route_and_status_is_served_and_nothing_else() {
    let runner = MadeUp::default();
    let is_cut_off = runner.is_cut_off.clone();
    let mut server = Server::start(runner, None);
    exercise(&mut server);
    is_cut_off.store(true, Relaxed);
    server.check(("GET", "/agents", ""), "", 503, "no connection");
    let past = Arc::new(Mutex::new(vec!["killed"]));
    let mut without_store = Server::start(MadeUp { past, ..MadeUp::default() }, None);
    without_store.check(("GET", "/runs/{id}/events", "id-of-killed"), "", 503, "no run killed");
    without_store.check(("DELETE", "/runs/{id}", "id-of-killed"), "", 503, "the store cannot be written");
    let token: Opens = Arc::new(|secret| secret == b"s3cret");
    let mut secured = Server::start(MadeUp::default(), Some(token));
    for (method, path, _) in documented() {
        let method = method.to_uppercase();
        if path == "/runs/{id}/page" {
            secured.check((&method, &path, "x"), "", 200, "<html");
            continue;
        }
        secured.check((&method, &path, "x"), "", 401, "missing or wrong token");
        let foreign = server.ask(&method, &path, "x", "Origin: http://evil.example\r\n", "");
        assert_eq!(foreign.status, 403, "{method} {path}");
    }
    let shown = secured.ask("GET", "/runs", "", "Authorization: Bearer s3cret\r\n", "");
    assert_eq!((shown.status, shown.body.as_str()), (200, "[]"));
    let own = format!("Origin: http://{}\r\n", server.at);
    assert_eq!(server.ask("GET", "/runs", "", &own, "").status, 200, "its own page");
    // What is served beside the description is only that there is nothing.
    let mut seen: Seen =
        [&server.seen, &without_store.seen, &secured.seen].into_iter().flatten().cloned().collect();
    let beside = [("get", "/nothing", 404), ("put", "/runs", 405)];
    for (method, path, status) in beside {
        assert!(seen.remove(&(method.to_owned(), path.to_owned(), status)));
    }
    assert_eq!(seen, documented());
}

#[test]
fn a_run_is_followed_while_it_goes_on() {
    let mut server = Server::start(MadeUp::default(), None);
    let id = server.start_run("{\"target\": \"http://h/\"}");
    server.wait(&id, "running");
    let stream = server.connect("GET", &format!("/runs/{id}/events"), "", "");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = |name: &str| {
        let found = lines.find(|line| line.strip_prefix("event: ").is_some_and(|event| event == name));
        assert!(found.is_some(), "no event {name}");
        lines.find(|line| line.starts_with("data: ")).unwrap()
    };
    assert!(next("run").contains("\"ticks\""));
    assert!(next("tick").contains("\"counts\""));
    server.check(("POST", "/runs/{id}/control", &id), "{\"ask\": \"drain\"}", 202, &id);
    assert!(next("summary").contains("interrupted"));
    next("end");
}

#[test]
fn the_end_of_the_server_stops_its_runs() {
    let mut server = Server::start(MadeUp::default(), None);
    let id = server.start_run("{\"target\": \"http://h/\"}");
    server.wait(&id, "running");
    let api = server.api.take().unwrap();
    let run = api.runs.get(&id).unwrap_or_else(|_| panic!("it is there"));
    api.end();
    assert_eq!(run.json(true)["state"], "done");
}

#[test]
fn runs_of_an_earlier_process_are_listed_and_shown() {
    let runner = MadeUp { past: Arc::new(Mutex::new(vec!["ended", "killed"])), ..MadeUp::default() };
    let (past, ids) = (runner.past.clone(), runner.ids.clone());
    let mut server = Server::start(runner, None);
    let listed = server.check(("GET", "/runs", ""), "", 200, "id-of-ended").json();
    let states: Vec<&Value> = listed.as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["done", "unfinished"]);
    let run = server.check(("GET", "/runs/{id}", "id-of-ended"), "", 200, "").json();
    assert_eq!(
        (&run["verdict"], &run["connections"], &run["stored"]),
        (&json!("fail"), &json!(7), &json!("ended"))
    );
    assert_eq!((&run["reasons"], &run["summary"]["verdict"]), (&json!(["why"]), &json!("fail")));
    let events = server.check(("GET", "/runs/{id}/events", "id-of-ended"), "", 200, "event: run");
    assert!(events.body.contains("event: end"), "{:.300}", events.body);
    server.check(("GET", "/runs/{id}/events", "id-of-killed"), "", 503, "no run killed");
    server.check(("PATCH", "/runs/{id}", "id-of-killed"), "{\"load\": \"50%\"}", 409, "this run is over");
    server.check(("DELETE", "/runs/{id}", "id-of-ended"), "", 204, "");
    assert_eq!(*past.lock(), ["killed"]);
    // A new one does not take the place of an old one.
    let id = server.start_run("{\"target\": \"refused\"}");
    assert_eq!(*ids.lock(), [id]);
}
