//! SIGINT and SIGTERM: the first requests the end of a run and waits for responses, the second does not wait.

use std::{fs, path::Path, process::Command, time::Duration};

use crate::{
    program::{Ended, Program, Serving, Signal, file, throng},
    scripted::{Peer, Scripted},
    summary::Summary,
};

fn written(json: &Path) -> Summary {
    let text = fs::read_to_string(json).expect("the summary is written");
    Summary(serde_json::from_str(&text).unwrap())
}

/// The result of a signal at full load, or in the ramp.
fn check_interrupted(ended: &Ended, s: &Summary) {
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert_eq!(s.text("verdict"), "interrupted");
    assert_eq!(s.at("reasons")[0], "interrupted by a signal");
    assert!(ended.stdout.ends_with("interrupted\n"), "the last word: {}", ended.stdout);
    assert!(s.faults().is_empty(), "{:?}", s.faults());
    let (sent, answered) = (s.count("requests.sent"), s.count("requests.answered"));
    assert!(sent > 0 && sent == answered, "what is under way is waited for: {answered} of {sent}");
}

fn at_full_load(command: impl FnOnce(&[&str]) -> Command, name: &str, signal: Signal) {
    let (server, json) = (Serving::start(&["--threads", "1"]), file(name));
    let (url, path) = (server.url("/"), json.to_str().unwrap());
    let args = ["run", &url, "-c", "5", "-d", "forever", "--think", "50ms", "--json", path];
    let mut run = Program::from(command(&args));
    run.wait_for(" hold ");
    run.signal(signal);
    let (ended, s) = (run.end_within(Duration::from_secs(30)), written(&json));
    check_interrupted(&ended, &s);
    assert_eq!((s.count("connections.held"), s.count("connections.peak")), (5, 5));
    assert!(s.count("latency_us.count") > 0 && s.number("duration_s") > 0.1, "{ended:?}");
}

#[test]
fn sigint_ends_with_a_summary() {
    at_full_load(throng, "sigint.json", Signal::INT);
}

#[test]
fn sigterm_is_sigint() {
    at_full_load(throng, "sigterm.json", Signal::TERM);
}

/// As in the background of a script: the shell's child inherits SIGINT as ignored.
#[test]
fn sigint_is_handled_where_it_was_ignored() {
    let ignoring = |args: &[&str]| {
        let throng = throng(args);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' INT; exec \"$0\" \"$@\""])
            .arg(throng.get_program())
            .args(throng.get_args());
        shell
    };
    at_full_load(ignoring, "ignored.json", Signal::INT);
}

#[test]
fn a_signal_ends_the_ramp() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("ramp.json"));
    let (url, path) = (server.url("/"), json.to_str().unwrap());
    let mut run =
        Program::start(&["run", &url, "-c", "10k", "--ramp", "100/s", "--think", "1m", "--json", path]);
    run.wait_for(" ramp ");
    run.signal(Signal::INT);
    let (ended, s) = (run.end_within(Duration::from_secs(30)), written(&json));
    check_interrupted(&ended, &s);
    let (opened, held) = (s.count("connections.opened"), s.count("connections.held"));
    assert!((1..1000).contains(&opened) && held == opened, "{held} held of {opened} opened");
    assert_eq!((s.number("duration_s"), s.number("requests.per_s")), (0.0, 0.0), "full load never came");
    let (ramp_s, rate) = (s.number("ramp_s"), s.number("connections.open_per_s"));
    // No faster than the rate, and slower if this machine was busy at the end.
    assert!((50.0..110.0).contains(&rate), "{opened} in {ramp_s} s are {rate}/s");
}

#[test]
fn a_second_signal_does_not_wait() {
    // No request gets a response, and outstanding ones have a minute.
    let (server, json) = (Scripted::start(Peer::wait_gone), file("twice.json"));
    let (url, path) = (server.url("/"), json.to_str().unwrap());
    let args = ["run", &url, "-c", "2", "-d", "forever", "--timeout", "1m", "--json", path];
    let mut run = Program::start(&args);
    run.wait_for(" hold ");
    run.signal(Signal::INT);
    run.wait_for("waiting for outstanding responses (2), for at most ");
    run.signal(Signal::INT);
    let (ended, s) = (run.end_within(Duration::from_secs(30)), written(&json));
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert_eq!((s.text("verdict"), &s.at("reasons")[0]), ("interrupted", &"interrupted by a signal".into()));
    let of = |name: &str| s.count(&format!("requests.{name}"));
    assert_eq!((of("sent"), of("answered"), of("unanswered")), (2, 0, 2), "{ended:?}");
    // They are not the target's doing.
    assert!(s.at("limit").is_null() && !ended.stdout.contains("timed out"), "{ended:?}");
    assert!(ended.stderr.contains("(--timeout); Ctrl-C again ends the run now\n"), "{ended:?}");
}

/// The masks of blocked signals of the threads whose names begin like this.
fn blocked(program: &Program, name: &str) -> Vec<u64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", program.pid())).expect("the program runs");
    let of = |task: &Path| {
        let status = fs::read_to_string(task.join("status")).expect("the thread runs");
        let field = |key: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .expect("each status has it")
                .trim()
                .to_owned()
        };
        field("Name:").starts_with(name).then(|| u64::from_str_radix(&field("SigBlk:"), 16).expect("a mask"))
    };
    tasks.filter_map(|task| of(&task.expect("an entry").path())).collect()
}

/// A handler writes to a pipe by its number, which in a shard's own file table may be a connection.
#[test]
fn shards_take_no_signals() {
    for io in ["uring", "epoll"] {
        let server = Serving::start(&["--threads", "2", "--io", io]);
        let args =
            ["-c", "5", "-d", "forever", "--think", "50ms", "--io", io, "--threads", "2", "--probe", "5/s"];
        let mut run = Program::start(&[&["run", &server.url("/")], &args[..]].concat());
        run.wait_for(" hold ");
        let ends = [Signal::INT, Signal::TERM].map(|signal| 1u64 << (signal.as_raw() - 1));
        for (program, name, count) in [(&run, "run-", 4), (&server.program, "serve-", 2)] {
            let masks = blocked(program, name);
            assert_eq!(masks.len(), count, "threads of {name} over {io}");
            let all = masks.iter().all(|mask| ends.iter().all(|end| mask & end != 0));
            assert!(all, "{name} over {io}: {masks:x?}");
        }
        // Others take them.
        run.signal(Signal::INT);
        assert_eq!(run.end().status, Some(130));
    }
}
