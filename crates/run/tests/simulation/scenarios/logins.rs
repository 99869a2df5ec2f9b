//! Scenarios with logins: captured values appear in later requests, headers and upgrades.

use std::collections::BTreeSet;

use samples::{Detail, Kind, Stage};

use super::{MS, check_gap, run};
use crate::listener::{Received, Reply, Speaks, frame, response, welcome};
use stage::{RunResult, measured};

const HTTP: Speaks = Speaks::Http;

/// The value of a header field in a request.
fn field<'a>(received: &'a Received, name: &str) -> Option<&'a str> {
    received.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// A scenario with these steps, for three connections.
fn scenario(scheme: &str, more: &str, steps: &[&str]) -> String {
    let steps: String = steps.iter().map(|step| format!("[[population.step]]\n{step}\n")).collect();
    format!(
        "target = \"{scheme}://127.0.0.1:80/ws\"\nduration = \"5s\"\nthink = \"1s\"\n[[population]]\nname = \"users\"\n\
         connections = 3\n{more}\n{steps}"
    )
}

/// The content of a response, in pieces of one byte.
fn trickle(body: &str) -> Vec<Reply> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nX-Token: h7\r\nSet-Cookie: sid=c7; Path=/\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let pieces = body.bytes().map(|octet| Reply::Bytes(vec![octet]));
    [Reply::Bytes(head.into_bytes())].into_iter().chain(pieces).collect()
}

fn is_without_fault(result: &RunResult) {
    let c = &result.whole.counts;
    assert_eq!((result.faults(), c.dropped, result.held), (vec![], 0, 3), "{c:?}");
    assert_eq!((c.sent, c.told), (c.answered, 0), "{c:?}");
}

#[test]
fn each_connection_sends_the_token_that_it_was_given() {
    let login = "name = \"login\"\nrequest = \"POST /login\"\nbody = \"u\"\n\
        capture = { token = { json = \"/user/access_token\" } }";
    let me = "name = \"me\"\nrequest = \"GET /me?t={var token}\"\nheaders = { Authorization = \"Bearer {var token}\" }";
    let text = scenario("http", "loop = \"me\"", &[login, me]);
    let (result, server) = run(&text, 2, HTTP, |received: &Received| match received.line() {
        "POST /login" => trickle(&format!(
            "{{\"pad\": [{{\"access_token\": \"no\"}}], \"user\": {{\"access_token\": \"t\\u00e9 {}\"}}}}",
            received.conn
        )),
        _ => vec![response(200, "", "")],
    });
    is_without_fault(&result);
    for (conn, own) in server.by_connection().into_iter().enumerate() {
        assert!(own.len() > 3 && own[0].line() == "POST /login", "{own:?}");
        for me in &own[1..] {
            assert_eq!(me.line(), format!("GET /me?t=t%C3%A9%20{conn}"));
            assert_eq!(field(me, "Authorization"), Some(&*format!("Bearer té {conn}")));
        }
    }
}

#[test]
fn values_come_from_header_cookie_and_expression() {
    let login = "request = \"POST /login\"\n[population.step.capture]\nh = { header = \"x-token\" }\n\
        c = { cookie = \"sid\" }\nr = { regex = 'csrf=\"([0-9a-f]+)\"' }\nw = { regex = 'v[0-9]' }";
    let next = "request = \"POST /next\"\nbody = '{\"all\": \"{var h} {var c} {var r} {var w}\"}'";
    let text = scenario("http", "", &[login, next]);
    let (result, server) = run(&text, 1, HTTP, |received: &Received| match received.line() {
        "POST /login" => trickle("<p>v2</p><input csrf=\"0fe1\"><input csrf=\"2\">"),
        _ => vec![response(200, "", "")],
    });
    is_without_fault(&result);
    let bodies: BTreeSet<&str> = server
        .received
        .iter()
        .filter(|received| received.line() == "POST /next")
        .filter_map(|received| received.text.split("\r\n\r\n").nth(1))
        .collect();
    assert_eq!(bodies, BTreeSet::from(["{\"all\": \"h7 c7 0fe1 v2\"}"]));
}

/// A value that cannot be captured is a fault, and ends its connection.
fn check_useless(reply: impl Fn() -> Reply + 'static, kind: Kind) {
    let login = "request = \"/login\"\ncapture = { token = { json = \"/token\" } }";
    let text = scenario("http", "", &[login, "request = \"/me?{var token}\""]);
    let (result, server) = run(&text, 1, HTTP, move |_| vec![reply()]);
    let c = &result.whole.counts;
    let ends = kind.is_wrong_response().then_some((Stage::Hold, Kind::MissingValue, 3));
    let expected: Vec<_> = [(Stage::Exchange, kind, 3)].into_iter().chain(ends).collect();
    assert_eq!(result.faults(), expected, "{c:?}");
    // A failed login is one error, whatever happens to its connection.
    let errors = result.judge(&stage::scenario(&text, 1)).errors;
    assert_eq!((errors.count, errors.of), (3, 3));
    assert_eq!((c.sent, c.answered, c.dropped, result.held), (3, 3, 3, 0), "{c:?}");
    assert_eq!(server.received.len(), 3, "nothing is sent without it");
}

#[test]
fn a_connection_without_its_value_ends() {
    let json = |text: &str| response(200, "", text);
    check_useless(move || json("{\"id\": 7}"), Kind::MissingValue);
    check_useless(move || json("{\"token\": \"\"}"), Kind::MissingValue);
    check_useless(move || json("{\"token\": {}}"), Kind::MissingValue);
    check_useless(move || json("{\"token\": \"a\\r\\nb\"}"), Kind::MissingValue);
    check_useless(move || json("{\"token\": \"cut"), Kind::MissingValue);
    check_useless(|| response(401, "", "{\"token\": \"t\"}"), Kind::WrongStatus);
    let long = |n: usize| response(200, "", &format!("{{\"token\": \"{}\"}}", "x".repeat(n)));
    check_useless(move || long(plan::LONGEST_VALUE + 1), Kind::ValueTooLong);
    check_useless(move || long(100_000), Kind::ValueTooLong);
}

#[test]
fn the_step_is_named_whose_responses_have_another_status() {
    let login = "name = \"login\"\nrequest = \"/login\"\ncapture = { token = { header = \"X-Token\" } }";
    let text = scenario("http", "", &[login, "request = \"/me?{var token}\""]);
    let (result, _) = run(&text, 1, HTTP, |_| vec![response(401, "", "")]);
    let summary = result.judge(&stage::scenario(&text, 1));
    assert_eq!(summary.populations["users"].steps["login"].faults, summary.faults[..1]);
    let limit = summary.limit.expect("no login succeeds");
    assert_eq!(limit.sentence, "unexpected status: 401 × 3, all in step login");
}

#[test]
fn a_value_of_the_greatest_length_is_kept() {
    let login = "request = \"/login\"\ncapture = { token = { json = \"/token\" } }";
    let text = scenario("http", "", &[login, "request = \"POST /me\"\nbody = \"{var token}\""]);
    let body = format!("{{\"token\": \"{}\"}}", "x".repeat(plan::LONGEST_VALUE));
    let (result, server) = run(&text, 1, HTTP, move |_| vec![response(200, "", &body)]);
    is_without_fault(&result);
    assert!(server.received.iter().any(|me| me.text.ends_with(&"x".repeat(plan::LONGEST_VALUE))));
}

#[test]
fn a_connection_that_could_not_log_in_tries_again() {
    let login = "request = \"/login\"\ncapture = { token = { header = \"X-Token\" } }";
    let text = scenario("http", "reconnect = \"1s..1s\"", &[login, "request = \"/me?{var token}\""]);
    let (result, server) = run(&text, 1, HTTP, |received: &Received| match received.conn {
        0..3 => vec![response(503, "", "")],
        _ => vec![response(200, "X-Token: t\r\n", "")],
    });
    let faults = [(Stage::Exchange, Kind::WrongStatus, 3), (Stage::Hold, Kind::MissingValue, 3)];
    assert_eq!(result.faults(), faults);
    assert_eq!((result.whole.counts.dropped, result.whole.counts.redialled, result.held), (3, 3, 3));
    let again = &server.by_connection()[3..];
    assert!(
        again.iter().all(|own| own[0].line() == "GET /login" && own[1].line() == "GET /me?t"),
        "{again:?}"
    );
}

#[test]
fn values_and_cookies_persist_when_a_connection_is_dialled_again() {
    let login = "request = \"/login\"\ncapture = { token = { json = \"\" } }";
    let me = "name = \"me\"\nrequest = \"/me?{var token}\"";
    let text = scenario("http", "cookies = true\nloop = \"me\"", &[login, me]);
    let (result, server) = run(&text, 1, HTTP, |received: &Received| match received.line() {
        "GET /login" => {
            let cookie = format!("Connection: close\r\nSet-Cookie: sid={}\r\n", received.conn);
            vec![response(200, &cookie, &received.conn.to_string()), Reply::End]
        }
        _ => vec![response(200, "", "")],
    });
    is_without_fault(&result);
    assert_eq!(result.whole.counts.redialled, 3);
    let again = server.by_connection().into_iter().skip(3);
    let tokens: BTreeSet<String> = again
        .map(|own| {
            let (token, cookie) = (own[0].line().to_owned(), field(own[0], "Cookie").unwrap().to_owned());
            assert!(
                own.iter().all(|me| me.line() == token && field(me, "Cookie") == Some(&cookie)),
                "{own:?}"
            );
            assert_eq!(token.replace("GET /me?", "sid="), cookie);
            cookie
        })
        .collect();
    assert_eq!(tokens, BTreeSet::from(["sid=0", "sid=1", "sid=2"].map(str::to_owned)));
}

#[test]
fn cookies_are_kept_for_their_paths_and_times() {
    let steps = ["request = \"/a/login\"", "request = \"/a/x\"", "request = \"/b\""];
    let text = scenario("http", "cookies = true", &steps);
    let (result, server) = run(&text, 1, HTTP, |received: &Received| match received.line() {
        "GET /a/login" => vec![response(
            200,
            "Set-Cookie: sid=1; HttpOnly\r\nset-cookie: all=2; Path=/; Max-Age=1\r\nSet-Cookie: gone=; Max-Age=0\r\n",
            "",
        )],
        _ => vec![response(200, "", "")],
    });
    is_without_fault(&result);
    for own in server.by_connection() {
        let cookies: Vec<_> = own.iter().take(5).map(|received| field(received, "Cookie")).collect();
        // `all` has expired by the third step, a think time and a response after its second one.
        assert_eq!(cookies, [None, Some("sid=1"), None, Some("sid=1"), Some("sid=1")], "{own:?}");
    }
}

#[test]
fn values_of_json_are_checked() {
    let check = |expected: &str, kind: Option<Kind>| {
        let step = format!("request = \"/\"\nexpect = {{ json = {{ {expected} }} }}");
        let text = scenario("http", "", &[&step]);
        let (result, _) =
            run(&text, 1, HTTP, |_: &Received| trickle("{\"ok\": true, \"n\": [1, \"é\"], \"o\": {}}"));
        let kinds: Vec<Kind> = result.faults().iter().map(|(_, kind, _)| *kind).collect();
        assert_eq!((kinds, result.held), (kind.into_iter().collect(), 3), "{expected}");
    };
    check("\"/ok\" = true, \"/n/0\" = 1, \"/n/1\" = \"é\"", None);
    check("\"/ok\" = false", Some(Kind::WrongBody));
    check("\"/ok\" = true, \"/n/1\" = \"e\"", Some(Kind::WrongBody));
    check("\"/o\" = \"{}\"", Some(Kind::WrongBody));
    check("\"/absent\" = \"\"", Some(Kind::WrongBody));
}

/// Logs in by HTTP, then speaks WebSocket.
fn sign_in(received: &Received) -> Vec<Reply> {
    match received.line() {
        "POST /login" => {
            let fields = format!("Set-Cookie: sid=s{}; Path=/\r\n", received.conn);
            vec![response(200, &fields, &format!("{{\"token\": \"t{}\"}}", received.conn))]
        }
        line if line.starts_with("GET /") => vec![Reply::Bytes(welcome(&received.text))],
        text => vec![Reply::Bytes(frame(text))],
    }
}

const LOGIN: &str = "request = \"POST /login\"\ncapture = { token = { json = \"/token\" } }";

#[test]
fn a_websocket_is_opened_with_the_token_on_the_connection_that_logged_in() {
    let upgrade = "upgrade = \"/chat?t={var token}\"\nheaders = { Authorization = \"Bearer {var token}\" }";
    let hello = "send = \"hello {var token} {seq}\"\nexpect = { echo = true }";
    let text = scenario("ws", "cookies = true", &[LOGIN, upgrade, hello]);
    let (result, server) = run(&text, 2, Speaks::WebSocket, sign_in);
    is_without_fault(&result);
    assert_eq!(result.whole.handshake.count(), 3);
    for (conn, own) in server.by_connection().into_iter().enumerate() {
        assert_eq!(own[1].line(), format!("GET /chat?t=t{conn}"));
        let fields = ["Authorization", "Cookie"].map(|name| field(own[1], name).unwrap().to_owned());
        assert_eq!(fields, [format!("Bearer t{conn}"), format!("sid=s{conn}")]);
        let messages = &own[2..];
        let are_own = messages.iter().all(|message| message.text.starts_with(&format!("hello t{conn} ")));
        // The last input is the closing handshake, if there is one.
        assert!(
            messages.len() > 3 && (are_own || messages.last().unwrap().text.starts_with("close")),
            "{own:?}"
        );
    }
}

#[test]
fn without_an_upgrade_step_it_is_at_the_path_of_the_target() {
    let text = scenario("ws", "", &[LOGIN, "send = \"{var token}\"\nexpect = { echo = true }"]);
    let (result, server) = run(&text, 1, Speaks::WebSocket, sign_in);
    is_without_fault(&result);
    assert!(server.by_connection().iter().all(|own| own[1].line() == "GET /ws" && own.len() > 3));
}

#[test]
fn a_websocket_that_is_only_held_after_its_login_takes_pings_and_leave() {
    let text = scenario("ws", "", &[LOGIN, "upgrade = \"/chat\"\nthink = \"1s\""]);
    let (result, server) = run(&text, 1, Speaks::WebSocket, |received: &Received| match received.line() {
        // A ping arrives together with the response.
        "GET /chat" => vec![Reply::Bytes([welcome(&received.text), b"\x89\x01?".to_vec()].concat())],
        _ => sign_in(received),
    });
    is_without_fault(&result);
    assert_eq!((result.whole.counts.sent, result.whole.handshake.count()), (6, 3));
    assert!(server.by_connection().iter().all(|own| own.len() <= 3), "login, upgrade and leave");
}

#[test]
fn a_heartbeat_begins_with_the_websocket() {
    let beat = "[[population.on]]\nevery = \"300ms\"\nsend = \"beat\"";
    let text = scenario("ws", "", &[LOGIN, "upgrade = \"/chat\"\nthink = \"1s\""]) + beat;
    // A frame before the upgrade would be an invalid request.
    let (result, server) = run(&text, 1, Speaks::WebSocket, sign_in);
    assert_eq!((result.faults(), result.held), (vec![], 3));
    for own in server.by_connection() {
        let beats: Vec<_> = own.iter().filter(|received| received.text == "beat").collect();
        let upgraded = own.iter().find(|received| received.line() == "GET /chat").unwrap().at;
        check_gap(upgraded, beats[0].at, MS(300));
        assert!(beats.len() > 8, "{own:?}");
    }
}

#[test]
fn a_connection_may_log_in_close_and_come_back() {
    let text = scenario("ws", "", &[LOGIN, "close = true", LOGIN, "send = \"x\"\nexpect = { echo = true }"]);
    let (result, server) =
        run(&text.replace("connections = 3", "connections = 3\nloop = false"), 1, Speaks::WebSocket, sign_in);
    is_without_fault(&result);
    let (first, second) = server.by_connection().into_iter().partition::<Vec<_>, _>(|own| own.len() == 1);
    assert_eq!((first.len(), second.len()), (3, 3), "each is dialled again after the first login");
    assert!(
        second.iter().all(|own| own[0].line() == "POST /login" && own[1].line() == "GET /ws"),
        "{second:?}"
    );
}

#[test]
fn a_lost_websocket_logs_in_again_and_an_announced_end_does_not() {
    let hello = "name = \"hello\"\nsend = \"hello\"\nexpect = { echo = true }";
    let text = scenario("ws", "reconnect = \"1s..1s\"", &[LOGIN, "upgrade = \"/chat?{var token}\"", hello]);
    let (result, server) = run(&text, 1, Speaks::WebSocket, |received: &Received| match &*received.text {
        "hello" if received.conn == 0 => vec![Reply::Reset],
        // A close frame with its code announces the end.
        "hello" if received.conn == 1 => {
            vec![Reply::Bytes(frame("hello")), Reply::Bytes(b"\x88\x02\x03\xe8".to_vec())]
        }
        _ => sign_in(received),
    });
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Reset, 1)]);
    assert_eq!((result.whole.counts.redialled, result.held), (2, 3));
    let again: BTreeSet<&str> = server.by_connection()[3..].iter().map(|own| own[0].line()).collect();
    assert_eq!(again, BTreeSet::from(["GET /chat?t1", "POST /login"]));
}

#[test]
fn a_refused_upgrade_is_a_fault_of_the_handshake_with_its_status() {
    let text = scenario("ws", "", &[LOGIN, "upgrade = \"/chat\"", "send = \"x\"\nexpect = { echo = true }"]);
    let (result, _) = run(&text, 1, Speaks::WebSocket, |received: &Received| match received.line() {
        "GET /chat" => vec![response(401, "", "")],
        _ => sign_in(received),
    });
    assert_eq!(result.faults(), [(Stage::Handshake, Kind::WrongStatus, 3)]);
    assert_eq!((result.whole.status[401], result.held), (3, 0));
}

#[test]
fn redirects_are_followed_to_the_same_host() {
    let post =
        "name = \"post\"\nrequest = \"POST /in\"\nbody = \"x\"\nredirects = 3\nexpect = { body = \"home\" }";
    let text = scenario("http", "cookies = true", &[post]);
    let (result, server) = run(&text, 1, HTTP, |received: &Received| match received.line() {
        "POST /in" => vec![response(303, "Location: a/b\r\nSet-Cookie: sid=1; Path=/\r\n", "see")],
        "GET /a/b" => vec![response(307, "Location: http://127.0.0.1/home#top\r\n", "")],
        _ => vec![response(200, "", "home")],
    });
    is_without_fault(&result);
    let c = &result.whole.counts;
    assert_eq!(server.received.len() as u64, 3 * c.sent, "the hops are no requests of their own");
    assert_eq!(result.whole.status.iter().sum::<u64>(), c.answered);
    for own in server.by_connection() {
        let lines: Vec<_> = own.iter().take(3).map(|received| received.line()).collect();
        assert_eq!(lines, ["POST /in", "GET /a/b", "GET /home"]);
        assert_eq!(own[1..3].iter().map(|hop| field(hop, "Cookie")).collect::<Vec<_>>(), [Some("sid=1"); 2]);
    }
}

/// On the next connection, if the server closes this one: after its number of requests, or always.
#[test]
fn redirects_are_followed_on_the_next_connection() {
    let post =
        "name = \"post\"\nrequest = \"POST /in\"\nbody = \"x\"\nredirects = 3\nexpect = { body = \"home\" }";
    let check = |first: &'static str, hops: u64, more: &str| {
        let text = scenario("http", &format!("cookies = true\n{more}"), &[post]);
        let (result, server) = run(&text, 1, HTTP, move |received: &Received| match received.line() {
            "POST /in" => {
                let fields = format!("Location: /a/b\r\nSet-Cookie: sid=1; Path=/\r\n{first}");
                let end = (!first.is_empty()).then_some(Reply::End);
                [response(303, &fields, "see")].into_iter().chain(end).collect()
            }
            "GET /a/b" => vec![response(302, "Location: /home\r\nConnection: close\r\n", ""), Reply::End],
            _ => vec![response(200, "", "home")],
        });
        let c = &result.whole.counts;
        assert_eq!((result.faults(), c.dropped, c.answered), (vec![], 0, c.sent - c.withdrawn), "{c:?}");
        assert_eq!((c.withdrawn, server.received.len() as u64), (hops * c.answered, 3 * c.answered), "{c:?}");
        assert!(c.answered >= 10, "{c:?}");
        let later: Vec<_> = server.received.iter().filter(|it| it.line() != "POST /in").collect();
        assert!(
            later.iter().all(|hop| field(hop, "Cookie") == Some("sid=1") && hop.text.starts_with("GET "))
        );
        // One response per row, whose time includes all its connections.
        assert_eq!(result.whole.status[200], c.answered);
        assert!(measured(&result.whole.latency).min >= if hops == 1 { 400.0 } else { 500.0 });
        c.clone()
    };
    check("", 1, "");
    // Each connection that arrives for two calls makes two, over as many TCP connections as necessary.
    let c = check("Connection: close\r\n", 2, "calls = 2");
    assert_eq!(c.finished, c.answered / 2, "{c:?}");
    let c = check("Connection: close\r\n", 2, "");
    assert_eq!((c.redialled, c.closed), (c.withdrawn, c.withdrawn), "{c:?}");
}

/// With the values drawn for the first request (RFC 9110, section 15.4.8: same method and content).
#[test]
fn a_redirect_has_the_values_of_its_request() {
    let post = "name = \"post\"\nrequest = \"POST /in/{rand 1 9}\"\nbody = \"{rand 100 999} {seq}\"\nredirects = 3\n\
        headers = { X-N = \"{rand 1 99}\" }\nexpect = { length = \"$1\" }";
    for close in ["", "Connection: close\r\n"] {
        let text = scenario("http", "", &[post]);
        let (result, server) = run(&text, 1, HTTP, move |received: &Received| {
            let line = received.line();
            let Some(n) = line.strip_prefix("POST /in/") else {
                let n = line.strip_prefix("POST /there/").expect("it has the path of the redirect");
                return vec![response(200, "", &"x".repeat(n.parse().expect("a number")))];
            };
            let end = (!close.is_empty()).then_some(Reply::End);
            let moved = response(307, &format!("Location: /there/{n}\r\n{close}"), "");
            [moved].into_iter().chain(end).collect()
        });
        assert_eq!((result.faults(), result.whole.counts.answered >= 10), (vec![], true), "{close}");
        let mut sent: Vec<_> =
            server.received.iter().map(|it| (it.text.split_once("\r\n").unwrap().1, it.at)).collect();
        // Each request and its redirect, which has the same fields and content.
        let different: BTreeSet<_> = sent.iter().map(|(rest, _)| *rest).collect();
        assert_eq!(2 * different.len(), sent.len(), "{different:?}");
        sent.sort();
        assert!(sent.chunks(2).all(|two| two[0].0 == two[1].0), "{sent:?}");
    }
}

#[test]
fn cookies_of_redirects_that_do_not_fit_are_noticed() {
    let text = scenario("http", "cookies = true", &["request = \"/\"\nredirects = 2"]);
    let large = |name: &str, status, location: &str| {
        let cookie = format!("Set-Cookie: {name}={}; Path=/\r\n{location}", "x".repeat(3_500));
        response(status, &cookie, "")
    };
    let (result, _) = run(&text, 1, HTTP, move |received: &Received| match received.line() {
        "GET /" => vec![large("a", 302, "Set-Cookie: c=1; Path=/\r\nLocation: /two\r\n")],
        "GET /two" => vec![large(
            "b",
            302,
            &format!("Set-Cookie: d={}; Path=/\r\nLocation: /home\r\n", "y".repeat(3_000)),
        )],
        _ => vec![response(200, "", "home")],
    });
    assert!(
        result.faults().iter().any(|(_, kind, n)| *kind == Kind::ValueTooLong && *n == 3),
        "{:?}",
        result.faults()
    );
}

/// If no connection follows, the redirect counts as the response.
#[test]
fn a_redirect_of_the_last_connection_is_its_response() {
    let text = scenario("http", "reconnect = \"never\"", &["request = \"/\"\nredirects = 2"]);
    let last =
        |_: &Received| vec![response(302, "Location: /there\r\nConnection: close\r\n", ""), Reply::End];
    let (result, server) = run(&text, 1, HTTP, last);
    let faults: Vec<_> = result.whole.faults.iter().map(|(fault, n)| (fault.kind, fault.detail, n)).collect();
    assert_eq!(faults, [(Kind::WrongStatus, Detail::LAST_RESPONSE, 3)]);
    assert_eq!(server.received.len(), 3);
}

#[test]
fn redirects_end_at_their_number_and_at_another_host() {
    let check = |location: &'static str, requests: usize| {
        let text = scenario("http", "calls = 1", &["request = \"/\"\nredirects = 2"]);
        let fields = format!("Location: {location}\r\n");
        let (result, server) = run(&text, 1, HTTP, move |_| vec![response(302, &fields, "")]);
        let answered = result.whole.counts.answered;
        assert_eq!(result.faults(), [(Stage::Exchange, Kind::WrongStatus, answered)]);
        assert_eq!(server.received.len(), requests * answered as usize, "{location}");
    };
    check("/again", 3);
    check("http://127.0.0.2/", 1);
    check("https://127.0.0.1/", 1);
}

#[test]
fn one_of_the_steps_with_a_weight_is_done_each_time() {
    let steps = [
        "name = \"first\"\nrequest = \"/first\"",
        "weight = 3\nrequest = \"/look\"",
        "weight = 1\nrequest = \"/buy\"",
    ];
    let text = scenario("http", "", &steps).replace("think = \"1s\"", "think = \"2ms\"");
    let (result, server) = run(&text, 1, HTTP, |_: &Received| vec![response(200, "", "")]);
    is_without_fault(&result);
    let count = |line: &str| server.received.iter().filter(|received| received.line() == line).count();
    let (first, look, buy) = (count("GET /first"), count("GET /look"), count("GET /buy"));
    assert!((look + buy).abs_diff(first) <= 3, "{first} {look} {buy}");
    // Three of four, within six standard deviations.
    let (n, looked) = ((look + buy) as f64, look as f64);
    assert!(n > 1_000.0 && (looked - 0.75 * n).abs() < 6.0 * (n * 0.75 * 0.25).sqrt(), "{look} of {n}");
    for own in server.by_connection() {
        assert!(own.iter().step_by(2).all(|received| received.line() == "GET /first"), "by turns");
    }
}
