//! Streams without a reader: a pager that waits, a stuck log collector. A run continues, and ends.

use std::{
    fs::{self, File, OpenOptions},
    io::{PipeReader, PipeWriter, Read, Write, pipe},
    os::fd::AsFd,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process},
};

use crate::{
    caller::Caller,
    program::{DATA, Serving, file, throng, until, until_within},
    summary::Summary,
};

/// More than any pipe holds by default.
const FILL: usize = 1 << 20;

/// Fills a pipe: a writer blocks until it is read.
fn fill(mut pipe: impl Write + AsFd) {
    let flags = fcntl_getfl(&pipe).unwrap();
    fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).unwrap();
    let written: usize = (0..FILL).map_while(|_| pipe.write(b"x").ok()).sum();
    assert!((1..FILL).contains(&written), "{written} bytes went in");
    fcntl_setfl(&pipe, flags).unwrap();
}

/// A pipe that is full already.
fn full() -> (PipeReader, PipeWriter) {
    let (reader, writer) = pipe().unwrap();
    fill(writer.try_clone().unwrap());
    (reader, writer)
}

/// A process that is waited for, and never left running.
struct Stuck(Child);

impl Stuck {
    fn start(mut command: Command) -> Stuck {
        command.env(DATA, env!("CARGO_TARGET_TMPDIR"));
        Stuck(command.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    fn end_within(&mut self, patience: Duration) -> ExitStatus {
        until_within(patience, "the end of throng", || self.0.try_wait().unwrap().is_some());
        self.0.wait().unwrap()
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connections to the server, that of the request included.
fn open(server: &Serving) -> u64 {
    let stats = Caller::dial(server.address).get("/stats");
    serde_json::from_str::<serde_json::Value>(stats.text()).unwrap()["open"].as_u64().unwrap()
}

fn read(json: &std::path::Path) -> Summary {
    Summary(serde_json::from_slice(&fs::read(json).expect("the summary is written")).unwrap())
}

#[test]
fn a_run_ends_in_time_with_a_blocked_standard_error() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    for live in ["line", "classic"] {
        let (json, (_reader, writer)) = (file(&format!("unread-{live}.json")), full());
        let path = json.to_str().unwrap();
        let args =
            ["run", &url, "-c", "3", "-d", "1500ms", "--think", "20ms", "--live", live, "--json", path];
        let mut command = throng(&args);
        command.stdout(Stdio::null()).stderr(writer);
        let status = Stuck::start(command).end_within(Duration::from_secs(30));
        let s = read(&json);
        assert!(matches!(status.code(), Some(0 | 4)), "{live}: {status}: {:#}", s.0);
        assert!((1.4..4.0).contains(&s.number("duration_s")), "{live}: {:#}", s.0);
        assert!(s.count("requests.answered") > 0, "{live}: {:#}", s.0);
    }
}

#[test]
fn a_signal_ends_a_run_with_a_blocked_standard_error() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("unread-signal.json"));
    let (url, path) = (server.url("/"), json.to_str().unwrap());
    let (_reader, writer) = full();
    let args = ["run", &url, "-c", "3", "-d", "forever", "--think", "20ms", "--json", path];
    let mut command = throng(&args);
    command.stdout(Stdio::null()).stderr(writer);
    let mut run = Stuck::start(command);
    until("three connections", || open(&server) > 3);
    run.signal(Signal::INT);
    assert_eq!(run.end_within(Duration::from_secs(30)).code(), Some(130));
    let s = read(&json);
    assert_eq!((s.text("verdict"), s.count("connections.held")), ("interrupted", 3));
    assert!(s.count("requests.answered") > 0, "{:#}", s.0);
}

#[test]
fn a_second_signal_ends_a_run_with_a_blocked_standard_output() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("unread-result.json"));
    let (url, path) = (server.url("/"), json.to_str().unwrap());
    let ((_out, out), (_err, err)) = (full(), full());
    let mut command = throng(&["run", &url, "-c", "3", "-n", "300", "--json", path]);
    command.stdout(out).stderr(err);
    let mut run = Stuck::start(command);
    // The file does not wait for the reader of the text.
    until("the summary", || fs::read(&json).is_ok_and(|text| text.ends_with(b"}\n")));
    assert_eq!(read(&json).text("verdict"), "pass");
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    assert_eq!(run.end_within(Duration::from_secs(3)).code(), Some(130));
}

/// A FIFO that is open at its other end, and full.
fn full_fifo(name: &str) -> (PathBuf, File) {
    let path = file(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    fill(both.try_clone().unwrap());
    (path, both)
}

#[test]
fn a_histogram_log_that_takes_nothing_does_not_stop_a_run() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let (json, (fifo, _both)) = (file("stuck.json"), full_fifo("stuck.hlog"));
    let (path, fifo) = (json.to_str().unwrap(), fifo.to_str().unwrap());
    let args = ["run", &url, "-c", "3", "-d", "300ms", "--think", "20ms", "--json", path, "--hlog", fifo];
    let mut command = throng(&args);
    let (mut err, writer) = pipe().unwrap();
    command.stdout(Stdio::null()).stderr(writer);
    // It has five seconds at the end.
    let status = Stuck::start(command).end_within(Duration::from_secs(30));
    let mut output = String::new();
    err.read_to_string(&mut output).unwrap();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains(&format!("--hlog {fifo}: not written: no progress for 5s")), "{output}");
    let s = read(&json);
    assert!(s.number("duration_s") < 4.0 && s.count("requests.answered") > 0, "{:#}", s.0);
}

#[test]
fn blocked_output_is_counted_once_it_is_read_again() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let (mut reader, writer) = full();
    let mut command = throng(&["run", &url, "-c", "3", "-d", "1200ms", "--think", "20ms"]);
    command.stdout(Stdio::null()).stderr(writer);
    let mut run = Stuck::start(command);
    until("three connections", || open(&server) > 3);
    let mut output = Vec::new();
    reader.read_to_end(&mut output).unwrap();
    assert!(matches!(run.end_within(Duration::from_secs(30)).code(), Some(0 | 4)));
    let output = String::from_utf8(output).unwrap();
    assert!(output.contains(": 3 connections, "), "what waited is written: {output}");
    assert!(output.contains(" hold "), "and what came later: {output}");
}
