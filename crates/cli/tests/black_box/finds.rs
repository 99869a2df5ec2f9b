//! `throng find`: the largest load, and what stops it.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{
    causes::{python, short_of_memory},
    program::{Program, Serving, file},
    scripted::Scripted,
};

/// A search takes many steps.
const PATIENCE: Duration = Duration::from_secs(300);

/// The search as JSON; it ends with this status.
fn find(target: &str, args: &[&str], status: i32) -> Value {
    let ended = Program::start(&[&["find", target, "--json", "-"], args].concat()).end_within(PATIENCE);
    ended.assert_status(status);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"))
}

#[test]
fn a_limit_on_connections_is_found_and_named() {
    // Not a known limit. The probe has ports of its own.
    let server = Serving::start(&["--threads", "1", "--max-open", "700"]);
    // Judged by this alone: how late throng is on a busy machine does not matter here.
    let args = ["--max", "4000", "-d", "1s", "--threshold", "held >= 99.9%"];
    let found = find(&server.url("/"), &args, 0);
    assert_eq!((&found["schema"], &found["by"]), (&"throng.find/1".into(), &"connections".into()));
    assert_eq!(found["outcome"], "found", "{found:#}");
    let (max, error) = (found["max"].as_u64().unwrap(), found["error"].as_u64().unwrap());
    assert!((665..=700).contains(&max) && error <= 15, "{max} ± {error}: {found:#}");
    // On a busy machine losses come too late after the dials to be attributed to a limit; `causes` has the cause.
    assert_eq!(found["limit"]["side"], "target", "{found:#}");
    assert_eq!(found["thresholds"][0]["pass"], true, "{found:#}");
    let curve = found["curve"].as_array().unwrap();
    let loads: Vec<u64> = curve.iter().map(|point| point["load"].as_u64().unwrap()).collect();
    assert!(loads.is_sorted() && loads.len() >= 4, "{loads:?}");
    assert!(curve.iter().all(|p| (p["pass"] == true) == (p["load"].as_u64().unwrap() <= max)), "{curve:#?}");
}

/// Three steps and what is between them take longer.
#[test]
fn a_search_ends_with_its_time_and_says_what_it_has() {
    let server = Serving::start(&["--threads", "1"]);
    let args = ["find", &server.url("/"), "--max-time", "10s", "-d", "4s", "--json", "-"];
    let began = Instant::now();
    // Judged by this alone: how late throng is on a busy machine does not matter here.
    let ended = Program::start(&[&args[..], &["--threshold", "held >= 99.9%"]].concat()).end_within(PATIENCE);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(11), "{took:?}: {}", ended.stderr);
    ended.assert_status(1);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    assert_eq!((&found["outcome"], &found["max"]), (&"unsettled".into(), &500.into()), "{found:#}");
    assert_eq!(found["ended"], "its time was over (--max-time)", "{found:#}");
    for said in ["next 500 connections; ", "next 2,000 connections; 500 passed; ", "s left at most"] {
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
    }
}

#[test]
fn a_silent_target_is_impossible_and_an_allowed_fault_may_pass() {
    let nobody = find("http://127.0.0.1:9/", &["--max", "1000", "-d", "1s"], 1);
    assert_eq!((&nobody["outcome"], &nobody["max"]), (&"impossible".into(), &0.into()), "{nobody:#}");
    assert_eq!(nobody["limit"]["cause"], "refused");
    let server = Serving::start(&["--threads", "1"]);
    let args = ["--max", "600", "-d", "1s", "--threshold", "held >= 99.9%"];
    let all = find(&server.url("/"), &args, 0);
    assert_eq!((&all["outcome"], &all["max"]), (&"not-reached".into(), &600.into()), "{all:#}");
    assert_eq!(all["curve"][0]["load"], 500, "{all:#}");
    // Without a message there is nothing to probe with.
    let idle = find(&format!("tcp://{}", server.address), &args, 0);
    assert_eq!((&idle["outcome"], &idle["max"]), (&"not-reached".into(), &600.into()), "{idle:#}");
}

#[test]
fn all_mistakes_are_reported() {
    let check = |args: &[&str], expected: &[&str]| {
        let ended = Program::start(&[&["find"], args].concat()).end();
        ended.assert_status(2);
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let has = |(line, begin): (&&str, &&str)| line.starts_with(&format!("throng: {begin}"));
        let is_each = lines.len() == expected.len() && lines.iter().zip(expected).all(has);
        assert!(is_each, "{}", ended.stderr);
    };
    let wrong =
        ["--by", "magic", "--max", "few", "-d", "long", "--tag", "t", "--timeout", "x", "--ramp", "30"];
    let expected =
        ["--tag: ", "--by: \"magic\"", "--max: \"few\"", "--duration: ", "--ramp: ", "--timeout: "];
    check(&[&["http://127.0.0.1:9/"], &wrong[..]].concat(), &expected);
    let few =
        "--max: must be at least 21, because each load includes the probe's 20 requests/s; use a larger one";
    check(&["http://127.0.0.1:9/", "--by", "rate", "--max", "20"], &[few]);
    check(&["ws://127.0.0.1:9/", "--by", "arrival"], &["--by: a connection that arrives is closed after"]);
}

#[test]
fn a_number_of_the_scenario_is_searched() {
    let server = Serving::start(&["--threads", "1", "--max-open", "30"]);
    let scenario = file("number.toml");
    let text = format!(
        "target = {:?}\nthresholds = [\"held >= 99.9%\"]\n[[population]]\nname = \"chat\"\nconnections = \"4\" # few\nthink = \"1s\"\n",
        server.url("/")
    );
    std::fs::write(&scenario, text).unwrap();
    let scenario = scenario.to_str().unwrap();
    let path = "population.chat.connections";
    let found = find(scenario, &["--by", path, "--max", "100", "-d", "1s"], 0);
    assert_eq!(
        (&found["by"], &found["unit"], &found["outcome"]),
        (&path.into(), &path.into(), &"found".into())
    );
    let (max, error) = (found["max"].as_u64().unwrap(), found["error"].as_u64().unwrap());
    assert!((27..=30).contains(&max) && error <= 3, "{max} ± {error}: {found:#}");
    let first = found["curve"].as_array().unwrap().iter().find(|point| point["step"] == 1).unwrap();
    assert_eq!(
        (&first["load"], &first["held"]),
        (&4.into(), &4.into()),
        "the search begins with that of the file"
    );
    let seconds = find(scenario, &["--by", "population.chat.think", "--max", "2", "-d", "1s"], 0);
    let unit = "s (population.chat.think)";
    assert_eq!((&seconds["unit"], &seconds["max"]), (&unit.into(), &2.into()), "{seconds:#}");
    let check = |by: &str, max: &[&str], expected: &str| {
        let ended = Program::start(&[&["find", scenario, "--by", by], max].concat()).end();
        ended.assert_status(2);
        assert_eq!(ended.stderr, format!("throng: {expected}\n"));
    };
    check(path, &[], &format!("--max: required, because nothing bounds {path}; use the largest to try"));
    let missing =
        format!("--by: {scenario}: has no \"population.chat.rate\"; use {path} or population.chat.think");
    check("population.chat.rate", &["--max", "9"], &missing);
    let text = format!(
        "--by: {scenario}:4:8: population.chat.name: is no whole number; use {path} or population.chat.think"
    );
    check("population.chat.name", &["--max", "9"], &text);
}

/// A table that is gone when the file is read again.
#[test]
fn a_load_that_the_scenario_refuses_bounds_the_search() {
    let server = Serving::start(&["--threads", "1"]);
    let (scenario, table) = (file("bounded.toml"), file("bounded.csv"));
    std::fs::write(&table, "id\n1\n").unwrap();
    let text = format!(
        "target = \"{}?{{csv users.id}}\"\nthresholds = [\"held >= 99.9%\"]\n[[population]]\nname = \"chat\"\nconnections = 4\nthink = \"1s\"\n[csv.users]\nfile = {table:?}\n",
        server.url("/")
    );
    std::fs::write(&scenario, text).unwrap();
    let args = ["--by", "population.chat.connections", "--max", "9k", "-d", "1s", "--json", "-"];
    let args = [&["find", scenario.to_str().unwrap()], &args[..]].concat();
    let mut search = Program::start(&args);
    search.wait_for("  next 8 ");
    std::fs::remove_file(&table).unwrap();
    let ended = search.end_within(PATIENCE);
    ended.assert_status(0);
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let max = found["max"].as_u64().unwrap();
    assert!(found["outcome"] == "not-reached" && (8..9_000).contains(&max), "{found:#}");
    let (refused, why) = found["ended"].as_str().unwrap().split_once(" was refused: ").unwrap();
    assert!(refused.parse::<u64>().is_ok_and(|load| load > max && load <= max + 1 + max / 50), "{found:#}");
    assert!(why.starts_with(&format!("{}:", scenario.display())), "{why}");
    assert!(why.contains(table.to_str().unwrap()) && why.contains("cannot be read"), "{why}");
}

/// A response takes 100 ms: of more streams than a connection may have, the server refuses none, and the plan does.
#[test]
fn streams_of_a_connection_are_searched() {
    let server = Serving::start(&["--threads", "1"]);
    let load = ["--http2", "-c", "2", "--by", "streams", "-d", "1s", "--threshold", "errors < 1%"];
    let target = server.url("/delay?for=100ms");
    let found = find(&target, &[&load[..], &["--max", "8", "--streams", "2"]].concat(), 0);
    assert_eq!(
        (&found["by"], &found["outcome"], &found["max"]),
        (&"streams".into(), &"not-reached".into(), &8.into())
    );
    let mut steps: Vec<&Value> = found["curve"].as_array().unwrap().iter().collect();
    steps.sort_by_key(|step| step["step"].as_u64());
    assert_eq!(steps[0]["load"], 2, "the search begins with --streams");
    // Two connections of eight streams have four times as many responses as with two each.
    let per_s = |step: &Value| step["requests_per_s"].as_f64().unwrap();
    let most = steps.iter().find(|step| step["load"] == 8).unwrap();
    assert!(per_s(most) > 2.0 * per_s(steps[0]), "{found:#}");
    let ended = Program::start(&[&["find", &target], &load[..], &["--max", "9999"]].concat()).end();
    ended.assert_status(2);
    assert!(ended.stderr.starts_with("throng: --max: --streams: "), "{}", ended.stderr);
}

/// Thresholds compare nothing.
#[test]
fn a_search_without_thresholds_begins_beside_an_idle_target() {
    let server = Serving::start(&["--threads", "1"]);
    let mut search = Program::start(&["find", &server.url("/"), "--max", "400", "-d", "1s"]);
    search.wait_for(" 4 connections  ");
    search.wait_for(" 400 connections  ");
    search.signal(rustix::process::Signal::INT);
    search.end_within(PATIENCE);
}

/// The search ends with this outcome, and names side, cause, a part of the detail and one of the fix.
fn check_limit(found: &Value, outcome: &str, [side, cause, detail, cure]: [&str; 4]) {
    assert_eq!(found["outcome"], outcome, "{found:#}");
    let limit = |field: &str| found["limit"][field].as_str().unwrap_or_default();
    assert_eq!((limit("side"), limit("cause")), (side, cause), "{found:#}");
    assert!(limit("detail").contains(detail) && limit("cure").contains(cure), "{}", found["limit"]);
}

/// How late throng is on a busy machine does not matter here.
const HELD: [&str; 2] = ["--threshold", "held >= 99.9%"];

#[test]
fn a_short_accept_queue() {
    let server = python(&[], ["8", "0.002", "0", "0"]);
    let args = [&["--by", "burst", "--max", "60", "-d", "1s", "--timeout", "1s"], &HELD[..]].concat();
    let found = find(&server.url("/"), &args, 0);
    check_limit(&found, "found", ["target", "accept-queue", "accept queue of 8 was full", "listen backlog"]);
    // Nine are in a queue of eight; what is accepted meanwhile makes room.
    let max = found["max"].as_u64().unwrap();
    assert!((8..=30).contains(&max), "{found:#}");
}

/// Its accept queue of 4,096 takes for seconds what it does not accept, and each has its response before it times out.
#[test]
fn a_queue_that_grows_is_no_rate_that_is_sustained() {
    let server = Serving::start(&["--threads", "1", "--slow-accept", "60/s"]);
    let args = ["--by", "arrival", "--max", "100", "-d", "2s", "--threshold", "faults == 0", "--json", "-"];
    let mut search = Program::start(&[&["find", &server.url("/")], &args[..]].concat());
    // The largest load is tried early; what it searches for then takes a minute.
    let why = "connections arrive faster than the target accepts them: ";
    search.wait_for(why);
    search.signal(rustix::process::Signal::INT);
    let ended = search.end_within(PATIENCE);
    let found: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let failed: Vec<&Value> =
        found["curve"].as_array().unwrap().iter().filter(|step| step["pass"] == false).collect();
    // Ten a second are the probe's.
    assert!(failed.iter().all(|step| step["load"].as_u64() > Some(50)), "{found:#}");
    let says = |step: &&Value| step["reasons"][0].as_str().is_some_and(|text| text.starts_with(why));
    assert!(failed.iter().any(says), "{found:#}");
    assert!(found["max"].as_u64() < Some(100), "{found:#}");
}

#[test]
fn what_only_the_largest_load_needs_is_no_warning() {
    let server = python(&["prlimit", "--nofile=2000"], ["512", "0", "0", "0"]);
    let mut search = Program::start(&["find", &server.url("/"), "--max", "4000", "-d", "1s"]);
    search.wait_for(" 500 connections  ");
    search.signal(rustix::process::Signal::INT);
    let ended = search.end_within(PATIENCE);
    assert!(!ended.stderr.contains("open files"), "{}", ended.stderr);
    // A run with that load is warned.
    let mut run = Program::start(&["run", &server.url("/"), "-c", "4000", "--ramp", "10/s"]);
    run.wait_for("warning: target's open files");
    run.signal(rustix::process::Signal::INT);
    run.end();
}

#[test]
fn a_search_warns_once_and_not_about_what_is_kept_for_slow_responses() {
    // A backlog of 8, of which the first step needs more: 11 dials in the time that one takes.
    let server = python(&["prlimit", "--nofile=400"], ["8", "0", "0", "0"]);
    let args = ["--by", "arrival", "--max", "400", "--probe", "50/s", "-d", "1s", "--threshold", "sent > 0"];
    let ended = Program::start(&[&["find", &server.url("/")], &args[..]].concat()).end_within(PATIENCE);
    let warnings = |what: &str| ended.stderr.matches(&format!("warning: target's {what}")).count();
    // 1,002 connections are kept for the probe.
    assert_eq!((warnings("backlog"), warnings("open files")), (1, 0), "{}", ended.stderr);
    assert!(ended.stderr.matches(" connections/s  ").count() > 1, "{}", ended.stderr);
}

#[test]
fn the_default_pause_gives_way_to_an_idle_timeout() {
    let server = Serving::start(&["--threads", "1", "--idle-cut", "1s"]);
    let args = [&["--max", "50", "-d", "2s"], &HELD[..]].concat();
    let found = find(&server.url("/"), &args, 0);
    let (idle, max) = (&found["idle"], found["max"].as_u64());
    assert_eq!((found["outcome"].as_str(), max), (Some("not-reached"), Some(50)), "{found:#}");
    assert!((0.9..2.0).contains(&idle["timeout_s"].as_f64().unwrap()), "{idle}");
    assert!(idle["think_s"][1].as_f64().unwrap() < 1.2, "{idle}");
}

#[test]
fn connections_that_the_step_before_has_left_closed_are_dialled_again() {
    let server = Scripted::start(|peer| {
        peer.request();
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx");
    });
    let args = ["--by", "rate", "--max", "60", "-c", "30", "-d", "1s", "--max-lag", "10s"];
    let found = find(&server.url("/"), &args, 0);
    let loads: Vec<u64> =
        found["curve"].as_array().unwrap().iter().map(|p| p["load"].as_u64().unwrap()).collect();
    assert_eq!(
        (&found["outcome"], loads.last(), loads.len() > 1),
        (&"not-reached".into(), Some(&60), true),
        "{found:#}"
    );
    // Nearly each request has a connection of its own.
    let (accepted, requests) = (server.log.accepted(), server.log.requests());
    assert!(accepted + 20 >= requests && requests > 40, "{accepted} connections, {requests} requests");
}

#[test]
fn a_target_killed_by_the_oom_killer_ends_the_search() {
    // 64 MiB: enough for the 500 of the first step, with the interpreter's own 10.
    let Some((_group, server)) = short_of_memory("80000") else { return };
    let found = find(&server.url("/"), &[&["--max", "1000", "-d", "1s"], &HELD[..]].concat(), 1);
    check_limit(&found, "unsettled", ["target", "memory", "OOM killer", "MemoryMax"]);
    assert_eq!(&found["max"], &500, "{found:#}");
    // Those of the step before were open, whatever became of the others.
    assert!(found["limit"]["at_connections"].as_u64() >= Some(500), "{found:#}");
    assert_eq!(found["curve"].as_array().unwrap().len(), 2, "none once it is gone: {found:#}");
}
