//! Stored runs: replayed as they ran, found by their properties, tagged, deleted.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal, file},
    stores::Data,
};

/// The files that a run and its replay write.
fn files(name: &str) -> [PathBuf; 4] {
    ["csv", "jsonl", "hlog", "json"].map(|kind| file(&format!("{name}.{kind}")))
}

fn outputs(files: &[PathBuf; 4]) -> Vec<&str> {
    let flags = ["--csv", "--jsonl", "--hlog", "--json"];
    flags.into_iter().zip(files).flat_map(|(flag, file)| [flag, file.to_str().unwrap()]).collect()
}

#[test]
fn a_replay_shows_and_writes_what_the_run_did() {
    let (data, server) = (Data::new("replayed"), Serving::start(&["--threads", "1"]));
    let (first, second) = (files("ran"), files("replayed"));
    let url = server.url("/?length={rand 1 4096}");
    let run = ["run", &url, "-c", "20", "--think", "10ms..50ms", "-d", "3s", "--probe", "20/s"];
    let ran = data.end(&[&run[..], &outputs(&first)].concat());
    ran.assert_status(0);
    let replayed = data.end(&[&["replay", "latest"][..], &outputs(&second)].concat());
    assert_eq!((replayed.status, replayed.stdout.as_str()), (Some(0), ""), "{replayed:?}");
    let read = |file: &PathBuf| fs::read_to_string(file).unwrap();
    assert_eq!(read(&first[0]), read(&second[0]), "CSV");
    assert_eq!(read(&first[1]), read(&second[1]), "JSON lines");
    assert!(read(&second[0]).lines().count() > 4, "{}", read(&second[0]));
    assert_eq!(read(&first[2]), read(&second[2]), "histograms");
    assert!(read(&first[2]).contains("\nTag=latency,"), "{}", read(&first[2]));
    assert_eq!(read(&first[3]), read(&second[3]), "the summary");
    let lines = |output: &str| -> Vec<String> {
        output.lines().filter(|line| !line.starts_with("throng: ")).map(str::to_owned).collect()
    };
    assert_eq!(lines(&ran.stderr), lines(&replayed.stderr));
    assert!(lines(&ran.stderr).len() >= 4, "{ran:?}");
}

#[test]
fn an_impossible_replay_is_reported() {
    let data = Data::new("not-replayed");
    let check = |args: &[&str], status: i32, expected: &[&str]| {
        let ended = data.end(&[&["replay"], args].concat());
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert!(expected.iter().all(|expected| ended.stderr.contains(expected)), "{ended:?}");
    };
    check(&["latest"], 2, &["no stored run yet; `throng run` stores each of its runs"]);
    let wrong = ["latest", "--live", "tui", "--influx", "http://127.0.0.1:9/"];
    check(
        &wrong,
        2,
        &[
            "--live: not supported by `throng replay`; use line, classic or off: \"tui\"",
            "--influx: not a write endpoint",
        ],
    );

    let server = Serving::start(&["--threads", "1"]);
    let mut run =
        Program::from(data.throng(&["run", &server.url("/"), "-c", "3", "-d", "forever", "--think", "1s"]));
    run.wait_for_second(2);
    let refused = data.end(&["runs", "latest", "--delete"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is in progress; stop it first"), "{refused:?}");
    run.signal(Signal::KILL);
    run.end();
    check(&["latest", "--json", "-"], 3, &["--json: this run has no summary: "]);
    check(&["latest", "--csv", "/no/such/folder/m"], 2, &["--csv /no/such/folder/m: "]);
    check(&["latest", "--csv", "/dev/full"], 3, &["--csv /dev/full: "]);
    let nobody = "http://127.0.0.1:9/write?db=throng";
    check(&["latest", "--influx", nobody], 3, &["throng: --influx 127.0.0.1:9: "]);
    check(&["latest", "--live", "classic"], 0, &["concurrency: 3", "replayed: "]);
}

#[test]
fn runs_are_found_by_their_properties() {
    let (data, server) = (Data::new("filtered"), Serving::start(&["--threads", "1"]));
    let nobody = "http://127.0.0.1:9/";
    data.end(&["run", &server.url("/"), "-c", "3", "-d", "200ms", "--think", "50ms"]);
    data.end(&["run", nobody, "-c", "1", "-d", "200ms"]).assert_status(1);
    let all = data.runs();
    let [ok, failed] = [&all[0], &all[1]].map(|run| run["id"].as_str().unwrap().to_owned());
    let check = |filter: &[&str], expected: &[&str]| {
        let ended = data.end(&[&["runs", "--json"], filter].concat());
        let runs: Vec<Value> =
            serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
        let ids: Vec<&str> = runs.iter().map(|run| run["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{filter:?}");
    };
    check(&[], &[&ok, &failed]);
    check(&["--target", ":9/"], &[&failed]);
    check(&["--target", "nothing"], &[]);
    check(&["--verdict", "fail"], &[&failed]);
    check(&["--verdict", "unfinished"], &[]);
    check(&["--since", "1h", "--verdict", "fail"], &[&failed]);
    check(&["--since", "2001-01-01"], &[&ok, &failed]);
    check(&["--since", "2999-12-31"], &[]);

    let tagged = data.end(&["runs", &ok, "--tag", "baseline", "--json"]);
    assert!(tagged.stdout.contains("\"baseline\""), "{tagged:?}");
    data.end(&["runs", &ok, "--tag", "baseline"]);
    data.end(&["runs", "latest", "--tag", "v1.2"]);
    check(&["--tagged", "baseline"], &[&ok]);
    check(&["--tagged", "base"], &[]);
    let listed = data.end(&["runs"]).stdout;
    assert!(listed.contains("/  #baseline\n") && listed.contains("/  #v1.2\n"), "each once: {listed}");
    data.end(&["runs", &ok, "--untag", "baseline"]);
    check(&["--tagged", "baseline"], &[]);

    let deleted = data.end(&["runs", &ok, "--delete"]);
    assert_eq!((deleted.status, deleted.stdout.as_str()), (Some(0), ""), "{deleted:?}");
    assert_eq!(deleted.stderr, format!("throng: deleted run {ok}\n"));
    check(&[], &[&failed]);
    assert_eq!(data.end(&["runs", &ok]).status, Some(2));
}

#[test]
fn usage_errors_are_reported_at_once() {
    let data = Data::new("wrong-words");
    let ended = data.end(&["runs", "--verdict", "good", "--since", "yesterday"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("--verdict: use pass, fail, invalid, interrupted, unfinished: \"good\""),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("--since: not a date or a time; use 2026-11-20 or 12h: \"yesterday\""),
        "{ended:?}"
    );
    let ended = data.end(&["runs", "latest", "--tag", "two words"]);
    assert!(
        ended.stderr.contains("--tag: may have letters, digits, -, _ and . only: \"two words\""),
        "{ended:?}"
    );
    assert_eq!(data.end(&["runs", "--delete"]).status, Some(2), "which?");
}
