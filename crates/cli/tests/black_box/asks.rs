//! Tests the experiments: after a load that failed, a few additional users distinguish causes with the same symptoms.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    program::{ASKS, Program, Serving, Signal, file},
    scripted::{Peer, Scripted, ok},
    summary::{Summary, run},
};

/// Connections of each load here.
const LOAD: u64 = 20;
/// Those that limited servers take.
const TAKEN: u64 = 10;

/// Serves connections while it admits them: it is given how many are open, of all or of the same source address, and the connection's
/// number. It closes others at once.
fn admitting(by_source: bool, admits: impl Fn(u64, u64) -> bool + Send + Sync + 'static) -> Scripted {
    let open: Arc<Mutex<HashMap<Option<IpAddr>, u64>>> = Arc::default();
    Scripted::start(move |peer| {
        let source = peer.log.peers.lock().unwrap()[peer.number as usize - 1].ip();
        let source = by_source.then_some(source);
        {
            let mut open = open.lock().unwrap();
            let own = open.entry(source).or_default();
            if !admits(*own, peer.number) {
                return;
            }
            *own += 1;
        }
        while peer.request().is_some() && peer.send(&ok("x")) {}
        *open.lock().unwrap().get_mut(&source).unwrap() -= 1;
    })
}

/// What a load of 20 connections, paced so that each is accepted in turn, asks this server: experiments and the beginnings of answers.
fn check(server: &Scripted, args: &[&str], expected: &[(&str, &str)]) -> Summary {
    let load = ["-d", "1s", "--ramp", "200/s"];
    check_load(server, &[&load, args].concat(), expected)
}

fn check_load(server: &Scripted, args: &[&str], expected: &[(&str, &str)]) -> Summary {
    // Their numbers of responses differ.
    let load = ["-c", "20", "--think", "20ms..90ms", ASKS];
    let (ended, s) = run(&server.url("/"), &[&load, args].concat());
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let asked = s.experiments();
    let is_it =
        |(own, (what, begins)): (&(&str, &str), &(&str, &str))| own.0 == *what && own.1.starts_with(begins);
    assert!(
        asked.len() == expected.len() && asked.iter().zip(expected).all(is_it),
        "{asked:?}: {expected:?}"
    );
    s
}

/// The verdict has learnt of it.
fn check_limit(s: &Summary, cause: &str, certainty: &str, fix: &str) {
    let limit = ["cause", "certainty"].map(|key| s.text(&format!("limit.{key}")));
    assert!(limit == [cause, certainty] && s.text("limit.cure").contains(fix), "{:#}", s.at("limit"));
}

/// The figures are those of the load alone.
fn check_figures(s: &Summary, server: &Scripted) {
    let c = |name: &str| s.count(&format!("connections.{name}"));
    assert_eq!([c("opened"), c("held"), c("dropped"), c("dropped_in_drain")], [LOAD, TAKEN, LOAD - TAKEN, 0]);
    let accounts =
        ["answered", "failed", "unanswered", "missed"].map(|name| s.count(&format!("requests.{name}")));
    assert_eq!(accounts.iter().sum::<u64>(), s.count("requests.due"), "the books balance");
    server.assert_accepted(LOAD + s.connections_of_experiments(), "each experiment is a few connections");
}

#[test]
fn a_full_target_has_room_once_half_of_the_load_is_gone() {
    for io in ["uring", "epoll"] {
        let server = admitting(false, |open, _| open < TAKEN);
        let answers = [
            ("pause", "not served: target hold closed, with 10 connections open"),
            ("other-source", "not served"),
            ("half", "served in "),
        ];
        let s = check(&server, &["--io", io], &answers);
        assert!(s.experiments()[2].1.ends_with("with 5 connections open"), "{:?}", s.experiments());
        check_figures(&s, &server);
        check_limit(&s, "connection-limit", "seen", "worker_connections");
    }
}

#[test]
fn a_limit_for_each_source_has_room_for_another_one() {
    let server = admitting(true, |open, _| open < TAKEN);
    let s = check(&server, &[], &[("pause", "not served"), ("other-source", "served in ")]);
    check_figures(&s, &server);
    check_limit(&s, "connection-limit", "seen", "one source address");
    // Only the sources that are given may be used.
    let answers = [("pause", "not served"), ("half", "served in ")];
    check(&admitting(true, |open, _| open < TAKEN), &["--sources", "127.0.0.1"], &answers);
}

#[test]
fn a_broken_target_serves_no_one_with_half_of_the_load_either() {
    let server = admitting(false, |_, number| number <= TAKEN);
    let answers = [("pause", "not served"), ("other-source", "not served"), ("half", "not served")];
    let s = check(&server, &[], &answers);
    check_figures(&s, &server);
    check_limit(&s, "closed", "seen", "number of connections is not what limits it");
}

#[test]
fn a_limit_by_rate_has_passed_after_a_pause() {
    let recent: Mutex<Vec<Instant>> = Mutex::default();
    let server = admitting(false, move |_, _| {
        let mut recent = recent.lock().unwrap();
        recent.retain(|at| at.elapsed() < Duration::from_secs(1));
        let admits = recent.len() < TAKEN as usize;
        admits.then(|| recent.push(Instant::now()));
        admits
    });
    let s = check(&server, &[], &[("pause", "served in ")]);
    check_figures(&s, &server);
    check_limit(&s, "connection-limit", "inferred", "rate of new connections");
}

/// Takes a time for each response; `by_turns`: one after the other.
fn slow(time: Duration, by_turns: bool) -> Scripted {
    let turn = Mutex::new(());
    Scripted::start(move |peer: &mut Peer| {
        while peer.request().is_some() {
            let turn = by_turns.then(|| turn.lock().unwrap());
            std::thread::sleep(time);
            drop(turn);
            if !peer.send(&ok("x")) {
                return;
            }
        }
    })
}

#[test]
fn a_target_is_slow_always_or_only_under_load() {
    let alone_ms = |server: &Scripted, cause: &str, said: &str| {
        let s = check(server, &["--threshold", "latency.p50 < 100ms"], &[("alone", "served in ")]);
        assert_eq!(s.text("limit.cause"), cause, "{:#}", s.at("limit"));
        assert!(s.text("limit.sentence").contains(said), "{:#}", s.at("limit"));
        let answer = s.experiments()[0].1.to_owned();
        let ms = answer.strip_prefix("served in ").and_then(|text| text.split_once(" ms")).map(|(ms, _)| ms);
        ms.and_then(|ms| ms.parse::<f64>().ok()).unwrap_or_else(|| panic!("{answer}"))
    };
    assert!((300.0..600.0).contains(&alone_ms(&slow(Duration::from_millis(300), false), "unknown", "")));
    let at_a_time = "the target works on about 1 request at a time: a response takes ";
    assert!((15.0..90.0).contains(&alone_ms(&slow(Duration::from_millis(15), true), "saturated", at_a_time)));
}

/// All were closed at once, after 2 s: a limit on their age does that to a connection more, and a restart does not.
#[test]
fn an_age_limit_closes_a_busy_connection_too() {
    let until = |limit: Duration, is_age: bool| {
        let start = Instant::now();
        Scripted::start(move |peer: &mut Peer| {
            let opened = if is_age { Instant::now() } else { start };
            let is_old = start.elapsed() > limit;
            loop {
                let left = limit.saturating_sub(opened.elapsed()).max(Duration::from_millis(1));
                match is_old && !is_age {
                    false if peer.is_silent_for(left) => return,
                    _ if peer.request().is_none() || !peer.send(&ok("x")) => return,
                    _ => {}
                }
            }
        })
    };
    let load = ["-d", "5s", "--ramp", "0s"];
    let server = until(Duration::from_secs(2), true);
    check_load(&server, &load, &[("pause", "served in "), ("busy", "closed after 2")]);
    let server = until(Duration::from_secs(2), false);
    check_load(&server, &load, &[("pause", "served in "), ("busy", "still open after ")]);
}

#[test]
fn healthy_runs_and_runs_without_experiments_ask_nothing() {
    let healthy = Scripted::responding(ok("x"));
    let (ended, s) = run(&healthy.url("/"), &["-c", "3", "-d", "300ms", ASKS]);
    assert_eq!((ended.status, s.experiments().len()), (Some(0), 0), "{ended:?}");
    healthy.assert_accepted(3, "nothing but the load");
    let full = || admitting(false, |open, _| open < TAKEN);
    let server = full();
    check(&server, &["--no-experiments"], &[]);
    server.assert_accepted(LOAD, "nothing but the load");
    let (server, scenario) = (full(), file("asks.toml"));
    let text = format!(
        "target = \"{}\"\nconnections = 20\nduration = \"1s\"\nno-experiments = true\n",
        server.url("/")
    );
    std::fs::write(&scenario, text).unwrap();
    let (ended, s) = run(scenario.to_str().unwrap(), &[ASKS]);
    assert_eq!((ended.status, s.experiments().len()), (Some(1), 0), "{ended:?}");
    server.assert_accepted(LOAD, "nothing but the load");
}

/// Responds to each connection's first requests, until there were 20; then not at all.
fn falls_silent() -> Scripted {
    Scripted::start(|peer| {
        while peer.request().is_some() {
            if peer.log.requests() > LOAD || !peer.send(&ok("x")) {
                peer.is_silent_for(Duration::from_secs(20));
                return;
            }
        }
    })
}

#[test]
fn a_silent_target_is_asked_for_ten_seconds_at_the_most() {
    let server = falls_silent();
    let no_response = "connected, no response";
    let answers = ["pause", "other-source", "alone"].map(|what| (what, no_response));
    let s = check(&server, &["--timeout", "2s"], &answers);
    let all = s.at("experiments").as_array().unwrap();
    let took: Vec<f64> = all.iter().map(|one| one["took_s"].as_f64().unwrap()).collect();
    assert!(
        took.iter().all(|took| *took > 1.0 && *took < 4.0) && took.iter().sum::<f64>() < 10.0,
        "{took:?}"
    );
}

#[test]
fn a_signal_leaves_out_what_was_not_asked_yet() {
    let server = admitting(false, |open, _| open < TAKEN);
    let start = |args: &[&str]| {
        let url = server.url("/");
        let all = [&["run", &url, "-c", "20", "--think", "50ms", ASKS], args].concat();
        Program::start(&all)
    };
    let mut program = start(&["-d", "forever"]);
    program.wait_for(" hold ");
    program.signal(Signal::INT);
    let ended = program.end_within(Duration::from_secs(20));
    assert!(ended.status == Some(130) && !ended.stderr.contains("asking the target"), "{ended:?}");
    // While it asks: the run is over, and its verdict stays.
    let json = file("asks.json");
    let mut program = start(&["-d", "1s", "--json", json.to_str().unwrap()]);
    program.wait_for("asking the target");
    program.signal(Signal::INT);
    let ended = program.end_within(Duration::from_secs(20));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let s = Summary(serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap());
    assert_eq!(s.experiments(), [], "the pause was not over");
}

#[test]
fn one_user_speaks_what_the_load_speaks() {
    let server = Serving::start(&["--threads", "2", "--max-open", "10"]);
    for (scheme, path) in [("tcp", ""), ("ws", "/ws/echo")] {
        let url = server.url(path).replacen("http", scheme, 1);
        let (ended, s) = run(&url, &["-c", "20", "-d", "1s", "--ramp", "200/s", ASKS]);
        let asked: Vec<(&str, &str)> =
            s.experiments().iter().map(|(what, answer)| (*what, &answer[..6])).collect();
        let served = if scheme == "tcp" { "connec" } else { "served" };
        let expected = [("pause", "not se"), ("other-source", "not se"), ("half", served)];
        assert_eq!(asked, expected, "{scheme}: {ended:?} {:?}", s.experiments());
    }
}
