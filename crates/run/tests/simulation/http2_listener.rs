//! A scripted HTTP/2 server that records requests, WebSocket requests and messages, and sends its responses byte by byte.

use std::collections::{HashMap, VecDeque};

use net::{Close, Cx, Gone, Io, Key, Program};
use units::Nanos;
use wire::{
    http2::{
        Code, Connection, Context, Event, Response, Role, SERVER_PREFACE, SETTINGS_ACK, Scratch, Stream,
        write_field, write_goaway, write_response_fields,
    },
    websocket::{self, Frames},
};

/// Maximum number of pending accepts.
const ACCEPTS: u32 = 64;
/// Delay between two bytes, so that each is a separate segment.
const APART: Nanos = Nanos::from_millis(1);
/// Length of a frame header.
const HEADER: usize = 9;
/// Maximum length of a response.
const ROOM: usize = 1024;
/// Empty SETTINGS: the server does not accept extended CONNECT.
const NO_SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A request with its content, a WebSocket request, or a message.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Index of the accepted connection.
    pub(crate) conn: usize,
    /// Number of the stream.
    pub(crate) stream: u32,
    /// Method, path and protocol; or the message.
    pub(crate) line: String,
    /// The fields as they were sent.
    pub(crate) block: Vec<u8>,
    pub(crate) body: String,
}

impl Received {
    /// Whether it has this field.
    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        let mut field = vec![0; 2 * (name.len() + value.len()) + 8];
        let length = write_field(&mut field, name, value.as_bytes()).expect("there is room");
        self.block.windows(length).any(|part| part == &field[..length])
    }
}

/// The server's reaction.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A response with this status, these fields and this content; for a WebSocket request it does not end.
    Response(u16, Vec<(&'static str, String)>, String),
    /// The head of a response with this content type, and the beginning of its content: it does not end.
    Begun(&'static str, &'static [u8]),
    /// Frames of a WebSocket.
    Frames(Vec<u8>),
    /// GOAWAY: no new streams on this connection.
    Goaway,
    /// GOAWAY with this last stream and this code; later streams get no response.
    GoawayAt(u32, Code),
    /// Additional SETTINGS, as they are sent.
    Settings(&'static [u8]),
    /// Closes the connection afterwards.
    Close,
}

type Script = Box<dyn Fn(&Received) -> Vec<Reply>>;

struct Open {
    stream: Stream,
    line: String,
    block: Vec<u8>,
    body: Vec<u8>,
    frames: Option<Frames>,
}

struct Conn {
    number: usize,
    connection: Connection,
    streams: HashMap<u32, Open>,
    to_send: VecDeque<u8>,
    closes: bool,
}

/// The server.
pub(crate) struct Http2Listener {
    preface: &'static [u8],
    script: Script,
    accepting: u32,
    conns: Vec<Conn>,
    accepted: usize,
    scratch: Scratch,
    pub(crate) received: Vec<Received>,
}

impl Http2Listener {
    pub(crate) fn new(
        takes_connect: bool,
        script: impl Fn(&Received) -> Vec<Reply> + 'static,
    ) -> Http2Listener {
        Http2Listener {
            preface: if takes_connect { SERVER_PREFACE } else { NO_SETTINGS },
            script: Box::new(script),
            accepting: 0,
            conns: vec![],
            accepted: 0,
            scratch: Scratch::new(),
            received: vec![],
        }
    }

    /// A server that sends these SETTINGS first.
    pub(crate) fn with_preface(self, preface: &'static [u8]) -> Http2Listener {
        Http2Listener { preface, ..self }
    }

    /// What each connection received, in order.
    pub(crate) fn by_connection(&self) -> Vec<Vec<&Received>> {
        let mut all = vec![Vec::new(); self.accepted];
        self.received.iter().for_each(|received| all[received.conn].push(received));
        all
    }

    /// Reads all complete frames. Returns the number of bytes used, and the requests.
    fn read(&mut self, index: usize, input: &[u8]) -> (usize, Vec<Received>) {
        let Conn { number, connection, streams, to_send, .. } = &mut self.conns[index];
        let (mut used, mut all) = (0, Vec::new());
        loop {
            let rest = &input[used..];
            let id = connection.reads(rest);
            let context =
                Context { scratch: &mut self.scratch, table: None, second: 0, expected: &[], fields: None };
            let stream = streams.get_mut(&id).map(|it| &mut it.stream);
            let (n, event) =
                connection.handle_bytes(rest, stream, context).expect("a client that keeps to the RFC");
            used += n;
            let mut is_complete = false;
            match event {
                None if n == 0 => return (used, all),
                Some(Event::Settings | Event::Opened) => to_send.extend(SETTINGS_ACK),
                Some(Event::Request(request, stream)) => {
                    let protocol = request.protocol.map(|name| format!(" {name}")).unwrap_or_default();
                    let line = format!("{} {}{protocol}", request.method, request.path);
                    let frames = request.protocol.map(|_| Frames::new(websocket::Role::Server));
                    is_complete = request.ends || frames.is_some();
                    let block = rest[HEADER..n].to_vec();
                    streams.insert(id, Open { stream, line, block, body: vec![], frames });
                }
                Some(Event::Data(data)) => {
                    let it = streams.get_mut(&id).expect("it was requested");
                    match &mut it.frames {
                        Some(frames) => all.extend(messages(frames, data.bytes, *number, id)),
                        None => it.body.extend(data.bytes),
                    }
                    is_complete = data.ends && it.frames.is_none();
                }
                _ => {}
            }
            if is_complete {
                let it = &streams[&id];
                let body = String::from_utf8(it.body.clone()).expect("text");
                let (line, block) = (it.line.clone(), it.block.clone());
                all.push(Received { conn: *number, stream: id, line, block, body });
            }
        }
    }

    fn respond(&mut self, index: usize, received: Received) {
        let replies = (self.script)(&received);
        let Conn { connection, streams, to_send, closes, .. } = &mut self.conns[index];
        let it = streams.get_mut(&received.stream).expect("it was requested");
        let mut out = [0; ROOM];
        for reply in replies {
            let written = match reply {
                Reply::Response(status, fields, body) => {
                    let mut block = [0; ROOM];
                    let response = Response { status, content_type: "", content_length: None };
                    let mut length = write_response_fields(&mut block, &response).expect("room");
                    for (name, value) in fields {
                        length += write_field(&mut block[length..], name, value.as_bytes()).expect("room");
                    }
                    let is_tunnel = it.frames.is_some() && status == 200;
                    let n = connection.write_headers(&mut out, &mut it.stream, &block[..length], false);
                    let n = n.expect("room");
                    let mut content =
                        |out: &mut [u8]| connection.write_data(out, &mut it.stream, body.as_bytes(), true).0;
                    if is_tunnel { n } else { n + content(&mut out[n..]) }
                }
                Reply::Begun(content_type, content) => {
                    let mut block = [0; ROOM];
                    let response = Response { status: 200, content_type, content_length: None };
                    let length = write_response_fields(&mut block, &response).expect("room");
                    let stream = &mut it.stream;
                    let head = connection.write_headers(&mut out, stream, &block[..length], false);
                    let head = head.expect("room");
                    head + connection.write_data(&mut out[head..], stream, content, false).0
                }
                Reply::Frames(frames) => connection.write_data(&mut out, &mut it.stream, &frames, false).0,
                Reply::Goaway => connection.goaway(&mut out, Code::NO_ERROR).expect("room"),
                Reply::GoawayAt(last, code) => write_goaway(&mut out, last, code).expect("room"),
                Reply::Settings(frame) => {
                    out[..frame.len()].copy_from_slice(frame);
                    frame.len()
                }
                Reply::Close => {
                    *closes = true;
                    0
                }
            };
            to_send.extend(&out[..written]);
        }
        self.received.push(received);
    }
}

/// The messages in this part of a WebSocket's bytes. Each comes in one frame, and in one DATA frame.
fn messages(frames: &mut Frames, mut bytes: &[u8], conn: usize, stream: u32) -> Vec<Received> {
    let mut all = Vec::new();
    loop {
        let (n, event) = frames.handle_bytes(bytes, 1 << 20).expect("a client that keeps to the RFC");
        bytes = &bytes[n..];
        let line = match event {
            None if n == 0 => return all,
            Some(websocket::Event::Data(data)) => {
                String::from_utf8(data.payload.bytes().collect()).expect("text")
            }
            Some(websocket::Event::Closing(closing)) => format!("close {}", closing.code.unwrap_or_default()),
            _ => continue,
        };
        all.push(Received { conn, stream, line, block: vec![], body: String::new() });
    }
}

impl Program for Http2Listener {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.accepting -= 1;
        let preface = self.preface;
        let conn = |number| Conn {
            number,
            connection: Connection::new(Role::Server),
            streams: HashMap::new(),
            to_send: preface.iter().copied().collect(),
            closes: false,
        };
        let at = k.index as usize;
        self.conns.resize_with(self.conns.len().max(at + 1), || conn(0));
        self.conns[at] = conn(self.accepted);
        self.accepted += 1;
        cx.wake_at(k, cx.now() + APART);
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let conn = &mut self.conns[k.index as usize];
        let Some(octet) = conn.to_send.pop_front() else {
            if conn.closes {
                cx.close(k, Close::Graceful);
            }
            return;
        };
        cx.send(k, 1, |out| {
            out[0] = octet;
            1
        });
        cx.wake_at(k, cx.now() + APART);
    }

    fn bytes<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &mut [u8]) -> usize {
        let index = k.index as usize;
        let (used, all) = self.read(index, input);
        let leaves = all.iter().any(|received| received.line.starts_with("close "));
        let (asked, said): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|received| !received.line.starts_with("close "));
        asked.into_iter().for_each(|received| self.respond(index, received));
        self.received.extend(said);
        if leaves {
            cx.close(k, Close::Graceful);
            return input.len();
        }
        cx.wake_at(k, cx.now() + APART);
        used
    }

    fn gone<I: Io>(&mut self, _: &mut Cx<I>, _: Key, _: Gone) {}

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        while self.accepting < ACCEPTS {
            assert!(cx.accept(), "the server has a place for everyone");
            self.accepting += 1;
        }
        Nanos::NEVER
    }
}
