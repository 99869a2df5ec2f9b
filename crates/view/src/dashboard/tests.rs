use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use super::*;
use fixtures::{header, seen};
use samples::{Command, Header, Sink, Summary};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(10);

fn start(opens: Option<Opens>) -> (Dashboard, Feed, SocketAddr) {
    Dashboard::start("127.0.0.1:0".parse().unwrap(), RunRecord::default(), opens).unwrap()
}

/// The response to a request, including its head.
fn fetch(at: SocketAddr, request: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let len = body.len();
    let host = if headers.contains("Host:") { "" } else { "Host: 127.0.0.1\r\n" };
    let head =
        format!("{request} HTTP/1.1\r\n{host}{headers}Content-Length: {len}\r\nConnection: close\r\n\r\n");
    stream.write_all((head + body).as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn check(at: SocketAddr, (request, headers, body): (&str, &str, &str), status: u16) {
    let response = fetch(at, request, headers, body);
    assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request} {headers} {body}: {response}");
}

/// A follower, which reads one event at a time.
struct Follower(BufReader<TcpStream>);

impl Follower {
    fn join(at: SocketAddr) -> Follower {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost:1\r\n\r\n").unwrap();
        Follower(BufReader::new(stream))
    }

    fn next(&mut self) -> (String, Value) {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ends");
            if let Some(event) = line.strip_prefix("event: ") {
                name = event.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data:").map(str::trim) {
                return (
                    name,
                    if data.is_empty() { Value::Null } else { serde_json::from_str(data).unwrap() },
                );
            }
        }
    }

    /// The number of responses in each tick of a run.
    fn responses(&mut self, event: &str) -> Vec<u64> {
        let (name, data) = self.next();
        assert_eq!(name, event);
        let of = |record: &Value| record["tick"]["counts"]["answered"].as_u64().unwrap();
        data["ticks"].as_array().map_or_else(|| vec![of(&data)], |ticks| ticks.iter().map(of).collect())
    }
}

#[test]
fn a_new_follower_gets_the_run_so_far() {
    let (dashboard, mut feed, at) = start(None);
    let mut first = Follower::join(at);
    assert!(first.responses("run").is_empty());
    let (header, ticks) = (header(), [1, 2, 3, 4, 5].map(seen));
    feed.begin(&header);
    assert!(first.responses("run").is_empty());
    let mut all = Vec::new();
    for (tick, samples) in &ticks[..3] {
        feed.tick(tick, samples);
        all.extend(first.responses("tick"));
    }
    assert_eq!(all, ticks[..3].iter().map(|(tick, _)| tick.counts.answered).collect::<Vec<_>>());
    let mut second = Follower::join(at);
    assert_eq!(second.responses("run"), all);
    for (tick, samples) in &ticks[3..] {
        feed.tick(tick, samples);
        let [one, other] = [&mut first, &mut second].map(|follower| follower.responses("tick"));
        assert_eq!((one, vec![tick.counts.answered]), (other.clone(), other));
    }
    // Late values change a second that was shown, for all followers and for later ones.
    let (mut late, _) = seen(2);
    late.counts.answered = 70;
    feed.late(&late);
    assert_eq!([first.responses("late"), second.responses("late")], [[70], [70]]);
    all = ticks.iter().map(|(tick, _)| tick.counts.answered).collect();
    all[1] += 70;
    assert_eq!(Follower::join(at).responses("run"), all);
    let headline = "pass: all is well".to_owned();
    feed.finish(&Summary { headline, ..Summary::default() });
    for follower in [&mut first, &mut second] {
        let (name, summary) = follower.next();
        assert_eq!((name.as_str(), &summary["headline"]), ("summary", &"pass: all is well".into()));
    }
    dashboard.end(feed);
    assert_eq!([first.next().0, second.next().0], ["end", "end"]);
}

#[test]
fn commands_reach_the_run_in_order() {
    let (_dashboard, mut feed, at) = start(None);
    let own = "X-Throng: 1\r\n";
    let commands = ["pause", "resume", "up", "down", "drain", "stop"];
    for command in commands {
        check(at, ("POST /control", own, &format!("{{\"ask\":\"{command}\"}}")), 204);
    }
    let received: Vec<Command> = std::iter::from_fn(|| feed.ask()).collect();
    assert_eq!(
        received,
        [Command::Pause, Command::Resume, Command::Up, Command::Down, Command::Drain, Command::Stop]
    );
    for wrong in ["", "{}", "{\"ask\":\"more\"}", "pause"] {
        check(at, ("POST /control", own, wrong), 400);
    }
    assert_eq!(feed.ask(), None);
    // As in the API of runs, once the number of connections is known.
    check(at, ("POST /control", own, "{\"load\":0.25}"), 204);
    check(at, ("POST /control", own, "{\"connections\":1}"), 400);
    let mut follower = Follower::join(at);
    assert_eq!(follower.next().0, "run");
    feed.begin(&Header { connections: 300, ..header() });
    assert_eq!(follower.next().0, "run");
    check(at, ("POST /control", own, "{\"connections\":100}"), 204);
    check(at, ("POST /control", own, "{\"ask\":{\"load\":250000}}"), 204);
    for wrong in
        ["{\"ask\":{\"load\":0}}", "{\"ask\":{\"load\":2000000}}", "{\"connections\":301}", "{\"load\":1.01}"]
    {
        let refused = fetch(at, "POST /control", own, wrong);
        assert!(refused.starts_with("HTTP/1.1 400 ") && refused.contains(": from "), "{wrong}: {refused}");
    }
    let received: Vec<Command> = std::iter::from_fn(|| feed.ask()).collect();
    assert_eq!(received, [Command::Load(250_000), Command::Connections(100), Command::Load(250_000)]);
    for _ in 0..followed::MAX_COMMANDS {
        check(at, ("POST /control", own, "{\"ask\":\"up\"}"), 204);
    }
    check(at, ("POST /control", own, "{\"ask\":\"up\"}"), 503);
}

#[test]
fn without_a_token_it_is_for_this_machine() {
    let (_dashboard, mut feed, at) = start(None);
    for host in ["localhost:9909", "127.0.0.1", "127.8.8.8:80", "[::1]:9909", "LOCALHOST"] {
        check(at, ("GET /", &format!("Host: {host}\r\n"), ""), 200);
    }
    for host in ["evil.example", "evil.example:9909", "127.0.0.1.evil.example", "10.0.0.1:80", ""] {
        check(at, ("GET /events", &format!("Host: {host}\r\n"), ""), 403);
    }
    // A page of another site cannot send the header without a preflight request, which is refused.
    check(at, ("POST /control", "", "{\"ask\":\"stop\"}"), 403);
    check(at, ("OPTIONS /control", "Origin: http://evil.example\r\n", ""), 405);
    check(at, ("GET /control", "", ""), 405);
    check(at, ("POST /events", "", ""), 405);
    check(at, ("GET /nothing", "", ""), 404);
    assert_eq!(feed.ask(), None);
    let page = fetch(at, "GET /", "", "");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.to_lowercase().contains("content-security-policy: default-src 'none'"), "{head}");
    assert_eq!(body, LIVE_PAGE);
}

#[test]
fn a_token_is_shown_by_a_header_and_never_kept_as_a_cookie() {
    let opens: Opens = Arc::new(|offered: &[u8]| offered == b"secret");
    let (_dashboard, mut feed, at) = start(Some(opens));
    for (request, headers) in [
        ("GET /?token=wrong", ""),
        ("GET /events", ""),
        ("GET /events?token=secret", ""),
        ("GET /events", "Cookie: throng=secret\r\n"),
        ("GET /events", "Authorization: Basic secret\r\n"),
        ("GET /events", "Authorization: Bearer secre\r\n"),
        ("GET /other", ""),
        ("POST /control", "X-Throng: 1\r\n"),
        ("POST /control", "Cookie: throng=secret\r\nX-Throng: 1\r\n"),
    ] {
        check(at, (request, headers, "{\"ask\":\"stop\"}"), 401);
    }
    // The token is moved from the query to the fragment, which the browser does not send.
    let shown = fetch(at, "GET /?a=b&token=secret", "Host: far.example\r\n", "").to_lowercase();
    assert!(shown.starts_with("http/1.1 303 ") && shown.contains("location: /#token=secret\r\n"), "{shown}");
    // The page contains no data of the run.
    let page = fetch(at, "GET /", "Host: far.example\r\n", "");
    assert!(page.starts_with("HTTP/1.1 200 ") && page.ends_with(LIVE_PAGE), "{page}");
    let both = "Authorization: Bearer secret\r\nX-Throng: 1\r\n";
    let received = fetch(at, "POST /control", both, "{\"ask\":\"stop\"}");
    assert!(received.starts_with("HTTP/1.1 204 "), "{received}");
    assert_eq!(feed.ask(), Some(Command::Stop));
    for response in [shown, page.to_lowercase(), received.to_lowercase()] {
        let (head, _) = response.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("set-cookie"), "{head}");
    }
}

/// The page is public, so a client that only got the page does not keep a slot from the token's owner.
#[test]
fn the_page_alone_is_worth_no_place() {
    let opens: Opens = Arc::new(|offered: &[u8]| offered == b"secret");
    let (_dashboard, _feed, at) = start(Some(opens));
    let mut crowd: Vec<TcpStream> = (0..16).map(|_| TcpStream::connect(at).unwrap()).collect();
    for peer in &mut crowd {
        peer.write_all(b"GET / HTTP/1.1\r\nHost: far.example\r\n\r\n").unwrap();
        let mut said = [0; 12];
        peer.read_exact(&mut said).unwrap();
        assert_eq!(&said, b"HTTP/1.1 200");
    }
    let both = "Authorization: Bearer secret\r\nX-Throng: 1\r\n";
    let response = fetch(at, "POST /control", both, "{\"ask\":\"stop\"}");
    assert!(response.starts_with("HTTP/1.1 204 "), "{response}");
}

#[test]
fn an_end_does_not_wait_long_for_clients() {
    let (dashboard, feed, at) = start(None);
    // Clients that do not read, or have not sent a request.
    let _silent = [TcpStream::connect(at).unwrap(), TcpStream::connect(at).unwrap()];
    let (clock, follower) = (units::Clock::start(), Follower::join(at));
    dashboard.end(feed);
    assert!(clock.now() < units::Nanos::from_secs(5), "{}", clock.now());
    drop(follower);
    assert!(TcpStream::connect(at).is_err(), "still listening");
}
