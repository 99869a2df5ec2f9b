//! `throng demo`: passes within half a minute, and leaves no process running.

use std::{fs, os::unix::process::CommandExt, time::Duration};

use crate::program::{Program, Signal, skip, throng, until};

/// A demo that leads its own process group, as a shell starts it, and its server's process.
fn start() -> (Program, u32) {
    let mut command = throng(&["demo"]);
    command.process_group(0);
    let mut demo = Program::from(command);
    let mut server = None;
    until("the demo's server", || {
        assert!(!demo.is_ended(), "{}", demo.stderr());
        server = child_of(demo.pid());
        server.is_some()
    });
    (demo, server.unwrap())
}

/// The child that has become `throng serve`.
fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().filter_map(|word| word.parse().ok()).find(|pid| is_serving(*pid))
}

fn is_serving(pid: u32) -> bool {
    let args = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    args.split(|byte| *byte == 0).nth(1) == Some(b"serve")
}

#[test]
fn the_server_does_not_outlive_the_demo() {
    let (demo, server) = start();
    demo.signal(Signal::KILL);
    assert_eq!(demo.end().status, None);
    until("the end of the server", || !is_serving(server));
}

#[test]
fn an_interrupted_demo_names_no_limit() {
    let (mut demo, server) = start();
    demo.wait_for("open ");
    // A terminal's Ctrl-C goes to the whole group.
    demo.signal_group(Signal::INT);
    let ended = demo.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(ended.stdout.ends_with("interrupted\n"), "{ended:?}");
    for blamed in ["dropped", "failed", "target ·"] {
        assert!(!ended.stdout.contains(blamed), "{blamed}: {}", ended.stdout);
    }
    until("the end of the server", || !is_serving(server));
}

/// The time limit is for the binary that users get.
#[test]
fn it_passes_in_half_a_minute() {
    if std::env::var_os("THRONG_BIN").is_none() {
        skip("THRONG_BIN names no binary that users get");
        return;
    }
    let (demo, server) = start();
    let ended = demo.end_within(Duration::from_secs(120));
    ended.assert_status(0);
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("  requests ")).collect();
    // Of 28 s here; a busy machine may take twice as long to open them all.
    assert!((20..=60).contains(&lines.len()), "a line a second: {}", ended.stderr);
    assert!(lines.iter().all(|line| line.contains("  p99 ")), "{}", ended.stderr);
    for word in [" held of ", " p99 ", "requests ", "target ", "kernel ", "--seed "] {
        assert!(ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
    assert!(!is_serving(server), "the server has ended first");
}
