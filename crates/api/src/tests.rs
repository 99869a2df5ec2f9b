//! Tests each documented route and status over a real connection, with a runner of invented runs.

mod made_up;
mod served;

use std::{
    io::{BufRead, BufReader},
    sync::{Arc, atomic::AtomicBool, atomic::Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use webserver::Opens;

use self::{
    made_up::MadeUp,
    served::{Seen, Server, documented},
};
use crate::routes::{DESCRIPTION, LARGEST_BODY};

/// Requests about runs.
fn exercise(server: &mut Server) {
    let too_long = "x".repeat(LARGEST_BODY + 1);
    server.check(("GET", "/", ""), "", 200, "curl ADDR/runs");
    server.check(("GET", "/openapi.json", ""), "", 200, "\"openapi\": \"3.1.0\"");
    server.check(("GET", "/agents", ""), "", 200, "[{\"id\":\"a\"}]");
    server.check(("GET", "/runs", ""), "", 200, "[]");
    server.check(
        ("POST", "/runs", ""),
        "target = \"wrong\"",
        400,
        "[\"target: one mistake\",\"ramp: and another\"]",
    );
    server.check(("POST", "/runs", ""), "{\"flags\": {}}", 400, "use either target or scenario");
    server.check(("POST", "/runs", ""), &too_long, 413, "the body is larger than 16 MiB");
    let id = server.start_run("target = \"http://127.0.0.1:8000/\"");
    server.wait(&id, "running");
    server.check(("POST", "/runs", ""), "{\"target\": \"http://h/\"}", 409, &id);
    // An invalid request is refused before the limit on runs is checked.
    let all = "[\"colour: no key of a run; use target, scenario, files and flags\",\"target: one mistake\",";
    server.check(("POST", "/runs", ""), "{\"target\": \"wrong\", \"colour\": 1}", 400, all);
    server.check(("GET", "/runs/{id}/page", &id), "", 200, "<html");
    let run = ("PATCH", "/runs/{id}", id.as_str());
    server.check(run, "{\"load\": \"50%\"}", 202, "running");
    server.check(run, "{\"load\": \"150%\"}", 400, "from 0.0001 % to 100 % of the plan's");
    server.check(run, "{\"load\": 0}", 400, "from 0.0001 % to 100 % of the plan's");
    server.check(run, &too_long, 413, "errors");
    server.check(
        ("PATCH", "/runs/{id}", "none"),
        "{\"load\": 1}",
        404,
        "no such run; GET /runs lists them: none",
    );
    let control = ("POST", "/runs/{id}/control", id.as_str());
    server.check(control, "{\"ask\": \"pause\"}", 202, "running");
    server.check(control, "{\"ask\": \"fly\"}", 400, "is not a command; use");
    server.check(control, &too_long, 413, "errors");
    server.check(("POST", "/runs/{id}/control", "none"), "{\"ask\": \"stop\"}", 404, "no such run");
    server.check(("DELETE", "/runs/{id}", "none"), "", 404, "no such run");
    server.check(("GET", "/runs/{id}", "none"), "", 404, "no such run");
    server.check(("GET", "/runs/{id}/events", "none"), "", 404, "no such run");
    server.check(("DELETE", "/runs/{id}", &id), "", 202, "stopping");
    let over = server.wait(&id, "done");
    assert_eq!((&over["verdict"], &over["stored"]), (&json!("interrupted"), &json!("stored-1")), "{over}");
    assert_eq!(over["reasons"], json!(["Load(500000)", "Pause"]));
    assert_eq!(over["summary"]["verdict"], "interrupted");
    server.check(run, "{\"ask\": \"resume\"}", 409, "this run is over");
    server.check(control, "{\"ask\": \"resume\"}", 409, "this run is over");
    let events = server.check(("GET", "/runs/{id}/events", &id), "", 200, "event: run");
    assert!(events.body.contains("event: end"), "{:.300}", events.body);
    assert!(events.body.contains(&format!("data: {{\"id\":\"{id}\"")), "{:.300}", events.body);
    server.check(("DELETE", "/runs/{id}", &id), "", 204, "");
    let refused = server.start_run("{\"target\": \"refused\"}");
    assert_eq!(server.wait(&refused, "refused")["reasons"], json!(["ports: 3 free"]));
    server.check(("GET", "/runs", ""), "", 200, "\"state\":\"refused\"");
    // Cases that the description mentions only in prose.
    for (method, path, id, status, why) in [
        ("GET", "/nothing", "", 404, "no such path; GET / lists them"),
        ("GET", "/runs/{id}", "%ff", 404, "no such path; GET / lists them"),
        ("PUT", "/runs", "", 405, "not this method; GET / lists them"),
        ("PUT", "/runs/{id}/page", "none", 405, "not this method; GET / lists them"),
    ] {
        let refused = server.check((method, path, id), "", status, why);
        assert_eq!(refused.json(), json!({ "errors": [why] }), "{method} {path}");
        assert!(DESCRIPTION.contains(&format!(" {status}")));
    }
    report_and_compare(server, &refused);
}

/// Requests about runs that are over; `refused` is one that did not begin.
fn report_and_compare(server: &mut Server, refused: &str) {
    let [one, other] = [1, 2].map(|_| {
        let id = server.start_run("{\"target\": \"http://h/\"}");
        server.wait(&id, "running");
        // The report of a run in progress.
        server.check(
            ("GET", "/runs/{id}/report", &(id.clone() + "?format=json")),
            "",
            200,
            "throng.report/1",
        );
        server.check(("DELETE", "/runs/{id}", &id), "", 202, "stopping");
        server.wait(&id, "done");
        // The last event has been received.
        server.check(("GET", "/runs/{id}/events", &id), "", 200, "event: end");
        id
    });
    let report = |id: &str, query: &str| format!("{id}{query}");
    let path = "/runs/{id}/report";
    let page = server.check(("GET", path, &one), "", 200, "<html");
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    server.check(("GET", path, &report(&one, "?format=md")), "", 200, "interrupted");
    let json = server.check(("GET", path, &report(&one, "?format=json")), "", 200, "").json();
    assert_eq!((&json["runs"][0]["id"], &json["comparison"]), (&json!("stored-1"), &Value::Null));
    server.check(("GET", path, &report(&one, "?format=pdf")), "", 400, "use html, md or json");
    server.check(("GET", path, &report(&one, "?form=md")), "", 400, "form: no such parameter; use format");
    server.check(("GET", path, "none"), "", 404, "no such run");
    server.check(("GET", path, refused), "", 409, "this run has not begun");

    let compare = |a: &str, b: &str| format!("?a={a}&b={b}");
    let compared = server.check(("GET", "/compare", &compare(&one, &other)), "", 200, "throng.compare/1");
    assert_eq!(compared.json()["of"], json!(["stored-1", "stored-1"]));
    server.check(("GET", "/compare", &format!("?a={one}")), "", 400, "use /compare?a=ID&b=ID");
    server.check(("GET", "/compare", &compare(&one, "none")), "", 404, "no such run");
    server.check(("GET", "/compare", &compare(refused, &one)), "", 409, "not over, or was not stored");
}

/// Requests about searches.
fn search(server: &mut Server) {
    let too_long = "x".repeat(LARGEST_BODY + 1);
    server.check(("GET", "/searches", ""), "", 200, "[]");
    server.check(("POST", "/searches", ""), "target = \"wrong\"", 400, "[\"--by: one mistake\",");
    server.check(("POST", "/searches", ""), &too_long, 413, "errors");
    let id = server.start_at("/searches", "{\"target\": \"http://h/\", \"flags\": {\"by\": \"rate\"}}");
    // A search counts as a run for the limit.
    server.check(("POST", "/searches", ""), "target = 1", 409, &format!("DELETE: /searches/{id}"));
    server.check(("POST", "/runs", ""), "target = 1", 409, &format!("DELETE: /searches/{id}"));
    server.check(("POST", "/searches", ""), "target = \"wrong\"", 400, "[\"--by: one mistake\",");
    let running = server.wait_at("/searches/{id}", &id, "running");
    assert_eq!((&running["result"], &running["outcome"]), (&Value::Null, &Value::Null));
    server.check(
        ("GET", "/searches/{id}", "none"),
        "",
        404,
        "no such search; GET /searches lists them: none",
    );
    server.check(("DELETE", "/searches/{id}", "none"), "", 404, "no such search");
    server.check(("DELETE", "/searches/{id}", &id), "", 202, "stopping");
    let over = server.wait_at("/searches/{id}", &id, "done");
    assert_eq!((&over["max"], &over["outcome"]), (&json!(500), &json!("interrupted")), "{over}");
    assert_eq!((&over["steps"][0]["load"], &over["result"]["interrupted"]), (&json!(500), &json!(true)));
    let listed = server.check(("GET", "/searches", ""), "", 200, "\"max\":500").json();
    assert!(listed[0]["result"].is_null() && listed[0]["steps"].is_null(), "{listed}");
    server.check(("DELETE", "/searches/{id}", &id), "", 204, "");
    let refused = server.start_at("/searches", "{\"target\": \"refused\"}");
    let refused = server.wait_at("/searches/{id}", &refused, "refused");
    assert_eq!(refused["reasons"], json!(["ports: 3 free"]));
}

/// Requests about agents.
fn ask_agents(server: &mut Server) {
    let too_long = "x".repeat(LARGEST_BODY + 1);
    for (method, path, status, state) in OF_AGENTS {
        server.check((method, path, "a"), "", status, &format!("\"state\":\"{state}\""));
        server.check((method, path, "none"), "", 404, "no such agent; GET /agents lists them: none");
        server.check((method, path, "busy"), "", 409, "it takes part in run r1");
    }
    let calibrate = ("POST", "/agents/{id}/calibrate", "a");
    server.check(calibrate, "{\"duration\": \"1s\"}", 202, "calibrating");
    server.check(calibrate, "{\"duration\": \"long\"}", 400, "duration: at most 1m");
    server.check(calibrate, "{\"time\": \"1s\"}", 400, "or no body");
    server.check(calibrate, &too_long, 413, "errors");
}

/// Requests to agents, with the expected status and state.
const OF_AGENTS: [(&str, &str, u16, &str); 4] = [
    ("GET", "/agents/{id}/doctor", 200, "free"),
    ("POST", "/agents/{id}/drain", 200, "draining"),
    ("DELETE", "/agents/{id}/drain", 200, "free"),
    ("POST", "/agents/{id}/calibrate", 202, "calibrating"),
];

/// Sends all requests that may wait to a runner that does not respond.
fn wait_in_vain() -> Server {
    let past = Arc::new(Mutex::new(vec!["led"]));
    let is_stuck = Arc::new(AtomicBool::new(true));
    let runner = MadeUp { past, is_stuck: is_stuck.clone(), beside: 9, ..MadeUp::default() };
    let mut server = Server::start_within(Duration::from_millis(100), runner, None);
    for (method, path, _) in documented().into_iter().filter(|(_, _, status)| *status == 408) {
        let id = if path == "/compare" { "?a=id-of-led&b=id-of-led" } else { "id-of-led" };
        let body = if method == "post" { "target = 1" } else { "" };
        let body = if path.ends_with("/calibrate") { "" } else { body };
        let late = server.check((&method.to_uppercase(), &path, id), body, 408, "no response in time");
        assert_eq!(late.json()["errors"].as_array().map(Vec::len), Some(1), "{method} {path}");
    }
    is_stuck.store(false, Relaxed);
    server
}

/// A run that does not accept commands yet queues some; stopping it needs no room in the queue.
fn command_too_much() -> Server {
    let mut server = Server::start(MadeUp::default(), None);
    let id = server.start_run("{\"target\": \"waits\"}");
    let pause = "{\"ask\": \"pause\"}";
    let is_full = (0..100).any(|_| server.ask("PATCH", "/runs/{id}", &id, "", pause).status == 503);
    assert!(is_full, "it has room for a hundred");
    server.check(("PATCH", "/runs/{id}", &id), pause, 503, "this run has many commands to look at");
    server.check(("POST", "/runs/{id}/control", &id), pause, 503, "this run has many commands to look at");
    server.check(("DELETE", "/runs/{id}", &id), "", 202, "stopping");
    server.wait(&id, "refused");
    server
}

#[test]
fn what_begins_after_its_request_timed_out_is_followed_too() {
    let mut server = wait_in_vain();
    // Waits until many requests read the list at the same time.
    let is_one = |run: &Value| run["target"] == "target = 1" && run["state"] == "running";
    let started = (0..2_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        let listed = server.ask("GET", "/runs", "", "", "").json();
        listed.as_array().is_some_and(|runs| runs.iter().any(is_one))
    });
    assert!(started, "no run has begun");
}

#[test]
fn every_documented_route_and_status_is_served_and_nothing_else() {
    let runner = MadeUp::default();
    let is_cut_off = runner.is_cut_off.clone();
    let mut server = Server::start(runner, None);
    exercise(&mut server);
    search(&mut server);
    ask_agents(&mut server);
    is_cut_off.store(true, Relaxed);
    server.check(("GET", "/agents", ""), "", 503, "no connection");
    for (method, path, ..) in OF_AGENTS {
        server.check((method, path, "a"), "", 503, "no connection");
    }
    let past = Arc::new(Mutex::new(vec!["killed"]));
    let mut without_store = Server::start(MadeUp { past, ..MadeUp::default() }, None);
    without_store.check(("GET", "/runs/{id}/events", "id-of-killed"), "", 503, "no run killed");
    without_store.check(("GET", "/runs/{id}/report", "id-of-killed"), "", 503, "no run killed");
    without_store.check(("GET", "/compare", "?a=id-of-killed&b=id-of-killed"), "", 503, "no run killed");
    without_store.check(("DELETE", "/runs/{id}", "id-of-killed"), "", 503, "the store cannot be written");
    let past = Arc::new(Mutex::new(vec!["led"]));
    let mut beside_another = Server::start(MadeUp { past, ..MadeUp::default() }, None);
    beside_another.check(("DELETE", "/runs/{id}", "id-of-led"), "", 409, "another server may still lead");
    let (waiting, commanded) = (wait_in_vain(), command_too_much());
    let token: Opens = Arc::new(|secret| secret == b"s3cret");
    let mut secured = Server::start(MadeUp::default(), Some(token));
    for (method, path, _) in documented() {
        let method = method.to_uppercase();
        if path == "/runs/{id}/page" {
            secured.check((&method, &path, "x"), "", 200, "<html");
            continue;
        }
        secured.check((&method, &path, "x"), "", 401, "missing or wrong token");
        let foreign = server.ask(&method, &path, "x", "Origin: http://evil.example\r\n", "");
        assert_eq!(foreign.status, 403, "{method} {path}");
        let errors = foreign.json()["errors"].clone();
        assert_eq!(errors, json!(["not from a web page without a token"]), "{method} {path}");
    }
    let shown = secured.ask("GET", "/runs", "", "Authorization: Bearer s3cret\r\n", "");
    assert_eq!((shown.status, shown.body.as_str()), (200, "[]"));
    let own = format!("Origin: http://{}\r\n", server.at);
    assert_eq!(server.ask("GET", "/runs", "", &own, "").status, 200, "its own page");
    // Only 404 and 405 are returned beside the description.
    let servers = [&server, &without_store, &beside_another, &waiting, &commanded, &secured];
    let mut seen: Seen = servers.iter().flat_map(|server| server.seen.iter().cloned()).collect();
    let beside = [("get", "/nothing", 404), ("put", "/runs", 405), ("put", "/runs/{id}/page", 405)];
    for (method, path, status) in beside {
        assert!(seen.remove(&(method.to_owned(), path.to_owned(), status)));
    }
    // No test can use up the threads of the machine.
    let threads = ["/runs", "/searches"].map(|path| ("post".to_owned(), path.to_owned(), 503));
    seen.extend(threads);
    assert_eq!(seen, documented());
}

#[test]
fn a_run_is_followed_while_it_goes_on() {
    let mut server = Server::start(MadeUp::default(), None);
    let id = server.start_run("{\"target\": \"http://h/\"}");
    server.wait(&id, "running");
    let stream = server.connect("GET", &format!("/runs/{id}/events"), "", "");
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let mut next = |name: &str| {
        let found = lines.find(|line| line.strip_prefix("event: ").is_some_and(|event| event == name));
        assert!(found.is_some(), "no event {name}");
        lines.find(|line| line.starts_with("data: ")).unwrap()
    };
    assert!(next("run").contains("\"ticks\""));
    assert!(next("tick").contains("\"counts\""));
    server.check(("POST", "/runs/{id}/control", &id), "{\"ask\": \"drain\"}", 202, &id);
    assert!(next("summary").contains("interrupted"));
    next("end");
}

#[test]
fn the_end_of_the_server_stops_its_runs() {
    let mut server = Server::start(MadeUp::default(), None);
    let id = server.start_run("{\"target\": \"http://h/\"}");
    server.wait(&id, "running");
    let api = server.api.take().unwrap();
    let run = api.runs.get(&id).unwrap_or_else(|_| panic!("it is there"));
    api.end();
    assert_eq!(run.json(true)["state"], "done");
}

#[test]
fn the_end_of_the_server_stops_its_searches() {
    let mut server = Server::start(MadeUp::default(), None);
    let id = server.start_at("/searches", "{\"target\": \"http://h/\"}");
    let api = server.api.take().unwrap();
    let search = api.runs.search(&id).unwrap_or_else(|_| panic!("it is there"));
    api.end();
    assert_eq!(search.json(true)["state"], "done");
}

#[test]
fn a_run_that_waits_before_it_begins_is_stopped_too() {
    let mut server = Server::start(MadeUp { beside: 1, ..MadeUp::default() }, None);
    let body = "{\"target\": \"waits\"}";
    for (method, path, command, status) in [
        ("DELETE", "/runs/{id}", "", 202),
        ("PATCH", "/runs/{id}", "{\"ask\": \"stop\"}", 202),
        ("POST", "/runs/{id}/control", "{\"ask\": \"drain\"}", 202),
    ] {
        let id = server.start_run(body);
        // Commands for the time after its beginning do not end the wait.
        server.check(("PATCH", "/runs/{id}", &id), "{\"ask\": \"pause\"}", 202, "preparing");
        server.wait(&id, "preparing");
        server.check((method, path, &id), command, status, &id);
        assert_eq!(server.wait(&id, "refused")["reasons"], json!(["interrupted before the run began"]));
    }
    // The end of the server does not wait for this run.
    server.start_run(body);
}

#[test]
fn runs_of_an_earlier_process_are_listed_and_shown() {
    let runner = MadeUp { past: Arc::new(Mutex::new(vec!["ended", "killed"])), ..MadeUp::default() };
    let (past, ids) = (runner.past.clone(), runner.ids.clone());
    let mut server = Server::start(runner, None);
    let listed = server.check(("GET", "/runs", ""), "", 200, "id-of-ended").json();
    let states: Vec<&Value> = listed.as_array().unwrap().iter().map(|run| &run["state"]).collect();
    assert_eq!(states, ["done", "unfinished"]);
    let run = server.check(("GET", "/runs/{id}", "id-of-ended"), "", 200, "").json();
    assert_eq!(
        (&run["verdict"], &run["connections"], &run["stored"]),
        (&json!("fail"), &json!(7), &json!("ended"))
    );
    assert_eq!((&run["reasons"], &run["summary"]["verdict"]), (&json!(["why"]), &json!("fail")));
    let events = server.check(("GET", "/runs/{id}/events", "id-of-ended"), "", 200, "event: run");
    assert!(events.body.contains("event: end"), "{:.300}", events.body);
    server.check(("GET", "/runs/{id}/events", "id-of-killed"), "", 503, "no run killed");
    server.check(("PATCH", "/runs/{id}", "id-of-killed"), "{\"load\": \"50%\"}", 409, "this run is over");
    server.check(("DELETE", "/runs/{id}", "id-of-ended"), "", 204, "");
    assert_eq!(*past.lock(), ["killed"]);
    // A new run does not replace an old one.
    let id = server.start_run("{\"target\": \"refused\"}");
    assert_eq!(*ids.lock(), [id]);
}

#[test]
fn a_run_that_another_server_leads_is_left_to_that_one() {
    let runner = MadeUp { past: Arc::new(Mutex::new(vec!["led"])), ..MadeUp::default() };
    let has_ended = runner.has_ended.clone();
    let mut server = Server::start(runner, None);
    let run = ("/runs/{id}", "id-of-led");
    let listed = server.check(("GET", "/runs", ""), "", 200, "id-of-led").json();
    assert_eq!((&listed[0]["state"], &listed[0]["verdict"]), (&json!("unfinished"), &Value::Null));
    let events = server.check(("GET", "/runs/{id}/events", run.1), "", 200, "event: run");
    assert!(events.body.contains("event: end"), "{:.300}", events.body);
    for (method, body) in [("PATCH", "{\"ask\": \"pause\"}"), ("DELETE", "")] {
        server.check((method, run.0, run.1), body, 409, "another server may still lead this run");
    }
    // The result is available as soon as it is stored.
    has_ended.store(true, Relaxed);
    let over = server.check(("GET", run.0, run.1), "", 200, "done").json();
    assert_eq!((&over["verdict"], &over["summary"]["verdict"]), (&json!("fail"), &json!("fail")));
    server.check(("PATCH", run.0, run.1), "{\"ask\": \"pause\"}", 409, "this run is over");
    server.check(("DELETE", run.0, run.1), "", 204, "");
}

#[test]
fn a_run_without_a_free_agent_is_a_conflict() {
    let runner = MadeUp { beside: 2, ..MadeUp::default() };
    let is_busy = runner.is_busy.clone();
    let mut server = Server::start(runner, None);
    let body = "{\"target\": \"http://h/\"}";
    is_busy.store(true, Relaxed);
    // Another process uses the agents, which is only found out when the run begins.
    let id = server.start_run(body);
    let why = format!("no agent is free; stop a run with DELETE, or wait: /runs/{id}");
    server.check(("POST", "/runs", ""), body, 409, &why);
    server.check(("POST", "/searches", ""), body, 409, &why);
    server.check(("POST", "/runs", ""), "target = \"wrong\"", 400, "one mistake");
    is_busy.store(false, Relaxed);
    server.start_run(body);
}

#[test]
fn agents_that_a_run_is_about_to_take_are_not_free() {
    let runner = MadeUp { beside: 2, ..MadeUp::default() };
    let busy_after = runner.busy_after.clone();
    let mut server = Server::start(runner, None);
    let id = server.start_run("{\"target\": \"waits\"}");
    server.wait(&id, "preparing");
    busy_after.store(2, Relaxed);
    let why = format!("no agent is free; stop a run with DELETE, or wait: /runs/{id}");
    server.check(("POST", "/runs", ""), "{\"target\": \"http://h/\"}", 409, &why);
    server.check(("DELETE", "/runs/{id}", &id), "", 202, "stopping");
    server.wait(&id, "refused");
}
