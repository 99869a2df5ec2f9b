//! Runs the API on a real connection, and checks each response against the description.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use serde_json::Value;
use webserver::Opens;

use super::made_up::MadeUp;
use crate::{Api, routes::DESCRIPTION};

const PATIENCE: Duration = Duration::from_secs(20);

/// Method, path as in the description, and status of each response.
pub(super) type Seen = BTreeSet<(String, String, u16)>;

pub(super) struct Server {
    pub(super) api: Option<Api>,
    pub(super) at: SocketAddr,
    pub(super) seen: Seen,
}

pub(super) struct Response {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Response {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {} {}", self.head, self.body))
    }
}

impl Server {
    pub(super) fn start(runner: MadeUp, opens: Option<Opens>) -> Server {
        Server::start_within(PATIENCE, runner, opens)
    }

    /// Starts a server with this timeout for requests.
    pub(super) fn start_within(patience: Duration, runner: MadeUp, opens: Option<Opens>) -> Server {
        let at = "127.0.0.1:0".parse().unwrap();
        let (api, at) = Api::start_within(patience, at, runner, opens).unwrap();
        Server { api: Some(api), at, seen: Seen::new() }
    }

    pub(super) fn connect(&self, method: &str, path: &str, fields: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{fields}Connection: close\r\nContent-Length: {length}\r\n\r\n",
            self.at
        );
        // The write may fail: a body that is too long can be refused before it is read.
        let _ = stream.write_all((head + body).as_bytes());
        stream
    }

    /// A request for a path; `{id}` in the description's path is replaced by `id`, which may end with a query.
    pub(super) fn ask(&mut self, method: &str, path: &str, id: &str, fields: &str, body: &str) -> Response {
        let (id, query) = id.split_at(id.find('?').unwrap_or(id.len()));
        let mut stream = self.connect(method, &(path.replace("{id}", id) + query), fields, body);
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

    pub(super) fn check(
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

    /// Waits until a run is in this state.
    pub(super) fn wait(&mut self, id: &str, state: &str) -> Value {
        self.wait_at("/runs/{id}", id, state)
    }

    /// Waits until the resource at this path is in this state.
    pub(super) fn wait_at(&mut self, path: &str, id: &str, state: &str) -> Value {
        for _ in 0..2_000 {
            let run = self.check(("GET", path, id), "", 200, id).json();
            if run["state"] == state {
                return run;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("never {state}: {id}");
    }

    pub(super) fn start_run(&mut self, body: &str) -> String {
        self.start_at("/runs", body)
    }

    /// Starts a run or a search; returns its identifier.
    pub(super) fn start_at(&mut self, path: &str, body: &str) -> String {
        let response = self.check(("POST", path, ""), body, 201, "\"state\":");
        let id = response.json()["id"].as_str().unwrap().to_owned();
        assert!(response.head.contains(&format!("location: {path}/{id}")), "{}", response.head);
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

/// The target of `$ref`, or else the value itself.
fn resolved<'a>(all: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            all.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"))
        }
        None => value,
    }
}

/// Checks that a response conforms to the description: status, media type and schema.
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
    let is = |media: &str| response.head.contains(&format!("content-type: {media}"));
    let sent = content.iter().find(|(media, _)| is(media));
    let (media, described) = sent.unwrap_or_else(|| panic!("{method} {path}: {}", response.head));
    if media == "application/json" {
        fits(&all, &described["schema"], &response.json(), &format!("{method} {path}"));
    }
}

/// Checks that a value conforms to a schema, as far as the description uses JSON Schema.
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

/// Method, path and status of all documented responses.
pub(super) fn documented() -> Seen {
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
