//! How `throng serve` ends: it accepts no more, completes outstanding responses, and exits with 0.

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::{
    caller::{Caller, get},
    program::{Serving, Signal, throng, until},
};

/// Before anything that it may wait for: idle connections, an hour's response.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_signal_ends_it_well() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = Serving::start(&[]);
        let mut idle = Caller::dial(server.address);
        assert_eq!(idle.get("/").status, 200);
        server.program.signal(signal);
        let ended = server.program.end_within(SOON);
        assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{signal:?}");
        assert!(idle.is_over(), "{signal:?}: an idle connection is closed");
    }
}

#[test]
fn outstanding_responses_are_sent() {
    let mut server = Serving::start(&["--threads", "2"]);
    let (mut owed, mut other) = (Caller::dial(server.address), Caller::dial(server.address));
    let start = Instant::now();
    owed.send(&get("/delay?for=1500ms&length=77"));
    // The request has arrived when its bytes are counted: those of the first query, its own, and those of each check.
    let (query, request) = (get("/stats").len(), get("/delay?for=1500ms&length=77").len());
    let mut checks = 0;
    until("the request has arrived", || {
        checks += 1;
        let stats: serde_json::Value = serde_json::from_str(other.get("/stats").text()).unwrap();
        stats["bytes_in"] == (checks - 1) * query + request
    });
    server.program.signal(Signal::TERM);
    let address = server.address;
    until("nobody is accepted any more", || TcpStream::connect(address).is_err());
    let is_owed = !server.program.is_ended() || start.elapsed() >= Duration::from_millis(1499);
    assert!(is_owed, "it owes an answer");
    let response = owed.response();
    assert_eq!((response.status, response.body.len()), (200, 77));
    assert!(start.elapsed() >= Duration::from_millis(1499), "not before its time");
    assert_eq!(server.program.end_within(SOON).status, Some(0));
}

#[test]
fn a_second_signal_does_not_wait() {
    let server = Serving::start(&[]);
    let mut owed = Caller::dial(server.address);
    owed.send(&get("/delay?for=1h"));
    server.program.signal(Signal::INT);
    let address = server.address;
    until("nobody is accepted any more", || TcpStream::connect(address).is_err());
    server.program.signal(Signal::INT);
    assert_eq!(server.program.end_within(SOON).status, Some(130));
}

#[test]
fn a_child_ends_with_its_parents_pipe() {
    let mut server = Serving::start(&[]);
    server.program.close_stdin();
    assert_eq!(server.program.end_within(SOON).status, Some(0));
}

#[test]
fn it_serves_all_of_loopback() {
    let server = Serving::from(throng(&["serve", "--listen", "0.0.0.0:0", "--until-stdin-ends"]), &[]);
    for ip in ["127.0.0.1", "127.0.0.2", "127.9.8.7"] {
        let address = format!("{ip}:{}", server.address.port()).parse().unwrap();
        assert_eq!(Caller::dial(address).get("/").text(), "Hello World!", "{ip}");
    }
}
