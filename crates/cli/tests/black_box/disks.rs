//! Outputs on a disk that is full or read-only: each file is whole or not there, what is missing is said, and the result is not lost.

use std::{fs, path::Path, process::Command};

use crate::program::{DATA, Ended, Program, Serving, file, skip, throng};

/// A run with these outputs below `$1`, a file system of its own of 64 KiB; `before` and `after` are commands of a shell there. None where
/// this user may not mount.
fn on_small_disk(name: &str, args: &[&str], before: &str, after: &str) -> Option<Ended> {
    let mounts = Command::new("unshare").args(["--mount", "true"]).output();
    if !mounts.is_ok_and(|tried| tried.status.success()) {
        skip("a file system of a test's own needs root");
        return None;
    }
    let folder = file(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let run = throng(&[&["run", &url, "-c", "3", "--rate", "200/s", "-d", "2s"][..], args].concat());
    let script = format!(
        "mount -t tmpfs -o size=64k none \"$1\" && cd \"$1\" && shift && {before} && \"$@\"; status=$?; {after}; exit $status"
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", &script, "sh"])
        .arg(&folder)
        .arg(run.get_program())
        .args(run.get_args());
    command
        .env(DATA, Path::new(env!("CARGO_TARGET_TMPDIR")).join("disks-data"))
        .stdin(std::process::Stdio::null());
    Some(Program::from(command).end())
}

/// Lists what is there: name and bytes.
const LIST: &str = "echo; find . -type f -printf 'LEFT %f %s\\n' | sort";

fn left(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("LEFT ")).collect()
}

const ALL: &[&str] = &[
    "--json", "a.json", "--junit", "a.xml", "--report", "a.html", "--out", "all", "--csv", "a.csv", "--hlog",
    "a.hlog",
];

/// Each of them is named, with the fix, and only what was written whole is there.
fn assert_missing(ended: &Ended, why: &str) {
    for place in [
        "--json a.json",
        "--junit a.xml",
        "--report a.html",
        "--out all/summary.json",
        "--out all/report.html",
        "--out all/metrics.csv",
        "--out all/histograms.hlog",
        "--csv a.csv",
        "--hlog a.hlog",
    ] {
        let line = ended.stderr.lines().find(|line| line.starts_with(&format!("throng: {place}: ")));
        let line = line.unwrap_or_else(|| panic!("{place}: {}", ended.stderr));
        let is_copy = place.ends_with("histograms.hlog");
        assert!(line.contains(why) || is_copy, "{line}");
    }
    assert!(ended.stderr.contains("write them later with throng replay "), "{}", ended.stderr);
}

#[test]
fn on_a_full_disk_nothing_is_left_half_written() {
    // Full from the beginning: no block is free, and names can still be made.
    let fill = "(head -c 1m /dev/zero > filler; true) 2>/dev/null";
    let Some(ended) = on_small_disk("disk-full", ALL, fill, LIST) else { return };
    assert_eq!(ended.status, Some(3), "{ended:#?}");
    assert!(ended.stdout.contains("pass: all 3 connections held"), "{}", ended.stdout);
    assert_missing(&ended, "no space is left on the disk");
    assert!(left(&ended).iter().all(|line| line.starts_with("filler ")), "{:?}", left(&ended));
}

#[test]
fn a_disk_that_fills_up_keeps_what_is_whole() {
    // A line of CSV has some 2 KiB: it ends with its last whole one.
    let args = ["--csv", "a.csv", "--json", "old.json", "--threshold", "held > 3"];
    let fill = "echo old > old.json && (head -c 57344 /dev/zero > filler; true)";
    let Some(ended) =
        on_small_disk("disk-fills", &args, fill, &format!("tail -c 1 a.csv | od -c; cat old.json; {LIST}"))
    else {
        return;
    };
    // The verdict is not lost.
    assert_eq!(ended.status, Some(1), "{ended:#?}");
    let line =
        "throng: --json old.json: not written: no space is left on the disk; free some, or use another disk";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
    assert!(ended.stdout.contains("\nold\n"), "it is as it was: {}", ended.stdout);
    assert!(
        !left(&ended).iter().any(|line| line.contains(".tmp") || line.ends_with(" 0")),
        "{:?}",
        left(&ended)
    );
}

#[test]
fn a_disk_that_becomes_read_only_is_named() {
    let remount = "(sleep 1; mount -o remount,ro .) &";
    // Nothing that is open for writing keeps it from being remounted.
    let args = ["--json", "a.json", "--junit", "a.xml", "--report", "a.html"];
    let Some(ended) = on_small_disk("disk-read-only", &args, &format!("{{ {remount} }}"), LIST) else {
        return;
    };
    assert_eq!(ended.status, Some(3), "{ended:#?}");
    for place in ["--json a.json", "--junit a.xml", "--report a.html"] {
        let line = format!("throng: {place}: not written: the file system is read-only; use another folder");
        assert!(ended.stderr.contains(&line), "{}", ended.stderr);
    }
    assert!(left(&ended).is_empty(), "{:?}", left(&ended));
    assert!(ended.stdout.contains("pass: all 3 connections held"), "{}", ended.stdout);
}

/// `-` is standard output for each of them; the text for people is on standard error then.
#[test]
fn each_output_may_be_standard_output() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    for (flag, begins) in [
        ("--csv", "time,elapsed_s,"),
        ("--jsonl", "{\"time\":"),
        ("--hlog", "#[Logged with throng "),
        ("--junit", "<?xml "),
        ("--markdown", "## "),
        ("--report", "<!doctype html>"),
        ("--json", "{\n"),
    ] {
        let ended = Program::start(&["run", &url, "-c", "3", "-n", "1200", flag, "-"]).end();
        assert_eq!(ended.status, Some(0), "{flag}: {ended:#?}");
        assert!(
            ended.stdout.to_lowercase().starts_with(&begins.to_lowercase()),
            "{flag}: {:.200}",
            ended.stdout
        );
        // JUnit has the text in it.
        let is_alone = flag == "--junit" || !ended.stdout.contains("\npass: all 3");
        assert!(is_alone, "{flag}: {:.200}", ended.stdout);
        assert!(ended.stderr.contains("pass: all 3 connections held"), "{flag}: {}", ended.stderr);
        assert!(!Path::new("-").exists(), "{flag}");
    }
    let two = Program::start(&["run", &url, "--csv", "-", "--json", "-"]).end();
    assert_eq!(two.status, Some(2), "{two:?}");
    assert!(two.stderr.contains("writes to standard output"), "{}", two.stderr);
}
