//! Against the crate h2, in both roles: generated requests and responses, with all settings that affect them.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use futures_util::future::{Either, join, select};
use h2::{client, server};
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use wire::http2::{
    CLIENT_PREFACE, Connection, Context, Event, Method, RequestFields, Response, Role, SERVER_PREFACE,
    SETTINGS_ACK, Scratch, Stream, Table, write_field, write_pong, write_request_fields,
    write_response_fields, write_window_update,
};

/// The settings that the other side announces.
#[derive(Clone, Copy, Debug)]
struct Settings {
    window: u32,
    max_frame: u32,
    table: u32,
    /// Maximum number of bytes in transit, which determines where reads and writes are cut.
    pipe: usize,
}

/// A request and its response.
#[derive(Clone, Debug)]
struct Exchange {
    path: String,
    request_body: Vec<usize>,
    fields: Vec<(String, String)>,
    response_body: Vec<usize>,
    has_trailers: bool,
}

fn settings() -> impl Strategy<Value = Settings> {
    let table = prop_oneof![Just(4096), Just(0), 0..8192u32];
    (1..100_000u32, 16_384..70_000u32, table, 50..20_000usize)
        .prop_map(|(window, max_frame, table, pipe)| Settings { window, max_frame, table, pipe })
}

fn exchanges() -> impl Strategy<Value = Vec<Exchange>> {
    let name = prop_oneof![Just("server".to_owned()), Just("x-same".to_owned()), "[a-z][a-z0-9-]{0,10}x"];
    let body = || vec(prop_oneof![0..50usize, 0..40_000usize], 0..4);
    let fields = vec((name, "[!-~]{0,30}"), 0..8);
    let exchange = ("/[a-z0-9?=&]{0,30}", body(), fields, body(), any::<bool>());
    let exchange = exchange.prop_map(|(path, request_body, fields, response_body, has_trailers)| Exchange {
        path,
        request_body,
        fields,
        response_body,
        has_trailers,
    });
    vec(exchange, 1..12)
}

/// Varying letters, so that a lost or repeated piece is detected.
fn text(length: usize) -> Vec<u8> {
    (0..length).map(|nth| b'a' + (nth % 23) as u8).collect()
}

fn headers(fields: &[(String, String)]) -> HeaderMap {
    let field = |(name, value): &(String, String)| {
        (HeaderName::try_from(name).expect("a name"), HeaderValue::try_from(value).expect("a value"))
    };
    fields.iter().map(field).collect()
}

/// The side under test: the machine, its socket, and the state that a program keeps.
struct Ours {
    /// `None` once it runs.
    io: Option<DuplexStream>,
    machine: Connection,
    table: Option<Table>,
    has_needed_table: bool,
    /// A server's preface, if it is sent only after the first request has arrived: the client's table is in use until then.
    late: &'static [u8],
    streams: BTreeMap<u32, Kept>,
    out: Vec<u8>,
    /// Whether the other side's SETTINGS have arrived. Bodies wait for them: if h2 lowers the window below what has arrived, it raises it
    /// again only when more arrives.
    is_open: bool,
}

/// The state of an exchange.
#[derive(Default)]
struct Kept {
    stream: Option<Stream>,
    head: String,
    body: Vec<u8>,
    has_expected: bool,
    trailers: Option<(Option<u32>, Vec<u8>)>,
    ended: bool,
    to_send: Option<(Vec<u8>, usize, bool)>,
}

impl Ours {
    fn new(io: DuplexStream, role: Role, is_late: bool) -> Self {
        let preface = if role == Role::Client { CLIENT_PREFACE } else { SERVER_PREFACE };
        let (preface, late) = if is_late { (&[][..], preface) } else { (preface, &[][..]) };
        Self {
            io: Some(io),
            machine: Connection::new(role),
            table: None,
            has_needed_table: false,
            late,
            streams: BTreeMap::new(),
            out: preface.to_vec(),
            is_open: false,
        }
    }

    /// Appends the output of `write`.
    fn send(out: &mut Vec<u8>, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let (at, mut room) = (out.len(), vec![0; 20_000]);
        let n = write(&mut room).expect("there is room");
        out.extend_from_slice(&room[..n]);
        assert_eq!(out.len(), at + n);
    }

    /// Reads and writes until the other side closes, or until all of `total` exchanges have ended; calls `turn` after each read.
    ///
    /// It reads while it writes, because h2 does not: otherwise both could wait for room in a full pipe.
    async fn run(
        mut self,
        total: usize,
        fields: &[Exchange],
        turn: impl Fn(&mut Self),
    ) -> BTreeMap<u32, Kept> {
        let (mut rest, mut scratch) = (Vec::new(), Box::new(Scratch::new()));
        let is_late = !self.late.is_empty();
        let (mut input, mut output) = split(self.io.take().expect("it runs once"));
        let mut piece = [0; 4096];
        loop {
            turn(&mut self);
            self.send_bodies();
            let out = std::mem::take(&mut self.out);
            let had = rest.len();
            let mut written = pin!(output.write_all(&out));
            while let Either::Left((read, _)) = select(pin!(input.read(&mut piece)), &mut written).await {
                let n = read.expect("the pipe is open");
                assert!(n > 0, "closed early: {:?}", self.machine);
                rest.extend_from_slice(&piece[..n]);
            }
            let is_sent = |kept: &Kept| kept.stream.is_some_and(|stream| stream.is_closed());
            if self.streams.len() == total && self.streams.values().all(is_sent) {
                assert_eq!(self.machine.open_streams(), 0);
                assert!(self.has_needed_table || !is_late, "h2 stores what it sends");
                return self.streams;
            }
            if rest.len() == had {
                let n = input.read(&mut piece).await.expect("the pipe is open");
                assert!(n > 0, "closed early: {:?}", self.machine);
                rest.extend_from_slice(&piece[..n]);
            }
            let mut at = 0;
            while let Some(n) = self.step(&rest[at..], &mut scratch, fields) {
                at += n;
            }
            rest.drain(..at);
        }
    }

    fn step(&mut self, input: &[u8], scratch: &mut Scratch, fields: &[Exchange]) -> Option<usize> {
        let id = self.machine.reads(input);
        let mut stream = self.streams.get(&id).and_then(|kept| kept.stream);
        let expected = fields.get(id as usize / 2).map_or(&[][..], |exchange| &exchange.fields);
        let context = Context { scratch, table: self.table.as_mut(), second: 0, expected, fields: None };
        let (n, event) = self.machine.handle_bytes(input, stream.as_mut(), context).expect("no error");
        if n == 0 && event.is_none() {
            return None;
        }
        let event = event.map(|event| self.hear(id, event));
        if let Some(Some(opened)) = event {
            stream = Some(opened);
        }
        if let Some(stream) = &mut stream {
            if let Some(credit) = self.machine.take_stream_credit(stream) {
                Self::send(&mut self.out, |out| write_window_update(out, id, credit));
            }
            self.streams.entry(id).or_default().stream = Some(*stream);
        }
        if let Some(credit) = self.machine.take_credit() {
            Self::send(&mut self.out, |out| write_window_update(out, 0, credit));
        }
        Some(n)
    }

    fn hear(&mut self, id: u32, event: Event<'_>) -> Option<Stream> {
        let kept = if id == 0 { &mut Kept::default() } else { self.streams.entry(id).or_default() };
        match event {
            Event::Opened | Event::Settings => {
                self.is_open = true;
                self.out.extend_from_slice(SETTINGS_ACK);
            }
            Event::SettingsAcked => self.table = self.table.take().filter(|_| self.machine.has_table()),
            Event::TableNeeded => {
                (self.table, self.has_needed_table) = (Some(Table::new()), true);
            }
            Event::Ping(payload) => Self::send(&mut self.out, |out| write_pong(out, payload)),
            Event::Request(request, stream) => {
                kept.head = format!("{} {} {}", request.method, request.authority, request.path);
                kept.ended = request.ends;
                self.out.extend_from_slice(std::mem::take(&mut self.late));
                return Some(stream);
            }
            Event::Head(head) => {
                kept.head = format!("{} {:?}", head.status, head.length);
                (kept.ended, kept.has_expected) = (head.ends, head.has_expected);
            }
            Event::Data(data) => {
                kept.body.extend_from_slice(data.bytes);
                kept.ended = data.ends;
            }
            Event::Trailers(trailers) => {
                kept.trailers = Some((trailers.grpc.status, trailers.grpc.message.to_vec()));
                kept.ended = true;
            }
            Event::Window(_) => {}
            other => panic!("{other:?}"),
        }
        None
    }

    fn send_bodies(&mut self) {
        for kept in self.streams.values_mut().filter(|_| self.is_open) {
            let (Some(stream), Some((body, at, has_trailers))) = (&mut kept.stream, &mut kept.to_send) else {
                continue;
            };
            while !stream.is_sent() {
                let mut room = [0; 5000];
                let (written, taken) =
                    self.machine.write_data(&mut room, stream, &body[*at..], !*has_trailers);
                self.out.extend_from_slice(&room[..written]);
                *at += taken;
                if *has_trailers && *at == body.len() {
                    Self::send(&mut self.out, |out| {
                        let mut block = [0; 100];
                        let n = write_field(&mut block, "grpc-status", b"0").expect("it fits");
                        self.machine.write_headers(out, stream, &block[..n], true)
                    });
                } else if taken == 0 && !stream.is_sent() {
                    break;
                }
            }
        }
    }
}

/// Responds to each request with the fields of its exchange, and the request's body as received.
fn respond(ours: &mut Ours, exchanges: &[Exchange]) {
    for (id, kept) in &mut ours.streams {
        let exchange = &exchanges[*id as usize / 2];
        let Some(stream) = kept.stream.as_mut().filter(|_| kept.ended && kept.to_send.is_none()) else {
            continue;
        };
        let mut block = [0; 4096];
        let length = (!exchange.has_trailers).then_some(kept.body.len() as u64);
        let response = Response { status: 202, content_type: "text/plain", content_length: length };
        let mut at = write_response_fields(&mut block, &response).expect("it fits");
        for (name, value) in &exchange.fields {
            at += write_field(&mut block[at..], name, value.as_bytes()).expect("it fits");
        }
        Ours::send(&mut ours.out, |out| ours.machine.write_headers(out, stream, &block[..at], false));
        kept.to_send = Some((kept.body.clone(), 0, exchange.has_trailers));
    }
}

/// Sends a request by h2's client, and checks the response.
async fn request(sender: client::SendRequest<bytes::Bytes>, exchange: Exchange) {
    let mut sender = sender.ready().await.expect("ready");
    let mut request =
        http::Request::post(format!("http://h.example{}", exchange.path)).body(()).expect("a head");
    request.headers_mut().extend(headers(&exchange.fields));
    let (response, mut body) = sender.send_request(request, false).expect("sent");
    for piece in &exchange.request_body {
        body.send_data(text(*piece).into(), false).expect("sent");
    }
    if exchange.has_trailers {
        body.send_trailers(headers(&[("x-sum".to_owned(), "1".to_owned())])).expect("sent");
    } else {
        body.send_data(bytes::Bytes::new(), true).expect("sent");
    }
    let (head, mut body) = response.await.expect("a response").into_parts();
    assert_eq!(head.status, 202);
    for name in headers(&exchange.fields).keys() {
        let values = |map: &HeaderMap| map.get_all(name).iter().cloned().collect::<Vec<_>>();
        assert_eq!(values(&head.headers), values(&headers(&exchange.fields)), "{name}");
    }
    let mut came = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.expect("data");
        came.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len()).expect("released");
    }
    let sent: Vec<u8> = exchange.request_body.iter().flat_map(|piece| text(*piece)).collect();
    assert!(came == sent, "{} of {} bytes came back", came.len(), sent.len());
    let trailers = body.trailers().await.expect("an end");
    assert_eq!(trailers.is_some_and(|trailers| trailers["grpc-status"] == "0"), exchange.has_trailers);
}

/// h2's server: sends the response of the exchange that the request names.
async fn serve(io: DuplexStream, settings: Settings, exchanges: Vec<Exchange>) {
    let mut builder = server::Builder::new();
    builder.initial_window_size(settings.window).max_frame_size(settings.max_frame);
    let mut connection = builder.handshake(io).await.expect("a handshake");
    while let Some(accepted) = connection.accept().await {
        let Ok((request, mut respond)) = accepted else { return };
        let exchange = exchanges[usize::from(
            request.headers()["x-nth"].to_str().expect("text").parse::<u16>().expect("a number"),
        )]
        .clone();
        assert_eq!(request.uri().path_and_query().expect("a path").as_str(), exchange.path);
        tokio::spawn(async move {
            let (mut body, mut came) = (request.into_body(), 0);
            while let Some(piece) = body.data().await {
                let piece = piece.expect("data");
                came += piece.len();
                body.flow_control().release_capacity(piece.len()).expect("released");
            }
            assert_eq!(came, exchange.request_body.iter().sum::<usize>());
            let mut response = http::Response::builder().status(206).body(()).expect("a head");
            response.headers_mut().extend(headers(&exchange.fields));
            let mut body = respond.send_response(response, false).expect("sent");
            for piece in &exchange.response_body {
                body.send_data(text(*piece).into(), false).expect("sent");
            }
            match exchange.has_trailers {
                true => body.send_trailers(headers(&[
                    ("grpc-status".to_owned(), "9".to_owned()),
                    ("grpc-message".to_owned(), "no%20way".to_owned()),
                ])),
                false => body.send_data(bytes::Bytes::new(), true),
            }
            .expect("sent");
        });
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// The result of both ends, with a timeout against a deadlock.
async fn within<F: Future>(both: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("neither end waits for the other")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn our_server_and_its_client(settings in settings(), exchanges in exchanges(), is_late in any::<bool>()) {
        let kept = runtime().block_on(async {
            let (ours, theirs) = duplex(settings.pipe);
            let ours = Ours::new(ours, Role::Server, is_late).run(exchanges.len(), &[], |ours| respond(ours, &exchanges));
            let theirs = async {
                let mut builder = client::Builder::new();
                builder.initial_window_size(settings.window).max_frame_size(settings.max_frame);
                builder.header_table_size(settings.table);
                let (sender, connection) = builder.handshake(theirs).await.expect("a handshake");
                let connection = tokio::spawn(connection);
                let requests = exchanges.iter().map(|exchange| tokio::spawn(request(sender.clone(), exchange.clone())));
                for task in requests.collect::<Vec<_>>() {
                    task.await.expect("a response as expected");
                }
                connection.abort();
            };
            within(join(ours, theirs)).await.0
        });
        for ((_, kept), exchange) in kept.iter().zip(&exchanges) {
            prop_assert_eq!(&kept.head, &format!("POST h.example {}", exchange.path));
            prop_assert_eq!(kept.trailers.is_some(), exchange.has_trailers);
        }
    }

    #[test]
    fn our_client_and_its_server(settings in settings(), exchanges in exchanges()) {
        let kept = runtime().block_on(async {
            let (io, theirs) = duplex(settings.pipe);
            let mut ours = Ours::new(io, Role::Client, false);
            for (nth, exchange) in exchanges.iter().enumerate() {
                let fields = RequestFields { method: "POST", scheme: "http", authority: "h", path: &exchange.path, protocol: "" };
                let mut block = [0; 256];
                let mut at = write_request_fields(&mut block, &fields).expect("it fits");
                at += write_field(&mut block[at..], "x-nth", nth.to_string().as_bytes()).expect("it fits");
                let mut out = [0; 512];
                let (n, stream) =
                    ours.machine.write_request(&mut out, &block[..at], false, Method::Other).expect("it fits");
                ours.out.extend_from_slice(&out[..n]);
                let body = exchange.request_body.iter().flat_map(|piece| text(*piece)).collect();
                let kept = Kept { stream: Some(stream), to_send: Some((body, 0, false)), ..Kept::default() };
                ours.streams.insert(stream.id(), kept);
            }
            let theirs = tokio::spawn(serve(theirs, settings, exchanges.clone()));
            let kept = within(ours.run(exchanges.len(), &exchanges, |_| {})).await;
            theirs.abort();
            kept
        });
        for ((_, kept), exchange) in kept.iter().zip(&exchanges) {
            let sent: Vec<u8> = exchange.response_body.iter().flat_map(|piece| text(*piece)).collect();
            prop_assert!(kept.has_expected && kept.ended, "{}", kept.head);
            prop_assert_eq!(&kept.head, "206 None");
            prop_assert!(kept.body == sent, "{} of {} bytes came", kept.body.len(), sent.len());
            let trailers = exchange.has_trailers.then(|| (Some(9), b"no%20way".to_vec()));
            prop_assert_eq!(&kept.trailers, &trailers);
        }
    }
}
