//! The summary's figures: each exists, has its type, and agrees with the others and with what the server counted.

use serde_json::Value;

use crate::{
    caller::{Caller, get},
    program::{Ended, Serving, until},
    scripted::{Scripted, ok},
    summary::{Summary, run},
};

const LATENCIES: [&str; 6] =
    ["latency_us", "ramp_latency_us", "connect_us", "handshake_us", "first_byte_us", "lag_us"];

/// Field by field of the schema: `#` a number, `n` a count, `t` a text, `[` a list, `{` an object, `0` null here.
const SCHEMA: &[(&str, char)] = &[
    ("schema", 't'),
    ("verdict", 't'),
    ("headline", 't'),
    ("asks", '['),
    ("reasons", '['),
    ("limit", '0'),
    ("target", 't'),
    ("seed", 'n'),
    ("io", 't'),
    ("threads", 'n'),
    ("ramp_s", '#'),
    ("duration_s", '#'),
    ("elapsed_s", '#'),
    ("asks", '['),
    ("connections", '{'),
    ("connections.wanted", 'n'),
    ("connections.opened", 'n'),
    ("connections.failed", 'n'),
    ("connections.peak", 'n'),
    ("connections.held", 'n'),
    ("connections.dropped", 'n'),
    ("connections.closed", 'n'),
    ("connections.redialled", 'n'),
    ("connections.finished", 'n'),
    ("connections.open_per_s", '#'),
    ("connections.seen_by_target", 'n'),
    ("faults", '['),
    ("destinations", '['),
    ("requests", '{'),
    ("requests.sent", 'n'),
    ("requests.answered", 'n'),
    ("requests.kept", 'n'),
    ("requests.missed", 'n'),
    ("requests.told", 'n'),
    ("requests.messages", 'n'),
    ("requests.per_s", '#'),
    ("requests.lower_bound", 'b'),
    ("requests.bytes_in", 'n'),
    ("requests.bytes_out", 'n'),
    ("requests.bytes_in_per_s", '#'),
    ("requests.bytes_out_per_s", '#'),
    ("requests.body_bytes_in", 'n'),
    ("requests.status", '{'),
    ("errors", '{'),
    ("errors.count", 'n'),
    ("errors.of", 'n'),
    ("latency_us", '{'),
    ("ramp_latency_us", '{'),
    ("connect_us", '{'),
    ("tls_us", '{'),
    ("tls_resumed_us", '{'),
    ("handshake_us", '{'),
    ("first_byte_us", '{'),
    ("gap_us", '{'),
    ("pushes", '{'),
    ("pushes.count", 'n'),
    ("pushes.per_s", '#'),
    ("pushes.bytes", 'n'),
    ("pushes.bytes_max", 'n'),
    ("pushes.unread", 'n'),
    ("pushes.ahead", 'n'),
    ("pushes.clock_offset_us", '0'),
    ("pushes.numbered", 'n'),
    ("pushes.lost", 'n'),
    ("pushes.duplicates", 'n'),
    ("pushes.out_of_order", 'n'),
    ("pushes.restarts", 'n'),
    ("pushes.broadcasts", 'n'),
    ("pushes.complete", 'n'),
    ("delay_us", '{'),
    ("spread_us", '{'),
    ("ping_rtt_us", '{'),
    ("lag_us", '{'),
    ("populations", '{'),
    ("populations.main.target", 't'),
    ("populations.main.threads", 'n'),
    ("populations.main.ramp_s", '#'),
    ("populations.main.duration_s", '#'),
    ("populations.main.elapsed_s", '#'),
    ("populations.main.connections.held", 'n'),
    ("populations.main.faults", '['),
    ("populations.main.requests.per_s", '#'),
    ("populations.main.latency_us.p99", '#'),
    ("populations.main.steps", '{'),
    ("probe", '0'),
    ("generator", '{'),
    ("generator.cpu_s", '#'),
    ("generator.system_s", '#'),
    ("generator.over_s", '#'),
    ("generator.rss_bytes", 'n'),
    ("generator.user_bytes_per_connection", '0'),
    ("generator.stall_us", '#'),
    ("target_cost", '{'),
    ("target_cost.pid", 'n'),
    ("target_cost.rss_bytes", 'n'),
    ("target_cost.user_bytes_per_connection", '0'),
    ("target_cost.cpu_s", '#'),
    ("target_cost.over_s", '#'),
    ("target_cost.processes", '['),
    ("kernel_bytes_per_connection", '0'),
    ("cost", '{'),
    ("cost.target_bytes", '0'),
    ("cost.generator_bytes", '0'),
    ("cost.kernel_bytes", '0'),
    ("cost.target_kernel_bytes", '0'),
    ("cost.ceiling_connections", '0'),
    ("cost.target_runtime", '0'),
    ("cost.target_live_bytes", '0'),
    ("cost.target_live_fit", '0'),
    ("cost.target_live_points", '['),
    ("cost.target_live_failure", '0'),
    ("cost.discarded", '['),
    ("observed", '{'),
    ("observed.target", '{'),
    ("observed.target.pid", 'n'),
    ("observed.target.process.cores_used.max", '#'),
    ("observed.target.open_files.max", 'n'),
    ("observed.target.open_files_limit", 'n'),
    ("observed.target.jvm_heap_used_bytes", '0'),
    ("observed.target.jvm_heap_max_bytes", '0'),
    ("observed.target.threads_gone", '['),
    ("observed.target.log", '['),
    ("observed.host", '{'),
    ("observed.host.tcp_ramp.listen_overflows", 'n'),
    ("observed.host.tcp_hold.syn_retrans", 'n'),
    ("observed.host.memory_available.min", 'n'),
    ("observed.target_host", '0'),
    ("observed.own", '{'),
    ("observed.own.run_queue_wait_ns.hold", 'n'),
    ("observed.own.cpu_user_ns.hold", 'n'),
    ("observed.observer", '0'),
    ("rig", '0'),
    ("thresholds", '['),
];

fn check_schema(ended: &Ended, s: &Summary) {
    let is = |value: &Value, kind: char| match kind {
        '#' => value.is_number(),
        'n' => value.is_u64(),
        'b' => value.is_boolean(),
        't' => value.as_str().is_some_and(|text| !text.is_empty()),
        '[' => value.is_array(),
        '{' => value.is_object(),
        _ => value.is_null(),
    };
    for (path, kind) in SCHEMA {
        assert!(is(s.at(path), *kind), "{path}: {kind} expected: {:#}", s.0);
    }
    for name in LATENCIES {
        match s.count(&format!("{name}.count")) {
            0 => assert_eq!(name, "handshake_us", "nothing was measured: {:#}", s.0),
            _ => check_order(s, name),
        }
    }
    let top = s.0.as_object().unwrap();
    let known = |key: &str| SCHEMA.iter().any(|(path, _)| *path == key);
    assert!(top.keys().all(|key| known(key)), "a field that the schema does not name: {:#}", s.0);
    // A command line has one population: it is the whole load.
    let main = s.at("populations.main").as_object().unwrap();
    let differs = ["connections", "steps", "elapsed_s"];
    for (key, own) in main.iter().filter(|(key, _)| !differs.contains(&key.as_str())) {
        let is_requests = key == "requests";
        let own = if is_requests { of_counts(own) } else { own.clone() };
        let expected = if is_requests { of_counts(s.at(key)) } else { s.at(key).clone() };
        assert_eq!(own, expected, "{key}");
    }
    // The run begins one notice before its first dial.
    let (all, main) = (s.number("elapsed_s"), s.number("populations.main.elapsed_s"));
    assert!(main <= all && all <= ended.took_s, "{main} s of {all} s, {} s by our clock", ended.took_s);
}

/// Whether throng was the limit is stated for the whole run only, and throughput is over the time of each.
fn of_counts(requests: &Value) -> Value {
    let mut requests = requests.clone();
    ["lower_bound", "bytes_in_per_s", "bytes_out_per_s"].iter().for_each(|key| requests[*key] = Value::Null);
    requests
}

/// Quantiles ascend, and the mean lies among them.
fn check_order(s: &Summary, name: &str) {
    let times = ["min", "p50", "p75", "p90", "p95", "p99", "p999", "p9999", "max"];
    let times = times.map(|q| s.number(&format!("{name}.{q}")));
    assert!(times.is_sorted(), "{name}: {times:?}");
    let (mean, stdev) = (s.number(&format!("{name}.mean")), s.number(&format!("{name}.stdev")));
    let (min, median, max) = (times[0], times[1], times[8]);
    assert!(min <= mean && mean <= max, "{name}: {mean}, {times:?}");
    assert!(stdev >= 0.0 && stdev <= max - min + 0.002 * max, "{name}: {stdev}, {times:?}");
    // Half of all are at or above the median (to the histogram's three digits).
    assert!(mean >= median * 0.499, "{name}: mean {mean}, median {median}");
}

/// Which figures agree in a run of `n` connections without faults in closed loop.
fn check_sums(s: &Summary, n: u64) {
    let count = |path: &str| s.count(path);
    for of in ["", "populations.main."] {
        for way in ["in", "out"] {
            let rate = s.number(&format!("{of}requests.bytes_{way}_per_s"));
            let expected =
                s.number(&format!("{of}requests.bytes_{way}")) / s.number(&format!("{of}elapsed_s"));
            assert!((rate / expected - 1.0).abs() < 1e-9, "{of} {way}: {rate}, {expected}");
        }
        assert_eq!(
            (count(&format!("{of}errors.count")), count(&format!("{of}errors.of"))),
            (0, count("requests.sent"))
        );
    }
    let answered = count("requests.answered");
    assert_eq!(count("requests.sent"), answered);
    assert!(answered > n && count("latency_us.count") > 0, "{answered} answers: {:#}", s.0);
    assert_eq!(s.at("requests.status"), &serde_json::json!({ "200": answered }));
    for path in ["wanted", "opened", "held", "peak"] {
        assert_eq!(count(&format!("connections.{path}")), n, "{path}");
    }
    for path in ["failed", "dropped", "closed", "redialled"] {
        assert_eq!(count(&format!("connections.{path}")), 0, "{path}");
    }
    assert_eq!(count("connect_us.count"), n);
    assert_eq!(count("latency_us.count") + count("ramp_latency_us.count"), answered);
    assert!(count("connections.seen_by_target") >= n, "both ends count the same: {:#}", s.0);
    // First requests follow the connect and have no lag; those of full load all have one.
    assert_eq!(count("lag_us.count"), count("latency_us.count") + s.stalled());
    // Each response has a first byte, not later than its last one.
    assert_eq!(count("first_byte_us.count"), count("latency_us.count"));
    assert!(s.number("first_byte_us.mean") <= s.number("latency_us.mean"), "{:#}", s.0);
    assert_eq!(count("handshake_us.count"), 0, "no WebSocket, no handshake");
    assert_eq!((count("requests.messages"), count("gap_us.count")), (0, 0), "no gRPC, and no WebSocket");
    assert_eq!((count("pushes.count"), count("delay_us.count"), count("spread_us.count")), (0, 0, 0));
    assert_eq!((count("tls_us.count"), count("tls_resumed_us.count")), (0, 0), "no TLS");
    let between = s.number("elapsed_s") - s.number("ramp_s") - s.number("duration_s");
    assert!(between >= 0.0, "between ramp and hold: {between} s");
    assert!(s.number("generator.system_s") <= s.number("generator.cpu_s"), "{:#}", s.0);
    for over in ["generator.over_s", "target_cost.over_s"] {
        let rest = s.number(over) - s.number("elapsed_s");
        assert!((0.0..5.0).contains(&rest), "{over}: {rest} s beyond the load");
    }
    let (ramp_s, opened_per_s) = (s.number("ramp_s"), s.number("connections.open_per_s"));
    assert!(ramp_s > 0.0 && (opened_per_s * ramp_s - n as f64).abs() < 1e-6, "{opened_per_s}/s, {ramp_s} s");
    // Responses at full load: those due in it, give or take those outstanding at its ends.
    let at_load = s.number("requests.per_s") * s.number("duration_s");
    assert!((at_load - at_load.round()).abs() < 1e-3, "a whole number of answers: {at_load}");
    assert!((at_load - count("latency_us.count") as f64).abs() <= 2.0 * n as f64, "{at_load}: {:#}", s.0);
    assert!(s.number("generator.cpu_s") > 0.0 && s.count("generator.rss_bytes") > 1 << 20);
}

#[test]
fn figures_agree_with_each_other_and_with_the_server() {
    let server = Serving::start(&["--threads", "1"]);
    let mut asking = Caller::dial(server.address);
    // A closed loop of some thousands a second: faster shows no more.
    const PATH: &str = "/delay?for=5ms&length=77";
    let head_len = asking.get(PATH).head.len() as u64;
    let stats_request = get("/stats").len() as u64;
    let mut stats = || serde_json::from_str::<Value>(asking.get("/stats").text()).unwrap();
    // The second query has counted the first one's response.
    let (_, before) = (stats(), stats());
    let target = server.url(PATH);
    let args = [
        "-c",
        "20",
        "-d",
        "1s",
        "--ramp",
        "1k/s",
        "--threads",
        "2",
        "--seed",
        "7",
        "--expect",
        "status=200,length=77",
    ];
    let (ended, s) = run(&target, &args);
    let after = stats();
    check_schema(&ended, &s);
    check_sums(&s, 20);
    let grown = |field: &str| after[field].as_u64().unwrap() - before[field].as_u64().unwrap();
    let answered = s.count("requests.answered");
    assert_eq!(answered, grown("requests") - 1, "what the server answered, but for the question");
    assert_eq!(s.count("requests.bytes_out"), grown("bytes_in") - stats_request);
    let stats_len = grown("bytes_out") - s.count("requests.bytes_in");
    assert!((100..400).contains(&stats_len), "an answer to the question: {stats_len} bytes");
    assert_eq!(s.count("requests.body_bytes_in"), answered * 77);
    assert_eq!(s.count("requests.bytes_in"), answered * (77 + head_len));
    assert_eq!(grown("accepted"), 20);
    until("the server has seen all of them close", || stats()["closed"] == 20);
    for (path, text) in
        [("schema", "throng.summary/1"), ("verdict", "pass"), ("io", "uring"), ("target", target.as_str())]
    {
        assert_eq!(s.text(path), text);
    }
    assert_eq!((s.count("seed"), s.count("threads")), (7, 2));
    assert_eq!(s.count("target_cost.pid"), u64::from(server.program.pid()));
    assert!(s.count("target_cost.rss_bytes") > 1 << 20 && s.number("target_cost.cpu_s") > 0.0);
    let only = &s.at("target_cost.processes").as_array().unwrap()[..];
    assert!(only.len() == 1 && only[0]["pid"] == *s.at("target_cost.pid"), "{only:?}");
    assert!((1 << 20..=s.count("target_cost.rss_bytes")).contains(&only[0]["rss_bytes"].as_u64().unwrap()));
    assert!((1.0..ended.took_s).contains(&s.number("duration_s")), "{}", s.number("duration_s"));
    assert_eq!((ended.status, s.at("reasons").as_array().unwrap().len()), (Some(0), 0), "{ended:?}");
}

#[test]
fn one_connection_has_figures_too() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) =
        run(&server.url("/delay?for=2ms"), &["-c", "1", "-d", "300ms", "--ramp", "1k/s", "--threads", "4"]);
    check_schema(&ended, &s);
    check_sums(&s, 1);
    assert_eq!(s.count("threads"), 1, "no thread without a connection");
    assert_eq!(s.number("connect_us.p50"), s.number("connect_us.max"));
    assert_eq!(s.number("connect_us.stdev"), 0.0);
}

#[test]
fn shards_add_up() {
    let server = Serving::start(&["--threads", "2"]);
    let (ended, s) =
        run(&server.url("/delay?for=2ms"), &["-c", "7", "-d", "400ms", "--ramp", "1k/s", "--threads", "3"]);
    check_schema(&ended, &s);
    check_sums(&s, 7);
    assert_eq!(s.count("threads"), 3);
}

#[test]
fn latency_is_the_servers() {
    let server = Serving::start(&["--threads", "1"]);
    let (ended, s) = run(&server.url("/delay?for=50ms"), &["-c", "8", "-d", "1s", "--ramp", "1k/s"]);
    check_sums(&s, 8);
    for name in ["latency_us", "ramp_latency_us"] {
        // A busy machine adds to most of them, and not to the fastest; of which it may subtract throng's own stalls.
        let (min, p50) = (s.number(&format!("{name}.min")), s.number(&format!("{name}.p50")));
        assert!(min < 90_000.0 && p50 >= 49_900.0, "{name}: {min}, {p50}");
    }
    assert!(s.number("connect_us.min") < 50_000.0, "no request in it: {}", s.number("connect_us.min"));
    // 8 connections, each with a response every 50 ms.
    let per_s = s.number("requests.per_s");
    assert!(per_s <= 168.0, "{per_s}/s: {}", ended.stderr);
    let closed_loop = 8.0 / (s.number("latency_us.mean") / 1e6);
    assert!((per_s / closed_loop - 1.0).abs() < 0.15, "{per_s}/s, by Little's law {closed_loop}/s");
}

#[test]
fn status_and_bodies_of_different_responses() {
    let server = Scripted::start(|peer| {
        for length in (0..10).cycle() {
            if peer.request().is_none() || !peer.send(&ok(&"x".repeat(length))) {
                return;
            }
        }
    });
    let (_, s) = run(&server.url("/"), &["-c", "1", "-n", "23", "--think", "5ms"]);
    let expected: u64 = (0..10).cycle().take(23).sum();
    assert_eq!((s.count("requests.answered"), s.count("requests.body_bytes_in")), (23, expected));
}
