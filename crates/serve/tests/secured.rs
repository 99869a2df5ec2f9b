//! Connections over TLS: a slow reader, peers that break the protocol, and a handshake that never ends.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use net::{
    Backend, Cx, Gone, Io, Key, Program, Shard,
    io::sim::{self, Faults, Net},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serve::{Counters, Http, Knobs, Server, Service, Settings};
use units::Nanos;

const BACKENDS: [Backend; 2] = [Backend::Uring, Backend::Epoll];
/// Timeout for a response.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time after which a server is assumed to send nothing while it waits for its reader.
const STILL: Duration = Duration::from_millis(200);

/// A server, and its certificate.
fn server(io: Backend) -> (Server, String) {
    let secured = tls::Server::new(None, &["http/1.1"]).unwrap();
    let certificate = secured.certificate();
    let listen = "127.0.0.1:0".parse().unwrap();
    let (service, knobs, slots) = (Service::Http, Knobs::default(), 2_000);
    let settings =
        Settings { service, knobs, listen, threads: 1, connections: 200, slots, io, tls: Some(secured) };
    (Server::start(settings).expect("io_uring is allowed here"), certificate)
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn dial(address: SocketAddr, certificate: &str) -> Stream {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config.with_no_client_auth()), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(connection, stream)
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reads a response with this content length; panics on any other.
fn read_response(stream: &mut Stream, length: usize) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let fields = head.to_ascii_lowercase();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(fields.contains(&format!("content-length: {length}\r\n")), "{length}: {head}");
    stream.read_exact(&mut vec![0; length]).unwrap();
}

/// Sends a request on the connection and checks the response.
fn ask(stream: &mut Stream) {
    stream.write_all(b"GET /?length=7 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    read_response(stream, 7);
}

#[test]
fn a_slow_reader_gets_all_responses_in_order() {
    for io in BACKENDS {
        let (server, certificate) = server(io);
        let mut stream = dial(server.address, &certificate);
        // 40 MB: more than the kernel buffers for a connection.
        let lengths: Vec<usize> = (0..6_000).map(|n| 10_240 - n * 7 % 7_000).collect();
        let requests = lengths.iter().enumerate().map(|(n, length)| match n % 500 {
            // Some are delayed, and later ones wait for them.
            499 => format!("GET /delay?for=3ms&length={length} HTTP/1.1\r\nHost: x\r\n\r\n"),
            _ => format!("GET /?length={length} HTTP/1.1\r\nHost: x\r\n\r\n"),
        });
        stream.write_all(requests.collect::<String>().as_bytes()).unwrap();
        let requests = || server.counters.read().requests;
        let mut last = (0, Instant::now());
        wait_for("the server waits for its reader", || {
            if requests() != last.0 {
                last = (requests(), Instant::now());
            }
            last.0 > 0 && last.1.elapsed() > STILL
        });
        assert!(last.0 < 6_000, "it did not wait: {}", last.0);
        let mut other = dial(server.address, &certificate);
        ask(&mut other);
        for length in &lengths {
            read_response(&mut stream, *length);
        }
        ask(&mut stream);
        wait_for("all are counted", || requests() == 6_002);
        assert_eq!(server.counters.read().errors, 0);
        drop((stream, other));
        wait_for("both are closed", || server.counters.read().open == 0);
        server.stop();
    }
}

#[test]
fn what_was_asked_before_a_close_is_answered() {
    for io in BACKENDS {
        let (server, certificate) = server(io);
        let mut stream = dial(server.address, &certificate);
        // More than the kernel buffers, so that requests still wait when the end comes, in the same record and in others.
        let requests = "GET /?length=10240 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3_000);
        stream.write_all(requests.as_bytes()).unwrap();
        stream.conn.send_close_notify();
        stream.flush().unwrap();
        stream.sock.shutdown(std::net::Shutdown::Write).unwrap();
        for _ in 0..3_000 {
            read_response(&mut stream, 10_240);
        }
        wait_for("it is closed", || server.counters.read().closed == 1);
        let stats = server.counters.read();
        assert_eq!((stats.requests, stats.errors), (3_000, 0));
        server.stop();
    }
}

#[test]
fn a_close_is_returned_after_the_responses() {
    for io in BACKENDS {
        let (server, certificate) = server(io);
        for (path, length) in [("/", 12), ("/delay?for=100ms&length=7", 7)] {
            let mut stream = dial(server.address, &certificate);
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream.conn.send_close_notify();
            stream.flush().unwrap();
            read_response(&mut stream, length);
            // The client sends no FIN: an end without close_notify would be an error.
            assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "{path}");
        }
        wait_for("both are closed", || server.counters.read().closed == 2);
        assert_eq!(server.counters.read().errors, 0);
        server.stop();
    }
}

#[test]
fn hostile_peers_end_with_an_error_and_others_are_unharmed() {
    for io in BACKENDS {
        let (server, certificate) = server(io);
        let mut held: Vec<Stream> = (0..5).map(|_| dial(server.address, &certificate)).collect();
        held.iter_mut().for_each(ask);
        let garbage = vec![0xa5; 40_000];
        let hello =
            |length: u16| [&[22, 3, 1][..], &length.to_be_bytes(), &[1, 0, 0, 200], &[7; 400]].concat();
        let hostile = [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            garbage,
            hello(0x4901),
            [&[22, 3, 1, 0, 104, 1, 0, 0, 100][..], &[7; 100]].concat(),
            [&[23, 3, 3, 0, 100][..], &[0; 100]].concat(),
            [&[21, 3, 3, 0, 2, 2, 40][..], &[0; 100]].concat(),
        ];
        for (n, bytes) in hostile.iter().enumerate() {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // The connection may be closed before everything is sent.
            let _ = stream.write_all(bytes);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() < 100, "{n}: an alert at most: {answer:?}");
            wait_for("its error", || server.counters.read().errors == n as u64 + 1);
        }
        held.iter_mut().for_each(ask);
        // A request is counted after its response is sent.
        let counted = || server.counters.read();
        wait_for("the count of the last request", || counted().requests == 10);
        assert_eq!((counted().open, counted().errors), (5, hostile.len() as u64));
        server.stop();
    }
}

/// Dials, and sends the beginning of a record in pieces, one every ten seconds.
struct Dribbler {
    to: SocketAddr,
    is_silent: bool,
    dialled: bool,
    ended: Option<Nanos>,
}

impl Program for Dribbler {
    fn opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        cx.wake_at(k, cx.now());
    }

    fn due<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if self.is_silent {
            return;
        }
        let byte = if cx.now() < Nanos::from_secs(5) { 22 } else { 3 };
        cx.send(k, 1, |out| {
            out[0] = byte;
            1
        });
        cx.wake_at(k, cx.now() + Nanos::from_secs(25));
    }

    fn bytes<I: Io>(&mut self, _: &mut Cx<I>, _: Key, input: &mut [u8]) -> usize {
        input.len()
    }

    fn gone<I: Io>(&mut self, cx: &mut Cx<I>, _: Key, _: Gone) {
        self.ended = Some(cx.now());
    }

    fn pace<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        if !std::mem::replace(&mut self.dialled, true) {
            let k = cx.take().unwrap();
            cx.dial(k, "10.0.0.1:40000".parse().unwrap(), self.to);
        }
        Nanos::NEVER
    }
}

#[test]
fn a_handshake_without_an_end_has_a_minute() {
    for (is_silent, idle_cut) in [(true, None), (false, None), (false, Some(Nanos::from_secs(40)))] {
        let net = Net::new(7, Faults::default());
        let to: SocketAddr = "10.0.0.2:443".parse().unwrap();
        let counters = Arc::new(Counters::new(1));
        let knobs = Knobs { idle_cut, ..Knobs::default() };
        let layer = tls::Server::new(None, &[]).and_then(|server| server.layer()).unwrap();
        let mut io = net.host();
        io.listen(to).unwrap();
        let mut server = Shard::new(io, 300, Http::shard(counters.clone(), 0, 10, &knobs).with_layer(layer));
        let dribbler = Dribbler { to, is_silent, dialled: false, ended: None };
        let mut client = Shard::new(net.host(), 10, dribbler);
        sim::run(&net, &mut [&mut server, &mut client], Nanos::from_secs(100), || false);
        let ended = client.program().ended.expect("it was closed");
        assert!(ended >= Nanos::from_secs(60) && ended < Nanos::from_millis(60_200), "{ended:?}");
        assert_eq!(counters.read().open, 0);
    }
}
