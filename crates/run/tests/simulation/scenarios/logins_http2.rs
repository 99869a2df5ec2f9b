//! Requests before a WebSocket over HTTP/2, on the same connection, and on successive streams.

use net::{Shard, io::sim::SimIo};
use samples::{Kind, Stage};

use super::WAY;
use crate::{
    http2_listener::{Http2Listener, Received, Reply},
    listener::frame,
};
use stage::{RunResult, listening, network, play, scenario};

const LOGIN: &str =
    "request = \"POST /login\"\nbody = \"secret\"\ncapture = { token = { json = \"/token\" } }";
const HELLO: &str = "send = \"hello {var token} {seq}\"\nexpect = { echo = true }";

/// Runs three connections with these steps against a script.
fn run(
    more: &str,
    steps: &[&str],
    takes_connect: bool,
    script: impl Fn(&Received) -> Vec<Reply> + 'static,
) -> (RunResult, Http2Listener) {
    let steps: String = steps.iter().map(|step| format!("[[population.step]]\n{step}\n")).collect();
    let text = format!(
        "target = \"ws://127.0.0.1:80/ws\"\nhttp2 = true\nduration = \"5s\"\nthink = \"500ms\"\n[[population]]\n\
         name = \"users\"\nconnections = 3\n{more}\n{steps}"
    );
    let net = network(1, |f| f.delay = (WAY, WAY));
    let plan = scenario(&text, 1);
    let at = plan.destinations()[0];
    let server = Http2Listener::new(takes_connect, script);
    let mut server: Shard<SimIo, Http2Listener> = listening(&net, at, 20_000, server);
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    (result, std::mem::replace(server.program(), Http2Listener::new(true, |_| vec![])))
}

/// Logs in by a request, then speaks WebSocket.
fn sign_in(received: &Received) -> Vec<Reply> {
    let conn = received.conn;
    match &*received.line {
        "POST /login" => {
            let cookie = vec![("set-cookie", format!("sid=s{conn}; Path=/"))];
            vec![Reply::Response(200, cookie, format!("{{\"token\": \"t{conn}\"}}"))]
        }
        line if line.starts_with("CONNECT ") => vec![Reply::Response(200, vec![], String::new())],
        text => vec![Reply::Frames(frame(text))],
    }
}

fn is_without_fault(result: &RunResult) {
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.dropped, c.failed, result.held), (vec![], 0, 0, 3), "{c:?}");
    assert_eq!((c.sent, c.told), (c.answered, 0), "{c:?}");
}

#[test]
fn a_websocket_is_opened_with_the_token_on_the_connection_that_logged_in() {
    let upgrade = "upgrade = \"/chat?t={var token}\"\nheaders = { Authorization = \"Bearer {var token}\" }";
    let (result, server) = run(
        "cookies = true",
        &[LOGIN, "request = \"/me\"", upgrade, HELLO],
        true,
        |received| match &*received.line {
            "GET /me" => vec![Reply::Response(200, vec![], "me".to_owned())],
            _ => sign_in(received),
        },
    );
    is_without_fault(&result);
    // The handshake of the connection is not that of a WebSocket.
    assert_eq!(result.whole.handshake.count(), 3);
    assert_eq!(server.by_connection().len(), 3);
    for (conn, own) in server.by_connection().into_iter().enumerate() {
        let lines: Vec<(u32, &str)> = own[..3].iter().map(|it| (it.stream, &*it.line)).collect();
        let chat = format!("CONNECT /chat?t=t{conn} websocket");
        assert_eq!(lines, [(1, "POST /login"), (3, "GET /me"), (5, &chat)]);
        assert_eq!(own[0].body, "secret");
        for (name, value) in [
            ("authorization", format!("Bearer t{conn}")),
            ("cookie", format!("sid=s{conn}")),
            ("sec-websocket-version", "13".to_owned()),
        ] {
            assert!(own[2].has(name, &value), "{name}: {value}");
            assert!(!own[0].has(name, &value), "{name}: {value}");
        }
        let messages = &own[3..];
        assert!(messages.len() > 3, "{own:?}");
        let is_own = |it: &&Received| {
            it.stream == 5 && (it.line.starts_with(&format!("hello t{conn} ")) || it.line == "close 1000")
        };
        assert!(messages.iter().all(is_own), "{own:?}");
    }
}

#[test]
fn a_lost_token_or_an_announced_end_is_as_over_http1() {
    let steps = [LOGIN, "upgrade = \"/chat?{var token}\"", HELLO];
    // The server accepts no further streams after the login of the first connection.
    let (result, server) = run("", &steps, true, |received| {
        let leaves = (received.conn == 0).then_some(Reply::Goaway);
        sign_in(received).into_iter().chain(leaves).collect()
    });
    is_without_fault(&result);
    assert_eq!(result.whole.counts.redialled, 1);
    let all = server.by_connection();
    let first: Vec<_> = all.iter().map(|own| &*own[0].line).collect();
    assert_eq!(first, ["POST /login", "POST /login", "POST /login", "CONNECT /chat?t0 websocket"]);
    assert_eq!(all[0].len(), 1);

    let (result, _) = run("", &steps, true, |received| match &*received.line {
        "POST /login" => vec![Reply::Response(401, vec![], "{}".to_owned())],
        _ => sign_in(received),
    });
    let faults = [(Stage::Exchange, Kind::WrongStatus, 3), (Stage::Hold, Kind::MissingValue, 3)];
    assert_eq!((result.faults(), result.held), (faults.to_vec(), 0));
}

#[test]
fn a_refused_websocket_is_a_fault_of_the_handshake_with_its_status() {
    let (result, _) = run("", &[LOGIN, HELLO], true, |received| match &*received.line {
        "CONNECT /ws websocket" => vec![Reply::Response(403, vec![], String::new())],
        _ => sign_in(received),
    });
    assert_eq!(result.faults(), [(Stage::Handshake, Kind::WrongStatus, 3)]);
    assert_eq!((result.whole.status[403], result.held), (3, 0));
}

#[test]
fn a_server_without_websockets_over_http2_gets_no_request() {
    let (result, server) = run("", &[LOGIN, HELLO], false, sign_in);
    assert_eq!(result.faults(), [(Stage::Handshake, Kind::NothingInCommon, 3)]);
    assert_eq!((server.received.len(), result.whole.counts.failed), (0, 3));
}

#[test]
fn a_connection_may_close_and_log_in_again() {
    let (result, server) = run("loop = true", &[LOGIN, HELLO, "close = true"], true, sign_in);
    is_without_fault(&result);
    let all = server.by_connection();
    assert!(all.len() > 5, "{all:?}");
    for own in &all[..3] {
        let lines: Vec<&str> = own.iter().map(|it| it.line.split(' ').next().unwrap()).collect();
        assert_eq!(lines, ["POST", "CONNECT", "hello", "close"]);
    }
}
