//! `throng try`: each step as sent and received, what was expected and what was there, secrets masked.

use std::fs;

use serde_json::Value;

use crate::{
    program::{DATA, Ended, Program, Serving, file, throng},
    scripted::{Scripted, ok},
};

fn attempt(args: &[&str]) -> Ended {
    Program::start(&[&["try"], args].concat()).end()
}

/// Writes a scenario with these steps, and tries it.
fn attempt_steps(name: &str, target: &str, keys: &str, steps: &str, args: &[&str]) -> Ended {
    let path = file(name);
    let text = format!("target = {target:?}\n[[population]]\nname = \"p\"\nconnections = 5\n{keys}\n{steps}");
    fs::write(&path, text).unwrap();
    attempt(&[&[path.to_str().unwrap()], args].concat())
}

fn assert_has(ended: &Ended, lines: &[&str]) {
    let mut rest = &ended.stdout[..];
    for line in lines {
        let Some(at) = rest.find(line) else { panic!("no {line:?} in:\n{}\n{}", ended.stdout, ended.stderr) };
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn a_url_is_requested_once_and_shown() {
    let server = Serving::start(&["--threads", "1"]);
    let ended = attempt(&[&server.url("/?length=12"), "-H", "X-Id: 7"]);
    ended.assert_status(0);
    let host = format!("> Host: {}\n", server.address);
    let lines =
        ["* dialling ", "* connected in ", "# 1 get", "> GET /?length=12 HTTP/1.1\n", &host, "> X-Id: 7\n"];
    assert_has(&ended, &lines);
    assert_has(
        &ended,
        &[
            "< HTTP/1.1 200 OK\n",
            "* status 200, 12 bytes, first byte after ",
            "= right\n",
            "# 1 response, all right",
        ],
    );
    assert!(!ended.stdout.contains('\u{1b}'), "colours are for terminals");
}

#[test]
fn a_wrong_response_says_what_was_there_instead() {
    let server = Scripted::responding(ok(r#"{"ok":true,"items":[{"price":12.5}]}"#));
    let steps = r#"
[[population.step]]
name = "price"
request = "GET /price"
expect = { status = 200, length = 13, body = "sorry", headers = { X-A = "b" }, json = { "/items/0/price" = 12 } }
"#;
    let ended = attempt_steps("try-wrong.toml", &server.url("/"), "", steps, &[]);
    ended.assert_status(1);
    let lines = [
        "# 1 price\n",
        "< {\"ok\":true,\"items\":[{\"price\":12.5}]}\n",
        "! header X-A: nothing, not b\n",
        "! length: 36, not 13\n",
        "! body: {\"ok\":true,\"items\":[{\"price\":12.5}]}, not sorry\n",
        "! /items/0/price: 12.5, not 12\n",
        "# 1 of 1 response wrong",
    ];
    assert_has(&ended, &lines);
}

#[test]
fn a_secret_is_masked_wherever_it_comes_back_unless_it_is_asked_for() {
    let server = Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let token = head.contains("Bearer hidden-1").to_string();
            peer.send(&ok(&format!("{{\"t\":\"hidden-1\",\"again\":{token}}}")));
        }
    });
    let steps = r#"
[[population.step]]
name = "login"
request = "POST /login"
body = "pw-4711"
headers = { Authorization = "Bearer of-the-user" }
capture = { token = { json = "/t" } }
[[population.step]]
name = "me"
request = "GET /me"
headers = { Authorization = "Bearer {var token}" }
expect = { json = { "/again" = true } }
"#;
    let ended = attempt_steps("try-secret.toml", &server.url("/"), "loop = \"me\"", steps, &["-n", "2"]);
    ended.assert_status(0);
    let lines = [
        "# 1 login",
        "= captured token: ********\n",
        "# 2 me",
        "> Authorization: *",
        "# 3 me",
        "# 3 responses, all right",
    ];
    assert_has(&ended, &lines);
    for secret in ["hidden-1", "of-the-user"] {
        assert!(!ended.stdout.contains(secret), "{secret} in:\n{}", ended.stdout);
    }
    assert_eq!(server.log.targets(), ["/login", "/me", "/me"]);
    let shown =
        attempt_steps("try-shown.toml", &server.url("/"), "loop = \"me\"", steps, &["--show-secrets"]);
    assert_has(&shown, &["Bearer of-the-user", "= captured token: hidden-1\n", "Bearer hidden-1"]);
}

#[test]
fn a_websocket_is_shown_from_its_upgrade_to_its_close() {
    let server = Serving::start(&["--threads", "1"]);
    let target = server.url("/ws/echo").replace("http", "ws");
    let ended = attempt(&[&target, "--message", "hello", "-n", "2"]);
    ended.assert_status(0);
    let lines = [
        "> GET /ws/echo HTTP/1.1\n",
        "> Upgrade: websocket\n",
        "< HTTP/1.1 101 ",
        "# 1 ping\n",
        "> [text, 5 bytes]\n> hello\n",
        "< [text, 5 bytes]\n< hello\n",
        "= right\n",
        "# 2 ping\n",
        "= right\n",
        "> [close 1000]\n",
        "# 2 responses, all right",
    ];
    assert_has(&ended, &lines);
}

#[test]
fn http2_is_shown_as_lines_with_its_frames() {
    let server = Serving::start(&["--threads", "1"]);
    let ended = attempt(&[&server.url("/?length=3"), "--http2", "-H", "Authorization: Bearer s3cr3t"]);
    ended.assert_status(0);
    let lines = [
        "> [SETTINGS ",
        "< [SETTINGS",
        "> GET /?length=3 HTTP/2\n> host: ",
        "> authorization: *",
        "< HTTP/2 200\n",
    ];
    assert_has(&ended, &lines);
    assert!(!ended.stdout.contains("s3cr3t"));
}

#[test]
fn a_value_that_is_missing_is_named_and_the_steps_that_follow_are_counted() {
    let server = Scripted::responding(ok(r#"{"id":"a-1"}"#));
    let steps = r#"
[[population.step]]
request = "GET /login"
capture = { id = { json = "/id" }, token = { json = "/token" }, tag = { header = "ETag" } }

[[population.step]]
request = "GET /{var id}"
"#;
    let ended = attempt_steps("try-missing.toml", &server.url("/"), "", steps, &[]);
    ended.assert_status(1);
    assert_has(
        &ended,
        &["! nothing to capture as token\n", "! nothing to capture as tag\n", ", 1 of 2 steps taken"],
    );
    assert!(!ended.stdout.contains("as id"), "{}", ended.stdout);
}

#[test]
fn a_connection_that_is_refused_or_cut_says_so() {
    let cut = Scripted::start(|peer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    });
    let ended = attempt(&[&cut.url("/")]);
    ended.assert_status(1);
    assert_has(
        &ended,
        &[
            "< HTTP/1.1 200 OK\n",
            "< half\n",
            "! connection lost: target exchange truncated",
            "no response was awaited",
        ],
    );
    let address = cut.address;
    drop(cut);
    let ended = attempt(&[&format!("http://{address}/")]);
    ended.assert_status(1);
    assert_has(&ended, &["* dialling ", "! connection lost: target dial refused"]);
}

#[test]
fn an_archive_has_each_request() {
    let server = Scripted::responding(ok("hi"));
    let har = file("try.har");
    let ended = attempt(&[&server.url("/a?b=1"), "-n", "2", "--har", har.to_str().unwrap()]);
    ended.assert_status(0);
    let json: Value = serde_json::from_str(&fs::read_to_string(&har).unwrap()).unwrap();
    let entries = json["log"]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["request"]["url"], Value::from(server.url("/a?b=1")));
    assert_eq!(entries[1]["response"]["content"]["text"], "hi");
}

#[test]
fn mistakes_name_the_place_and_the_fix() {
    for (args, expected) in [
        (&["http://127.0.0.1:1/", "-n", "0"][..], "--rounds: use 1 to 100"),
        (&["http://127.0.0.1:1/", "--population", "x"], "--population: there is no \"x\"; use main"),
        (&["http://127.0.0.1:1/", "--har", "/nonexistent/x"], "--har"),
        (&["http://127.0.0.1:1/", "--report", "x.html"], "--report"),
        (&["htp://127.0.0.1:1/"], "htp"),
    ] {
        let ended = attempt(args);
        ended.assert_status(2);
        assert!(ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
    }
}

/// A run keeps one exchange of each fault whole, and shows it as a try would.
#[test]
fn a_run_with_wrong_responses_keeps_one_of_each_whole() {
    let server = Scripted::responding(ok("busy: token=abc").replace("200 OK", "503 Service Unavailable"));
    let url = server.url("/items");
    let data = file("try-data");
    let _ = fs::remove_dir_all(&data);
    let mut load = throng(&[
        "run",
        &url,
        "-c",
        "3",
        "-d",
        "300ms",
        "--think",
        "5ms",
        "-H",
        "Authorization: Bearer s3cr3t",
    ]);
    load.env(DATA, &data);
    Program::from(load).end().assert_status(1);
    let mut runs = throng(&["runs", "latest"]);
    runs.env(DATA, &data);
    let shown = Program::from(runs).end().stdout;
    let example = shown.split_once("target exchange wrong-status\n").expect(&shown).1;
    for line in [
        "# 1 get\n> GET /items HTTP/1.1\n",
        "> Authorization: *",
        "< HTTP/1.1 503 Service Unavailable\n",
        "< busy: token=***\n",
        "! status: 503, not 200 to 299\n",
    ] {
        assert!(example.contains(line), "{line:?} in:\n{example}");
    }
    assert!(!shown.contains("s3cr3t"));
}

/// What curl's users expect of a body is said, in one line.
#[test]
fn a_body_without_a_type_and_a_file_as_curl_names_it_are_noticed() {
    let server = Scripted::responding(ok("hi"));
    let url = server.url("/");
    let untyped = attempt(&[&url, "--body", r#"{"a":1}"#]);
    untyped.assert_status(0);
    let note = "throng: note: the content has no Content-Type, which many services need; add -H 'Content-Type: application/json'\n";
    assert_eq!(untyped.stderr, note);
    assert_eq!(attempt(&[&url, "--body", "a", "-H", "content-type: text/plain"]).stderr, "");
    let as_curl = attempt(&[&url, "--body", "@a.json"]);
    as_curl.assert_status(2);
    let fix = "throng: --body: \"@a.json\" would be sent as it is; for the content of a file use --body-file a.json\n";
    assert!(as_curl.stderr.starts_with(fix), "{}", as_curl.stderr);
}

#[test]
fn compressed_content_is_shown_decoded() {
    let server = Scripted::start(|peer| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut out, b"hello hello").unwrap();
        let content = out.finish().unwrap();
        while peer.request().is_some() {
            peer.send(&format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                content.len()
            ));
            peer.send_bytes(&content);
        }
    });
    let ended = attempt(&[&server.url("/"), "--compressed"]);
    ended.assert_status(0);
    assert_has(
        &ended,
        &["> Accept-Encoding: gzip, deflate, br, zstd\n", " bytes, decoded to 11 bytes]\n< hello hello\n"],
    );
    let refused = attempt(&["ws://127.0.0.1:1/", "--compressed"]);
    refused.assert_status(2);
    assert!(
        refused.stderr.starts_with("throng: --compressed: requires a target with http:// or https://\n"),
        "{}",
        refused.stderr
    );
}

#[test]
fn two_targets_get_the_same_and_their_differences_are_shown() {
    let server = |price: &'static str| {
        Scripted::start(move |peer| {
            while let Some(head) = peer.request() {
                let path = head.split(' ').nth(1).unwrap().to_owned();
                peer.send(&ok(&format!("{{\"path\":\"{path}\",\"items\":[{{\"price\":{price}}}]}}")));
            }
        })
    };
    let (one, other) = (server("12"), server("12.5"));
    let ended = attempt(&[&one.url("/a?x={rand 1 1000000}"), "--diff", &other.url("/")]);
    ended.assert_status(1);
    let name = format!("# compared with http://{}\n", other.address);
    assert_has(
        &ended,
        &[
            "= right\n",
            &name,
            "! 1 get: differs, ",
            "!   /items/0/price: 12 and 12.5\n",
            "# 1 of 1 step differ",
        ],
    );
    assert_eq!(one.log.targets(), other.log.targets(), "the same random numbers");
    let same = attempt(&[&one.url("/a"), "--diff", &one.url("/")]);
    same.assert_status(0);
    assert_has(&same, &["= 1 get: the same, ", "# 0 of 1 step differ"]);
    let wrong = attempt(&[&one.url("/a"), "--diff", "htp://x"]);
    wrong.assert_status(2);
    assert!(wrong.stderr.starts_with("throng: --diff: "), "{}", wrong.stderr);
}

#[test]
fn secrets_of_an_upgrade_and_in_other_forms_are_masked() {
    let server = Serving::start(&["--threads", "1"]);
    let target = server.url("/ws/echo").replace("http", "ws");
    let ended = attempt(&[&target, "-H", "X-Key: hunter22"]);
    ended.assert_status(0);
    assert_has(&ended, &["> X-Key: ********\n", "= right\n"]);
    let server = Scripted::start(|peer| {
        let mut values = [r"ab\/cd+ef==", "other-77"].iter().cycle();
        while peer.request().is_some() {
            peer.send(&ok(&format!("{{\"r\":\"{}\"}}", values.next().unwrap())));
        }
    });
    let steps = r#"
[[population.step]]
request = "GET /a"
capture = { r = { json = "/r" } }
[[population.step]]
request = "POST /b?r={var r}"
body = '{"r":"{var r}"}'
headers = { Content-Type = "application/json" }
capture = { r = { json = "/r" } }
"#;
    let ended = attempt_steps("try-forms.toml", &server.url("/"), "", steps, &[]);
    ended.assert_status(0);
    assert_has(&ended, &["< {\"r\":\"**", "> POST /b?r=**", "# 2 responses, all right"]);
    for part in ["ab\\/cd", "ab/cd", "ab%2Fcd", "other-77"] {
        assert!(!ended.stdout.contains(part), "{part} in:\n{}", ended.stdout);
    }
    assert_eq!(server.log.targets()[1], "/b?r=ab%2Fcd%2Bef%3D%3D");
}

/// The engine reads content as it came if the request has not asked for a coding; so does the explanation.
#[test]
fn content_that_is_compressed_unasked_is_wrong_in_a_try_as_in_a_run() {
    let server = Scripted::start(|peer| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut out, br#"{"ok":true}"#).unwrap();
        let content = out.finish().unwrap();
        while peer.request().is_some() {
            peer.send(&format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
                content.len()
            ));
            peer.send_bytes(&content);
        }
    });
    let step = |headers: &str| {
        format!(
            "[[population.step]]\nrequest = \"GET /\"\n{headers}\nexpect = {{ json = {{ \"/ok\" = true }} }}\n"
        )
    };
    let unasked = attempt_steps("try-unasked.toml", &server.url("/"), "", &step(""), &[]);
    unasked.assert_status(1);
    assert_has(&unasked, &["! /ok: nothing, not true\n", "# 1 of 1 response wrong"]);
    let asked = attempt_steps(
        "try-asked.toml",
        &server.url("/"),
        "",
        &step("headers = { Accept-Encoding = \"gzip\" }"),
        &[],
    );
    asked.assert_status(0);
}

#[test]
fn steps_are_compared_with_a_target_that_takes_them() {
    for (target, other) in
        [("ws://127.0.0.1:1/", "http://127.0.0.1:1/"), ("http://127.0.0.1:1/", "ws://127.0.0.1:1/")]
    {
        let ended = attempt(&[target, "--diff", other]);
        ended.assert_status(2);
        assert!(
            ended.stderr.starts_with("throng: --diff: the steps are those of a target with "),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn an_error_of_graphql_is_a_wrong_response_although_its_status_is_200() {
    let server = Scripted::start(|peer| {
        while let Some(head) = peer.request() {
            let query = String::from_utf8(peer.content(&head).unwrap()).unwrap();
            let errors = if query.contains("\"Bad\"") { r#"[{"message":"no field x"}]"# } else { "null" };
            peer.send(&ok(&format!("{{\"data\":{{}},\"errors\":{errors}}}")));
        }
    });
    let steps = "[[population.step]]\ngraphql = 'query Good($id: ID!) {user(id: $id) {name}}'\nvariables = '{\"id\": 7}'\n\
                 [[population.step]]\ngraphql = 'query Bad {x}'\n";
    let ended = attempt_steps("try-graphql.toml", &server.url("/graphql"), "", steps, &[]);
    ended.assert_status(1);
    let lines = [
        "# 1 Good\n> POST /graphql HTTP/1.1\n",
        "> Content-Type: application/json\n",
        r#"> {"query":"query Good($id: ID!) {user(id: $id) {name}}","operationName":"Good","variables":{"id": 7}}"#,
        "= right\n",
        "# 2 Bad\n",
        "! /errors/0/message: no field x, not absent\n",
        "# 1 of 2 responses wrong",
    ];
    assert_has(&ended, &lines);
}
