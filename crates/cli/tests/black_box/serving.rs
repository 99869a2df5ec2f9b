//! `throng serve`: its routes, as a plain client sees them.

use serde_json::Value;

use crate::{
    caller::{Caller, get},
    program::{Serving, until},
};

#[test]
fn the_first_line_names_the_address() {
    let server = Serving::start(&["--threads", "1"]);
    let line = format!("listening on http://{}/ with 1 thread, io_uring\n", server.address);
    assert_eq!(server.program.stdout(), line);
    assert_ne!(server.address.port(), 0, "the port that was chosen");
}

#[test]
fn routes_respond() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    let mut check = |path: &str, status: u16, length: usize| {
        let response = caller.get(path);
        assert_eq!((response.status, response.body.len()), (status, length), "{path}: {response:?}");
        response
    };
    let hello = check("/", 200, 12);
    assert_eq!((hello.text(), hello.field("content-type")), ("Hello World!", Some("text/plain")));
    check("/?x=1", 200, 12);
    for (length, served) in [
        ("0", 1),
        ("1", 1),
        ("2", 2),
        ("1024", 1024),
        ("10239", 10_239),
        ("10240", 10_240),
        ("10241", 10_240),
        ("99999", 10_240),
        ("18446744073709551615", 10_240),
    ] {
        let text = check(&format!("/?length={length}"), 200, served);
        assert_eq!(text.field("content-type"), Some("text/plain"));
        assert!(text.text().is_ascii());
    }
    check("/?x=1&length=7", 200, 7);
    for length in ["", "many", "-1", "1.5", "18446744073709551616"] {
        check(&format!("/?length={length}"), 400, 0);
    }
    check("/delay", 200, 12);
    check("/delay?for=0&length=5", 200, 5);
    check("/delay?for=1ms&length=5", 200, 5);
    check("/delay?for=soon", 400, 0);
    check("/delay?for=5", 400, 0);
    check("/nothing", 404, 0);
    check("/stats/", 404, 0);
    // All on one connection.
    assert_eq!(stats(&mut caller)["accepted"], 1);
}

fn stats(caller: &mut Caller) -> Value {
    serde_json::from_str(caller.get("/stats").text()).unwrap()
}

#[test]
fn stats_are_exact() {
    let server = Serving::start(&["--threads", "1"]);
    let (mut first, mut second) = (Caller::dial(server.address), Caller::dial(server.address));
    let response = first.get("/");
    let response_len = (response.head.len() + response.body.len()) as u64;
    second.get("/nothing").body.is_empty().then_some(()).expect("no body");
    second.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabcde");
    second.response();
    let third = Caller::dial(server.address);
    until("three accepted", || stats(&mut first)["accepted"] == 3);
    drop(third);
    until("one closed", || stats(&mut first)["closed"] == 1);
    let before = stats(&mut first);
    let fields =
        ["open", "peak", "accepted", "closed", "requests", "bytes_in", "bytes_out", "refused", "errors"];
    let keys: Vec<&String> = before.as_object().unwrap().keys().collect();
    assert!(fields.iter().all(|field| before[field].is_u64()), "all are numbers: {before}");
    assert_eq!(keys.len(), fields.len(), "{before}");
    for (field, n) in
        [("open", 2), ("peak", 3), ("accepted", 3), ("closed", 1), ("refused", 0), ("errors", 0)]
    {
        assert_eq!(before[field], n, "{field}: {before}");
    }
    let ours = get("/").len() as u64;
    for _ in 0..10 {
        first.get("/");
    }
    let queried = first.get("/stats");
    let after: Value = serde_json::from_str(queried.text()).unwrap();
    let grown = |field: &str| after[field].as_u64().unwrap() - before[field].as_u64().unwrap();
    assert_eq!(grown("requests"), 11, "ten, and the one that asks");
    // A request for the counters counts as soon as it is handled, its bytes once it is complete: they are the previous one's.
    assert_eq!(grown("bytes_in"), 10 * ours + get("/stats").len() as u64);
    let stats_len = grown("bytes_out") - 10 * response_len;
    assert!((100..400).contains(&stats_len), "the answer before: {stats_len} bytes");
}

#[test]
fn stats_are_those_of_all_threads() {
    let server = Serving::start(&["--threads", "3"]);
    let mut callers: Vec<Caller> = (0..20).map(|_| Caller::dial(server.address)).collect();
    for caller in &mut callers {
        assert_eq!(caller.get("/").status, 200);
    }
    let mut asking = Caller::dial(server.address);
    let mut requests = 0;
    until("20 and the one that asks", || {
        requests += 1;
        let s = stats(&mut asking);
        s["open"] == 21 && s["peak"] == 21 && s["accepted"] == 21 && s["requests"] == 20 + requests
    });
}

#[test]
fn head_has_the_length_and_no_body() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    for (path, length) in [("/", 12), ("/?length=99", 99)] {
        caller.send(&get(path).replace("GET", "HEAD"));
        let head = caller.head();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.to_lowercase().contains(&format!("content-length: {length}\r\n")), "{head}");
    }
    assert_eq!(caller.get("/").text(), "Hello World!", "what follows is the next answer, not a body");
}

#[test]
fn bodies_are_read_and_left() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    let posts = [
        "Content-Length: 5\r\n\r\nabcde".to_owned(),
        format!("Content-Length: 100000\r\n\r\n{}", "x".repeat(100_000)),
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n3;x=y\r\nfgh\r\n0\r\n\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nDigest: 1\r\nExpires: 2\r\n\r\n".to_owned(),
    ];
    for post in posts {
        caller.send(&format!("POST /?length=3 HTTP/1.1\r\nHost: x\r\n{post}"));
        let response = caller.response();
        assert_eq!((response.status, response.body.len()), (200, 3), "{post:.60}");
        assert_eq!(caller.get("/").text(), "Hello World!", "the body was left there: {post:.60}");
    }
}

#[test]
fn a_100_continue_is_sent_for_a_body() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    caller.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(caller.head(), "HTTP/1.1 100 Continue\r\n\r\n", "before the body");
    caller.send("abcde");
    assert_eq!(caller.response().text(), "Hello World!");
    assert_eq!(caller.get("/?length=2").body.len(), 2);
}

#[test]
fn requests_in_one_segment_get_responses_in_order() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    caller.send(&["/?length=3", "/", "/?length=1"].map(get).concat());
    for length in [3, 12, 1] {
        assert_eq!(caller.response().body.len(), length);
    }
    // Also where the first one takes its time.
    caller.send(&["/delay?for=200ms&length=3", "/", "/nothing", "/delay?for=50ms"].map(get).concat());
    for (status, length) in [(200, 3), (200, 12), (404, 0), (200, 12)] {
        let response = caller.response();
        assert_eq!((response.status, response.body.len()), (status, length));
    }
}

#[test]
fn a_request_may_come_in_pieces() {
    let server = Serving::start(&["--threads", "1"]);
    let (mut slow, mut other) = (Caller::dial(server.address), Caller::dial(server.address));
    for piece in get("/?length=44").as_bytes().chunks(3) {
        slow.send(std::str::from_utf8(piece).unwrap());
        // Another request's response: by then the piece has been read.
        assert_eq!(other.get("/").status, 200);
    }
    assert_eq!(slow.response().body.len(), 44);
}

#[test]
fn delay_takes_its_time() {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    let start = std::time::Instant::now();
    assert_eq!(caller.get("/delay?for=300ms&length=9").body.len(), 9);
    let took = start.elapsed().as_millis();
    // Ten times as long would be another unit.
    assert!((299..3000).contains(&took), "{took} ms");
}

/// Sends `request`; the response has this status and field, and then the connection is closed, or not.
fn check_end(request: &str, status: u16, connection: Option<&str>, ends: bool) {
    let server = Serving::start(&["--threads", "1"]);
    let mut caller = Caller::dial(server.address);
    caller.send(request);
    let response = caller.response();
    assert_eq!(response.status, status, "{request:?}: {response:?}");
    assert_eq!(
        response.field("connection").map(str::to_ascii_lowercase).as_deref(),
        connection,
        "{request:?}"
    );
    if ends {
        assert!(caller.is_over(), "{request:?}: the connection goes on");
    } else {
        assert_eq!(caller.get("/").status, 200, "{request:?}");
    }
    let mut other = Caller::dial(server.address);
    let stats = stats(&mut other);
    assert_eq!(stats["errors"], u64::from(status == 400), "{request:?}");
    // The one with the request, and the other one while it is open.
    let (open, closed) = if ends { (1, 1) } else { (2, 0) };
    assert_eq!((&stats["open"], &stats["closed"]), (&open.into(), &closed.into()), "{request:?}: {stats}");
}

#[test]
fn connections_end_when_they_should() {
    check_end("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, None, false);
    check_end("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200, Some("close"), true);
    check_end("GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, Some("close"), true);
    check_end("GET /?length=5 HTTP/1.0\r\n\r\n", 200, Some("close"), true);
    check_end("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, Some("keep-alive"), false);
}

#[test]
fn an_invalid_request_is_refused() {
    check_end("how do you do\r\n\r\n", 400, Some("close"), true);
    check_end("GET / HTTP/1.1\r\n\r\n", 400, Some("close"), true);
    check_end("GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400, Some("close"), true);
    check_end("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: some\r\n\r\n", 400, Some("close"), true);
    check_end("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400, Some("close"), true);
    check_end(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnothing\r\n",
        400,
        Some("close"),
        true,
    );
}
