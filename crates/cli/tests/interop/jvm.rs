//! `throng run` against a server on a Java virtual machine: its heap and its pauses are seen.

use std::fs;

use crate::{
    right,
    server::{Server, folder, program, source},
};

/// JDK's own `HttpServer`, from source (JEP 330), with a heap so small that it has to be collected.
fn hello() -> Server {
    let file = format!("{}/Hello.java", source("java"));
    Server::saying("listening on 127.0.0.1:", program("java", &["-Xmx64m", "-XX:+UseSerialGC", &file]))
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
    // Each answer leaves 64 KiB, and no more than 64 MiB fit.
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
