use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::Relaxed},
    thread::JoinHandle,
};

use samples::{Sample, TargetSample};
use units::{Clock, Nanos};

use super::{PATIENCE, Poller, Server, client::Connection, fetch, token::tests::token};

/// A server whose samples repeat the requested ports: the first one as the pid, their number as open files.
struct Running {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Running {
    fn start(secret: Option<&str>, only: Option<u16>) -> Running {
        let server = Server::bind(SocketAddr::from(([127, 0, 0, 1], 0)), secret.map(token), only).unwrap();
        let (address, stop) = (server.address().unwrap(), Arc::new(AtomicBool::new(false)));
        let order = stop.clone();
        let sample = |ports: &[u16]| {
            let target = TargetSample {
                pid: ports[0].into(),
                open_files: Some(ports.len() as u64),
                ..TargetSample::default()
            };
            Sample { target: Some(target), ..Sample::default() }
        };
        let thread = std::thread::spawn(move || server.serve(&order, move |ports: &[u16]| Ok(sample(ports))));
        Running { address, stop, thread: Some(thread) }
    }

    /// The complete response to this request, which with HTTP/1.1 is the last one on its connection.
    fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = request.replacen("HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n", 1);
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        // Unread bytes before a close may cause a reset, after the response.
        let _ = stream.read_to_string(&mut response);
        response
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or("nothing")
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

#[test]
fn both_ends_understand_each_other() {
    let server = Running::start(Some("secret"), None);
    let sample = fetch(server.address, &[8000, 8001], Some(&token("secret"))).unwrap();
    assert_eq!(sample.target.map(|target| (target.pid, target.open_files)), Some((8000, Some(2))));
    let wants = fetch(server.address, &[80], None).unwrap_err();
    assert!(wants.contains("requires a token"), "{wants}");
    let refuses = fetch(server.address, &[80], Some(&token("Secret"))).unwrap_err();
    assert!(refuses.contains("403"), "{refuses}");
}

#[test]
fn unauthorised_clients_learn_nothing() {
    let server = Running::start(Some("secret"), Some(8000));
    let with = |line: &str, fields: &str| server.raw(&format!("{line} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
    let mut responses = Vec::new();
    for line in
        ["GET /observe?port=8000", "GET /observe?port=9", "GET /observe?port=x", "GET /else", "PUT /observe"]
    {
        let without = with(line, "");
        assert_eq!((status(&without), body(&without)), ("401", ""), "{line}: {without}");
        assert!(without.contains("WWW-Authenticate: Bearer\r\n"), "{without}");
        let wrong = with(line, "Authorization: Bearer secrets\r\n");
        assert_eq!((status(&wrong), body(&wrong)), ("403", ""), "{line}: {wrong}");
        responses.push((without, wrong));
    }
    responses.dedup();
    assert_eq!(responses.len(), 1, "they distinguish places: {responses:?}");
    let twice = "Authorization: Bearer x\r\nAuthorization: Bearer secret\r\n";
    assert_eq!(status(&with("GET /observe?port=8000", twice)), "403");
    assert_eq!(status(&with("GET /observe?port=8000", "authorization: bearer secret\r\n")), "200");
}

#[test]
fn requests_are_read_strictly() {
    let server = Running::start(None, None);
    let request = |line: &str| server.raw(&format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n"));
    for (line, expected) in [
        ("GET /observe?port=8000", "200"),
        ("GET /observe?a=b&port=8000,8001", "200"),
        ("GET /observe", "400"),
        ("GET /observe?port=", "400"),
        ("GET /observe?port=65536", "400"),
        ("GET /observe?port=80;81", "400"),
        ("GET /", "404"),
        ("GET /observe/", "404"),
        ("POST /observe?port=80", "405"),
        ("nonsense", "400"),
    ] {
        assert_eq!(status(&request(line)), expected, "{line}");
    }
    let many: Vec<String> = (1..=65).map(|port| port.to_string()).collect();
    assert_eq!(status(&request(&format!("GET /observe?port={}", many.join(",")))), "400");
    assert_eq!(status(&server.raw(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000)))), "431");
    assert_eq!(status(&server.raw("\r\n\r\n")), "400");
    // After any invalid request, the next one is served.
    assert_eq!(status(&request("GET /observe?port=8000")), "200");
}

#[test]
fn one_port_may_be_all_that_is_shown() {
    let server = Running::start(None, Some(8000));
    let request = |query: &str| server.raw(&format!("GET /observe{query} HTTP/1.1\r\nHost: x\r\n\r\n"));
    for (query, expected) in
        [("", "200"), ("?port=8000", "200"), ("?port=8001", "404"), ("?port=8000,8001", "404")]
    {
        assert_eq!(status(&request(query)), expected, "{query}");
    }
    assert!(body(&request("")).contains("\"pid\":8000"));
}

#[test]
fn silent_peers_do_not_delay_others() {
    let server = Running::start(None, None);
    let clock = Clock::start();
    // More peers than allowed, all from one address, half of them with an incomplete request.
    let mut silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for stream in silent.iter_mut().step_by(2) {
        // Peers that were replaced are closed.
        let _ = stream.write_all(b"GET /obs");
    }
    for _ in 0..5 {
        fetch(server.address, &[8000], None).unwrap();
    }
    // Waiting for a silent peer would take that long.
    assert!(clock.now() < PATIENCE, "five responses took {}", clock.now());
    let mut response = String::new();
    silent[198].read_to_string(&mut response).unwrap();
    assert_eq!(status(&response), "408", "the last to begin its request gets a response: {response}");
}

/// Sends a request on a persistent connection; returns the response.
fn ask_on(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /observe?port=8000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let (mut response, mut piece) = (Vec::new(), [0; 4096]);
    // The sample ends the content.
    while !response.ends_with(b"}") {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0, "it ends: {:?}", String::from_utf8_lossy(&response));
        response.extend_from_slice(&piece[..n]);
    }
    String::from_utf8(response).unwrap()
}

#[test]
fn clients_with_requests_keep_their_slots() {
    let server = Running::start(None, None);
    let mut stream = TcpStream::connect(server.address).unwrap();
    assert_eq!(status(&ask_on(&mut stream)), "200");
    let _silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for _ in 0..3 {
        assert_eq!(status(&ask_on(&mut stream)), "200");
    }
}

#[test]
fn a_poller_keeps_one_connection_and_reconnects() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Two steps of a search, one after the other.
    for step in 0..2 {
        let poller = Poller::start(address, &[7], None).unwrap();
        if step == 0 {
            let (mut stream, _) = listener.accept().unwrap();
            respond_on(&mut stream, 1);
            assert_eq!(poller.wait(Nanos::from_secs(20)).unwrap().unwrap().target.unwrap().pid, 1);
            respond_on(&mut stream, 2);
            assert_eq!(poller.wait(Nanos::from_secs(20)).unwrap().unwrap().target.unwrap().pid, 2);
            drop(poller);
            // The next poller's first request uses the same connection, which is then lost.
            let poller = Poller::start(address, &[7], None).unwrap();
            respond_on(&mut stream, 3);
            assert_eq!(poller.wait(Nanos::from_secs(20)).unwrap().unwrap().target.unwrap().pid, 3);
            listener.set_nonblocking(true).unwrap();
            assert!(listener.accept().is_err(), "no second connection");
            listener.set_nonblocking(false).unwrap();
        } else {
            let (mut stream, _) = listener.accept().unwrap();
            respond_on(&mut stream, 4);
            assert_eq!(poller.wait(Nanos::from_secs(20)).unwrap().unwrap().target.unwrap().pid, 4);
        }
    }
}

/// Reads one request, and responds with this pid.
fn respond_on(stream: &mut TcpStream, pid: u32) {
    let (mut head, mut piece) = (Vec::new(), [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        let n = stream.read(&mut piece).unwrap();
        assert!(n > 0, "it ends: {:?}", String::from_utf8_lossy(&head));
        head.extend_from_slice(&piece[..n]);
    }
    let target = TargetSample { pid, ..TargetSample::default() };
    let body = Sample { target: Some(target), ..Sample::default() }.to_json();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
}

/// As with a full connection tracking table: known connections work, new ones do not.
#[test]
fn a_late_response_costs_a_sample_but_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connection = Connection::new(address);
    let asking = connection.clone();
    let first = std::thread::spawn(move || asking.get("/a", ""));
    let (mut stream, _) = listener.accept().unwrap();
    respond_on(&mut stream, 1);
    assert_eq!(first.join().unwrap().unwrap().0, 200);
    // No new connection is possible from here on.
    drop(listener);
    let late = connection.get("/b", "").unwrap_err();
    assert!(late.contains("no response within 2s"), "{late}");
    let asking = connection.clone();
    let third = std::thread::spawn(move || asking.get("/c", ""));
    // The response to the second request arrives and is skipped.
    respond_on(&mut stream, 2);
    respond_on(&mut stream, 3);
    let (status, text) = third.join().unwrap().unwrap();
    assert!(status == 200 && text.contains("\"pid\":3"), "{text}");
}

#[test]
fn a_poller_repeats_and_survives_failures() {
    let server = Running::start(None, None);
    let poller = Poller::start(server.address, &[7], None).unwrap();
    for _ in 0..2 {
        let sample = poller.wait(Nanos::from_secs(20)).expect("a response").unwrap();
        assert_eq!(sample.target.unwrap().pid, 7);
    }
    assert!(poller.next().is_none(), "a second has not passed");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let poller = Poller::start(nobody, &[7], None).unwrap();
    let why = poller.wait(Nanos::from_secs(20)).expect("a response").unwrap_err();
    assert!(why.contains("refused"), "{why}");
}

#[test]
fn another_server_is_no_observer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for (response, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\n{\"hello\": 1}", "not a sample"),
        ("HTTP/1.1 302 Found\r\n\r\n", "302"),
        ("220 smtp ready\r\n", "not HTTP"),
        ("", "not HTTP"),
    ] {
        let asking = std::thread::spawn(move || fetch(address, &[1], None));
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).unwrap();
        stream.write_all(response.as_bytes()).unwrap();
        drop(stream);
        let why = asking.join().unwrap().unwrap_err();
        assert!(why.contains(expected), "{response:?}: {why}");
    }
}
