//! Where the result goes: standard output, a file, or nowhere because both are broken.

use std::process::Stdio;

use crate::{
    program::{Program, Serving, file, throng},
    summary::run,
};

const SHORT: [&str; 4] = ["-c", "3", "-n", "1200"];

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
fn text_and_file_agree() {
    let (server, json) = (Serving::start(&["--threads", "1"]), file("both.json"));
    std::fs::write(&json, "old".repeat(10_000)).unwrap();
    let url = server.url("/");
    let ended =
        Program::start(&[&["run", &url, "--json", json.to_str().unwrap()], &SHORT[..]].concat()).end();
    let s: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).unwrap()).expect("all of it is new");
    assert_eq!((ended.status, &s["verdict"]), (Some(0), &"pass".into()));
    let n = with_commas(s["requests"]["answered"].as_u64().unwrap());
    assert!(ended.stdout.contains(&format!(" {n} responses to {n} requests")), "{}", ended.stdout);
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
    let ended = Program::start(&[&["run", &url, "--json", "/dev/full"], &SHORT[..]].concat()).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("--json /dev/full: "), "{}", ended.stderr);
    assert!(ended.stdout.contains("3 held of 3 wanted"), "{}", ended.stdout);
}

/// With each flag that writes a file: what cannot be written is refused before anything is dialled.
#[test]
fn an_output_that_cannot_be_written_costs_no_run() {
    let folder = "/no/such/folder/of-it";
    let check = |args: &[&str], flag: &str, place: &str| {
        let ended = Program::start(&[args, &[flag, place]].concat()).end();
        assert_eq!(ended.status, Some(2), "{args:?} {flag}: {ended:?}");
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert!(lines.len() == 1 && lines[0].starts_with(&format!("throng: {flag} {place}: ")), "{lines:?}");
        assert_eq!(ended.stdout, "", "{args:?} {flag}");
    };
    let report = format!("{folder}.html");
    for (flag, place) in [
        ("--json", folder),
        ("--json", "/"),
        ("--hlog", folder),
        ("--csv", folder),
        ("--jsonl", folder),
        ("--report", &report),
        ("--out", "/proc/no/such"),
    ] {
        check(&["run", "http://127.0.0.1:9/", "-d", "1s"], flag, place);
    }
    // All of them at once.
    let junit = format!("{folder}.xml");
    let all =
        [("--report", report.as_str()), ("--junit", junit.as_str()), ("--csv", folder), ("--jsonl", folder)];
    let args = all.iter().flat_map(|(flag, place)| [*flag, *place]);
    let ended =
        Program::start(&["run", "http://127.0.0.1:9/"].into_iter().chain(args).collect::<Vec<_>>()).end();
    ended.assert_status(2);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), all.len(), "{lines:?}");
    for ((flag, place), line) in all.iter().zip(&lines) {
        assert!(line.starts_with(&format!("throng: {flag} {place}: ")), "{line}");
    }
    check(&["find", "http://127.0.0.1:9/"], "--json", folder);
    check(&["calibrate"], "--json", folder);
}

/// A run that is refused by this machine: no local address to dial from.
const REFUSED: [&str; 6] = ["run", "http://127.0.0.1:9/", "-c", "5", "--sources", "192.0.2.77"];

#[test]
fn a_refused_run_changes_no_file_and_leaves_none() {
    let folder = file("refused-outputs");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(folder.join("empty")).unwrap();
    let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    // Existing files stay, in a folder that the bundle was to fill too.
    for name in ["old.csv", "old.jsonl", "old.hlog", "old.json", "old.html"] {
        std::fs::write(place(name), "old").unwrap();
    }
    let flags = ["--csv", "--jsonl", "--hlog", "--json", "--report"];
    for (kind, out) in [("old", "empty"), ("new", "made/for/it")] {
        let files: Vec<String> = flags.map(|flag| place(&format!("{kind}.{}", ending(flag)))).into();
        let mut args: Vec<&str> = REFUSED.to_vec();
        args.extend(flags.iter().zip(&files).flat_map(|(flag, file)| [*flag, file.as_str()]));
        let out = place(out);
        args.extend(["--out", &out]);
        let ended = Program::start(&args).end();
        assert_eq!(ended.status, Some(3), "{ended:?}");
    }
    let mut there: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    assert_eq!(there, ["empty", "old.csv", "old.hlog", "old.html", "old.json", "old.jsonl"]);
    for name in &there[1..] {
        assert_eq!(std::fs::read_to_string(place(name)).unwrap(), "old", "{name}");
    }
    assert_eq!(std::fs::read_dir(place("empty")).unwrap().count(), 0);
}

fn ending(flag: &str) -> &str {
    match flag {
        "--report" => "html",
        flag => &flag[2..],
    }
}

#[test]
fn a_refused_bundle_keeps_existing_files() {
    let folder = file("refused-bundle");
    let _ = std::fs::remove_dir_all(&folder);
    let out = folder.to_str().unwrap();
    // Another output of the same run, which exists before, and a name of the bundle's.
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let mut args: Vec<&str> = REFUSED.to_vec();
    let inside = folder.join("own.jsonl");
    args.extend(["--out", out, "--jsonl", inside.to_str().unwrap()]);
    let ended = Program::start(&args).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(!folder.exists(), "all of it was the run's own");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("metrics.csv"), "precious").unwrap();
    let ended = Program::start(&args).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert_eq!(std::fs::read_to_string(folder.join("metrics.csv")).unwrap(), "precious");
    assert!(!inside.exists());
}

#[test]
fn two_flags_do_not_write_one_file() {
    let both = file("both-of-them");
    let path = both.to_str().unwrap();
    let args = ["run", "http://127.0.0.1:9/", "--csv", path, "--json", path, "-d", "1s"];
    let ended = Program::start(&args).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--json writes the same file; use another name: "), "{ended:?}");
    assert!(!both.exists());
}

#[test]
fn a_search_refuses_flags_that_it_ignores() {
    let args = ["find", "http://127.0.0.1:9/", "--hlog", "x.hlog", "--format", "wrk", "--live", "classic"];
    let ended = Program::start(&args).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    for flag in ["--hlog: ", "--format: ", "--live: "] {
        assert!(ended.stderr.contains(flag), "{ended:?}");
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
        let mut output = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut output).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(3), "{how}: {status}: {output}");
        assert!(output.contains("standard output: ") && !output.contains("panicked"), "{how}: {output}");
        assert!(json.exists(), "{how}: the file is written all the same");
    }
}

#[test]
fn a_reader_of_a_list_may_have_seen_enough() {
    let ends = |broken: Stdio| {
        let ended = throng(&["completions", "bash"]).stdout(broken).stderr(Stdio::piped()).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    let (reader, unread) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(ends(unread.into()), (Some(0), String::new()));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (status, message) = ends(full.into());
    assert!(status == Some(3) && message.starts_with("throng: standard output: "), "{status:?} {message}");
}

#[test]
fn a_broken_standard_error_does_not_stop_a_run() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let mut command = throng(&[&["run", &url, "--json", "-"], &SHORT[..]].concat());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stderr(full).output().unwrap();
    // On a busy machine throng may be late, and then it judges nothing.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok(), "{output:?}");
}

#[test]
fn a_run_of_no_time_has_a_summary() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) = run(&server.url("/"), &["-c", "3", "-d", "0", "--think", "1m"]);
    assert_eq!((ended.status, s.count("connections.held"), s.count("requests.answered")), (Some(0), 3, 3));
    assert_eq!(s.count("latency_us.count"), 0, "nothing was due at full load");
    assert!(s.number("duration_s") + s.number("ramp_s") < ended.took_s, "{:#}", s.0);
}
