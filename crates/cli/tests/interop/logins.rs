//! Scenarios that log in, against Express with sessions in a cookie and `ws` behind it, and nginx over HTTP/2.

use std::{fs, net::SocketAddr};

use serde_json::Value;

use crate::{
    haproxy::{counted, haproxy},
    http2::nginx,
    program::{Ended, Program, throng},
    server::{Server, fetch, folder, program, source},
    summary::Summary,
};

fn express() -> Server {
    Server::announcing("listening on ", program("node", &[&source("node/login_server.js")]))
}

/// What the service has seen.
fn seen(server: &Server) -> Value {
    let text = fetch(&server.url("/seen"));
    serde_json::from_str(text.rsplit("\r\n\r\n").next().unwrap()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// A scenario of a test, in a folder of its own.
fn scenario(name: &str, text: &str) -> String {
    let path = folder(&format!("logins-{name}")).join("load.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs it with a password in the environment.
fn run(path: &str) -> (Ended, Summary) {
    let mut command = throng(&["run", path, "--json", "-"]);
    command.env("PASSWORD_OF_TEST", "secret of the test");
    let ended = Program::from(command).end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    (ended, s)
}

/// The same; no fault, none lost.
fn check(path: &str) -> Summary {
    let counts = [("connections.dropped", 0), ("connections.held", 20)];
    let (ended, s) = run(path);
    assert_eq!(s.faults(), [], "{}", ended.stderr);
    counts.iter().for_each(|(path, n)| assert_eq!(s.count(path), *n, "{path}: {}", ended.stderr));
    assert!(!ended.stderr.contains("secret of the test"), "{}", ended.stderr);
    s
}

const LOGIN: &str = r#"
    name = "login"
    request = "POST /login"
    headers = { Content-Type = "application/json" }
    body = '{"user": "u{seq}", "password": "{env PASSWORD_OF_TEST}"}'
    capture = { token = { json = "/access_token" }, user = { json = "/user/id" } }
"#;

#[test]
fn users_of_express_have_sessions_and_tokens_of_their_own() {
    let server = express();
    let path = scenario(
        "express",
        &format!(
            r#"
                target = "{}"
                [[population]]
                name = "users"
                connections = 20
                requests = 200
                cookies = true
                loop = "me"
                think = "50ms..100ms"
                [[population.step]]
                {LOGIN}
                [[population.step]]
                name = "me"
                request = "GET /old"
                redirects = 1
                headers = {{ Authorization = "Bearer {{var token}}" }}
                expect = {{ json = {{ "/ok" = true }}, body = "\"u" }}
            "#,
            server.url("/")
        ),
    );
    let s = check(&path);
    let seen = seen(&server);
    assert_eq!(
        (&seen["logins"], &seen["tokens"], &seen["refused"]),
        (&20.into(), &20.into(), &0.into()),
        "{seen}"
    );
    assert_eq!((s.count("requests.sent"), s.count("requests.answered")), (200, 200));
}

/// Users who log in and then chat, at this address; the WebSocket is requested with `token`.
fn chat(address: SocketAddr, keys: &str, token: &str) -> String {
    format!(
        r#"
            target = "ws://{address}/"
            {keys}
            [[population]]
            name = "users"
            connections = 20
            requests = 240
            cookies = true
            think = "50ms..100ms"
            [[population.step]]
            {LOGIN}
            [[population.step]]
            upgrade = "/chat?t={token}"
            [[population.step]]
            send-hex = "00 ff 80"
            expect = {{ echo = true }}
            [[population.step]]
            send = "hello"
            expect = {{ echo = true }}
        "#
    )
}

/// `front` is where the users go, to a `server` that may be behind it.
fn check_chat(name: &str, server: &Server, front: SocketAddr, keys: &str) {
    let s = check(&scenario(name, &chat(front, keys, "{var token}")));
    let first = seen(server);
    assert_eq!((&first["tokens"], &first["refused"]), (&20.into(), &0.into()), "{first}");
    let messages = first["binary"].as_u64().unwrap() + first["texts"].as_u64().unwrap();
    // Besides them, a login and an upgrade each.
    assert_eq!((messages, s.count("requests.answered")), (200, 240), "{first}");
    assert!(first["binary"].as_u64() >= Some(20) && first["texts"].as_u64() >= Some(20), "{first}");
    assert_eq!(s.count("handshake_us.count"), 20);

    let path = scenario(&format!("{name}-refused"), &chat(front, keys, "wrong"));
    let (ended, s) = run(&path);
    assert_eq!(s.faults(), [("target·handshake·wrong-status".to_owned(), 20)], "{}", ended.stderr);
    assert!(ended.stderr.contains("401"), "{}", ended.stderr);
}

#[test]
fn a_websocket_is_opened_by_who_has_logged_in() {
    let server = express();
    check_chat("chat", &server, server.address, "");
}

/// HAProxy takes login and WebSocket on streams of one connection, and speaks HTTP/1.1 to Express.
#[test]
fn a_websocket_over_http2_is_opened_by_who_has_logged_in() {
    let server = express();
    let front = haproxy("login", &server.address.to_string(), "timeout tunnel 20s");
    let before = counted(&front, "conn_tot");
    check_chat("chat-http2", &server, front.address, "http2 = true");
    // Twice 20, and the one that reads the counter: a login has no connection of its own.
    assert_eq!(counted(&front, "conn_tot") - before, 41);
}

#[test]
fn values_and_cookies_are_captured_over_http2() {
    let server = nginx(
        "login",
        r#"location = /login { add_header Set-Cookie "sid=s$connection; Path=/"; add_header X-Token h$connection;
            return 200 '{"access_token":"t$connection"}'; }
        location = /me { if ($http_authorization != "Bearer t$connection h$connection") { return 401; }
            if ($http_cookie != "sid=s$connection") { return 403; } return 200 'mine'; }"#,
    );
    let path = scenario(
        "http2",
        &format!(
            r#"
                target = "{}"
                http2 = true
                [[population]]
                name = "users"
                connections = 20
                requests = 200
                cookies = true
                think = "20ms..40ms"
                loop = "me"
                [[population.step]]
                name = "login"
                request = "GET /login"
                capture = {{ token = {{ json = "/access_token" }}, other = {{ header = "X-Token" }} }}
                [[population.step]]
                name = "me"
                request = "GET /me"
                headers = {{ Authorization = "Bearer {{var token}} {{var other}}" }}
                expect = {{ body = "mine" }}
            "#,
            server.url("/")
        ),
    );
    let s = check(&path);
    assert_eq!(s.count("requests.answered"), 200, "{:#}", s.at("requests"));
}
