//! `throng run` against a server on a Java virtual machine: its heap and its pauses are seen.

use std::fs;

use crate::{
    right,
    server::{Server, folder, program, source},
    summary::{Summary, run},
};

/// Options with which a virtual machine takes the least of a processor to start and to warm up; none of these tests is about its
/// speed.
pub(crate) const CHEAP: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// JDK's own `HttpServer`, from source (JEP 330), with a heap so small that it has to be collected.
fn hello() -> Server {
    let file = format!("{}/Hello.java", source("java"));
    Server::announcing(
        "listening on 127.0.0.1:",
        program("java", &[&CHEAP[..], &["-Xmx64m", &file]].concat()),
    )
}

/// A metric of each second, where it is known.
fn series(lines: &str, name: &str) -> Vec<f64> {
    let seconds = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    seconds.filter_map(|second| second[name].as_f64()).collect()
}

#[test]
fn heap_and_pauses_of_a_virtual_machine_are_seen() {
    let server = hello();
    let file = folder("jvm").join("run.jsonl");
    let lines = file.to_str().expect("a name in ASCII");
    let s = right::check(&server.url("/"), &["-c", "50", "-d", "4s", "--think", "50ms", "--jsonl", lines]);
    let answered = s.count("requests.answered");
    let text = fs::read_to_string(&file).unwrap();
    let [used, committed, collections, pauses] = [
        "throng_target_jvm_heap_used_bytes",
        "throng_target_jvm_heap_committed_bytes",
        "throng_target_jvm_gc_total",
        "throng_target_jvm_gc_pause_seconds_total",
    ]
    .map(|name| series(&text, name));
    // Each response leaves 64 KiB, and no more than 64 MiB fit.
    let collected = collections.last().unwrap() - collections.first().unwrap();
    assert!(
        collected >= (answered as f64 * 65_536.0 / 67_108_864.0).floor() - 1.0,
        "{answered}: {collections:?}"
    );
    assert!(
        collections.is_sorted() && pauses.is_sorted() && (1e-6..4.0).contains(pauses.last().unwrap()),
        "{pauses:?}"
    );
    assert!(used.len() == committed.len() && used.len() > 2, "{used:?}, {committed:?}");
    for (used, committed) in used.iter().zip(&committed) {
        assert!(used <= committed && *committed <= 67_108_864.0, "{used} of {committed}");
    }
}

/// A server in one source file, with standard error in a plain file, as a service has that logs to one; and that file.
fn logging(name: &str, options: &[&str], args: &[&str]) -> (Server, String) {
    let folder = folder(&format!("jvm-{}", args.join("-")));
    let class = format!("{name}.java");
    let place = folder.to_str().expect("a name in ASCII");
    // Compiled separately, since a compiler has no room in a small heap.
    let compiled = program(
        "javac",
        &["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-d", place, &source(&format!("java/{class}"))],
    )
    .status();
    assert!(compiled.is_ok_and(|status| status.success()), "{class}");
    let log = format!("{place}/error.log");
    let script = format!("exec java \"$@\" 2> '{log}'");
    let all = [&["-c", &script, "sh"], &CHEAP[..], options, &["-cp", place, name], args].concat();
    (Server::announcing("listening on 127.0.0.1:", program("sh", &all)), log)
}

/// The limit of the run: its cause, a detail with these parts, and certainty `seen`.
fn check_cause(server: &Server, args: &[&str], cause: &str, parts: &[&str]) -> Summary {
    let (ended, s) = run(&server.url("/"), args);
    assert!(!s.at("limit").is_null(), "nothing named: {}", ended.stderr);
    let limit = (s.text("limit.side"), s.text("limit.cause"), s.text("limit.certainty"));
    assert_eq!(limit, ("target", cause, "seen"), "{}", s.at("limit"));
    let detail = s.text("limit.detail");
    assert!(parts.iter().all(|part| detail.contains(part)), "{detail}");
    s
}

const LOAD: &[&str] = &["-c", "200", "--ramp", "100/s", "--think", "300ms", "-d", "1s", "--timeout", "2s"];

#[test]
fn a_full_heap_is_the_cause_of_later_failures() {
    // 256 KiB of 16 MiB for each connection: less than 64 fit, and the accept thread dies of the next one.
    let (server, log) = logging("Accepts", &["-Xmx16m"], &["hoard", "262144"]);
    let parts = ["its log: Exception in thread \"my-acceptor\" java.lang.OutOfMemoryError", &log];
    let s = check_cause(&server, LOAD, "heap", &parts);
    assert!((20..=64).contains(&s.count("limit.at_connections")), "{}", s.at("limit"));
    assert!(s.text("limit.cure").contains("-Xmx"), "{}", s.text("limit.cure"));
    assert!(s.number("observed.target.jvm_heap_max_bytes") > 15e6, "{}", s.at("observed.target"));
    let at = s.number("limit.first_seen_s");
    assert!((0.2..=s.number("elapsed_s")).contains(&at), "{at}");
    assert_eq!(s.at("observed.target.threads_gone")[0].as_str(), Some("my-acceptor"));
}

#[test]
fn the_live_heap_grows_linearly_over_the_ramp() {
    // 16 KiB kept for each connection, and what its thread and its readers need.
    let (server, _) = logging("Accepts", &["-Xmx512m"], &["hoard", "16384"]);
    let args =
        ["-c", "1200", "--ramp", "300/s", "--think", "1m", "-d", "2s", "--timeout", "10s", "--target-gc"];
    let (ended, s) = run(&server.url("/"), &args);
    assert_eq!(s.count("connections.held"), 1_200, "{}", ended.stderr);
    let points = s.at("cost.target_live_points").as_array().expect("points").clone();
    assert!(points.len() >= 5, "{points:?}: {}", s.at("cost.target_live_failure"));
    let connections: Vec<u64> = points.iter().map(|point| point[0].as_u64().expect("a count")).collect();
    assert!(
        connections.is_sorted() && connections[0] == 0 && connections.last() == Some(&1_200),
        "{points:?}"
    );
    let each = s.number("cost.target_live_bytes");
    assert!((20_000.0..40_000.0).contains(&each), "{each}: {points:?}");
    assert!(s.number("cost.target_live_fit.r2") > 0.99, "{}", s.at("cost.target_live_fit"));
}
