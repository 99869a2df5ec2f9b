//! The live view: the real binary in a terminal, and keys.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, kill_process};

use crate::{
    program::{Ended, Program, Serving, Signal, file, throng, until},
    scripted::{Peer, Scripted},
    summary::Summary,
};

/// throng in a terminal of its own.
struct InTerminal {
    program: Program,
    json: PathBuf,
}

impl InTerminal {
    fn start(size: [&str; 2], args: &[&str], json: &str, term: &str) -> InTerminal {
        InTerminal::start_with(size, args, json, &[("TERM", term)])
    }

    fn start_with(size: [&str; 2], args: &[&str], json: &str, env: &[(&str, &str)]) -> InTerminal {
        let json = file(json);
        let command = throng(&[&["run"], args, &["--json", json.to_str().unwrap()]].concat());
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/black_box/terminal.py");
        let mut terminal = Command::new("python3");
        terminal.arg(driver).args(size).arg(command.get_program()).args(command.get_args());
        terminal.stdin(Stdio::piped()).env_remove("COLUMNS").env_remove("NO_COLOR").envs(env.iter().copied());
        InTerminal { program: Program::from(terminal), json }
    }

    /// What is on the screen now.
    fn screen(&self) -> String {
        self.program.stdout().rsplit('\u{c}').next().unwrap_or_default().to_owned()
    }

    /// Waits until the screen has all of these.
    fn shows(&mut self, texts: &[&str]) {
        until(&format!("{texts:?} on the screen"), || {
            let screen = self.screen();
            let all = texts.iter().all(|text| screen.contains(text));
            assert!(all || !self.program.is_ended(), "ended without {texts:?}:\n{screen}");
            all
        });
    }

    fn signal(&self, signal: Signal) {
        let output = self.program.stdout();
        let pid = output.split_once("pid ").unwrap().1.split('\u{c}').next().unwrap().trim().parse().unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).expect("it runs");
    }

    /// What is left on the screen, and the summary.
    fn end(self) -> (Ended, String, Option<Summary>) {
        let ended = self.program.end_within(Duration::from_secs(30));
        let screen = ended.stdout.rsplit('\u{c}').next().unwrap().to_owned();
        let json = std::fs::read_to_string(&self.json).ok();
        (ended, screen, json.map(|json| Summary(serde_json::from_str(&json).unwrap())))
    }
}

const USUAL: [&str; 2] = ["80", "24"];

/// The plain lines precede the summary, and the terminal is restored.
fn check_left_behind(screen: &str) {
    let at =
        |text: &str| screen.find(text).unwrap_or_else(|| panic!("{text:?} is not left behind:\n{screen}"));
    let places =
        [at(": 10 connections, "), at("s  p50 "), at("throng: stored as run "), at(" held of 10 wanted")];
    assert!(places.is_sorted(), "{places:?}:\n{screen}");
    assert!(screen.ends_with("\nrestored\n"), "{screen}");
}

#[test]
fn keys_change_the_load_and_end_it() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/?length=500");
    let args = [&url[..], "-c", "10", "-d", "1h", "--think", "20ms", "--seed", "9", "--prometheus", "0"];
    let mut run = InTerminal::start(USUAL, &args, "keys.json", "xterm");
    run.shows(&[" hold ", "open 10 of 10", "seed 9", "of 1h left", "faults   none", "p pause"]);
    assert!(run.screen().contains(&url), "{}", run.screen());
    run.program.types("p");
    run.shows(&[" pause ", "requests       0/s", "p resume"]);
    run.program.types("-");
    run.shows(&["decreasing the load by a tenth when resumed"]);
    run.program.types("p");
    run.shows(&[" hold ", "p pause"]);
    run.shows(&["open 9 of 9"]);
    run.program.types("-");
    run.shows(&["open 8 of 8"]);
    run.program.types("+");
    run.shows(&["open 9 of 9"]);
    run.program.types("d");
    run.shows(&["press d again to drain"]);
    run.program.types("d");
    let (ended, screen, summary) = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    check_left_behind(&screen);
    // It precedes the view, and nothing of the view is left.
    assert!(screen.contains("throng: metrics at http://") && !screen.contains("press d"), "{screen}");
    let summary = summary.expect("it is written");
    assert_eq!(
        (summary.text("verdict"), summary.at("reasons")[0].as_str()),
        ("interrupted", Some("interrupted by a command"))
    );
    let asks = summary.at("asks").as_array().unwrap();
    let asks: Vec<&str> = asks.iter().map(|ask| ask["what"].as_str().unwrap()).collect();
    let expected = ["paused", "load 90 % when resumed", "resumed", "load 80 %", "load 90 %", "drained"];
    assert_eq!(asks, expected);
    let (sent, answered) = (summary.count("requests.sent"), summary.count("requests.answered"));
    assert!(sent > 0 && sent == answered, "answers may come: {answered} of {sent}");
}

#[test]
fn ctrl_c_drains_and_then_stops() {
    // No request gets a response, and outstanding ones have 5 s.
    let server = Scripted::start(Peer::wait_gone);
    let args = [&server.url("/")[..], "-c", "10", "-d", "forever", "--live", "tui"];
    let mut run = InTerminal::start(USUAL, &args, "ctrl-c.json", "xterm");
    run.shows(&[" hold "]);
    run.program.types("\u{3}");
    run.shows(&["waiting for outstanding responses", "q stop immediately"]);
    run.program.types("\u{3}");
    let (ended, screen, summary) = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    check_left_behind(&screen);
    assert_eq!(summary.expect("it is written").at("asks")[1]["what"], "stopped");
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let server = Serving::start(&["--threads", "1"]);
    let args = [&server.url("/")[..], "-c", "10", "-d", "forever", "--think", "20ms"];
    let mut run = InTerminal::start(USUAL, &args, "sigterm-view.json", "xterm");
    run.shows(&[" hold "]);
    run.signal(Signal::TERM);
    let (ended, screen, summary) = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    check_left_behind(&screen);
    assert_eq!(summary.expect("it is written").at("reasons")[0], "interrupted by a signal");

    // No request gets a response, and outstanding ones have a minute.
    let server = Scripted::start(Peer::wait_gone);
    let args = [&server.url("/")[..], "-c", "10", "-d", "forever", "--timeout", "1m"];
    let mut run = InTerminal::start(USUAL, &args, "sigint-view.json", "xterm");
    run.shows(&[" hold "]);
    run.signal(Signal::INT);
    run.shows(&["waiting for outstanding responses"]);
    run.signal(Signal::INT);
    let (ended, screen, summary) = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    check_left_behind(&screen);
    let unanswered = summary.expect("it is written").count("requests.unanswered");
    assert_eq!(unanswered, 10, "a second signal does not wait for them: {ended:?}");
}

#[test]
fn q_stops_despite_a_short_timeout() {
    let server = Serving::start(&["--threads", "1"]);
    let args = [&server.url("/")[..], "-c", "10", "-d", "forever", "--think", "20ms", "--timeout", "100ms"];
    let mut run = InTerminal::start(["160", "50"], &args, "q.json", "xterm");
    run.shows(&[" hold ", "open 10 of 10", "waiting"]);
    run.program.types("q");
    run.shows(&["press q again to stop"]);
    run.program.types("\u{1b}");
    let (ended, screen, summary) = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    check_left_behind(&screen);
    assert_eq!(summary.expect("it is written").at("asks")[0]["what"], "stopped");
}

#[test]
fn another_size_while_it_runs_has_another_view_and_help_covers_it() {
    let server = Serving::start(&["--threads", "1"]);
    let args =
        [&server.url("/")[..], "-c", "10", "-d", "forever", "--think", "20ms", "--threshold", "errors < 1%"];
    let mut run = InTerminal::start(["60", "15"], &args, "sizes.json", "xterm");
    // No line is longer than the terminal is wide, and each has its own row.
    run.shows(&["\n open 10 of 10\n", "\n status   200 ", "thresholds  1 of 1 met", "? help"]);
    run.program.types("\u{0}100x30");
    run.shows(&[
        " connections ",
        " requests ",
        " latency p99 ",
        " errors ",
        "accept queue",
        "\n p pause    + more load",
    ]);
    run.program.types("?");
    run.shows(&[" help ", "Ctrl-C       drain", "? close the help"]);
    run.program.types("\u{1b}");
    run.shows(&["accept queue", "q stop    ? help"]);
    run.program.types("\u{0}40x10");
    run.shows(&["\n open 10 of 10\n", "p + - d q ?"]);
    run.program.types("\u{3}");
    let (ended, screen, summary) = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(screen.ends_with("\nwith colours\nrestored\n"), "{screen}");
    assert_eq!(summary.expect("it is written").at("asks")[0]["what"], "drained");
}

#[test]
fn no_color_has_none() {
    let server = Serving::start(&["--threads", "1"]);
    let args = [&server.url("/")[..], "-c", "10", "-d", "forever", "--think", "20ms"];
    let env = [("TERM", "xterm"), ("NO_COLOR", "1")];
    let mut run = InTerminal::start_with(USUAL, &args, "no-color.json", &env);
    run.shows(&[" hold ", "open 10 of 10", " connections "]);
    run.program.types("\u{3}");
    let (_, screen, _) = run.end();
    assert!(screen.ends_with("\nwithout colours\nrestored\n"), "{screen}");
}

/// Plain lines, even in a terminal.
fn check_plain(size: [&str; 2], term: &str, name: &str) {
    let server = Serving::start(&["--threads", "1"]);
    let args = [&server.url("/")[..], "-c", "10", "-d", "1200ms", "--think", "20ms"];
    let (ended, screen, _) = InTerminal::start(size, &args, name, term).end();
    ended.assert_status(0);
    assert!(!ended.stdout.contains("p pause"), "no view: {ended:?}");
    check_left_behind(&screen);
}

#[test]
fn auto_is_plain_where_a_view_has_no_place() {
    check_plain(USUAL, "dumb", "dumb.json");
    check_plain(["23", "24"], "xterm", "narrow.json");
    check_plain(["80", "5"], "xterm", "low.json");
}

#[test]
fn tui_has_to_have_a_terminal() {
    let args = ["http://127.0.0.1:9/", "--live", "tui"];
    let (ended, screen, _) = InTerminal::start(USUAL, &args, "no-view.json", "dumb").end();
    assert_eq!(ended.status, Some(2), "{screen}");
    assert!(
        screen.contains("throng: --live tui: this terminal is not supported (TERM); use line"),
        "{screen}"
    );
}
