//! `--junit` and `--markdown`: what CI shows of a run.

use std::{fs, process::Command};

use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal, file},
    stores::Data,
};

/// Counts of a document that any XML parser reads: of the suite, and of its elements; and its texts.
const READ: &str = r#"
import sys, xml.etree.ElementTree as tree
from decimal import Decimal
suite, = tree.parse(sys.argv[1]).getroot()
cases = suite.findall("testcase")
print([int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")])
print([len(cases)] + [len(suite.findall("testcase/" + name)) for name in ("failure", "error", "skipped")])
print([case.get("name") for case in cases])
print(Decimal(suite.get("time")) == sum(Decimal(case.get("time")) for case in cases) > 0)
for child in suite.iterfind("testcase/*"): print(child.tag, child.get("message"))
print(suite.find("system-out").text)
"#;

/// Reads a document; the counts must be what there is.
fn read(path: &str, counts: &str, names: &[&str]) -> String {
    let ended = Program::from({
        let mut python = Command::new("python3");
        python.args(["-c", READ, path]);
        python
    })
    .end();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""), "{}", fs::read_to_string(path).unwrap());
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!((lines[0], lines[1]), (counts, counts), "{}", ended.stdout);
    assert_eq!((lines[2], lines[3]), (&*format!("{names:?}").replace('"', "'"), "True"), "{}", ended.stdout);
    lines[4..].join("\n")
}

#[test]
fn each_step_of_a_search_is_a_test_case() {
    let server = Serving::start(&["--threads", "1"]);
    let files = ["find.xml", "find.json", "find-report.json"].map(file);
    let [junit, json, report] = files.each_ref().map(|file| file.to_str().unwrap());
    let outputs = ["--junit", junit, "--json", json, "--report", report];
    let args = [&["--max", "50", "-d", "1s", "--threshold", "held >= 99.9%"], &outputs[..]].concat();
    let ended = Program::start(&[&["find", &server.url("/")], &args[..]].concat()).end();
    ended.assert_status(0);
    let found: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let mut steps: Vec<&Value> = found["curve"].as_array().unwrap().iter().collect();
    steps.sort_by_key(|step| step["step"].as_u64());
    let steps = steps.iter().map(|step| format!("step {} at {} connections", step["step"], step["load"]));
    let names: Vec<String> = std::iter::once("search by connections".to_owned()).chain(steps).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(names.contains(&"step 1 at 50 connections"), "{names:?}");
    let text = read(junit, &format!("[{}, 0, 0, 0]", names.len()), &names);
    assert_eq!(text.trim_end(), ended.stdout.trim_end(), "the result is the output");
    let document = fs::read_to_string(junit).unwrap();
    assert!(document.contains(r#"<property name="outcome" value="not-reached"/>"#), "{document}");
    assert!(document.contains(r#"<property name="max" value="50"/>"#), "{document}");
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let search = &report["search"];
    assert_eq!((&search["found"], &search["found"]["max"]), (&found, &50.into()));
    assert_eq!(search["sentence"].as_str(), ended.stdout.lines().last());
    assert!(search["began_ms"].as_u64() > Some(1_700_000_000_000), "{}", search["began_ms"]);
}

#[test]
fn each_threshold_is_a_test_case() {
    let server = Serving::start(&["--threads", "1"]);
    let (junit, markdown) = (file("judged.xml"), file("judged.md"));
    let (junit, markdown) = (junit.to_str().unwrap(), markdown.to_str().unwrap());
    fs::write(markdown, "# before\n").unwrap();
    let url = server.url("/?a=<b>&c=\"d\"");
    let thresholds = ["held >= 100%", "held >= 7", "errors < 1%"];
    let given: Vec<&str> = thresholds.iter().flat_map(|threshold| ["--threshold", threshold]).collect();
    let args = ["run", &url, "-c", "5", "-n", "500", "--junit", junit, "--markdown", markdown];
    let ended = Program::start(&[&args[..], &given].concat()).end();
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let names = ["load", "held >= 100%", "held >= 7", "errors < 1%"];
    let text = read(junit, "[4, 1, 0, 0]", &names);
    assert!(text.starts_with("failure held >= 7: 5\n"), "{text}");
    assert!(text.contains(ended.stdout.trim_end()), "the summary is the output: {text}");
    let text = fs::read_to_string(markdown).unwrap();
    let appended = text.strip_prefix("# before\n").expect("what was there stays");
    assert!(appended.starts_with("## Load test failed: `http://"), "{text}");
    assert!(appended.contains("| `held >= 7` | 5 | **failed** |"), "{text}");
    assert!(appended.contains("| connections | 5 held of 5 wanted |"), "{text}");
}

#[test]
fn without_thresholds_the_load_is_the_test_now_and_later() {
    let (data, junit) = (Data::new("judged"), file("failed.xml"));
    let junit = junit.to_str().unwrap();
    // Nothing listens there: the port belongs to this test.
    let (_socket, address) = crate::scripted::taken_port(None);
    let target = format!("http://{address}/");
    let run = data.end(&["run", &target, "-c", "5", "-d", "300ms", "--junit", junit]);
    assert_eq!(run.status, Some(1), "{run:?}");
    let text = read(junit, "[1, 1, 0, 0]", &["load"]);
    assert!(text.starts_with("failure fail: connection refused: "), "{text}");
    let (first, markdown) = (fs::read_to_string(junit).unwrap(), file("later.md"));
    let markdown = markdown.to_str().unwrap();
    let replayed = data.end(&["replay", "latest", "--live", "off", "--junit", junit, "--markdown", markdown]);
    assert_eq!(replayed.status, Some(0), "{replayed:?}");
    assert_eq!(fs::read_to_string(junit).unwrap(), first, "of the store");
    assert!(fs::read_to_string(markdown).unwrap().starts_with("## Load test failed: `"));
}

#[test]
fn an_interrupted_run_is_an_error_and_its_thresholds_are_skipped() {
    let (server, junit) = (Serving::start(&["--threads", "1"]), file("interrupted.xml"));
    let junit = junit.to_str().unwrap();
    let url = server.url("/");
    let load = ["run", &url, "-c", "5", "-d", "forever", "--think", "20ms"];
    let args = [&load[..], &["--threshold", "held >= 5", "--junit", junit]].concat();
    let mut run = Program::start(&args);
    run.wait_for("hold  open 5 ");
    run.signal(Signal::INT);
    assert_eq!(run.end().status, Some(130));
    let text = read(junit, "[2, 0, 1, 1]", &["load", "held >= 5"]);
    assert!(
        text.starts_with("error interrupted: 1 of 1 thresholds met\nskipped the run is interrupted\n"),
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_run() {
    for flag in ["--junit", "--markdown"] {
        let ended = Program::start(&["run", "http://127.0.0.1:9/", flag, "/no/such/folder/x"]).end();
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(&format!("{flag} /no/such/folder/x: ")), "{ended:?}");
    }
}
