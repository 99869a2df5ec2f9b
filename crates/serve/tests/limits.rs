//! A server at its limits keeps its connections, accepts no more, and loses no waiting ones.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use net::Backend;
use serve::{Knobs, Server, Service, Settings};

const BACKENDS: [Backend; 2] = [Backend::Uring, Backend::Epoll];

fn server(io: Backend, connections: u32) -> Server {
    // Rings with four slots; a file table with room for them all.
    let slots = if io == Backend::Uring { 4 } else { 2_000 };
    start(io, connections, slots)
}

fn start(io: Backend, connections: u32, slots: u32) -> Server {
    let listen = "127.0.0.1:0".parse().unwrap();
    let (service, knobs) = (Service::Http, Knobs::default());
    let settings = Settings { service, knobs, listen, threads: 1, connections, slots, io, tls: None };
    Server::start(settings).expect("io_uring is allowed here")
}

/// Timeout for everything that must happen, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
/// What has not come by then is assumed not to come; on a busy machine it may be late, and then less is tested.
const STILL: Duration = Duration::from_millis(300);

fn dial(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request and returns whether a response came.
fn ask(mut stream: &TcpStream) -> bool {
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    is_answered(stream)
}

/// Sends a request and returns whether there is no response.
fn ask_in_vain(stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(STILL)).unwrap();
    let in_vain = !ask(stream);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    in_vain
}

fn is_answered(mut stream: &TcpStream) -> bool {
    let mut answer = [0; 256];
    stream.read(&mut answer).is_ok_and(|n| answer[..n].ends_with(b"Hello World!"))
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn full_tables_lose_no_connection() {
    BACKENDS.into_iter().for_each(full_tables_lose_nobody_over);
}

fn full_tables_lose_nobody_over(io: Backend) {
    let server = server(io, 6);
    let mut held: Vec<TcpStream> = (0..6).map(|_| dial(&server)).collect();
    assert!(held.iter().all(ask), "six fit");
    let waiting: Vec<TcpStream> = (0..3).map(|_| dial(&server)).collect();
    assert!(waiting.iter().all(ask_in_vain), "nobody more is served");
    assert!(held.iter().all(ask), "those that were there still are");
    assert_eq!(server.counters.read().open, 6);
    held.truncate(3);
    assert!(waiting.iter().all(is_answered), "the waiting are served once there is room");
    let stats = server.counters.read();
    assert_eq!((stats.open, stats.accepted, stats.closed, stats.refused, stats.errors), (6, 9, 3, 0, 0));
    server.stop();
}

#[test]
fn closes_of_the_server_agree_with_its_counters() {
    let server = server(Backend::Uring, 6);
    for _ in 0..3 {
        let mut stream = dial(&server);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        assert!(answer.ends_with(b"Hello World!"));
    }
    wait_for("all three are closed", || server.counters.read().closed == 3);
    let stats = server.counters.read();
    assert_eq!((stats.open, stats.accepted, stats.requests), (0, 3, 3));
    server.stop();
}

#[test]
fn a_paused_server_keeps_what_it_has() {
    BACKENDS.into_iter().for_each(a_paused_server_keeps_what_it_has_over);
}

fn a_paused_server_keeps_what_it_has_over(io: Backend) {
    let server = server(io, 1000);
    let held = dial(&server);
    assert!(ask(&held));
    server.counters.set_accepting(false);
    // Accepts that were pending before the pause may still complete: use them up first.
    let mut more: Vec<TcpStream> = Vec::new();
    wait_for("a dial that is not answered", || {
        more.push(dial(&server));
        ask_in_vain(more.last().unwrap())
    });
    assert!(ask(&held), "what was there is still served");
    server.counters.set_accepting(true);
    assert!(is_answered(more.last().unwrap()), "the one who waited is served");
    server.stop();
}

#[test]
fn outstanding_responses_are_sent_before_the_end() {
    BACKENDS.into_iter().for_each(what_is_owed_is_finished_before_the_end_over);
}

fn what_is_owed_is_finished_before_the_end_over(io: Backend) {
    let server = server(io, 100);
    let mut owed = dial(&server);
    let start = Instant::now();
    owed.write_all(b"GET /delay?for=400ms HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    wait_for("the request has arrived", || server.counters.read().bytes_in > 0);
    let address = server.address;
    server.stop();
    assert!(is_answered(&owed), "answered although the server was told to stop");
    assert!(start.elapsed() >= Duration::from_millis(400), "not before its time");
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}

#[test]
fn a_table_of_files_that_fills_up_is_followed_by_another() {
    // Room for 10 in each table, for 35 in total.
    let server = start(Backend::Epoll, 35, 26);
    let mut held: Vec<TcpStream> = Vec::new();
    for n in 0..35 {
        held.push(dial(&server));
        assert!(ask(&held[n]), "number {n} is served");
    }
    assert!(held.iter().all(ask), "all of them still are");
    let waiting = dial(&server);
    // Four tables have room for 40: five more, and no further one.
    let more: Vec<TcpStream> = (0..4).map(|_| dial(&server)).collect();
    assert!(ask(&waiting) && more.iter().all(ask), "those fit too");
    let late = dial(&server);
    assert!(ask_in_vain(&late), "all are full");
    held.truncate(20);
    assert!(is_answered(&late), "the one who waited is served, whichever table has room");
    let stats = server.counters.read();
    assert_eq!((stats.accepted, stats.refused, stats.errors), (41, 0, 0));
    let address = server.address;
    server.stop();
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
}
