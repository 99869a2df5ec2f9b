//! Hostile HTTP/2 clients, which cause far more work or memory than they spend: each gets an error code and loses its connection,
//! memory stays bounded, and another client's connection goes on.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    sync::Mutex,
    time::Duration,
};

use net::Backend;
use serve::{Knobs, Server, Service, Settings};
use wire::http2::{CLIENT_PREFACE, Code, MAX_BLOCK, MAX_CONTROLS, MAX_RESETS, MAX_STREAMS};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const UNKNOWN: u8 = 99;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// More than is allowed in each of two seconds, wherever a second begins.
const CONTROLS: u32 = 2 * MAX_CONTROLS as u32 + 2;
const RESETS: u32 = 2 * MAX_RESETS as u32 + 2;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags], &stream.to_be_bytes()[..], payload].concat()
}

/// The fields of `GET http://h` with this path.
fn get(path: &str) -> Vec<u8> {
    [&[0x82, 0x86, 0x41, 1, b'h', 0x04, path.len() as u8], path.as_bytes()].concat()
}

/// The number of a client's nth stream, counted from 0.
fn nth(n: u32) -> u32 {
    2 * n + 1
}

fn server() -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (service, knobs, io) = (Service::Http, Knobs::default(), Backend::Epoll);
    let settings = Settings { service, knobs, listen, threads: 1, connections: 64, slots: 64, io, tls: None };
    Server::start(settings).expect("epoll is always allowed")
}

fn dial(server: &Server) -> TcpStream {
    let socket = TcpStream::connect(server.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// The code of the GOAWAY for a client that sends this after its preface; its connection is closed then.
fn ended_by(server: &Server, input: &[u8]) -> Option<Code> {
    let mut socket = dial(server);
    // The server may close before it has read everything.
    let _ = socket.write_all(&[CLIENT_PREFACE, input].concat());
    let (mut came, mut piece) = (Vec::new(), [0; 64 * 1024]);
    while let Ok(n @ 1..) = socket.read(&mut piece) {
        came.extend_from_slice(&piece[..n]);
    }
    let goaway = frames(&came).into_iter().find(|(kind, _)| *kind == GOAWAY);
    goaway.map(|(_, payload)| Code(u32::from_be_bytes(payload[4..8].try_into().unwrap())))
}

/// The complete frames with their payloads.
fn frames(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut all = Vec::new();
    while let Some(([a, b, c, kind, ..], after)) = bytes.split_first_chunk::<9>()
        && let Some((payload, after)) = after.split_at_checked(u32::from_be_bytes([0, *a, *b, *c]) as usize)
    {
        all.push((*kind, payload));
        bytes = after;
    }
    all
}

/// A client whose connection stays open all the time.
struct Bystander(TcpStream);

impl Bystander {
    fn check(&mut self, after: &str) {
        self.0.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut came = Vec::new();
        while !came.ends_with(b"Hello World!") {
            let mut piece = [0; 1024];
            let n = self.0.read(&mut piece).unwrap_or_else(|error| panic!("after {after}: {error}"));
            assert!(n > 0, "closed after {after}");
            came.extend_from_slice(&piece[..n]);
        }
    }
}

/// Resident memory of this process, including the server, in bytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn times(n: u32, frame: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..n).flat_map(frame).collect()
}

/// The attacks, each with the code of its GOAWAY.
fn attacks() -> Vec<(&'static str, Vec<u8>, Code)> {
    let calm = Code::ENHANCE_YOUR_CALM;
    let cancel = 8u32.to_be_bytes();
    // 4,000 bytes in the HPACK table that exists until the server's SETTINGS are acknowledged, and references to them.
    let bomb = {
        let stored = [&[0x40, 1, b'x', 0x7f, 0xa1, 0x1e][..], &[b'y'; 4000]].concat();
        [get("/"), stored, vec![0xbe; 10_000]].concat()
    };
    vec![
        (
            "rapid reset",
            times(RESETS, |n| {
                let head = frame(HEADERS, END_HEADERS, nth(n), &get("/"));
                [head, frame(RST_STREAM, 0, nth(n), &cancel)].concat()
            }),
            calm,
        ),
        // Each is a stream error, which makes the server reset the stream.
        (
            "resets by the server",
            times(RESETS, |n| {
                let head = frame(HEADERS, END_HEADERS, nth(n), &get("/"));
                [head, frame(WINDOW_UPDATE, 0, nth(n), &[0; 4])].concat()
            }),
            calm,
        ),
        (
            "CONTINUATION without end",
            [frame(HEADERS, 0, 1, &get("/")), times(1000, |_| frame(CONTINUATION, 0, 1, b""))].concat(),
            calm,
        ),
        (
            "a block without end",
            [
                frame(HEADERS, 0, 1, &[0; 16_000]),
                times(3, |_| frame(CONTINUATION, 0, 1, &vec![0; MAX_BLOCK / 2])),
            ]
            .concat(),
            calm,
        ),
        ("SETTINGS", times(CONTROLS, |_| frame(SETTINGS, 0, 0, b"")), calm),
        ("PING", times(CONTROLS, |_| frame(PING, 0, 0, &[0; 8])), calm),
        ("PRIORITY", times(CONTROLS, |n| frame(PRIORITY, 0, nth(n), &[0, 0, 0, 0, 9])), calm),
        ("unknown frames", times(CONTROLS, |_| frame(UNKNOWN, 0, 0, b"")), calm),
        (
            "empty DATA",
            [frame(HEADERS, END_HEADERS, 1, &get("/")), times(CONTROLS, |_| frame(DATA, 0, 1, b""))].concat(),
            calm,
        ),
        ("a compression bomb", frame(HEADERS, END_HEADERS | END_STREAM, 1, &bomb), calm),
        (
            "a frame of 16 MiB",
            frame(DATA, 0, 1, b"")[3..].iter().fold(vec![255; 3], |mut all, byte| {
                all.push(*byte);
                all
            }),
            Code::FRAME_SIZE_ERROR,
        ),
        (
            "a window of 2^31",
            times(2, |_| frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255])),
            Code::FLOW_CONTROL_ERROR,
        ),
        ("a reference to nothing", frame(HEADERS, END_HEADERS, 1, &[0xbf]), Code::COMPRESSION_ERROR),
        ("a push", frame(5, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]), Code::PROTOCOL_ERROR),
    ]
}

/// Memory is measured for the process, so tests run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const ROUNDS: u64 = 20;

#[test]
fn an_attack_costs_its_connection_and_nothing_else() {
    let _alone = ALONE.lock();
    let server = server();
    let mut bystander = Bystander(dial(&server));
    let attacks = attacks();
    let round = |bystander: &mut Bystander| {
        for (name, input, code) in &attacks {
            assert_eq!(ended_by(&server, input), Some(*code), "{name}");
            bystander.check(name);
        }
    };
    round(&mut bystander);
    let before = resident();
    (1..ROUNDS).for_each(|_| round(&mut bystander));
    let grown = resident().saturating_sub(before);
    let sent = (ROUNDS - 1) * attacks.iter().map(|(_, input, _)| input.len() as u64).sum::<u64>();
    assert!(grown < sent / 4, "memory grows with attacks: {grown} bytes, {sent} were sent");
    let counters = server.counters.clone();
    server.stop();
    let errors = counters.read().errors;
    assert!(errors >= ROUNDS * attacks.len() as u64, "each is counted: {errors}");
}

/// Clients that open more streams than allowed, and read no response.
#[test]
fn readers_that_take_nothing_cost_their_windows() {
    const CLIENTS: u64 = 16;
    const LENGTH: u64 = 4096;
    let _alone = ALONE.lock();
    let server = server();
    let mut bystander = Bystander(dial(&server));
    bystander.check("nothing");
    let before = resident();
    let head = get(&format!("/?length={LENGTH}"));
    // A window of 0 for each stream, so that no body is sent.
    let settings = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let requests = times(MAX_STREAMS * 3, |n| frame(HEADERS, END_HEADERS | END_STREAM, nth(n), &head));
    let input = [&CLIENT_PREFACE[..24], &settings, &requests].concat();
    let mut sockets: Vec<TcpStream> = (0..CLIENTS).map(|_| dial(&server)).collect();
    for socket in &mut sockets {
        socket.write_all(&input).unwrap();
    }
    // For each client: a head per open stream, and a reset per refused one.
    for socket in &mut sockets {
        let (mut refused, mut came, mut piece) = (0, Vec::new(), [0; 64 * 1024]);
        while refused < u64::from(MAX_STREAMS) * 2 {
            let n = socket.read(&mut piece).unwrap();
            assert!(n > 0, "closed after {refused} refusals");
            came.extend_from_slice(&piece[..n]);
            refused = frames(&came).iter().filter(|(kind, _)| *kind == RST_STREAM).count() as u64;
        }
        assert_eq!(refused, u64::from(MAX_STREAMS) * 2);
    }
    bystander.check("sixteen that take nothing");
    let most = CLIENTS * u64::from(MAX_STREAMS) * (LENGTH + 512);
    let grown = resident().saturating_sub(before);
    assert!(grown < most + (4 << 20), "{grown} bytes, {most} for what waits");
    drop(sockets);
    bystander.check("their end");
}
