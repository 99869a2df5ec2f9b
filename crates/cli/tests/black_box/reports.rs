//! Reports, bundles and the live page; and what happens if they cannot be written or served.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::{
    program::{Program, Serving, Signal, file},
    stores::Data,
};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The data in a page.
fn data_of(page: &str) -> Value {
    let (_, data) =
        page.split_once(r#"<script id="data" type="application/json">"#).expect("a place for data");
    let packed = STANDARD.decode(data.split_once("</script>").expect("it ends").0).expect("base64");
    serde_json::from_reader(GzDecoder::new(packed.as_slice())).expect("gzip of JSON")
}

/// The sum of a run's ticks.
fn sum(run: &Value, path: &str) -> u64 {
    let ticks = run["ticks"].as_array().expect("ticks");
    ticks.iter().map(|tick| tick.pointer(path).and_then(Value::as_u64).unwrap_or_default()).sum()
}

fn new_folder(name: &str) -> PathBuf {
    let folder = file(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_report_has_the_figures_of_the_run_now_and_later() {
    let (data, server) = (Data::new("reported"), Serving::start(&["--threads", "1"]));
    let [now, later, summary] = ["now.html", "later.json", "reported.json"].map(file);
    let url = server.url("/?a=</script>");
    let args = ["run", &url, "-c", "20", "--think", "10ms..50ms", "-d", "3s", "--seed", "7"];
    let outputs = ["--report", now.to_str().unwrap(), "--json", summary.to_str().unwrap()];
    data.end(&[&args[..], &outputs].concat()).assert_status(0);
    let ended = data.end(&["report", "latest", "-o", later.to_str().unwrap()]);
    assert!(ended.status == Some(0) && ended.stderr.contains("throng: report of run "), "{ended:?}");
    let (report, again) = (data_of(&read(&now)), json(&read(&later)));
    assert_eq!(report, again, "live and from the store");
    assert_eq!(report["schema"], "throng.report/1");
    let (run, summary) = (&report["runs"][0], json(&read(&summary)));
    assert_eq!(run["summary"], summary);
    assert_eq!(sum(run, "/tick/counts/answered"), summary["requests"]["answered"].as_u64().unwrap());
    assert_eq!(sum(run, "/tick/counts/opened"), 20);
    assert_eq!(run["run"]["header"]["seed"], 7);
    let settings = run["run"]["settings"].as_array().unwrap();
    assert!(settings.iter().any(|setting| setting["name"] == "net.core.somaxconn"), "{settings:?}");
    assert_eq!(run["count"].as_u64().unwrap(), run["ticks"].as_array().unwrap().len() as u64);

    let text = data.end(&["report", "latest", "-o", "-", "--format", "md"]).stdout;
    assert!(text.contains(": `http://") && text.contains("| connections held | 20 |"), "{text}");
    let page = data.end(&["report", "latest", "--report", "-"]).stdout;
    assert_eq!(data_of(&page), report);
}

#[test]
fn a_killed_run_has_a_report_up_to_its_last_second() {
    let (data, server) = (Data::new("killed-report"), Serving::start(&["--threads", "1"]));
    let mut run = Program::from(data.throng(&[
        "run",
        &server.url("/"),
        "-c",
        "30",
        "-d",
        "forever",
        "--think",
        "100ms",
    ]));
    run.wait_for_second(4);
    run.signal(Signal::KILL);
    run.end();
    let text = data.end(&["report", "latest", "-o", "-", "--format", "json"]).stdout;
    let run = &json(&text)["runs"][0];
    assert!(run["summary"].is_null());
    assert!(run["ticks"].as_array().unwrap().len() >= 3, "{run}");
    assert_eq!(run["ticks"][2]["tick"]["open"], 30);
    let text = data.end(&["report", "latest", "-o", "-", "--format", "md"]).stdout;
    assert!(text.starts_with("# Load test unfinished: `"), "{text}");
    assert!(text.contains("| connections open at the end | 30 |"), "{text}");
}

#[test]
fn a_bundle_has_all_of_it() {
    let (data, server) = (Data::new("bundled"), Serving::start(&["--threads", "1"]));
    let (folder, own) = (new_folder("bundle/of/a-run"), file("own.hlog"));
    let out = folder.to_str().unwrap();
    let url = server.url("/");
    let args = ["run", &url, "-c", "5", "--think", "20ms", "-d", "2s", "--out", out];
    data.end(&[&args[..], &["--hlog", own.to_str().unwrap()]].concat()).assert_status(0);
    let names = ["histograms.hlog", "metrics.csv", "report.html", "report.json", "report.md", "summary.json"];
    let mut there: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    there.sort();
    assert_eq!(there, names);
    let [log, csv, page, report, text, summary] = names.map(|name| read(&folder.join(name)));
    assert_eq!(log, read(&own));
    assert!(csv.lines().count() >= 3 && text.starts_with("# "), "{csv} {text}");
    assert_eq!((data_of(&page), &json(&report)["runs"][0]["summary"]), (json(&report), &json(&summary)));
    // Its content is not lost.
    let refused = data.end(&args);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--out: the folder is not empty; use a new one: "), "{refused:?}");
}

#[test]
fn an_impossible_output_is_reported_before_the_run() {
    let (data, taken) = (Data::new("not-shown"), TcpListener::bind("127.0.0.1:0").unwrap());
    let port = taken.local_addr().unwrap().port().to_string();
    let check = |args: &[&str], status: i32, expected: &[&str]| {
        let ended = data.end(args);
        assert_eq!(ended.status, Some(status), "{args:?}: {ended:?}");
        assert!(expected.iter().all(|expected| ended.stderr.contains(expected)), "{args:?}: {ended:?}");
        assert!(!ended.stderr.contains(" connections, "), "it did not run: {ended:?}");
    };
    const NOBODY: &str = "http://127.0.0.1:9/";
    check(&["run", NOBODY, "--dashboard", &port], 3, &["--dashboard 127.0.0.1:", "in use"]);
    // What did not begin leaves nothing behind.
    let folder = new_folder("not-begun");
    let out = folder.to_str().unwrap();
    check(&["run", NOBODY, "--dashboard", &port, "--out", out], 3, &["--dashboard 127.0.0.1:"]);
    assert!(!folder.exists());
    check(&["run", NOBODY, "--dashboard", "0.0.0.0:0"], 2, &["--dashboard: without --dashboard-token-file"]);
    check(
        &["run", NOBODY, "--dashboard", "0", "--dashboard-token-file", "/no/such"],
        2,
        &["--dashboard-token-file: /no/such"],
    );
    check(
        &["run", NOBODY, "--report", "a.pdf"],
        2,
        &["--report: unknown file extension; use .html, .md or .json: \"a.pdf\""],
    );
    check(&["run", NOBODY, "--report", "/no/such/r.html"], 2, &["--report /no/such/r.html: "]);
    check(&["run", NOBODY, "--out", "/proc/bundle"], 2, &["--out /proc/bundle: "]);
    check(
        &["run", NOBODY, "--otlp", "https://a:1"],
        2,
        &["--otlp: does not start with http://; use http://HOST:4318"],
    );
    check(&["find", NOBODY, "--report", "/no/such/r.html"], 2, &["--report /no/such/r.html: "]);
    // A binary given by name is built without features.
    if std::env::var_os("THRONG_BIN").is_some() || !cfg!(feature = "parquet") {
        check(&["run", NOBODY, "--parquet", "m.parquet"], 2, &["--parquet: not in this build; use --csv"]);
    }
    check(&["report", "gq18ppt"], 2, &["no run gq18ppt; list runs with `throng runs`"]);
    check(
        &["report", "latest", "--format", "pdf"],
        2,
        &["--format: \"pdf\" is not a format; use html, md or json"],
    );
}

/// Accepts one POST, and responds with success.
fn collector() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let take = move || {
        let (mut text, mut piece) = (String::new(), [0; 1 << 16]);
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        let length = |text: &str| -> usize {
            let (_, rest) = text.split_once("Content-Length: ").unwrap();
            rest.split("\r\n").next().unwrap().parse().unwrap()
        };
        while text.find("\r\n\r\n").is_none_or(|end| text.len() < end + 4 + length(&text)) {
            let n = stream.read(&mut piece).unwrap();
            text.push_str(std::str::from_utf8(&piece[..n]).unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        text
    };
    (url, std::thread::spawn(take))
}

#[test]
fn a_collector_gets_its_own_protocol() {
    let (data, server) = (Data::new("collected"), Serving::start(&["--threads", "1"]));
    let (url, taken) = collector();
    let target = server.url("/");
    let ended = data.end(&["run", &target, "-c", "7", "--think", "50ms", "-d", "2s", "--otlp", &url]);
    // The first second arrives; the others are not accepted, and that is reported.
    ended.assert_status(0);
    assert!(ended.stderr.contains("throng: --otlp 127.0.0.1:"), "{ended:?}");
    let text = taken.join().unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /v1/metrics HTTP/1.1\r\n") && head.contains("Content-Type: application/json"),
        "{head}"
    );
    let metrics = json(body)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].clone();
    let open = metrics.as_array().unwrap().iter().find(|metric| metric["name"] == "throng_connections_open");
    assert_eq!(open.expect("it is there")["gauge"]["dataPoints"][0]["asDouble"], 7.0);
}
