//! Where the result goes: standard output, a file, or nowhere because both are broken.

use std::process::Stdio;

use crate::{
    program::{Program, Serving, file, throng},
    summary::run,
};

const SHORT: [&str; 4] = ["-c", "3", "-d", "100ms"];

#[test]
fn json_on_standard_output_is_alone_there() {
    let server = Serving::start(&["--threads", "1"]);
    // `run` reads all of standard output as one JSON document.
    let (ended, s) = run(&server.url("/"), &SHORT);
    assert!(ended.stdout.starts_with("{\n") && ended.stdout.ends_with("}\n"), "{}", ended.stdout);
    assert!(ended.stderr.contains("3 held of 3 wanted"), "the text is for people: {}", ended.stderr);
    assert!(ended.stderr.contains(&format!("--seed {}", s.count("seed"))), "{}", ended.stderr);
}

#[test]
fn text_and_file_say_the_same() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("both.json"));
    std::fs::write(&json, "old".repeat(10_000)).unwrap();
    let url = server.url("/");
    let ended =
        Program::start(&[&["run", &url, "--json", json.to_str().unwrap()], &SHORT[..]].concat()).end();
    let s: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).unwrap()).expect("all of it is new");
    assert_eq!((ended.status, &s["verdict"]), (Some(0), &"pass".into()));
    let n = with_commas(s["requests"]["answered"].as_u64().unwrap());
    assert!(ended.stdout.contains(&format!(" {n} answered of {n} sent")), "{}", ended.stdout);
    assert!(ended.stdout.contains("pass: all 3 connections held"), "{}", ended.stdout);
    assert!(ended.stdout.contains(&format!("(process {})", server.program.pid())), "{}", ended.stdout);
}

fn with_commas(n: u64) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", with_commas(n / 1000), n % 1000) }
}

#[test]
fn an_unwritable_file_does_not_lose_the_summary() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    for path in ["/no/such/folder/summary.json", "/dev/full", "/"] {
        let ended = Program::start(&[&["run", &url, "--json", path], &SHORT[..]].concat()).end();
        assert_eq!(ended.status, Some(3), "{path}: {ended:?}");
        assert!(ended.stderr.contains(&format!("--json {path}: ")), "{}", ended.stderr);
        assert!(ended.stdout.contains("3 held of 3 wanted"), "{path}: {}", ended.stdout);
    }
}

#[test]
fn a_broken_standard_output_is_an_error_and_no_panic() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("broken.json"));
    let url = server.url("/");
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (_, unread) = std::io::pipe().unwrap();
    for (how, broken) in [("a full disk", Stdio::from(full())), ("nobody reads", unread.into())] {
        let _ = std::fs::remove_file(&json);
        let mut command = throng(&[&["run", &url, "--json", json.to_str().unwrap()], &SHORT[..]].concat());
        let mut child = command.stdout(broken).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(3), "{how}: {status}: {said}");
        assert!(said.contains("standard output: ") && !said.contains("panicked"), "{how}: {said}");
        assert!(json.exists(), "{how}: the file is written all the same");
    }
}

#[test]
fn a_broken_standard_error_does_not_stop_a_run() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let mut command = throng(&[&["run", &url, "--json", "-"], &SHORT[..]].concat());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok(), "{output:?}");
}

#[test]
fn a_run_of_no_time_has_a_summary() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) = run(&server.url("/"), &["-c", "3", "-d", "0", "--think", "1m"]);
    assert_eq!((ended.status, s.count("connections.held"), s.count("requests.answered")), (Some(0), 3, 3));
    assert_eq!(s.count("latency_us.count"), 0, "nothing was due at full load");
    assert!(s.number("duration_s") < 0.5 && s.number("ramp_s") < 2.0, "{:#}", s.0);
}
