//! The HTTP/2 machine driven as a connection's loop drives it, with its invariants checked, and printed as text.
//!
//! A trace reads like `opened | 1: 200 length=5 | 1: body hello | 1: end`: events of a stream begin with its number, bodies are in
//! one piece and escaped. Last comes `error CODE`, or `rest N` where N bytes are left unconsumed.

use std::collections::BTreeMap;
use wire::http2::{
    CLIENT_PREFACE, Code, Connection, Context, Data, Event, Grpc, MAX_REST, MAX_STREAMS, Method, Request,
    Role, Scratch, Stream, Table, write_reset,
};

/// The text that a client begins with, and SETTINGS without an entry.
pub const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Bytes of a frame of this kind and these flags.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("a frame is short").to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// How a server of [`server`] responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responds {
    /// Not at all.
    Never,
    /// When the request is complete, with a head that ends the stream.
    AtOnce,
    /// To the head of a request, with a body of this length that is sent as far as the windows allow.
    Body(usize),
}

/// Feeds `pieces` to a server. A request reads `1: GET http://host/path length=0`, with `ends`, `continue` and `protocol=websocket`
/// behind it where they apply; what it sends of a body `sent 5` and `sent all`.
pub fn server(pieces: &[&[u8]], responds: Responds) -> String {
    let mut trace = Trace::new(Connection::new(Role::Server));
    trace.responds = responds;
    trace.feed(pieces, &[])
}

/// Feeds `pieces` to a client that has sent requests of these methods.
///
/// A head reads `1: 200 length=5` or `1: 200 length=?`, with `ends` behind it where nothing follows, and `lacks` where an expected field
/// is missing.
pub fn client(pieces: &[&[u8]], methods: &[Method], expected: &[(String, String)]) -> String {
    assert!(CLIENT_PREFACE.starts_with(&BEGIN[..24]));
    let mut trace = Trace::new(Connection::new(Role::Client));
    for method in methods {
        let mut out = [0; 16];
        let (n, stream) =
            trace.machine.write_request(&mut out, &[0x82], true, *method).expect("there is room");
        assert_eq!(out[..n], frame(1, 5, stream.id(), &[0x82]));
        trace.streams.insert(stream.id(), stream);
    }
    trace.feed(pieces, expected)
}

/// What a machine has said so far, and its surroundings.
struct Trace {
    lines: Vec<String>,
    /// Of the stream whose body comes.
    body: (u32, Vec<u8>),
    machine: Connection,
    streams: BTreeMap<u32, Stream>,
    table: Option<Box<Table>>,
    responds: Responds,
    /// What is left to send of each response.
    bodies: BTreeMap<u32, usize>,
}

impl Trace {
    fn new(machine: Connection) -> Self {
        Self {
            lines: Vec::new(),
            body: (0, Vec::new()),
            machine,
            streams: BTreeMap::new(),
            table: None,
            responds: Responds::Never,
            bodies: BTreeMap::new(),
        }
    }

    /// The loop of a connection: all there is until nothing happens, and the rest again with the next piece.
    fn feed(mut self, pieces: &[&[u8]], expected: &[(String, String)]) -> String {
        let mut scratch = Box::new(Scratch::new());
        let mut rest = Vec::new();
        for piece in pieces {
            rest.extend_from_slice(piece);
            let mut at = 0;
            loop {
                match self.step(&rest[at..], &mut scratch, expected) {
                    Ok(None) => break,
                    Ok(Some(n)) => at += n,
                    Err(code) => {
                        self.line(&format!("error {code}"));
                        return self.lines.join(" | ");
                    }
                }
            }
            rest.drain(..at);
            assert!(rest.len() < MAX_REST, "the rest is bounded: {}", rest.len());
        }
        self.flush();
        if !rest.is_empty() {
            self.line(&format!("rest {}", rest.len()));
        }
        self.lines.join(" | ")
    }

    /// One call: how many bytes were consumed, `None` where nothing happened.
    fn step(
        &mut self,
        input: &[u8],
        scratch: &mut Scratch,
        expected: &[(String, String)],
    ) -> Result<Option<usize>, Code> {
        let id = self.machine.reads(input);
        let mut stream = self.streams.get(&id).copied();
        let context =
            Context { scratch, table: self.table.as_deref_mut(), second: 1, expected, fields: None };
        let (n, event) = self.machine.handle_bytes(input, stream.as_mut(), context)?;
        let taken = input.get(..n).expect("no more is consumed than there is");
        if let Some(stream) = &mut stream {
            self.machine.take_stream_credit(stream);
            self.streams.insert(id, *stream);
        }
        self.machine.take_credit();
        match event {
            None if n == 0 => return Ok(None),
            None => {}
            Some(Event::Data(data)) => self.add_data(id, data, taken),
            Some(event) => {
                self.flush();
                assert!(n > 0 || event == Event::TableNeeded, "only the want of a table costs nothing");
                self.add(id, &event);
            }
        }
        self.respond(id);
        self.streams.retain(|_, stream| !stream.is_closed());
        assert_eq!(self.machine.open_streams() as usize, self.streams.len(), "streams are counted");
        assert!(self.streams.len() <= MAX_STREAMS as usize, "streams are bounded");
        Ok(Some(n))
    }

    fn add_data(&mut self, id: u32, data: Data<'_>, taken: &[u8]) {
        assert!(!data.bytes.is_empty() || data.ends, "an empty piece ends");
        let (body, taken) = (data.bytes.as_ptr_range(), taken.as_ptr_range());
        assert!(taken.start <= body.start && body.end <= taken.end, "a body lies in the input");
        assert!(self.streams.contains_key(&id), "a body belongs to a stream");
        if self.body.0 != id {
            self.flush();
        }
        self.body.0 = id;
        self.body.1.extend_from_slice(data.bytes);
        if data.ends {
            self.flush();
            self.line(&format!("{id}: end"));
        }
    }

    fn add(&mut self, id: u32, event: &Event<'_>) {
        let said = match event {
            Event::Opened => "opened".to_owned(),
            Event::Settings => "settings".to_owned(),
            Event::SettingsAcked => {
                self.table.take_if(|_| !self.machine.has_table());
                "acked".to_owned()
            }
            Event::TableNeeded => {
                assert!(self.table.is_none() && self.machine.has_table(), "a table is needed once");
                self.table = Some(Box::new(Table::new()));
                return;
            }
            Event::Interim(status) => format!("{id}: interim {status}"),
            Event::Head(head) => {
                let length = head.length.map_or_else(|| "?".to_owned(), |n| n.to_string());
                let ends = if head.ends { " ends" } else { "" };
                let lacks = if head.has_expected { "" } else { " lacks" };
                format!("{id}: {} length={length}{ends}{lacks}{}", head.status, grpc(head.grpc))
            }
            Event::Request(request, stream) => {
                assert!(stream.id() == id && !stream.is_closed(), "a request opens a stream");
                self.streams.insert(id, *stream);
                format!("{id}: {}", request_line(request))
            }
            Event::Trailers(trailers) => format!("{id}: trailers{}", grpc(trailers.grpc)),
            Event::Reset(code) => format!("{id}: reset {code}"),
            Event::StreamError(stream, code) => {
                assert_eq!(*stream, id, "an error is of the stream that was read");
                assert!(write_reset(&mut [0; 13], *stream, *code).is_some());
                format!("{id}: error {code}")
            }
            Event::Window(stream) => format!("window {stream}"),
            Event::Ping(payload) => format!("ping {}", payload.escape_ascii()),
            Event::Pong(payload) => format!("pong {}", payload.escape_ascii()),
            Event::Goaway { last, code, .. } => format!("goaway {last} {code}"),
            Event::Data(_) => unreachable!("heard elsewhere"),
        };
        self.line(&said);
    }

    /// What the server sends, after an event of this stream.
    fn respond(&mut self, id: u32) {
        let mut out = [0; 100];
        let has_request = self.streams.get(&id).filter(|stream| !stream.is_sent());
        match (self.responds, has_request.copied()) {
            (Responds::AtOnce, Some(mut stream)) if self.has_ended(id) => {
                self.machine.write_headers(&mut out, &mut stream, &[0x88], true).expect("it fits");
                self.streams.insert(id, stream);
            }
            (Responds::Body(length), Some(mut stream)) if !self.bodies.contains_key(&id) => {
                self.machine.write_headers(&mut out, &mut stream, &[0x88], false).expect("it fits");
                self.streams.insert(id, stream);
                self.bodies.insert(id, length);
            }
            _ => {}
        }
        let open: Vec<u32> = self.bodies.keys().copied().collect();
        for id in open {
            self.send_body(id, &mut out);
        }
    }

    /// Whether the last line says that the request is complete.
    fn has_ended(&self, id: u32) -> bool {
        let is_its = |line: &&String| line.starts_with(&format!("{id}: "));
        self.lines.last().filter(is_its).is_some_and(|line| {
            line.ends_with(" ends") || line.ends_with(": end") || line.contains(": trailers")
        })
    }

    fn send_body(&mut self, id: u32, out: &mut [u8]) {
        let Some(mut stream) = self.streams.get(&id).copied().filter(|stream| !stream.is_closed()) else {
            self.bodies.remove(&id);
            return;
        };
        let left = self.bodies[&id];
        let (mut taken, bytes) = (0, vec![b'x'; left]);
        loop {
            let allowed = self.machine.window(&stream);
            let (written, n) = self.machine.write_data(out, &mut stream, &bytes[taken..], true);
            assert!(n <= allowed && written <= out.len(), "windows hold: {n} of {allowed}");
            taken += n;
            if stream.is_sent() || written == 0 {
                break;
            }
        }
        self.bodies.insert(id, left - taken);
        self.streams.insert(id, stream);
        if taken > 0 {
            self.flush();
            self.line(&format!("{id}: sent {taken}"));
        }
        if stream.is_sent() {
            assert_eq!(taken, left, "a body ends with its last byte");
            self.bodies.remove(&id);
            self.flush();
            self.line(&format!("{id}: sent all"));
        }
    }

    fn line(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }

    fn flush(&mut self) {
        let (id, body) = std::mem::take(&mut self.body);
        if !body.is_empty() {
            self.line(&format!("{id}: body {}", body.escape_ascii()));
        }
    }
}

fn grpc(grpc: Grpc<'_>) -> String {
    match grpc.status {
        Some(status) => format!(" grpc={status} {}", grpc.message.escape_ascii()),
        None => String::new(),
    }
}

fn request_line(r: &Request<'_>) -> String {
    let length = r.length.map_or_else(|| "?".to_owned(), |n| n.to_string());
    let mut line = format!("{} {}://{}{} length={length}", r.method, r.scheme, r.authority, r.path);
    if let Some(protocol) = r.protocol {
        line.push_str(&format!(" protocol={protocol}"));
    }
    for (is_so, word) in [(r.expects_continue, " continue"), (r.ends, " ends")] {
        if is_so {
            line.push_str(word);
        }
    }
    line
}
