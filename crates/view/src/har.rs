//! A transcript as an HTTP archive (HAR 1.2, <http://www.softwareishard.com/blog/har-12-spec/>), which browsers' developer tools read.

use base64::{Engine, engine::general_purpose::STANDARD};
use samples::transcript::{Content, Entry, Event, Piece, Response};
use serde_json::{Value, json};
use units::{Date, Nanos};

/// Collects the requests of a transcript.
pub struct Har {
    /// The date of the first entry.
    began: Date,
    entries: Vec<Value>,
    request: Option<Exchange>,
    /// Times of the connection that the next request is the first on.
    dial: Opening,
}

#[derive(Clone, Copy, Default)]
struct Opening {
    connect: Option<Nanos>,
    ssl: Option<Nanos>,
}

/// A request under way.
struct Exchange {
    at: Nanos,
    secure: bool,
    sent: (String, Content),
    received: (String, Content),
}

/// Not known, or not applicable.
const NONE: i64 = -1;

impl Har {
    /// An archive without entries.
    pub fn new(began: Date) -> Har {
        Har { began, entries: Vec::new(), request: None, dial: Opening::default() }
    }

    /// Adds an entry of the transcript; `secure`: the target is spoken to over TLS.
    pub fn add(&mut self, entry: &Entry, secure: bool) {
        match &entry.event {
            Event::Open(took) => self.dial = Opening { connect: Some(*took), ssl: None },
            Event::Secure { took, .. } => self.dial.ssl = Some(*took),
            Event::Sent(Piece::Head(head)) => {
                self.end(entry.at, &Response::default());
                let sent = (head.clone(), Content::default());
                self.request = Some(Exchange { at: entry.at, secure, sent, received: Default::default() });
            }
            Event::Sent(Piece::Content(content)) => {
                self.request.iter_mut().for_each(|request| request.sent.1 = content.clone());
            }
            // Interim responses are replaced by the final one; trailers have no status.
            Event::Received(Piece::Head(head)) if head.starts_with("HTTP/") => {
                self.request.iter_mut().for_each(|request| request.received.0.clone_from(head));
            }
            Event::Received(Piece::Content(content)) => {
                self.request.iter_mut().for_each(|request| request.received.1 = content.clone());
            }
            Event::Response(response) => self.end(entry.at, response),
            Event::Redirect | Event::Failed(_) | Event::End(_) => self.end(entry.at, &Response::default()),
            _ => {}
        }
    }

    /// The archive as JSON.
    pub fn json(mut self) -> String {
        self.end(Nanos::ZERO, &Response::default());
        let creator = json!({ "name": "throng", "version": env!("CARGO_PKG_VERSION") });
        let log = json!({ "log": { "version": "1.2", "creator": creator, "entries": self.entries } });
        format!("{log:#}\n")
    }

    /// The request under way, if any, has ended.
    fn end(&mut self, now: Nanos, response: &Response) {
        let Some(Exchange { at, secure, sent, received }) = self.request.take() else { return };
        let took = if response.took > Nanos::ZERO { response.took } else { now.since(at) };
        let wait = response.first_byte.unwrap_or(took);
        let Opening { connect, ssl } = std::mem::take(&mut self.dial);
        // HAR counts TLS as a part of connecting.
        let opening = connect.map(|connect| connect + ssl.unwrap_or_default());
        let optional = |time: Option<Nanos>| time.map_or(json!(NONE), |time| json!(millis(time)));
        let timings = json!({
            "blocked": NONE, "dns": NONE, "connect": optional(opening), "ssl": optional(ssl),
            "send": 0, "wait": millis(wait), "receive": millis(took.since(wait)),
        });
        self.entries.push(json!({
            "startedDateTime": Date(self.began.0 + at.0 / 1_000_000).with_millis(),
            "time": millis(took + opening.unwrap_or_default()),
            "request": request_of(&sent, secure),
            "response": response_of(&received),
            "cache": {},
            "timings": timings,
        }));
    }
}

fn request_of((head, content): &(String, Content), secure: bool) -> Value {
    let (first, headers) = head_of(head);
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let host = value(&headers, "host");
    let mut request = json!({
        "method": method, "url": format!("{}://{host}{path}", if secure { "https" } else { "http" }),
        "httpVersion": words.next().unwrap_or_default(), "cookies": [], "headers": headers,
        "queryString": query_of(path), "headersSize": NONE, "bodySize": content.length,
    });
    if content.length > 0 {
        request["postData"] = json!({ "mimeType": value(&headers, "content-type"), "text": String::from_utf8_lossy(&content.bytes) });
    }
    request
}

fn response_of((head, content): &(String, Content)) -> Value {
    let (first, headers) = head_of(head);
    let mut words = first.splitn(3, ' ');
    let version = words.next().unwrap_or_default();
    let status: u16 = words.next().and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = json!({ "size": content.length, "mimeType": value(&headers, "content-type") });
    let bytes = content.decoded.as_ref().unwrap_or(&content.bytes);
    match str::from_utf8(bytes) {
        Ok(text) => body["text"] = json!(text),
        Err(_) => {
            body["text"] = json!(STANDARD.encode(bytes));
            body["encoding"] = json!("base64");
        }
    }
    json!({
        "status": status, "statusText": words.next().unwrap_or_default(), "httpVersion": version, "cookies": [],
        "headers": headers, "content": body, "redirectURL": value(&headers, "location"), "headersSize": NONE,
        "bodySize": content.length,
    })
}

/// The first line of a head, and its fields.
fn head_of(head: &str) -> (&str, Vec<Value>) {
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let fields = lines.filter_map(|line| line.split_once(':'));
    (first, fields.map(|(name, value)| json!({ "name": name, "value": value.trim() })).collect())
}

/// The value of the first field with this name; empty without one.
fn value(headers: &[Value], name: &str) -> String {
    let is_it = |field: &&Value| field["name"].as_str().is_some_and(|own| own.eq_ignore_ascii_case(name));
    headers.iter().find(is_it).and_then(|field| field["value"].as_str()).unwrap_or_default().to_owned()
}

/// The parameters of a path, as they are written.
fn query_of(path: &str) -> Vec<Value> {
    let pairs =
        path.split_once('?').map_or("", |(_, query)| query).split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            json!({ "name": name, "value": value })
        })
        .collect()
}

fn millis(time: Nanos) -> f64 {
    time.0 as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &[u8]) -> Piece {
        Piece::Content(Content { bytes: text.to_vec(), length: text.len() as u64, decoded: None })
    }

    #[test]
    fn each_request_is_an_entry_with_its_times() {
        let mut har = Har::new(Date(1_700_000_000_000));
        let mut add = |at_ms: u64, event| har.add(&Entry { at: Nanos::from_millis(at_ms), event }, true);
        add(0, Event::Open(Nanos::from_millis(2)));
        add(5, Event::Secure { took: Nanos::from_millis(3), resumed: false, http2: false });
        add(
            5,
            Event::Sent(Piece::Head("POST /a?b=1 HTTP/1.1\nHost: h:1\nContent-Type: text/plain".to_owned())),
        );
        add(5, Event::Sent(content(b"hi")));
        add(9, Event::Received(Piece::Head("HTTP/1.1 302 Found\nLocation: /c".to_owned())));
        add(9, Event::Redirect);
        add(9, Event::Sent(Piece::Head("GET /c HTTP/1.1\nHost: h:1".to_owned())));
        add(20, Event::Received(Piece::Head("HTTP/1.1 200 OK\nContent-Type: x/y".to_owned())));
        add(20, Event::Received(content(b"\xff")));
        let times = (Some(Nanos::from_millis(10)), Nanos::from_millis(11));
        add(20, Event::Response(Response { first_byte: times.0, took: times.1, ..Response::default() }));
        let json: Value = serde_json::from_str(&har.json()).unwrap();
        let entries = json["log"]["entries"].as_array().unwrap();
        let [first, second] = &entries[..] else { panic!("{json:#}") };
        assert_eq!(first["startedDateTime"], "2023-11-14T22:13:20.005Z");
        assert_eq!(first["request"]["url"], "https://h:1/a?b=1");
        assert_eq!(first["request"]["postData"], json!({ "mimeType": "text/plain", "text": "hi" }));
        assert_eq!(first["request"]["queryString"], json!([{ "name": "b", "value": "1" }]));
        assert_eq!(
            (&first["response"]["status"], &first["response"]["redirectURL"]),
            (&json!(302), &json!("/c"))
        );
        assert_eq!((&first["timings"]["connect"], &first["timings"]["ssl"]), (&json!(5.0), &json!(3.0)));
        assert_eq!((&first["time"], &second["time"]), (&json!(9.0), &json!(11.0)));
        assert_eq!((&second["timings"]["wait"], &second["timings"]["receive"]), (&json!(10.0), &json!(1.0)));
        assert_eq!(second["timings"]["connect"], NONE);
        let text = json!({ "size": 1, "mimeType": "x/y", "text": "/w==", "encoding": "base64" });
        assert_eq!(second["response"]["content"], text);
    }
}
