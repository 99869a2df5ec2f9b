//! `throng fleet serve`, as curl and a browser use it: runs on this machine, and on agents over a real NATS server.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    api::{Api, Response},
    clients::written,
    fleet::{joined, joined_at, served},
    folders::own_folder,
    program::{DATA, Program, Serving, Signal, throng, until, until_within},
    server::{folder, program},
};

/// A search takes some seconds for each of its steps.
const PATIENCE: Duration = Duration::from_secs(180);

/// The API of a coordinator.
pub(crate) fn serve(args: &[&str]) -> Api {
    // Each with a store of its own: what others have left there is listed, too.
    serve_with(&own_folder("runs-api-store"), args)
}

/// With the run store in this folder.
fn serve_with(data: &Path, args: &[&str]) -> Api {
    let mut command = throng(&[&["fleet", "serve", "--listen", "127.0.0.1:0"], args].concat());
    command.env(DATA, data);
    Api::from(command, " at ")
}

impl Api {
    /// Starts a run; its path.
    pub(crate) fn post(&self, args: &[&str]) -> String {
        self.post_to("/runs", args)
    }

    /// Starts a run or a search; its path.
    pub(crate) fn post_to(&self, path: &str, args: &[&str]) -> String {
        let started = self.curl(path, args);
        assert_eq!(started.status, 201, "{started:?}");
        let url = started.json()["url"].as_str().unwrap().to_owned();
        assert!(started.head.contains(&format!("location: {url}")), "{started:?}");
        url
    }

    pub(crate) fn wait(&self, url: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut run = Value::Null;
        until_within(PATIENCE, what, || {
            run = self.curl(url, &[]).json();
            let is_over = run["state"] == "refused" || run["state"] == "done";
            assert!(is(&run) || !is_over, "{what}: {run:#}");
            is(&run)
        });
        run
    }

    fn change(&self, url: &str, change: &str) -> Response {
        self.curl(url, &["-X", "PATCH", "--json", change])
    }
}

#[test]
fn a_scenario_is_posted_followed_changed_and_ends() {
    let (server, api) = (Serving::start(&["--threads", "1"]), serve(&[]));
    assert_eq!(api.curl("/agents", &[]).json()[0]["id"], "this machine");
    let scenario =
        format!("target = \"{}\"\nconnections = 40\nthink = \"50ms\"\nduration = \"60s\"\n", server.url("/"));
    let url = api.post(&["--data-binary", &scenario]);
    api.wait(&url, "it runs", |run| run["state"] == "running");
    let busy = api.curl("/runs", &["--data-binary", &scenario]);
    assert!(busy.status == 409 && busy.body.contains("no further run at the same time"), "{busy:?}");
    assert_eq!(api.change(&url, "{\"connections\": 10}").status, 202);
    // An event of each second, until the load is what was asked for.
    let mut curl = program("curl", &["-sSN", "-m30"]);
    curl.arg(format!("{}{url}/events", api.url));
    let follower = Program::from(curl);
    until("a tick with the load that was set", || {
        follower.stdout().lines().any(|line| {
            let tick = line.strip_prefix("data: ").and_then(|data| serde_json::from_str::<Value>(data).ok());
            tick.is_some_and(|record| record["tick"]["open"] == 10)
        })
    });
    assert_eq!(api.change(&url, "{\"ask\": \"drain\"}").status, 202);
    let over = api.wait(&url, "it is over", |run| run["state"] == "done");
    assert_eq!(
        (&over["connections"], &over["summary"]["schema"]),
        (&json!(40), &json!("throng.summary/1")),
        "{over:#}"
    );
    assert_eq!(over["summary"]["asks"][0]["what"], "load 10 of 40 connections (25 %)", "{over:#}");
    assert!(over["stored"].is_string(), "{over:#}");
    until("the follower sees the end", || follower.stdout().contains("event: end"));
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).status, 204);
    assert_eq!(api.curl(&url, &[]).status, 404);
    api.program.signal(Signal::TERM);
    assert_eq!(api.program.end().status, Some(0));
}

#[test]
fn a_server_that_is_started_again_lists_what_it_ran() {
    let data = folder("runs-api-again");
    let (server, api) = (Serving::start(&["--threads", "1"]), serve_with(&data, &[]));
    let body = |seconds: &str| json!({ "target": server.url("/"), "flags": { "connections": 3, "think": "50ms", "duration": seconds } });
    let ended = api.post(&["--json", &body("1s").to_string()]);
    let over = api.wait(&ended, "it is over", |run| run["state"] == "done");
    let killed = api.post(&["--json", &body("60s").to_string()]);
    api.wait(&killed, "it runs", |run| run["state"] == "running");
    let follower = || {
        let mut curl = program("curl", &["-sSN", "-m30"]);
        curl.arg(format!("{}{killed}/events", api.url));
        Program::from(curl)
    };
    let follower = follower();
    until("something is stored", || follower.stdout().matches("event: tick").count() > 2);
    api.program.signal(Signal::KILL);
    api.program.end();
    let again = serve_with(&data, &[]);
    assert_eq!(again.curl(&ended, &[]).json(), over);
    let listed = again.curl("/runs", &[]).json();
    let states: Vec<(&Value, &Value)> =
        listed.as_array().unwrap().iter().map(|run| (&run["url"], &run["state"])).collect();
    assert_eq!(states, [(&json!(ended), &json!("done")), (&json!(killed), &json!("unfinished"))]);
    let events = again.curl(&format!("{killed}/events"), &[]).body;
    assert!(events.contains("event: run") && events.contains("event: end"), "{events:.300}");
    // One that is forgotten stays so, and stays in the run store.
    assert_eq!(again.curl(&ended, &["-X", "DELETE"]).status, 204);
    let third = serve_with(&data, &[]);
    assert_eq!(third.curl("/runs", &[]).json().as_array().unwrap().len(), 1);
    let mut runs = throng(&["runs", "--json"]);
    runs.env(DATA, &data);
    let stored: Value = serde_json::from_str(&Program::from(runs).end().stdout).unwrap();
    assert_eq!(stored.as_array().unwrap().len(), 2, "{stored:#}");
}

#[test]
fn the_largest_load_is_searched_for() {
    let (server, api) = (Serving::start(&["--threads", "1"]), serve(&[]));
    let body = |max: u64, duration: &str| {
        let flags = json!({ "max": max, "duration": duration, "threshold": ["held >= 99.9%"] });
        json!({ "target": server.url("/"), "flags": flags }).to_string()
    };
    let url = api.post_to("/searches", &["--json", &body(600, "1s")]);
    let busy = api.curl("/runs", &["--json", &json!({ "target": server.url("/") }).to_string()]);
    assert!(busy.status == 409 && busy.body.contains(&url), "{busy:?}");
    let over = api.wait(&url, "it is over", |search| search["state"] == "done");
    let result = &over["result"];
    assert_eq!((&result["schema"], &result["by"]), (&json!("throng.find/1"), &json!("connections")));
    assert_eq!(
        (&over["outcome"], &over["max"], &result["max"]),
        (&json!("not-reached"), &json!(600), &json!(600))
    );
    assert_eq!(over["steps"].as_array().map(Vec::len), result["curve"].as_array().map(Vec::len), "{over:#}");

    let url = api.post_to("/searches", &["--json", &body(4_000, "60s")]);
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).json()["state"], "stopping");
    let over = api.wait(&url, "it is over", |search| search["state"] == "done");
    assert_eq!(over["result"]["interrupted"], true, "{over:#}");
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).status, 204);
    assert_eq!(api.curl(&url, &[]).status, 404);
}

#[test]
fn a_number_of_a_scenario_is_searched() {
    let (server, api) = (Serving::start(&["--threads", "1", "--max-open", "30"]), serve(&[]));
    let scenario = format!(
        "target = {:?}\nthresholds = [\"held >= 99.9%\"]\n[[population]]\nname = \"chat\"\nconnections = 4\nthink = \"1s\"\n",
        server.url("/")
    );
    let flags = json!({ "by": "population.chat.connections", "max": 100, "duration": "1s" });
    let body = json!({ "scenario": scenario, "flags": flags }).to_string();
    let url = api.post_to("/searches", &["--json", &body]);
    let over = api.wait(&url, "it is over", |search| search["state"] == "done");
    assert_eq!((&over["outcome"], &over["result"]["by"]), (&json!("found"), &flags["by"]), "{over:#}");
    assert!(over["max"].as_u64().is_some_and(|max| (27..=30).contains(&max)), "{over:#}");
    assert_eq!((&over["steps"][0]["load"], &over["steps"][0]["held"]), (&json!(4), &json!(4)));
}

#[test]
fn what_is_wrong_with_a_search_is_refused_with_the_fix() {
    let api = serve(&[]);
    let flags =
        json!({ "by": "magic", "max": "few", "duration": "500ms", "tag": "a", "json": "/tmp/x", "fly": 1 });
    let body = json!({ "target": "http://127.0.0.1:1/", "flags": flags }).to_string();
    let response = api.curl("/searches", &["--json", &body]);
    let parts = [
        "--by: \\\"magic\\\" is not supported",
        "--max: \\\"few\\\" is not a number",
        "--duration: a step of a search lasts 1s or longer",
        "--tag: a search is not stored",
        "--json: not supported by this API",
        "no such flag: fly",
    ];
    let has_all = parts.iter().all(|part| response.body.contains(part));
    assert!(response.status == 400 && has_all, "{response:?}");
    let foreign = api.curl("/searches", &["--json", "{\"target\": \"http://192.0.2.1/\"}"]);
    assert!(
        foreign.status == 400 && foreign.body.contains("192.0.2.1:80 is not allowed here"),
        "{foreign:?}"
    );
}

#[test]
fn runs_have_a_report_and_are_compared() {
    let (server, api) = (Serving::start(&["--threads", "1"]), serve(&[]));
    let flags = json!({ "connections": 3, "think": "50ms", "duration": "1s" });
    let body = json!({ "target": server.url("/"), "flags": flags }).to_string();
    let runs = [1, 2].map(|_| {
        let url = api.post(&["--json", &body]);
        api.wait(&url, "it is over", |run| run["state"] == "done")
    });
    let text = |run: &Value, field: &str| run[field].as_str().unwrap().to_owned();
    let report = format!("{}/report", text(&runs[0], "url"));
    let page = api.curl(&report, &[]);
    assert!(
        page.head.contains("content-type: text/html") && page.body.starts_with("<!doctype html>"),
        "{}",
        page.head
    );
    let json = api.curl(&format!("{report}?format=json"), &[]).json();
    assert_eq!((&json["schema"], &json["runs"][0]["id"]), (&json!("throng.report/1"), &runs[0]["stored"]));
    assert!(api.curl(&format!("{report}?format=md"), &[]).body.contains(&server.url("/")));
    let path = format!("/compare?a={}&b={}", text(&runs[0], "id"), text(&runs[1], "id"));
    let compared = api.curl(&path, &[]).json();
    assert_eq!(compared["schema"], "throng.compare/1", "{compared:#}");
    let names = [&compared["groups"][0]["name"], &compared["groups"][1]["name"]];
    assert_eq!(names, [&runs[0]["stored"], &runs[1]["stored"]]);
}

#[test]
fn agents_are_checked_drained_and_calibrated() {
    // It stores what it finds of itself, which is nothing to other tests.
    let fleet = joined_at(&folder("nats-runs-api-agents"), Some(&own_folder("runs-api-agents")), 1);
    let api = serve(&["--nats", &fleet.url()]);
    until("the agent", || api.curl("/agents", &[]).json().as_array().unwrap().len() == 1);
    let agent = || api.curl("/agents", &[]).json()[0].clone();
    let path = format!("/agents/{}", agent()["id"].as_str().unwrap());
    let doctor = api.curl(&format!("{path}/doctor"), &[]).json();
    assert!(doctor["id"] == agent()["id"] && doctor["findings"].is_array(), "{doctor:#}");
    let drain = format!("{path}/drain");
    assert_eq!(api.curl(&drain, &["-X", "POST"]).json()["state"], "draining");
    assert_eq!(agent()["state"], "draining");
    assert_eq!(api.curl(&drain, &["-X", "DELETE"]).json()["state"], "free");
    let calibrate = format!("{path}/calibrate");
    for (duration, part) in [("soon", "use 8s"), ("1h", "duration: at most ")] {
        let wrong = api.curl(&calibrate, &["--json", &json!({ "duration": duration }).to_string()]);
        assert!(wrong.status == 400 && wrong.body.contains(part), "{wrong:?}");
    }
    let begun = api.curl(&calibrate, &["--json", "{\"duration\": \"1s\"}"]);
    assert!(begun.status == 202 && begun.json()["state"] == "calibrating", "{begun:?}");
    let again = api.curl(&calibrate, &["-X", "POST"]);
    assert!(again.status == 409 && again.body.contains("it calibrates already"), "{again:?}");
    // Whether it has a result depends on what else this machine does.
    until("the end of the calibration", || agent()["state"] == "free");
    let missing = api.curl("/agents/none/doctor", &[]);
    assert!(missing.status == 404 && missing.body.contains("no such agent; GET /agents"), "{missing:?}");
    let here = serve(&[]).curl("/agents/none/drain", &["-X", "POST"]);
    assert!(here.status == 409 && here.body.contains("there is no fleet here"), "{here:?}");
}

#[test]
fn a_search_takes_place_on_the_agents() {
    let (fleet, server) = (joined("runs-api-search", 2), Serving::start(&["--threads", "1"]));
    let api = serve(&["--nats", &fleet.url()]);
    let flags = json!({ "by": "arrival", "max": 150, "duration": "1s", "agents": 2, "share": "equal",
        // Judged by this alone: how late agents are on a busy machine does not matter here.
        "threshold": ["faults == 0"], "max-lag": "1m" });
    let body = json!({ "target": server.url("/"), "flags": flags }).to_string();
    let url = api.post_to("/searches", &["--json", &body]);
    let over = api.wait(&url, "it is over", |search| search["state"] == "done");
    assert_eq!((&over["max"], &over["result"]["by"]), (&json!(150), &json!("arrival")), "{over:#}");
    // What the agents do not allow is refused by them.
    let url = api.post_to("/searches", &["--json", "{\"target\": \"tcp://192.0.2.1:80\"}"]);
    let refused = api.wait(&url, "it is refused", |search| search["state"] == "refused");
    assert!(refused["reasons"].to_string().contains("192.0.2.1:80 is not allowed here"), "{refused:#}");
}

#[test]
fn a_table_comes_with_its_scenario() {
    let (server, api) = (Serving::start(&["--threads", "1"]), serve(&[]));
    let scenario = format!(
        "target = \"{}\"\nconnections = 3\nduration = \"1s\"\nthink = \"50ms\"\n[csv.sizes]\nfile = \"sizes.csv\"\n",
        server.url("/?length={csv sizes.n}")
    );
    let body = json!({ "scenario": scenario, "files": { "sizes.csv": "n\n17\n" } });
    let url = api.post(&["--json", &body.to_string()]);
    let over = api.wait(&url, "it is over", |run| run["state"] == "done");
    let requests = &over["summary"]["requests"];
    let (answered, bytes) =
        (requests["answered"].as_u64().unwrap(), requests["body_bytes_in"].as_u64().unwrap());
    assert!(answered > 3 && bytes == 17 * answered, "{requests}");
}

#[test]
fn the_live_page_works_through_it() {
    let (server, api) = (Serving::start(&["--threads", "1"]), serve(&[]));
    let body = json!({ "target": server.url("/"), "flags": { "connections": 7, "think": "50ms", "duration": "60s" } });
    let url = api.post(&["--json", &body.to_string()]);
    api.wait(&url, "it runs", |run| run["state"] == "running");
    let profile = format!("--user-data-dir={}", folder("runs-api-chromium").display());
    let args = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"];
    let page = format!("{}{url}/page", api.url);
    let ended = {
        let mut command = program("chromium-headless-shell", &args);
        command.args([&profile, "--virtual-time-budget=5000", "--dump-dom", &page]);
        Program::from(command).end()
    };
    // It has followed the run: its target, and that it goes on.
    assert!(ended.stdout.contains(&server.url("/")) && ended.stdout.contains(">following<"), "{ended:?}");
    // What its buttons send.
    let origin = format!("Origin: {}", api.url);
    let pause = api.curl(
        &format!("{url}/control"),
        &["-H", &origin, "-H", "X-Throng: 1", "--json", "{\"ask\": \"pause\"}"],
    );
    assert_eq!(pause.status, 202, "{pause:?}");
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).status, 202);
    let over = api.wait(&url, "it is over", |run| run["state"] == "done");
    let asked: Vec<&Value> =
        over["summary"]["asks"].as_array().unwrap().iter().map(|ask| &ask["what"]).collect();
    assert_eq!(asked, ["paused", "stopped"], "{over:#}");
}

#[test]
fn a_run_takes_place_on_the_agents() {
    let (fleet, server) = (joined("runs-api", 2), Serving::start(&["--threads", "1"]));
    let api = serve(&["--nats", &fleet.url()]);
    until("all agents", || api.curl("/agents", &[]).json().as_array().unwrap().len() == 2);
    assert!(api.curl("/agents", &[]).json()[0]["id"].is_string());
    let body = json!({ "target": server.url("/"), "flags": { "connections": 101, "think": "100ms", "duration": "2s", "agents": 2, "on-lost": "abort", "share": "equal" } });
    let wrong =
        json!({ "target": server.url("/"), "flags": { "agents": 0, "on-lost": "cry", "share": "half" } });
    let wrong = api.curl("/runs", &["--json", &wrong.to_string()]);
    assert!(
        wrong.status == 400
            && ["--agents: ", "--on-lost: ", "--share: "].iter().all(|flag| wrong.body.contains(flag)),
        "{wrong:?}"
    );
    let url = api.post(&["--json", &body.to_string()]);
    let over = api.wait(&url, "it is over", |run| run["state"] == "done");
    assert_eq!(over["summary"]["connections"]["held"], 101, "{over:#}");
    assert_eq!(over["summary"]["agents"].as_array().map(Vec::len), Some(2), "{over:#}");
    while_it_has_all_agents_there_is_no_other(&api, &server);
    // What the agents do not allow is refused by them.
    let url = api.post(&["--json", "{\"target\": \"tcp://192.0.2.1:80\"}"]);
    let refused = api.wait(&url, "it is refused", |run| run["state"] == "refused");
    assert!(refused["reasons"].to_string().contains("192.0.2.1:80 is not allowed here"), "{refused:#}");
}

fn while_it_has_all_agents_there_is_no_other(api: &Api, server: &Serving) {
    let body =
        json!({ "target": server.url("/"), "flags": { "think": "100ms", "duration": "60s" } }).to_string();
    let url = api.post(&["--json", &body]);
    api.wait(&url, "it runs", |run| run["state"] == "running");
    let agents = api.curl("/agents", &[]).json();
    // Agents have the name by which it is found here.
    assert!(agents.as_array().unwrap().iter().all(|agent| url.ends_with(agent["run"].as_str().unwrap())));
    let busy = api.curl("/runs", &["--json", &body]);
    assert!(
        busy.status == 409 && busy.body.contains("no agent is free") && busy.body.contains(&url),
        "{busy:?}"
    );
    assert_eq!(api.curl(&url, &["-X", "DELETE"]).status, 202);
    api.wait(&url, "it is over", |run| run["state"] == "done");
}

#[test]
fn what_is_wrong_is_refused_with_the_fix() {
    let api = serve(&[]);
    let check = |body: &str, status: u16, parts: &[&str]| {
        let response = api.curl("/runs", &["--json", body]);
        assert_eq!(response.status, status, "{body}: {response:?}");
        let errors = response.json()["errors"].to_string();
        assert!(parts.iter().all(|part| errors.contains(part)), "{body}: {errors}");
    };
    check(
        "{\"target\": \"http://192.0.2.1/\"}",
        400,
        &["192.0.2.1:80 is not allowed here; start throng fleet serve with --allow"],
    );
    let files = json!({ "target": "http://127.0.0.1:1/", "flags": {
        "json": "/tmp/x", "observe-token-file": "/etc/passwd", "fleet": "nats://h", "connections": "many" } });
    check(
        &files.to_string(),
        400,
        &[
            "--json: not supported by this API",
            "--observe-token-file: not supported by this API",
            "--fleet: not supported by this API",
            "--connections: ",
        ],
    );
    check(
        "{\"target\": \"http://127.0.0.1:1/\", \"flags\": {\"fly\": 1, \"json\": \"x\", \"swim\": [\"1\", \"2\"]}}",
        400,
        &["no such flag: fly", "no such flag: swim", "--json: not supported by this API"],
    );
    check(
        "{\"target\": \"http://127.0.0.1:1/\", \"flags\": {\"tag\": \"a b\", \"connections\": [\"1\", \"2\"], \"probe\": true}}",
        400,
        &["--tag: may have letters, digits", "--connections: it has one value"],
    );
    no_host_is_called_and_each_mistake_is_one(&api);
    // A file of this machine is not read, whoever names it.
    let scenario = "target = \"http://127.0.0.1:1/?{csv users.id}\"\n[csv.users]\nfile = \"/etc/passwd\"\n";
    let response = api.curl("/runs", &["--data-binary", scenario]);
    assert!(
        response.status == 400 && response.body.contains("not among the files of the request"),
        "{response:?}"
    );
    assert!(!response.body.contains("root:"), "{response:?}");
    let usage = |args: &[&str], part: &str| {
        let ended = Program::start(&[&["fleet", "serve"], args].concat()).end();
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(part), "{ended:?}");
    };
    usage(
        &["--listen", "0.0.0.0:9910"],
        "--listen: without --token-file only loopback is allowed; use 127.0.0.1:9910",
    );
    usage(
        &["--nats", "nats://127.0.0.1:1", "--allow", "h"],
        "--allow: only for runs on this machine; on a fleet, each agent has its own",
    );
    let token = written("runs-api-token", "s3cret\n");
    let secured = serve(&["--token-file", token.to_str().unwrap()]);
    assert_eq!(secured.curl("/runs", &[]).status, 401);
    assert_eq!(secured.curl("/runs", &["-H", "Authorization: Bearer s3cret"]).json(), json!([]));
}

fn no_host_is_called_and_each_mistake_is_one(api: &Api) {
    let other = Serving::start(&["--threads", "1"]);
    let body = json!({ "target": "http://127.0.0.1:1/", "flags": {
        "observe": other.url("/"), "observe-token-file": "/etc/passwd", "body-file": "/etc/passwd" } });
    let response = api.curl("/runs", &["--json", &body.to_string()]);
    assert_eq!(response.status, 400, "{response:?}");
    let errors: Vec<String> = serde_json::from_value(response.json()["errors"].clone()).unwrap();
    let parts = [
        "--body-file: not supported by this API; remove it",
        "--observe: not supported by this API, because its host would connect to any address given",
        "--observe-token-file: not supported by this API; remove it",
    ];
    assert_eq!(errors.len(), parts.len(), "{errors:?}");
    assert!(errors.iter().zip(parts).all(|(error, part)| error.starts_with(part)), "{errors:?}");
    assert_eq!(served(&other, "requests"), 0);
}
