//! `throng import` and `throng init`: what they write is a scenario that `throng try` takes.

use std::fs;

use crate::{
    program::{Ended, Program, Serving, file, throng},
    scripted::{Scripted, ok},
};

fn throng_of(args: &[&str]) -> Ended {
    Program::start(args).end()
}

/// Imports a text from a file, and tries the scenario; returns both ends.
fn import_and_try(name: &str, text: &str) -> (Ended, Ended) {
    let (from, to) = (file(name), file(&format!("{name}.toml")));
    fs::write(&from, text).unwrap();
    let imported = throng_of(&["import", from.to_str().unwrap(), "-o", to.to_str().unwrap()]);
    imported.assert_status(0);
    (imported, throng_of(&["try", to.to_str().unwrap()]))
}

#[test]
fn a_recorded_login_is_imported_with_its_token_captured() {
    let server = Scripted::start(|peer| {
        let mut sent = 0;
        while let Some(head) = peer.request() {
            sent += 1;
            let is_right = sent == 1 || head.contains(&format!("Bearer token-of-visit-{}", sent - 1));
            let status = if is_right { "200 OK" } else { "401 Unauthorized" };
            peer.send(&ok(&format!("{{\"token\":\"token-of-visit-{sent}\"}}")).replace("200 OK", status));
        }
    });
    let entry = |method: &str, path: &str, field: &str, answer: &str| {
        let url = server.url(path);
        format!(
            r#"{{"request": {{"method": "{method}", "url": "{url}", "headers": [{field}]}},
               "response": {{"status": 200, "content": {{"text": "{answer}"}}}}}}"#
        )
    };
    let login = entry("POST", "/login", "", r#"{\"token\":\"recorded-12345\"}"#);
    let field = r#"{"name": "Authorization", "value": "Bearer recorded-12345"}"#;
    let har = format!(r#"{{"log": {{"entries": [{login}, {}]}}}}"#, entry("GET", "/me", field, "{}"));
    let (imported, tried) = import_and_try("visit.har", &har);
    assert!(imported.stderr.starts_with("throng: an HTTP archive as a scenario in "), "{}", imported.stderr);
    tried.assert_status(0);
    assert!(tried.stdout.contains("= captured token: ****"), "{}", tried.stdout);
    assert_eq!(server.log.targets(), ["/login", "/me"]);
}

#[test]
fn commands_of_curl_are_imported_from_standard_input() {
    let server = Serving::start(&["--threads", "1"]);
    let (imported, tried) =
        import_and_try("line.sh", &format!("curl -s '{}' -H 'X-A: 1' -F a=b", server.url("/?length=3")));
    assert!(imported.stderr.contains("throng: not in it: curl's -F\n"), "{}", imported.stderr);
    tried.assert_status(0);
    assert!(
        tried.stdout.contains("> X-A: 1\n") && tried.stdout.contains("> GET /?length=3 "),
        "{}",
        tried.stdout
    );
    let mut from_pipe = Program::from({
        let mut command = throng(&["import", "-"]);
        command.stdin(std::process::Stdio::piped());
        command
    });
    from_pipe.types("curl http://127.0.0.1:1/a\n");
    from_pipe.close_stdin();
    let ended = from_pipe.end();
    ended.assert_status(0);
    assert!(ended.stdout.contains("request = \"GET /a\"\n"), "{ended:?}");
}

#[test]
fn what_cannot_be_imported_says_why() {
    let other = file("other.txt");
    fs::write(&other, "hello").unwrap();
    for (args, expected) in [
        (&["import", "/nonexistent"][..], "throng: /nonexistent: No such file or directory"),
        (&["import", other.to_str().unwrap()], "not a known format; use an HTTP archive (HAR)"),
        (&["init", "tcp://127.0.0.1:1"], "target: requires http:// or https://"),
    ] {
        let ended = throng_of(args);
        ended.assert_status(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
    let long = file("long.sh");
    fs::write(&long, format!("curl http://127.0.0.1:1/{}", "x".repeat(9_000))).unwrap();
    let refused = throng_of(&["import", long.to_str().unwrap()]);
    refused.assert_status(2);
    assert!(refused.stdout.contains("request = \"GET /xxx"), "it is written all the same: {refused:?}");
    assert!(refused.stderr.contains("request"), "{}", refused.stderr);
    let silent = throng_of(&["init", "http://127.0.0.1:1/"]);
    silent.assert_status(3);
    assert!(silent.stderr.contains("http://127.0.0.1:1: no response; is it running?"), "{}", silent.stderr);
}

#[test]
fn a_running_service_gets_a_scenario_of_its_routes_or_of_its_path() {
    let document = r#"{"openapi": "3.1.0", "servers": [{"url": "https://elsewhere.example/v1"}],
        "paths": {"/pets": {"get": {"summary": "All pets"}, "post": {}}, "/pets/{id}": {"get": {"parameters":
        [{"name": "id", "in": "path", "required": true, "example": 7}]}}}}"#;
    let server = Scripted::start(move |peer| {
        while let Some(head) = peer.request() {
            let path = head.split(' ').nth(1).unwrap();
            let answer = match path {
                "/openapi.json" => ok(document),
                _ if path.starts_with("/v1/pets") || path == "/" => ok("[]"),
                _ => ok("").replace("200 OK", "404 Not Found"),
            };
            peer.send(&answer.replace("\r\nContent-Length", "\r\nServer: pets/1\r\nContent-Length"));
        }
    });
    let scenario = file("pets.toml");
    let name = scenario.to_str().unwrap();
    let made = throng_of(&["init", &server.url("/"), "-o", name]);
    made.assert_status(0);
    let text = fs::read_to_string(&scenario).unwrap();
    for line in [
        "# The service says: server: pets/1\n",
        "# All pets\n",
        "request = \"GET /v1/pets/7\"\n",
        "# request = \"POST /v1/pets\"\n",
    ] {
        assert!(text.contains(line), "{line} in:\n{text}");
    }
    let tried = throng_of(&["try", name]);
    tried.assert_status(0);
    assert!(tried.stdout.contains("# 2 responses, all right"), "{}", tried.stdout);
    // A service without a document.
    let plain = Serving::start(&["--threads", "1"]);
    let made = throng_of(&["init", &plain.url("/?length=5"), "-o", name]);
    made.assert_status(0);
    assert!(made.stderr.contains("no OpenAPI document at /openapi.json, "), "{}", made.stderr);
    let tried = throng_of(&["try", name]);
    tried.assert_status(0);
    assert!(tried.stdout.contains("> GET /?length=5 HTTP/1.1\n"), "{}", tried.stdout);
}
