//! `throng observe`, queried manually and by a run.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::Value;

use crate::{
    caller::Caller,
    program::{Program, Serving, file, throng, until},
    summary::run,
};

/// A file with a token, readable for its owner only.
fn secret(name: &str) -> PathBuf {
    let path = file(name);
    fs::write(&path, "0123456789abcdef\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn observer(args: &[&str]) -> Serving {
    Serving::from(throng(&["observe", "--listen", "127.0.0.1:0", "--until-stdin-ends"]), args)
}

fn ask(observer: &Serving, path: &str, fields: &str) -> (u16, String) {
    let mut caller = Caller::dial(observer.address);
    caller.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"));
    let response = caller.response();
    (response.status, response.text().to_owned())
}

#[test]
fn a_listener_is_shown_only_with_the_token() {
    let server = Serving::start(&["--threads", "1"]);
    let secret = secret("observing-secret");
    let observer = observer(&["--token-file", secret.to_str().unwrap()]);
    let path = format!("/observe?port={}", server.address.port());
    assert_eq!(ask(&observer, &path, ""), (401, String::new()));
    assert_eq!(ask(&observer, &path, "Authorization: Bearer 0123456789abcdee\r\n"), (403, String::new()));
    let token = "Authorization: Bearer 0123456789abcdef\r\n";
    let look = || -> Value {
        let (status, text) = ask(&observer, &path, token);
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    };
    let first = look();
    let number = |look: &Value, path: &str| look.pointer(path).and_then(Value::as_u64).expect("a number");
    assert_eq!(number(&first, "/target/pid"), u64::from(server.program.pid()));
    assert_eq!(number(&first, "/target/process/processes"), 1);
    assert!(
        number(&first, "/target/process/rss_bytes") > 1 << 20 && number(&first, "/target/open_files") > 3
    );
    assert!(
        number(&first, "/target/accept_backlog") > 0 && number(&first, "/host/memory_available") > 1 << 20
    );
    // Busy for a while: it shows, in clock ticks of 10 ms.
    run(&server.url("/"), &["-c", "10", "-n", "5000"]);
    until("its CPU time", || number(&look(), "/target/process/cpu_system_ns") > 0);
    let nobody = ask(&observer, "/observe?port=1", token);
    assert!(nobody.0 == 200 && nobody.1.starts_with("{\"target\":null,"), "{nobody:?}");
}

fn check_words(args: &[&str], mistakes: &[&str]) {
    let ended = Program::start(&[&["observe"], args].concat()).end();
    assert_eq!(ended.status, Some(2), "{args:?}: {ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), mistakes.len(), "{args:?}: {lines:?}");
    for (line, part) in lines.iter().zip(mistakes) {
        assert!(line.starts_with("throng: ") && line.contains(part), "{part:?} expected: {line}");
    }
}

#[test]
fn an_unprotected_public_listener_is_refused() {
    let open = secret("observing-open");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    let open = open.to_str().unwrap();
    check_words(&["--listen", "127.0.0.1:0", "--token-file", open], &[&format!("chmod 600 {open}")]);
    check_words(&["--listen", "0.0.0.0:0"], &["--listen: without --token-file only loopback is allowed"]);
    let all = ["--listen", "nowhere", "--token-file", "/nowhere/secret", "--port", "0"];
    check_words(&all, &["--listen: ", "--token-file: /nowhere/secret: ", "--port: "]);
    let ended = Program::start(&[
        "run",
        "http://127.0.0.1:1/",
        "--observe",
        "http://127.0.0.1:2",
        "--observe-token-file",
        open,
    ]);
    let ended = ended.end();
    assert!(ended.status == Some(2) && ended.stderr.contains("chmod 600"), "{ended:?}");
}

#[test]
fn a_run_polls_it_each_second() {
    let server = Serving::start(&["--threads", "1"]);
    let secret = secret("observing-run");
    let secret = secret.to_str().unwrap();
    let observer = observer(&["--token-file", secret, "--port", &server.address.port().to_string()]);
    let at = format!("http://{}", observer.address);
    let args =
        ["-c", "20", "--think", "5ms", "-d", "2500ms", "--observe", &at, "--observe-token-file", secret];
    let (ended, s) = run(&server.url("/"), &args);
    ended.assert_status(0);
    assert_eq!(s.count("observed.observer.failures"), 0, "{ended:?}");
    let responses = s.count("observed.observer.answers");
    let most = 3 + ended.took_s as u64;
    assert!((3..=most).contains(&responses), "before the run and each second of it: {responses}");
    assert_eq!(s.count("observed.target.pid"), u64::from(server.program.pid()));
    assert_eq!(s.count("target_cost.pid"), u64::from(server.program.pid()));
    let only = &s.at("target_cost.processes").as_array().unwrap()[..];
    assert!(only.len() == 1 && only[0]["rss_bytes"].as_u64() > Some(1 << 20), "{only:?}");
    assert!(s.number("target_cost.cpu_s") > 0.0 && s.number("observed.target.process.cores_used.max") > 0.0);
    assert!(s.count("observed.target_host.memory_available.min") > 1 << 20);
    assert!(
        ended.stderr.contains(&format!("{}: {responses} responses\n", observer.address)),
        "{}",
        ended.stderr
    );
}

#[test]
fn one_that_fails_is_counted_and_the_run_goes_on() {
    let server = Serving::start(&["--threads", "1"]);
    let secret = secret("observing-fails");
    let observer = observer(&["--token-file", secret.to_str().unwrap()]);
    let at = format!("http://{}", observer.address);
    let (ended, s) = run(&server.url("/"), &["-c", "5", "--think", "5ms", "-d", "1200ms", "--observe", &at]);
    ended.assert_status(0);
    assert!(s.count("observed.observer.failures") >= 2, "{ended:?}");
    assert_eq!(s.count("observed.observer.answers"), 0);
    assert!(s.text("observed.observer.last_failure").contains("--observe-token-file"));
    assert!(s.at("target_cost").is_null(), "whom nobody tells of is not guessed at");
    assert!(ended.stderr.contains(" failures, the last: it requires a token"), "{}", ended.stderr);
}
