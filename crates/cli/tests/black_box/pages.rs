//! What the live page and the report show besides counts and times: samples of errors, marks, and the state of thresholds.

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    program::{Serving, file},
    scripted::{Scripted, ok},
    stores::Data,
};

/// A scenario of this name is run; its report as JSON.
fn report(name: &str, scenario: &str, status: i32) -> Value {
    let (data, path) = (Data::new(name), file(&format!("{name}.toml")));
    fs::write(&path, scenario).unwrap();
    data.end(&["run", path.to_str().unwrap(), "--max-lag", "1h"]).assert_status(status);
    let ended = data.end(&["report", "latest", "-o", "-", "--format", "json"]);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"))
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Samples of all ticks of the run: status, whether from the start, and bytes.
fn samples(report: &Value) -> Vec<(Option<u64>, bool, Vec<u8>)> {
    let ticks = list(report, "/runs/0/ticks").iter();
    let samples = ticks.flat_map(|tick| list(tick, "/tick/error_samples"));
    let sample = |sample: &Value| {
        let bytes = STANDARD.decode(sample["bytes"].as_str().unwrap()).expect("base64");
        (sample["status"].as_u64(), sample["from_start"].as_bool().unwrap(), bytes)
    };
    samples.map(sample).collect()
}

const SECRET: &str = "s3cr3t-0123";

#[test]
fn wrong_responses_are_sampled_with_their_first_bytes_and_without_secrets() {
    let body = format!("busy; you sent {SECRET} for tenant-4711 {{\"access_token\": \"new-one\"}}");
    let response = ok(&body).replace("200 OK", "503 Busy");
    let server = Scripted::responding(response.clone());
    let scenario = format!(
        r#"
target = "{}"
duration = "2s"

[[population]]
name = "users"
connections = 4
think = "20ms"

[[population.step]]
name = "get"
request = "GET /"
headers = {{ Authorization = "Bearer {SECRET}", X-Account = "tenant-4711" }}
"#,
        server.url("/")
    );
    let report = report("sampled", &scenario, 1);
    let samples = samples(&report);
    let threads = report.pointer("/runs/0/run/header/threads").and_then(Value::as_u64).unwrap() as usize;
    assert!((1..=3 * threads).contains(&samples.len()), "{samples:?}");
    // Of a header that is shown nowhere else, too.
    let expected = response.replace(SECRET, "***********").replace("tenant-4711", "***********");
    let expected = expected.replace("new-one", "*******");
    for (status, from_start, bytes) in samples {
        assert_eq!((status, from_start), (Some(503), true));
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
    assert!(server.log.requests() > 20, "many more were wrong");
    assert!(!report.to_string().contains(SECRET), "nowhere in the report");
}

#[test]
fn of_a_long_response_the_bytes_that_are_there_are_no_start() {
    let server = Scripted::responding(ok(&"x".repeat(1 << 20)).replace("200 OK", "500 No"));
    let scenario = format!("target = \"{}\"\nconnections = 1\nrequests = 20\n", server.url("/"));
    let samples = samples(&report("sampled-long", &scenario, 1));
    assert!(!samples.is_empty());
    for (status, from_start, bytes) in samples {
        assert_eq!((status, from_start, bytes.iter().all(|b| *b == b'x')), (Some(500), false, true));
    }
}

#[test]
fn what_is_no_response_is_sampled_as_it_came() {
    let server = Scripted::responding("SSH-2.0-OpenSSH_9.9\r\n");
    let scenario = format!("target = \"{}\"\nconnections = 1\nduration = \"500ms\"\n", server.url("/"));
    let samples = samples(&report("sampled-ssh", &scenario, 1));
    assert_eq!(samples[0], (None, true, b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()));
}

#[test]
fn thresholds_are_judged_each_second_and_stages_are_marks() {
    let server = Serving::start(&["--threads", "1"]);
    let scenario = format!(
        r#"
target = "{}"
thresholds = ["answered > 0", "held >= 100%", "requests.per_s > 1M/s", "generator.cpu_s > 0"]
connections = 20
think = "10ms..20ms"

[[stage]]
name = "half"
to = "50%"
for = "1500ms"

[[stage]]
name = "all"
for = "2500ms"
"#,
        server.url("/")
    );
    let report = report("judged", &scenario, 1);
    let run = &report["runs"][0];
    let bound =
        |nth: usize, field: &str| run.pointer(&format!("/run/header/thresholds/{nth}/{field}")).cloned();
    assert_eq!(bound(1, "figure"), Some("connections.held".into()));
    assert_eq!((bound(1, "bound"), bound(1, "is_share")), (Some(100.0.into()), Some(true.into())));
    assert_eq!(bound(2, "bound"), Some(1e6.into()));
    let (mut answered, mut judged, mut latest) = (0, 0, Vec::new());
    for tick in list(run, "/ticks") {
        answered += tick.pointer("/tick/counts/answered").and_then(Value::as_u64).unwrap();
        let results = list(tick, "/looks/thresholds");
        if let [count, ..] = results {
            judged += 1;
            assert_eq!(results.len(), 3, "what only the end has is not judged");
            assert_eq!((count["value"].as_f64(), &count["pass"]), (Some(answered as f64), &true.into()));
            latest = results.to_vec();
        }
    }
    assert!(judged >= 3, "each second but the last: {judged}");
    assert_eq!((latest[1]["value"].as_f64(), &latest[1]["pass"]), (Some(100.0), &true.into()), "{latest:?}");
    let (so_far, at_end) =
        (latest[2]["value"].as_f64().unwrap(), run["summary"]["requests"]["per_s"].as_f64());
    let ratio = so_far / at_end.unwrap();
    assert!((0.4..2.5).contains(&ratio) && latest[2]["pass"] == false, "{so_far} of {at_end:?}");
    let marks = list(run, "/ticks").iter().flat_map(|tick| list(tick, "/tick/marks"));
    let marks: Vec<(&str, &str)> =
        marks.map(|mark| (mark["kind"].as_str().unwrap(), mark["what"].as_str().unwrap())).collect();
    assert_eq!(marks, [("stage", "half"), ("stage", "all")]);
}
