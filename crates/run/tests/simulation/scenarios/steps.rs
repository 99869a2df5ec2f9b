//! Requests by steps: which are sent, in which order, and when.

use std::collections::{BTreeMap, HashMap, HashSet};

use samples::{Kind, Stage};
use units::Nanos;

use super::{MS, S, WAY, check_gap, lines, run};
use crate::listener::{Listener, Received, Reply, Speaks, ok, response};

const HTTP: Speaks = Speaks::Http;
/// A one-way delay each for the request and its response.
const ROUND: Nanos = Nanos(2 * WAY.0);

/// The numbers after `key` in the recorded requests, as a table.
fn numbers(server: &Listener, key: &str) -> Vec<u64> {
    let number = |received: &Received| {
        let (_, rest) = received.text.split_once(key)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    server.received.iter().filter_map(number).collect()
}

const VISIT: &str = r#"
target = "http://127.0.0.1:80/start"
duration = "30s"

[[population]]
name = "users"
connections = 5
think = "1s"
loop = "look"

[[population.step]]
name = "login"
request = "POST /login"
headers = { Content-Type = "application/json", X-Try = "{seq}" }
body = '{"user": "{csv users.name}", "again": true}'
expect = { status = 302 }

[[population.step]]
wait = "2s"

[[population.step]]
name = "look"
request = "GET"
think = "500ms"

[[population.step]]
name = "leave"
request = "DELETE /cart?all"
think = "0s"

[csv.users]
file = "users.csv"
"#;

#[test]
fn steps_come_in_their_order_and_the_loop_goes_back_to_its_step() {
    let script = |received: &Received| match received.line() {
        "POST /login" => vec![response(302, "Location: /home\r\n", "")],
        _ => ok(),
    };
    let (result, server) = run(VISIT, 2, HTTP, script);
    assert_eq!((result.faults(), result.held, server.accepted_at.len()), (vec![], 5, 5));
    for (at, received) in server.accepted_at.iter().zip(server.by_connection()) {
        assert_eq!(
            lines(&received)[..5],
            ["POST /login", "GET /start", "DELETE /cart?all", "GET /start", "DELETE /cart?all"]
        );
        assert!(lines(&received)[5..].chunks(2).all(|pair| pair[0] == "GET /start"));
        check_gap(*at, received[0].at, ROUND);
        check_gap(received[0].at, received[1].at, S(3) + ROUND);
        check_gap(received[1].at, received[2].at, MS(500) + ROUND);
        check_gap(received[2].at, received[3].at, ROUND);
        // From the third second on, two per half second and two round trips.
        assert!((107..=110).contains(&received.len()), "{}", received.len());
    }
    let first = server.received.iter().find(|received| received.text.contains("X-Try: 0")).unwrap();
    assert_eq!(
        first.text,
        "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nX-Try: 0\r\n\
         Content-Length: 30\r\n\r\n{\"user\": \"Ada\", \"again\": true}"
    );
    // Requests due at full load are counted by step; the login is not.
    let counts: Vec<u64> = result.whole.steps.iter().map(|step| step.count()).collect();
    assert_eq!(counts[..2], [0, 0]);
    let in_ramp: u64 = result.whole.ramp_steps.iter().map(|step| step.count()).sum();
    assert_eq!(in_ramp, result.whole.ramp_latency.count());
    assert_eq!(counts.iter().sum::<u64>() + in_ramp, result.whole.counts.answered);
    assert_eq!(counts[2] + counts[3] + 5, result.whole.counts.answered);
    assert!(counts[2].abs_diff(counts[3]) <= 5 && counts[3] > 260, "{counts:?}");
}

/// Two populations, which must have separate numbers.
const WORDS: &str = r#"
target = "http://127.0.0.1:80/"
duration = "20s"

[[population]]
name = "first"
connections = 7
think = "100ms"
[[population.step]]
request = "POST /first?n={seq}&length={rand 1 3}&word={choice red green blue}"
body = "{rand 5 400} {csv users.id} {csv users.name}"
headers = { X-User = "{csv users.id}" }
expect = { status = 200, length = "$2" }

[[population]]
name = "second"
connections = 3
think = "1s"
[[population.step]]
request = "/second?m={seq}"

[csv.users]
file = "users.csv"
"#;

#[test]
fn variables_are_filled_as_documented() {
    // As many bytes as the second number in the request, in the order path, headers, body; every ninth response is the last of its
    // connection.
    let script = |received: &Received| {
        let body = received.text.split("\r\n\r\n").nth(1).unwrap();
        let length = body.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let fields = if received.nth == 8 { "Connection: close\r\n" } else { "" };
        vec![response(200, fields, &"x".repeat(length))]
    };
    let (result, server) = run(WORDS, 3, HTTP, script);
    assert_eq!(result.faults(), []);
    for (key, population) in [("?n=", 0), ("?m=", 1)] {
        let found = numbers(&server, key);
        let sent = result.populations[population].counts.sent;
        let once: HashSet<u64> = found.iter().copied().collect();
        assert_eq!((found.len(), once.len()), (sent as usize, sent as usize), "each number once, {key}");
        // Each shard counts separately.
        let most = *found.iter().max().unwrap();
        assert!(once.contains(&0) && most < sent * 7 / 5, "{most} of {sent}, {key}");
    }
    let sent = result.populations[0].counts.sent;
    assert!(sent > 1_300, "{sent}");
    let mut flags: BTreeMap<&str, u64> = BTreeMap::new();
    for received in server.received.iter().filter(|received| received.line().contains("/first")) {
        *flags.entry(received.line().split("word=").nth(1).unwrap()).or_default() += 1;
    }
    assert_eq!(flags.keys().copied().collect::<Vec<_>>(), ["blue", "green", "red"]);
    // A third, within four standard deviations.
    let expected = sent as f64 / 3.0;
    assert!(
        flags.values().all(|n| (*n as f64 - expected).abs() < 4.0 * (expected * 2.0 / 3.0).sqrt()),
        "{flags:?}"
    );
    let drawn = numbers(&server, "length=");
    assert_eq!(drawn.iter().copied().collect::<HashSet<_>>(), HashSet::from([1, 2, 3]));
    check_rows(&server);
    assert!(result.whole.counts.redialled > 100, "{:?}", result.whole.counts);
}

/// A connection keeps its row, in all columns and fields, also after a redial.
fn check_rows(server: &Listener) {
    const NAMES: [&str; 3] = ["Ada", "Grace", "Edsger"];
    let mut of_row: HashMap<u64, HashSet<usize>> = HashMap::new();
    for received in
        server.by_connection().into_iter().filter(|received| received[0].line().contains("/first"))
    {
        let row = |received: &Received| {
            let id = received.text.split("X-User: ").nth(1).unwrap()[..1].parse::<u64>().unwrap();
            let name = NAMES[id as usize - 1];
            assert!(received.text.ends_with(&format!(" {id} {name}")), "{}", received.text);
            id
        };
        let rows: HashSet<u64> = received.iter().map(|received| row(received)).collect();
        assert_eq!(rows.len(), 1, "a connection has one row");
        of_row.entry(rows.into_iter().next().unwrap()).or_default().insert(received[0].conn);
    }
    // Seven connections with three, two and two rows, redialled equally often.
    let mut share: Vec<usize> = of_row.values().map(HashSet::len).collect();
    share.sort_unstable();
    assert!(share.len() == 3 && share[2] * 2 > share[1] * 3 - 6 && share[1] - share[0] <= 3, "{share:?}");
}

#[test]
fn each_arrival_takes_the_next_row() {
    let text = r#"
        target = "http://127.0.0.1:80/?user={csv users.id}"
        arrive = "10/s"
        total = 30
        duration = "10s"
        csv.users.file = "users.csv"
    "#;
    for shards in [1, 2] {
        let (result, server) = run(text, shards, HTTP, |_| ok());
        assert_eq!((result.faults(), result.whole.counts.finished), (vec![], 30));
        let expected: Vec<u64> = (0..30).map(|n| n % 3 + 1).collect();
        assert_eq!(numbers(&server, "user="), expected, "{shards} shards");
    }
}

const CALLS: &str = r#"
target = "http://127.0.0.1:80/"
connections = 4
calls = 3
think = "1s"
duration = "20s"
"#;

#[test]
fn connections_that_made_their_calls_are_closed_and_redialled() {
    let (result, server) = run(CALLS, 2, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!(
        (result.faults(), result.held, c.opened, c.closed, c.dropped, c.done),
        (vec![], 4, 4, 0, 0, 0)
    );
    assert_eq!((c.finished, c.redialled), (c.redialled, c.finished));
    // One call per second for each.
    assert!((76..=84).contains(&c.sent) && c.redialled >= 24, "{c:?}");
    let by_connection = server.by_connection();
    let of_three = by_connection.iter().filter(|received| received.len() == 3).count();
    assert_eq!((by_connection.len(), of_three >= c.finished as usize), (4 + c.redialled as usize, true));
    assert!(by_connection.iter().all(|received| received.len() <= 3));
    for received in by_connection.iter().filter(|received| received.len() == 3) {
        check_gap(received[1].at, received[2].at, S(1) + ROUND);
    }
}

#[test]
fn never_is_never() {
    let (result, server) = run(&format!("{CALLS}reconnect = \"never\"\n"), 2, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!(
        (result.faults(), result.held, c.opened, c.finished, c.done, c.sent),
        (vec![], 0, 4, 4, 4, 12)
    );
    assert_eq!((c.redialled, c.dropped, server.accepted_at.len()), (0, 0, 4));
}

#[test]
fn calls_may_end_amid_the_steps_and_the_next_connection_goes_on_there() {
    let text = r#"
        target = "http://127.0.0.1:80/"
        duration = "10s"
        [[population]]
        name = "users"
        connections = 2
        calls = 2
        think = "1s"
        [[population.step]]
        request = "/a"
        [[population.step]]
        request = "/b"
        [[population.step]]
        request = "/c"
    "#;
    let (result, server) = run(text, 1, HTTP, |_| ok());
    assert_eq!(result.faults(), []);
    let kinds: HashSet<Vec<&str>> = server
        .by_connection()
        .iter()
        .map(|received| lines(received))
        .filter(|lines| lines.len() == 2)
        .collect();
    assert_eq!(
        kinds,
        HashSet::from([vec!["GET /a", "GET /b"], vec!["GET /c", "GET /a"], vec!["GET /b", "GET /c"]])
    );
}

/// With additional keys at the top of the file and of the population.
fn coming(top: &str, own: &str) -> String {
    format!(
        r#"
target = "http://127.0.0.1:80/"
{top}
[[population]]
name = "guests"
arrive = "20/s"
think = "1s"
{own}
[[population.step]]
request = "/a"
[[population.step]]
request = "/b"
"#
    )
}

#[test]
fn arrivals_take_their_steps_once() {
    // Without a total, connections arrive as long as the stages last; those open at the end may continue.
    let (result, server) = run(&coming("duration = \"10s\"", ""), 2, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.opened, result.hold_until), (vec![], 200, S(10)), "{c:?}");
    // A second between the two: twenty are outstanding, and the idle time after the second one counts too.
    assert!((20..=42).contains(&(c.opened - c.finished)), "{c:?}");
    assert!(
        server.by_connection().iter().filter(|received| received.len() == 2).count() as u64 >= c.finished
    );
    assert!(
        server.by_connection().iter().all(|received| received.len() <= 2 && received[0].line() == "GET /a")
    );
    result.assert_on_time();

    let text = coming(
        "duration = \"1m\"",
        "total = 40
calls = 3",
    );
    let (result, server) = run(&text, 2, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.opened, c.finished, c.sent), (vec![], 40, 40, 120), "{c:?}");
    assert!(server.by_connection().iter().all(|received| lines(received) == ["GET /a", "GET /b", "GET /a"]));
}

const BACK: &str = r#"
target = "http://127.0.0.1:80/"
duration = "20s"
[[population]]
name = "users"
connections = 6
think = "1s"
reconnect = "100ms..1s"
loop = "b"
[[population.step]]
request = "/a"
[[population.step]]
name = "b"
request = "/b"
[[population.step]]
request = "/c"
"#;

#[test]
fn after_a_loss_it_begins_again_and_after_an_announced_close_it_goes_on() {
    let lost = |received: &Received| if received.line() == "GET /c" { vec![Reply::Reset] } else { ok() };
    let (result, server) = run(BACK, 2, HTTP, lost);
    let c = &result.whole.counts;
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Reset, c.dropped)]);
    assert!(c.dropped >= 30 && c.redialled >= c.dropped - 6, "{c:?}");
    // Some are outstanding at the end.
    let connections = server.by_connection();
    let each: Vec<Vec<&str>> = connections.iter().map(|received| lines(received)).collect();
    assert!(each.iter().all(|own| ["GET /a", "GET /b", "GET /c"].starts_with(own)), "{each:?}");
    assert_eq!(each.iter().filter(|own| own.len() == 3).count() as u64, c.dropped);

    let closed = |received: &Received| match received.line() {
        "GET /c" => vec![response(200, "Connection: close\r\n", ""), Reply::End],
        _ => ok(),
    };
    let (result, server) = run(BACK, 2, HTTP, closed);
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.dropped, result.held + c.closed - c.redialled), (vec![], 0, 6));
    let (first, later): (Vec<_>, Vec<_>) =
        server.by_connection().into_iter().partition(|received| received[0].conn < 6);
    assert!(first.iter().all(|received| lines(received) == ["GET /a", "GET /b", "GET /c"]));
    assert!(later.len() > 30 && later.iter().all(|received| received[0].line() == "GET /b"));
    // Redialled when the next request is due: the think time lies between the two connections.
    check_gap(first[0][2].at, later[0][0].at, S(1) + ROUND + ROUND);
}

#[test]
fn a_planned_close_is_redialled_at_the_next_step() {
    let text = r#"
        target = "http://127.0.0.1:80/"
        duration = "20s"
        [[population]]
        name = "users"
        connections = 3
        [[population.step]]
        request = "/a"
        [[population.step]]
        close = true
        [[population.step]]
        request = "/b"
        think = "2s"
    "#;
    let (result, server) = run(text, 1, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.closed, c.dropped, result.held), (vec![], 0, 0, 3));
    assert_eq!((c.redialled, c.finished), (c.sent / 2, c.sent / 2), "{c:?}");
    let (first, later): (Vec<_>, Vec<_>) =
        server.by_connection().into_iter().partition(|received| received[0].conn < 3);
    assert!(first.iter().all(|received| lines(received) == ["GET /a"]));
    assert!(later.len() >= 27 && later.iter().all(|received| lines(received)[0] == "GET /b"));
    assert!(
        later
            .iter()
            .filter(|received| received.len() == 2)
            .all(|received| lines(received) == ["GET /b", "GET /a"])
    );
}

#[test]
fn after_the_last_step_it_stays_open() {
    let text = r#"
        target = "http://127.0.0.1:80/"
        duration = "20s"
        [[population]]
        name = "users"
        connections = 3
        loop = false
        [[population.step]]
        request = "/a"
        [[population.step]]
        request = "/b"
        expect = { status = 200 }
        think = "1s"
    "#;
    let (result, server) = run(text, 1, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!((c.sent, c.done, c.finished, result.held, server.accepted_at.len()), (6, 0, 0, 3, 3), "{c:?}");
    // With a close as the last step it is complete as well.
    let (result, _) = run(&format!("{text}\n[[population.step]]\nclose = true\n"), 1, HTTP, |_| ok());
    let c = &result.whole.counts;
    assert_eq!((c.sent, c.done, c.finished, c.redialled, result.held), (6, 3, 3, 0, 0), "{c:?}");
}
