//! An error in throng itself, injected into each kind of thread: what was measured is stored and written, and the verdict is invalid.

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use serde_json::Value;

use crate::program::{DATA, Ended, Program, Serving, file, throng, until};

/// The run store of a test.
fn data(name: &str) -> String {
    let folder = file(&format!("failures-{name}"));
    let _ = fs::remove_dir_all(&folder);
    folder.to_str().unwrap().to_owned()
}

/// Ends a command in which this place fails.
fn failing(mut command: Command, place: &str, data: &str) -> Ended {
    command.env("THRONG_FAIL", place).env(DATA, data).env_remove("RUST_BACKTRACE");
    Program::from(command).end()
}

/// What a command says of its failure, once, and how it ends.
fn assert_failed(ended: &Ended, place: &str) {
    let name = place.split(':').next().unwrap();
    assert_eq!(ended.status, Some(4), "{place}: {ended:#?}");
    let said = format!("throng: throng failed: injected in {name} (crates/");
    assert_eq!(ended.stderr.matches(&said).count(), 1, "{place}: {}", ended.stderr);
    let report = format!("this one: throng {}: throng ", env!("CARGO_PKG_VERSION"));
    assert!(ended.stderr.contains(&report), "{place}: {}", ended.stderr);
}

/// A run of a minute fails within seconds, and has its outputs; `measured`: it had begun.
fn check(place: &str, args: &[&str], measured: bool) {
    let server = Serving::start(&["--threads", "1"]);
    let (url, data) = (server.url("/"), data(&place.replace(':', "-")));
    let [json, csv, junit] = ["json", "csv", "xml"].map(|ending| format!("{data}.{ending}"));
    let outputs = ["--json", &json, "--csv", &csv, "--junit", &junit];
    let run = ["run", &url, "-c", "8", "--rate", "400/s", "-d", "60s", "--threads", "2", "--ramp", "0s"];
    let ended = failing(throng(&[&run[..], &outputs, args].concat()), place, &data);
    assert_failed(&ended, place);
    // Workers that are no more are not waited for.
    assert!(ended.took_s < 9.0, "{place}: {ended:#?}");
    let last = ended.stdout.lines().last().unwrap_or_default();
    let verdict = format!("invalid: throng failed: injected in {}", place.split(':').next().unwrap());
    assert!(last.starts_with(&verdict) && last.contains("--seed "), "{place}: {}", ended.stdout);
    let s: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!((&s["verdict"], &s["limit"]), (&"invalid".into(), &Value::Null), "{place}");
    assert!(s["failure"].as_str().unwrap().starts_with("injected in "), "{place}: {s}");
    assert!(fs::read_to_string(&junit).unwrap().contains("errors=\"1\""), "{place}");
    if measured {
        assert!(s["requests"]["answered"].as_u64().unwrap() > 0, "{place}: {s}");
        assert!(s["elapsed_s"].as_f64().unwrap() < 30.0, "{place}: {s}");
        assert!(fs::read_to_string(&csv).unwrap().lines().count() > 1 || place == "exporter", "{place}");
    }
    let mut stored = throng(&["runs", "--json"]);
    stored.env(DATA, &data);
    let runs: Value = serde_json::from_str(&Program::from(stored).end().stdout).unwrap_or(Value::Null);
    match place {
        "store" => {}
        _ => assert_eq!(runs[0]["verdict"], "invalid", "{place}: {runs}"),
    }
}

#[test]
fn a_shard_that_fails_ends_the_run() {
    check("shard:400", &[], true);
}

#[test]
fn a_probe_that_fails_ends_the_run() {
    check("shard:900", &["--probe", "20/s"], true);
}

#[test]
fn a_main_loop_that_fails_ends_the_run() {
    check("conductor:40", &[], true);
}

#[test]
fn a_judge_that_fails_leaves_what_was_measured() {
    // Nothing ends it before.
    check("judge", &["-n", "400"], true);
}

#[test]
fn an_exporter_that_fails_ends_the_run() {
    check("exporter", &[], false);
}

#[test]
fn a_writer_that_fails_ends_the_run() {
    let hlog = file("failures.hlog");
    check("writer:3", &["--hlog", hlog.to_str().unwrap(), "--live", "off"], false);
}

#[test]
fn a_store_that_fails_ends_the_run() {
    check("store", &[], false);
}

#[test]
fn a_web_server_that_fails_ends_the_run() {
    check("web", &["--prometheus", "0"], false);
}

#[test]
fn an_observer_that_fails_ends_the_run() {
    check("observe", &["--observe", "http://127.0.0.1:9"], false);
}

#[test]
fn a_log_reader_that_fails_ends_the_run() {
    check("target-logs", &[], false);
}

#[test]
fn a_signal_handler_that_fails_ends_the_run() {
    check("signals", &[], false);
}

/// The result is what passed before.
#[test]
fn a_search_that_fails_has_a_result() {
    let server = Serving::start(&["--threads", "1"]);
    let (url, data) = (server.url("/"), data("find"));
    for place in ["find:3", "shard:2000"] {
        let json = format!("{data}.json");
        let args = ["find", &url, "--by", "rate", "-c", "8", "-d", "1s", "--json", &json];
        let ended = failing(throng(&args), place, &data);
        assert_failed(&ended, place);
        assert!(ended.stdout.contains("the search ended: throng failed: injected in "), "{}", ended.stdout);
        let found: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        assert!(found["ended"].as_str().unwrap().starts_with("throng failed: "), "{found}");
    }
}

#[test]
fn a_server_that_fails_ends() {
    let data = data("serve");
    let mut command = throng(&["serve", "--listen", "127.0.0.1:0", "--threads", "2"]);
    command.env("THRONG_FAIL", "serve:3").env(DATA, &data).env_remove("RUST_BACKTRACE");
    let mut program = Program::from(command);
    until("the server's first line", || program.stdout().contains("://"));
    let line = program.stdout();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    until("the end of the server", || {
        let _ = send(&url, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        program.is_ended()
    });
    assert_failed(&program.end(), "serve");
}

#[test]
fn clients_that_fail_end_their_agent() {
    let (server, data) = (Serving::start(&["--threads", "1"]), data("clients"));
    let mut command = throng(&["agent", "--listen", "127.0.0.1:0"]);
    command.env("THRONG_FAIL", "clients:3").env(DATA, &data).env_remove("RUST_BACKTRACE");
    let program = Program::from(command);
    until("the agent's first line", || program.stdout().ends_with('\n'));
    let line = program.stdout();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    let body = format!("ws=ws://{}/ws/echo&count=3", server.address);
    let length = body.len();
    let _ = send(
        &url,
        &format!("POST /clients HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"),
    );
    assert_failed(&program.end(), "clients");
}

/// A request, of which it does not matter what becomes.
fn send(url: &str, request: &str) -> io::Result<usize> {
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    stream.write_all(request.as_bytes())?;
    stream.read(&mut [0; 100])
}
