//! Steps that are skipped, and steps that are repeated: what a server gets.

use std::fs;

use serde_json::{Value, json};

use crate::{
    program::{Ended, Program, file},
    scripted::{Scripted, ok},
};

/// A shop: a job is done when it has been asked for three times, and there are three pages.
fn shop() -> Scripted {
    Scripted::start(|peer| {
        let mut asked = 0;
        while let Some(head) = peer.request() {
            let path = head.split(' ').nth(1).unwrap();
            let body = match path {
                "/jobs" => json!({ "kind": "video" }),
                "/jobs/1" => {
                    asked += 1;
                    json!({ "state": if asked == 3 { "done" } else { "running" } })
                }
                "/pages/1" => json!({ "next": "2" }),
                "/pages/2" => json!({ "next": "/pages/3?all" }),
                "/pages/3?all" => json!({ "next": null }),
                _ => json!({}),
            };
            peer.send(&ok(&body.to_string()));
        }
    })
}

/// Runs one user of these steps, which are taken once.
fn run(name: &str, server: &Scripted, steps: &str) -> (Ended, Value) {
    let path = file(name);
    let lines = "duration = \"1s\"\n[[population]]\nname = \"p\"\nconnections = 1\nloop = false";
    fs::write(&path, format!("target = {:?}\n{lines}\n{steps}", server.url("/"))).unwrap();
    let ended = Program::start(&["run", path.to_str().unwrap(), "--json", "-"]).end();
    let summary = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    (ended, summary)
}

#[test]
fn a_step_is_repeated_until_a_response_decides_it_and_others_are_skipped() {
    let server = shop();
    let steps = r#"
[[population.step]]
request = "POST /jobs"
capture = { kind = { json = "/kind" } }
[[population.step]]
name = "poll"
request = "GET /jobs/1"
capture = { state = { json = "/state" } }
times = 9
until = "{var state} = done"
[[population.step]]
request = "GET /image"
if = "{var kind} = image"
[[population.step]]
request = "GET /video"
if = "{var kind} != image"
[[population.step]]
request = "GET /twice"
times = 2
"#;
    let (ended, summary) = run("repeats-until.toml", &server, steps);
    ended.assert_status(0);
    let expected = ["/jobs", "/jobs/1", "/jobs/1", "/jobs/1", "/video", "/twice", "/twice"];
    assert_eq!(server.log.targets(), expected);
    let requests = &summary["requests"];
    assert_eq!([&requests["due"], &requests["answered"], &requests["wrong"]], [7, 7, 0], "{requests}");
    let steps = &summary["populations"]["p"]["steps"];
    let of = |step: &str, key: &str| steps[step][key]["count"].as_u64().unwrap_or(0);
    // In the order of the scenario, in the summary as well.
    let text = &ended.stderr;
    let place =
        |step: &str| text.find(&format!("\n    {step}")).unwrap_or_else(|| panic!("no {step} in:\n{text}"));
    assert!(place("post-jobs") < place("poll") && place("poll") < place("get-video"), "{text}");
    // All copies of a repeated step are one step; the connection may still be in its ramp.
    assert_eq!(of("poll", "latency_us") + of("poll", "ramp_latency_us"), 3, "{steps}");
    assert_eq!(of("get-image", "latency_us") + of("get-image", "ramp_latency_us"), 0, "{steps}");
}

#[test]
fn what_is_never_decided_is_a_wrong_response_and_the_user_goes_on() {
    let server = shop();
    let steps = r#"
[[population.step]]
name = "poll"
request = "GET /jobs/1"
capture = { state = { json = "/state" } }
times = 2
until = "{var state} = done"
[[population.step]]
request = "GET /after"
"#;
    let (ended, summary) = run("repeats-unmet.toml", &server, steps);
    ended.assert_status(1);
    assert_eq!(server.log.targets(), ["/jobs/1", "/jobs/1", "/after"]);
    let requests = &summary["requests"];
    assert_eq!([&requests["answered"], &requests["wrong"]], [3, 1], "{requests}");
    assert_eq!(summary["connections"]["dropped"], 0, "{summary}");
}

#[test]
fn pages_are_followed_while_there_is_a_next_one() {
    let server = shop();
    let steps = r#"
[[population.step]]
request = "GET /pages/1"
capture = { next = { json = "/next" } }
[[population.step]]
request = "GET {var next}"
capture = { next = { json = "/next", default = "" } }
times = 100
while = "{var next} !="
"#;
    let (ended, _) = run("repeats-pages.toml", &server, steps);
    ended.assert_status(0);
    assert_eq!(server.log.targets(), ["/pages/1", "/pages/2", "/pages/3?all"]);
}
