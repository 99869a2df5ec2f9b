//! Values of variables as a server gets them.

use std::{
    fs,
    process::Command,
    sync::mpsc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    program::{Program, Serving, file, throng},
    scripted::{Scripted, ok},
};

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// The value of a header field.
fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    fields.filter(|(own, _)| *own == name).map(|(_, value)| value).next().unwrap_or_else(|| panic!("{head}"))
}

/// The HMAC-SHA-256 of a text, as Python computes it.
fn hmac(key: &str, text: &str) -> String {
    let code =
        "import hmac, sys; print(hmac.new(sys.argv[1].encode(), sys.argv[2].encode(), 'sha256').hexdigest())";
    let out = Command::new("python3").args(["-c", code, key, text]).output().expect("Python is there");
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_signature_is_that_of_the_request_which_the_server_gets() {
    let (sender, received) = mpsc::channel();
    let server = Scripted::start(move |peer| {
        while let Some(head) = peer.request() {
            let body = peer.content(&head).unwrap();
            sender.send((head, String::from_utf8(body).unwrap())).unwrap();
            peer.send(&ok("signed"));
        }
    });
    let path = file("values-signed.toml");
    let text = format!(
        r#"
target = {:?}
[[population]]
name = "p"
[[population.step]]
request = "POST /orders?id={{uuid}}&n={{seq}}"
headers = {{ X-Time = "{{now s}}", X-Sign = "{{hmac-sha256 {{env THRONG_TEST_KEY}} {{now s}}|{{path}}|{{body}}}}" }}
body = '{{"token": "{{string 12}}", "n": {{rand 1 900}}}}'
"#,
        server.url("/")
    );
    fs::write(&path, text).unwrap();
    let mut tried = throng(&["try", path.to_str().unwrap()]);
    tried.env("THRONG_TEST_KEY", "k3y-of-the-shop");
    let ended = Program::from(tried).end();
    ended.assert_status(0);
    let (head, body) = received.recv().unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let time = field(&head, "X-Time");
    assert!(now_s().abs_diff(time.parse().unwrap()) < 60, "{time}");
    let expected = hmac("k3y-of-the-shop", &format!("{time}|{target}|{body}"));
    assert_eq!(field(&head, "X-Sign"), expected, "{head}\n{body}");
    // What is known only when it is sent is masked, too.
    assert!(!ended.stdout.contains(&expected) && !ended.stdout.contains("k3y-of"), "{}", ended.stdout);
    assert!(ended.stdout.contains("> X-Sign: ****"), "{}", ended.stdout);
}

#[test]
fn the_upgrade_of_a_websocket_signs_its_path() {
    let (sender, received) = mpsc::channel();
    let server = Scripted::start(move |peer| {
        sender.send(peer.request().unwrap()).unwrap();
        peer.send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
    });
    let target = server.url("/chat?room={rand 1 900}").replace("http://", "ws://");
    Program::start(&["try", &target, "-H", "X-Sign: {hmac-sha256 k3y {path}}"]).end().assert_status(1);
    let head = received.recv().unwrap();
    let path = head.split(' ').nth(1).unwrap();
    assert!(path.starts_with("/chat?room="), "{head}");
    assert_eq!(field(&head, "X-Sign"), hmac("k3y", path), "{head}");
}

#[test]
fn an_echo_with_a_time_and_random_values_is_the_message_that_was_sent() {
    let server = Serving::start(&["--threads", "1"]);
    let target = server.url("/ws/echo").replace("http://", "ws://");
    let message = "{now ns} {now} {uuid} {string 40} {base64 {sha256 {now ns}}} {rand 1 999 zipf}";
    let run = ["run", &target, "-c", "20", "-d", "2s", "--ping", "50ms", "--message", message, "--json", "-"];
    let ended = Program::start(&run).end();
    ended.assert_status(0);
    let summary: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(summary["requests"]["wrong"], 0, "{summary}");
    assert!(summary["requests"]["answered"].as_u64().unwrap() > 300, "{summary}");
}
