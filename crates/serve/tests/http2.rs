//! The server over HTTP/2: routes, concurrent streams, windows, the echo, and closing messages; with each backend.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
    time::{Duration, Instant},
};

use net::Backend;
use serve::{Knobs, Server, Service, Settings};
use wire::{
    http2::{
        CLIENT_PREFACE, Code, Connection, Context, Event, Method, RequestFields, Role, SETTINGS_ACK, Scratch,
        Stream, write_request_fields, write_window_update,
    },
    websocket::{self, Frames, Opcode},
};

const BACKENDS: [Backend; 2] = [Backend::Uring, Backend::Epoll];

fn server(io: Backend) -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (service, knobs) = (Service::Http, Knobs::default());
    let settings = Settings { service, knobs, listen, threads: 1, connections: 16, slots: 64, io, tls: None };
    Server::start(settings).expect("io_uring is allowed here")
}

/// What came on a stream.
#[derive(Default)]
struct Came {
    status: u16,
    length: Option<u64>,
    body: Vec<u8>,
    reset: Option<Code>,
    /// Position in the order in which streams ended.
    ended: Option<usize>,
}

/// A client with one socket.
struct Client {
    socket: TcpStream,
    machine: Connection,
    scratch: Box<Scratch>,
    rest: Vec<u8>,
    streams: BTreeMap<u32, (Stream, Came)>,
    ended: usize,
    is_leaving: Option<(u32, Code)>,
}

impl Client {
    fn dial(server: &Server) -> Client {
        let socket = TcpStream::connect(server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut client = Client {
            socket,
            machine: Connection::new(Role::Client),
            scratch: Box::new(Scratch::new()),
            rest: Vec::new(),
            streams: BTreeMap::new(),
            ended: 0,
            is_leaving: None,
        };
        client.write(CLIENT_PREFACE);
        client
    }

    fn write(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// Opens a stream.
    fn open(&mut self, method: &str, path: &str, protocol: &str, ends: bool) -> u32 {
        let fields = RequestFields { method, scheme: "http", authority: "h", path, protocol };
        let (mut block, mut out) = ([0; 256], [0; 300]);
        let n = write_request_fields(&mut block, &fields).unwrap();
        let kind = match method {
            "HEAD" => Method::Head,
            "CONNECT" => Method::Connect,
            _ => Method::Other,
        };
        let (n, stream) = self.machine.write_request(&mut out, &block[..n], ends, kind).unwrap();
        self.streams.insert(stream.id(), (stream, Came::default()));
        self.write(&out[..n]);
        stream.id()
    }

    fn get(&mut self, path: &str) -> u32 {
        self.open("GET", path, "", true)
    }

    fn came(&self, id: u32) -> &Came {
        &self.streams[&id].1
    }

    fn text(&self, id: u32) -> String {
        String::from_utf8(self.came(id).body.clone()).unwrap()
    }

    /// Sends as much of a body as the windows allow; returns how much.
    fn send(&mut self, id: u32, bytes: &[u8], ends: bool) -> usize {
        let mut out = vec![0; bytes.len() + 4096];
        let (stream, _) = self.streams.get_mut(&id).unwrap();
        let (written, taken) = self.machine.write_data(&mut out, stream, bytes, ends);
        self.write(&out[..written]);
        taken
    }

    /// Reads until `holds` returns true.
    fn until(&mut self, mut holds: impl FnMut(&mut Client) -> bool) {
        while !holds(self) {
            let mut piece = [0; 20_000];
            let n = self.socket.read(&mut piece).unwrap();
            assert!(n > 0, "closed, with {:?}", self.is_leaving);
            self.rest.extend_from_slice(&piece[..n]);
            let rest = std::mem::take(&mut self.rest);
            let mut at = 0;
            while let Some(n) = self.step(&rest[at..]) {
                at += n;
            }
            self.rest = rest[at..].to_vec();
        }
    }

    /// Reads until all of these streams have ended.
    fn end(&mut self, ids: &[u32]) {
        self.until(|client| ids.iter().all(|id| client.came(*id).ended.is_some()));
    }

    fn step(&mut self, input: &[u8]) -> Option<usize> {
        let id = self.machine.reads(input);
        let mut known = self.streams.get_mut(&id);
        let context =
            Context { scratch: &mut self.scratch, table: None, second: 0, expected: &[], fields: None };
        let stream = known.as_mut().map(|(stream, _)| stream);
        let (n, event) = self.machine.handle_bytes(input, stream, context).unwrap();
        let came = known.map(|(_, came)| came);
        let mut out = Vec::new();
        match (event, came) {
            (None, _) if n == 0 => return None,
            (Some(Event::Opened), _) => out.extend_from_slice(SETTINGS_ACK),
            (Some(Event::Head(head)), Some(came)) => {
                (came.status, came.length) = (head.status, head.length);
                came.ended = head.ends.then_some(self.ended);
                self.ended += usize::from(head.ends);
            }
            (Some(Event::Data(data)), Some(came)) => {
                came.body.extend_from_slice(data.bytes);
                came.ended = data.ends.then_some(self.ended);
                self.ended += usize::from(data.ends);
            }
            (Some(Event::Interim(status)), Some(came)) => came.status = status,
            (Some(Event::Reset(code)), Some(came)) => came.reset = Some(code),
            (Some(Event::Goaway { last, code, .. }), _) => self.is_leaving = Some((last, code)),
            (None | Some(Event::SettingsAcked | Event::Window(_)), _) => {}
            (Some(other), _) => panic!("{other:?}"),
        }
        self.write(&out);
        Some(n)
    }
}

fn on_each(test: impl Fn(&Server)) {
    for io in BACKENDS {
        let server = server(io);
        test(&server);
        server.stop();
    }
}

#[test]
fn routes() {
    on_each(|server| {
        let mut client = Client::dial(server);
        let rows = [
            ("GET", "/", 200, 12),
            ("POST", "/", 200, 12),
            ("HEAD", "/", 200, 0),
            ("GET", "/?length=5", 200, 5),
            ("GET", "/?length=1000000", 200, 10_240),
            ("GET", "/?length=x", 400, 0),
            ("GET", "/delay?for=1ms&length=7", 200, 7),
            ("GET", "/delay?for=x", 400, 0),
            ("GET", "/nowhere", 404, 0),
            ("GET", "/ws/echo", 405, 0),
        ];
        for (method, path, status, length) in rows {
            let id = client.open(method, path, "", true);
            client.end(&[id]);
            let came = client.came(id);
            assert_eq!((came.status, came.body.len()), (status, length), "{method} {path}");
        }
        let (hello, stats) = (client.get("/"), client.get("/stats"));
        client.end(&[hello, stats]);
        assert_eq!(client.text(hello), "Hello World!");
        let requests = rows.len() + 2;
        assert!(client.text(stats).contains(&format!("\"requests\":{requests},")), "{}", client.text(stats));
        assert_eq!(client.machine.open_streams(), 0);
    });
}

/// A client that requests a WebSocket does not end its stream before the response.
#[test]
fn a_connect_for_no_websocket_is_refused_at_once() {
    on_each(|server| {
        let mut client = Client::dial(server);
        client.until(|client| client.machine.is_open());
        let rows = [
            ("/", "websocket", 404),
            ("/nowhere", "websocket", 404),
            ("/stats", "websocket", 404),
            ("/delay?for=60s", "websocket", 404),
            ("/ws/push", "websocket", 501),
        ];
        for (path, protocol, status) in rows {
            let id = client.open("CONNECT", path, protocol, false);
            client.end(&[id]);
            assert_eq!((client.came(id).status, client.came(id).body.len()), (status, 0), "{path}");
            // Input that the client sends before it knows is ignored.
            client.send(id, b"\x88\x80\0\0\0\0", true);
        }
        let hello = client.get("/");
        client.end(&[hello]);
        assert_eq!((client.text(hello).as_str(), client.machine.open_streams()), ("Hello World!", 0));
    });
}

#[test]
fn streams_are_independent() {
    on_each(|server| {
        let mut client = Client::dial(server);
        let paths = [
            "/delay?for=400ms&length=1",
            "/delay?for=100ms&length=2",
            "/delay?for=250ms&length=3",
            "/?length=4",
        ];
        let start = Instant::now();
        let ids = paths.map(|path| client.get(path));
        client.end(&ids);
        assert!(start.elapsed() >= Duration::from_millis(400));
        assert_eq!(ids.map(|id| client.came(id).ended.unwrap()), [3, 1, 2, 0]);
        assert_eq!(ids.map(|id| client.came(id).body.len()), [1, 2, 3, 4]);
        // A cancelled request does not delay the others.
        let (long, short) = (client.get("/delay?for=60s"), client.get("/delay?for=50ms"));
        let mut out = [0; 13];
        let (stream, _) = client.streams.get_mut(&long).unwrap();
        client.machine.cancel(&mut out, stream, Code::CANCEL).unwrap();
        client.write(&out);
        client.end(&[short]);
        // As many as the server allows, in one write.
        let ids: Vec<u32> = (0..100).map(|nth| client.get(&format!("/?length={}", nth * 100 + 1))).collect();
        client.end(&ids);
        for (nth, id) in ids.iter().enumerate() {
            assert_eq!(client.came(*id).body.len(), nth * 100 + 1);
        }
    });
}

#[test]
fn bodies_of_requests() {
    on_each(|server| {
        let mut client = Client::dial(server);
        let id = client.open("POST", "/?length=3", "", false);
        client.until(|client| client.machine.is_open());
        // Many times the window, which the server raises while it reads.
        let (body, mut sent) = (vec![b'x'; 1 << 20], 0);
        client.until(|client| {
            sent += client.send(id, &body[sent..], true);
            sent == body.len()
        });
        client.end(&[id]);
        assert_eq!((client.came(id).status, client.came(id).length), (200, Some(3)));
    });
}

#[test]
fn windows_hold_back_the_body() {
    on_each(|server| {
        let mut client = Client::dial(server);
        client.until(|client| client.machine.is_open());
        // SETTINGS_INITIAL_WINDOW_SIZE of 10.
        client.write(b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x0A");
        let (long, other) = (client.get("/?length=25"), client.get("/?length=10"));
        client.until(|client| client.came(long).body.len() == 10);
        client.end(&[other]);
        let mut out = [0; 13];
        write_window_update(&mut out, long, 7).unwrap();
        client.write(&out);
        client.until(|client| client.came(long).body.len() == 17);
        assert_eq!(client.came(long).ended, None);
        // And back to a window of 20.
        client.write(b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x14");
        client.end(&[long]);
        assert_eq!(client.came(long).body.len(), 25);
    });
}

#[test]
fn the_echo_on_a_stream() {
    on_each(|server| {
        let mut client = Client::dial(server);
        client.until(|client| client.machine.is_open());
        assert!(client.machine.takes_connect());
        let id = client.open("CONNECT", "/ws/echo", "websocket", false);
        let other = client.get("/");
        client.end(&[other]);
        assert_eq!((client.came(id).status, client.came(id).length), (200, None));
        // A message of several windows, with a ping between its frames.
        let text: Vec<u8> = (0..200_000).map(|nth| b'a' + (nth % 26) as u8).collect();
        let mut sent = Vec::new();
        let mut frame = |opcode, ends, payload: &[u8]| {
            let mut out = vec![0; payload.len() + websocket::MAX_HEADER];
            let n = websocket::write_frame(&mut out, opcode, ends, Some([1, 2, 3, 4]), payload).unwrap();
            sent.extend_from_slice(&out[..n]);
        };
        frame(Opcode::Text, false, &text[..150_000]);
        frame(Opcode::Ping, true, b"ping");
        frame(Opcode::Continuation, true, &text[150_000..]);
        let mut at = 0;
        let (mut frames, mut read, mut message, mut pong) =
            (Frames::new(websocket::Role::Client), 0, Vec::new(), None);
        client.until(|client| {
            at += client.send(id, &sent[at..], false);
            let body = client.came(id).body.clone();
            loop {
                match frames.handle_bytes(&body[read..], 1 << 20).unwrap() {
                    (0, None) => break,
                    (n, event) => {
                        read += n;
                        match event {
                            Some(websocket::Event::Data(data)) => message.extend(data.payload.bytes()),
                            Some(websocket::Event::Pong(payload)) => {
                                pong = Some(payload.bytes().collect::<Vec<_>>())
                            }
                            _ => {}
                        }
                    }
                }
            }
            message.len() == text.len()
        });
        assert!(message == text && pong.as_deref() == Some(b"ping"));
        // A close is replied to, and ends the stream.
        let mut close = [0; 64];
        let n = websocket::write_close(&mut close, Some(1000), Some([1, 2, 3, 4])).unwrap();
        assert_eq!(client.send(id, &close[..n], true), n);
        client.end(&[id]);
        assert_eq!(client.came(id).body[read..], *b"\x88\x02\x03\xe8");
        // Another protocol than WebSocket, and no tunnel.
        let other = client.open("CONNECT", "/ws/echo", "chat", false);
        client.send(other, b"", true);
        client.end(&[other]);
        assert_eq!(client.came(other).status, 501);
    });
}

#[test]
fn the_end_is_announced() {
    for io in BACKENDS {
        let server = server(io);
        let mut client = Client::dial(&server);
        let ids = [client.get("/"), client.get("/")];
        client.end(&ids);
        server.stop();
        client.until(|client| client.is_leaving.is_some());
        assert_eq!(client.is_leaving, Some((3, Code::NO_ERROR)));
    }
    on_each(|server| {
        let mut client = Client::dial(server);
        let id = client.get("/");
        client.end(&[id]);
        // DATA on stream 0, which is not allowed.
        client.write(b"\0\0\x01\0\0\0\0\0\0x");
        client.until(|client| client.is_leaving.is_some());
        assert_eq!(client.is_leaving, Some((1, Code::PROTOCOL_ERROR)));
        assert_eq!(client.socket.read(&mut [0; 100]).unwrap(), 0);
        // Other connections are not affected.
        let mut other = Client::dial(server);
        let id = other.get("/");
        other.end(&[id]);
    });
}

/// nghttp2's encoder uses its table from the first request on, and gives it up once it knows the server's SETTINGS.
const NODE: &str = r#"
const session = require('http2').connect(process.argv[1]);
let right = 0;
const ask = nth => new Promise((resolve, reject) => {
    const request = session.request({ ':path': `/?length=${nth}`, 'x-same': 'same', 'x-other': `${nth % 3}` });
    let length = 0;
    request.on('response', head => { right += head[':status'] === 200 && head['content-length'] === `${nth}`; });
    request.on('data', piece => { length += piece.length; });
    request.on('end', () => { right += length === nth; resolve(); });
    request.on('error', reject);
});
(async () => {
    for (let round = 0; round < 5; round++) {
        await Promise.all(Array.from({ length: 50 }, (_, nth) => ask(round * 50 + nth + 1)));
    }
    await new Promise((resolve, reject) => session.ping((error, took, payload) => error ? reject(error) : resolve()));
    session.close(() => console.log(right));
})();
"#;

#[test]
fn node_is_served() {
    on_each(|server| {
        let url = format!("http://{}", server.address);
        let output = Command::new("node").args(["-e", NODE, &url]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.trim(), "500", "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// One request per connection: curl 7.88 cannot reuse one with prior knowledge, whatever the server.
#[test]
fn curl_is_served() {
    on_each(|server| {
        let url = |path: &str| format!("http://{}{path}", server.address);
        let write = "%{http_version} %{http_code} %{size_download}\n";
        let run = |arguments: &[&str]| {
            let mut curl = Command::new("curl");
            let output = curl
                .args(["-sS", "-m", "20", "--http2-prior-knowledge", "-w", write])
                .args(arguments)
                .output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        assert_eq!(run(&[&url("/?length=20")]), "throng holds a milli2 200 20\n");
        assert_eq!(run(&["-d", "a body", &url("/")]), "Hello World!2 200 12\n");
    });
}
