//! The command that the last line suggests sends the same request as throng: it is run by a shell, with the real curl, against the
//! same server.

use std::{
    fs,
    process::Command,
    sync::{Arc, Mutex},
};

use crate::{
    program::{Program, throng},
    scripted::Scripted,
    summary::{Summary, run},
};

/// The request line and the content of a request, and its fields, sorted.
type Request = (String, Vec<String>, Vec<u8>);

/// Refuses each request and records it.
fn recording() -> (Scripted, Arc<Mutex<Vec<Request>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = seen.clone();
    let server = Scripted::start(move |peer| {
        while let Some(head) = peer.request() {
            let Some(content) = peer.content(&head) else { return };
            let (first, fields) = head.split_once("\r\n").unwrap();
            let mut fields: Vec<String> =
                fields.lines().map(normal).filter(|line| !line.is_empty()).collect();
            fields.sort();
            all.lock().unwrap().push((first.to_owned(), fields, content));
            let moves = first.contains("/moved");
            let status = if moves { "302 Found\r\nLocation: /there" } else { "404 Not Found" };
            if !peer.send(&format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")) {
                return;
            }
        }
    });
    (server, seen)
}

/// Names of fields have no case, and a blank at the end of a line is none of the value.
fn normal(line: &str) -> String {
    match line.split_once(':') {
        Some((name, value)) => format!("{}: {}", name.to_ascii_lowercase(), value.trim()),
        None => line.to_owned(),
    }
}

/// Runs the command that a run offers, and compares.
fn compare(summary: &Summary, seen: &Mutex<Vec<Request>>, what: &dyn std::fmt::Debug) {
    let sent: Vec<Request> = std::mem::take(&mut *seen.lock().unwrap());
    let fix = summary.text("limit.cure");
    let (_, command) = fix.split_once("reproduce it with: ").unwrap_or_else(|| panic!("{what:?}: {fix}"));
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("AUTHORIZATION", "Basic bWU6c2VjcmV0").env("COOKIE", "a=b; c=d");
    // What a user has set up for curl is none of ours.
    shell.env("HOME", "/nonexistent").env_remove("http_proxy").env_remove("ALL_PROXY");
    let ended = Program::from(shell).end();
    assert_eq!(ended.status, Some(0), "{command}: {ended:?}");
    assert_eq!(*seen.lock().unwrap(), sent, "{what:?}: {command}");
    seen.lock().unwrap().clear();
}

#[test]
fn the_command_that_is_offered_sends_the_same() {
    let (server, seen) = recording();
    let file = std::env::temp_dir().join(format!("throng-{}-body", std::process::id()));
    let content: Vec<u8> = (0..=255).cycle().take(1_500_000).collect();
    fs::write(&file, content).unwrap();
    let file = file.to_str().unwrap();
    let cases: &[(&str, &[&str])] = &[
        ("/", &[]),
        ("/a/../b/./c?x=[1]&y=2&z='$HOME'\"", &[]),
        ("/%20%41?a=%5B", &["-H", "Accept: text/html", "-H", "X-Empty;", "-H", "User-Agent: me"]),
        ("/", &["-H", "Accept: it's \"$5\" `a` \\ !"]),
        ("/", &["-H", "Cookie: a=b; c=d"]),
        ("/", &["--host", "shop.example"]),
        ("/", &["-X", "HEAD"]),
        ("/", &["-X", "OPTIONS"]),
        ("/", &["-X", "DELETE"]),
        ("/", &["-X", "PUT"]),
        ("/", &["-X", "POST"]),
        ("/", &["--body", "@hi 'there' \n\"$x\""]),
        ("/", &["--body", ""]),
        ("/", &["-X", "GET", "--body", "found by content"]),
        ("/", &["-X", "PATCH", "--body", "{\"a\": 1}", "-H", "Content-Type: application/json"]),
        ("/", &["-X", "PUT", "--body-file", file]),
    ];
    for (path, args) in cases {
        let (ended, summary) = run(&server.url(path), &[&["-c", "1", "-n", "1"], *args].concat());
        assert_eq!(ended.status, Some(1), "{args:?}: {ended:?}");
        compare(&summary, &seen, args);
    }
    let login = format!("http://me:secret@{}/", server.address);
    let (_, summary) = run(&login, &["-c", "1", "-n", "1"]);
    compare(&summary, &seen, &login);
    fs::remove_file(file).unwrap();
}

/// A redirect is followed, by GET after POST.
#[test]
fn a_redirect_is_followed_as_by_throng() {
    let (server, seen) = recording();
    let path = std::env::temp_dir().join(format!("throng-{}-moved.toml", std::process::id()));
    for request in ["GET /moved", "POST /moved\"\nbody = \"a=b"] {
        let text = format!(
            "target = \"{}\"\n[[population]]\nname = \"a\"\nrequests = 1\nconnections = 1\n[[population.step]]\n\
             request = \"{request}\"\nredirects = 3\n",
            server.url("/")
        );
        fs::write(&path, text).unwrap();
        let ended = Program::from(throng(&["run", path.to_str().unwrap(), "--json", "-"])).end();
        let summary =
            Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
        assert_eq!(seen.lock().unwrap().len(), 2, "{ended:?}");
        compare(&summary, &seen, &request);
    }
    fs::remove_file(path).unwrap();
}
