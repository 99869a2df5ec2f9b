//! `throng run X.toml`: the file and all that it names are read, mistakes are reported, and it is run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    program::{Program, Serving, Signal, until},
    scripted::Scripted,
    summary::{Summary, run},
    usage::check,
};

/// A file of one test, removed with it.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("throng-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn mistakes_of_a_file_have_line_column_and_fix() {
    let text = "target = \"http://127.0.0.1:9/\"\nthnik = \"1s\"\n[[population]]\nname = \"users\"\nthink = \"5x\"\n";
    let file = File::new("wrong.toml", text);
    let path = file.path();
    let ended = Program::start(&["run", path]).end();
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert_eq!(
        ended.stderr,
        format!(
            "throng: {path}:2:1: \"thnik\" is not a key of the top level; use think\n\
             throng: {path}:5:9: population.users.think: \"5x\" is not a time; use 5s, 1500ms or 1m30s\n"
        )
    );
    assert_eq!(ended.stdout, "");
}

/// Three populations of a server, and a probe, in two stages.
fn three(server: &Serving) -> String {
    let (url, address) = (server.url("/"), server.address);
    format!(
        r#"
target = "{url}"
probe = "20/s"
thresholds = ["idle.held == 30", "users.look.latency.p50 < 5s", "guests.finished == 20", "wanted == 54"]

[[stage]]
name = "idle ones"
of = ["idle"]

[[stage]]
of = ["users", "guests"]
for = "2s"

[[population]]
name = "idle"
target = "ws://{address}/ws/echo"
connections = 30
ping = "200ms"

[[population]]
name = "users"
connections = 4
think = "20ms"
loop = "look"

[[population.step]]
name = "login"
request = "GET /?user={{csv users.id}}&length=5"
expect = {{ status = 200, length = 5 }}

[[population.step]]
name = "look"
request = "GET /?length={{rand 1 100}}"
headers = {{ Accept = "text/plain" }}
expect = {{ headers = {{ Content-Type = "text/plain" }}, length = "$1" }}

[[population]]
name = "guests"
arrive = "50/s"
total = 20
calls = 2
think = "50ms"

[csv.users]
file = "{}"
"#,
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/users.csv")
    )
}

/// A server that has this many connections at once, and leaves the others in its accept queue.
fn accepting(most: &str) -> Serving {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/black_box/accepts.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(most);
    Serving::from(command, &[])
}

/// Each that is served has one response; the server has four at once, and leaves the others in its accept queue to the end.
#[test]
fn what_each_population_has_held_is_its_own() {
    let server = accepting("4");
    let text = format!(
        "target = \"{}\"\nduration = \"2s\"\ntimeout = \"4s\"\nthink = \"1m\"\n\
         [[population]]\nname = \"readers\"\nconnections = 3\n\
         [[population]]\nname = \"writers\"\nconnections = 4\n",
        server.url("/")
    );
    let file = File::new("queue.toml", &text);
    let (_, s) = run(file.path(), &[]);
    let all = ["connections.held", "connections.unaccepted"].map(|path| s.count(path));
    assert_eq!(all, [4, 3], "{:#}", s.at("connections"));
    for name in ["readers", "writers"] {
        let own = ["connections.held", "requests.answered"]
            .map(|path| s.count(&format!("populations.{name}.{path}")));
        assert_eq!(own[0], own[1], "{name}: {:#}", s.at("populations"));
    }
}

/// A figure of a population has the same value in all parts of the summary; the populations add up to the total.
fn check_sums(s: &Summary) {
    for path in [
        "connections.opened",
        "connections.held",
        "connections.finished",
        "requests.sent",
        "requests.answered",
    ] {
        let parts = ["idle", "users", "guests"].map(|name| s.count(&format!("populations.{name}.{path}")));
        assert_eq!(parts.iter().sum::<u64>(), s.count(path), "{path}: {parts:?}");
    }
    for name in ["idle", "users", "guests"] {
        let (per_s, time) =
            (format!("populations.{name}.requests.per_s"), format!("populations.{name}.duration_s"));
        let answered = s.number(&per_s) * s.number(&time);
        let due = s.count(&format!("populations.{name}.latency_us.count")) as f64;
        assert!(due > 0.0 && (answered - due).abs() < 35.0, "{name}: {answered} answers, {due} latencies");
    }
}

#[test]
fn populations_run_beside_each_other_and_are_distinguished() {
    let server = Serving::start(&["--threads", "1"]);
    let file = File::new("three.toml", &three(&server));
    let (ended, s) = run(file.path(), &["--seed", "42", "--threads", "2", "--live", "line"]);
    ended.assert_status(0);
    assert_eq!((s.text("target"), s.count("seed"), s.faults()), (file.path(), 42, vec![]));
    assert!(ended.stderr.contains(" open ") && ended.stderr.contains("seed 42"), "{}", ended.stderr);
    let of = |name: &str| {
        ["wanted", "opened", "held", "finished"]
            .map(|what| s.count(&format!("populations.{name}.connections.{what}")))
    };
    assert_eq!((of("idle"), of("users"), of("guests")), ([30, 30, 30, 0], [4, 4, 4, 0], [20, 20, 0, 20]));
    check_sums(&s);
    assert_eq!(s.count("populations.guests.requests.sent"), 40);
    // An upgrade is not counted among the statuses of requests; the probe has its own.
    let of_http = s.count("populations.users.requests.answered") + 40;
    assert_eq!(s.count("requests.status.200"), of_http);
    let steps = s.at("populations.users.steps").as_object().expect("by name");
    assert_eq!(steps.keys().collect::<Vec<_>>(), ["login", "look"]);
    let of_login = |times: &str| s.count(&format!("populations.users.steps.login.{times}.count"));
    assert_eq!((of_login("latency_us"), of_login("ramp_latency_us")), (0, 4), "logins were before full load");
    assert!(ended.stderr.contains("\n    login (ramp)"), "{}", ended.stderr);
    assert_eq!(
        s.count("populations.users.steps.look.latency_us.count"),
        s.count("populations.users.latency_us.count")
    );
    // Full load of the users lasts as long as the stage, that of the idle ones begins before it, that of the guests lasts until
    // they have left: twenty in 380 ms, and 50 ms between their two requests.
    let time = |name: &str| s.number(&format!("populations.{name}.duration_s"));
    assert!(time("idle") >= time("users") && time("users") >= 1.9 && time("guests") >= 0.4);
    assert!(time("guests") < s.number("elapsed_s"), "{:#}", s.0);
    let idle = s.number("populations.idle.requests.per_s");
    assert!((40.0..=165.0).contains(&idle), "30 pings each 200 ms: {idle}");
    assert!(s.count("probe.sent") >= 30 && s.count("probe.failed") == 0, "{}", s.at("probe"));
    assert_eq!(s.at("thresholds").as_array().map(Vec::len), Some(4));
}

#[test]
fn thresholds_of_the_file_and_of_the_flags_are_judged_together() {
    let server = Serving::start(&["--threads", "1"]);
    let file = File::new("judged.toml", &three(&server));
    let flags = [
        "--threshold",
        "users.look.latency.count > 20",
        "--threshold",
        "users.held > 1000000",
        "--threshold",
        "users.login.latency.p99 < 1s",
        "--threshold",
        "idle.faults == 0",
    ];
    let (ended, s) = run(file.path(), &flags);
    ended.assert_status(1);
    let judged: Vec<(&str, Option<bool>)> = s
        .at("thresholds")
        .as_array()
        .expect("a list")
        .iter()
        .map(|threshold| (threshold["expr"].as_str().expect("text"), threshold["pass"].as_bool()))
        .collect();
    assert_eq!(
        judged,
        [
            ("idle.held == 30", Some(true)),
            ("users.look.latency.p50 < 5s", Some(true)),
            ("guests.finished == 20", Some(true)),
            ("wanted == 54", Some(true)),
            ("users.look.latency.count > 20", Some(true)),
            ("users.held > 1000000", Some(false)),
            // At full load there was no login.
            ("users.login.latency.p99 < 1s", Some(false)),
            ("idle.faults == 0", Some(true)),
        ]
    );
    assert!(
        ended.stderr.contains("2 of 8 thresholds failed, the first users.held > 1000000: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_step_that_goes_wrong_is_a_fault_of_its_population() {
    let server = Serving::start(&["--threads", "1"]);
    let text = three(&server).replace("length = 5 }", "length = 6 }").replace("thresholds", "#");
    let file = File::new("faulty.toml", &text);
    let (ended, s) = run(file.path(), &[]);
    ended.assert_status(1);
    assert_eq!(s.faults(), [("target·exchange·wrong-length".to_owned(), 4)]);
    let of = |name: &str| s.at(&format!("populations.{name}.faults")).as_array().map(Vec::len);
    assert_eq!((of("users"), of("idle"), of("guests")), (Some(1), Some(0), Some(0)));
}

#[test]
fn flags_change_the_load_of_a_file() {
    let server = Serving::start(&["--threads", "1"]);
    let text = format!(
        "target = \"{}\"\nthink = \"20ms\"\n[[population]]\nname = \"users\"\nconnections = \"30k\"\n[[population]]\nname = \"few\"\nconnections = \"10k\"\n",
        server.url("/")
    );
    let file = File::new("changed.toml", &text);
    let (ended, s) = run(file.path(), &["-c", "40", "-d", "300ms", "--threads", "1"]);
    ended.assert_status(0);
    let held = |name: &str| s.count(&format!("populations.{name}.connections.held"));
    assert_eq!((s.count("connections.held"), held("users"), held("few")), (40, 30, 10));
    assert!(s.number("duration_s") < 5.0, "10 s by default: {}", s.number("duration_s"));
}

#[test]
fn mistakes_of_the_file_and_of_the_flags_are_reported_at_once() {
    let text = "target = \"http://127.0.0.1:9/\"\nthink = \"5x\"\nthresholds = [\"held =< 5\"]\n";
    let file = File::new("both.toml", text);
    let path = file.path();
    let flags = ["--calls", "5", "--think", "1s", "--seed", "x", "--threshold", "hold > 1", "--probe", "5/s"];
    let ended = Program::start(&[&["run", path], &flags[..]].concat()).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    // Those that begin with blanks list the figures.
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| !line.starts_with("  ")).collect();
    let begins = [
        format!("throng: {path}:2:9: think: \"5x\" is not a time"),
        format!("throng: {path}:3:15: thresholds: "),
        "throng: --calls: cannot be used with a scenario file; set calls in the file: \"5\"".to_owned(),
        "throng: --probe: cannot be used with a scenario file; set probe in the file: \"5/s\"".to_owned(),
        "throng: --think: cannot be used with a scenario file; set think in the file: \"1s\"".to_owned(),
        "throng: --seed: \"x\" is not ".to_owned(),
        "throng: --threshold: \"hold\" is not a figure of the summary".to_owned(),
    ];
    assert_eq!(lines.len(), begins.len(), "{lines:#?}");
    assert!(lines.iter().zip(&begins).all(|(line, begin)| line.starts_with(begin.as_str())), "{lines:#?}");
}

#[test]
fn a_threshold_of_a_population_with_a_mistake_is_not_one_more() {
    let users = "[[population]]\nname = \"users\"\ntarget = \"http://127.0.0.1:99999/\"\n";
    let file = File::new("users.toml", users);
    let ended = Program::start(&["run", file.path(), "--threshold", "users.held > 1"]).end();
    assert_eq!((ended.status, ended.stderr.lines().count()), (Some(2), 1), "{ended:?}");
    let file = File::new("right.toml", &users.replace("99999", "9"));
    check(
        &["run", file.path(), "--threshold", "user.held > 1"],
        2,
        &["--threshold: \"user.held\" is not a figure"],
    );
}

#[test]
fn arrivals_without_a_total_want_as_many_as_come() {
    let server = Serving::start(&["--threads", "1"]);
    let text = format!(
        "target = \"{}\"\narrive = \"50/s\"\n[[stage]]\nto = \"40%\"\nfor = \"1s\"\n[[stage]]\nto = \"100%\"\nfor = \"500ms\"\n",
        server.url("/")
    );
    let file = File::new("arrivals.toml", &text);
    let (ended, s) = run(file.path(), &[]);
    ended.assert_status(0);
    let opened = s.count("connections.opened");
    // Twenty a second and then fifty, and the notice of the change.
    let (per_s, time) = (s.number("requests.per_s"), s.number("duration_s"));
    assert!(opened >= 30 && opened as f64 <= 52.0 + 50.0 * (time - 1.5).max(0.0), "{opened} in {time} s");
    assert_eq!((s.count("connections.wanted"), s.count("connections.finished")), (opened, opened));
    assert_eq!((s.count("requests.answered"), s.faults()), (opened, vec![]));
    // The last response or two may come after the end of the load.
    let late = opened as f64 - per_s * time;
    assert!((-0.01..2.01).contains(&late), "{opened}, {per_s}/s in {time} s");
    assert!((1.4..ended.took_s).contains(&time), "{time} s");
    // A share is of the rate, and not of the total.
    let counted = text.replace("50/s\"", "50/s\"\ntotal = 30").replace("100%", "20%");
    let file = File::new("counted.toml", &counted.replace("500ms", "1m"));
    let (ended, s) = run(file.path(), &[]);
    ended.assert_status(0);
    assert_eq!((s.count("connections.wanted"), s.count("connections.finished")), (30, 30));
}

#[test]
fn a_signal_amid_a_later_stage_ends_it_with_a_summary() {
    let server = Serving::start(&["--threads", "1"]);
    let text = format!(
        r#"
        target = "{}"
        think = "20ms"
        [[stage]]
        of = ["users"]
        for = "500ms"
        [[stage]]
        ramp = "5/s"
        [[population]]
        name = "users"
        connections = 4
        [[population]]
        name = "more"
        connections = 1000
        "#,
        server.url("/")
    );
    let (file, json) = (File::new("signal.toml", &text), crate::program::file("scenario-signal.json"));
    let mut run = Program::start(&["run", file.path(), "--live", "line", "--json", json.to_str().unwrap()]);
    // More than three come in the second stage, at five a second.
    until("some of the second stage", || {
        assert!(!run.is_ended(), "{}", run.stderr());
        ["open 8 ", "open 9 ", "open 1"].iter().any(|open| run.stderr().contains(open))
    });
    run.signal(Signal::INT);
    let ended = run.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    let s = Summary(serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap());
    assert_eq!((s.text("verdict"), s.faults()), ("interrupted", vec![]));
    let users = |path: &str| s.number(&format!("populations.users.{path}"));
    let more = |path: &str| s.number(&format!("populations.more.{path}"));
    assert_eq!(
        (users("connections.held"), users("connections.wanted"), more("connections.wanted")),
        (4.0, 4.0, 1_000.0)
    );
    let opened = more("connections.opened");
    assert!((4.0..1_000.0).contains(&opened) && more("connections.held") == opened, "{opened}");
    // The users were at full load all the time, and the others never.
    assert!(users("duration_s") > 0.9 && users("ramp_s") < users("duration_s"), "{}", users("duration_s"));
    assert_eq!((more("duration_s"), more("requests.per_s"), more("latency_us.count")), (0.0, 0.0, 0.0));
    let (rate, ramp_s) = (more("connections.open_per_s"), more("ramp_s"));
    assert!((rate * ramp_s - opened).abs() < 0.01 && ramp_s < s.number("elapsed_s") - 0.4, "{ramp_s} s");
    assert!((1.0..=9.0).contains(&rate), "{rate} a second");
}

#[test]
fn a_file_that_is_not_there_or_no_text() {
    check(
        &["run", "no-such-file.toml"],
        2,
        &["target: ", "\"no-such-file.toml\" cannot be read: No such file"],
    );
    let values = "target = \"http://127.0.0.1:9/\"\n[csv.a]\nfile = \"no-such-file.csv\"\n";
    let file = File::new("values.toml", values);
    check(&["run", file.path()], 2, &[":3:8: csv.a.file: \"no-such-file.csv\" cannot be read: No such file"]);
}

/// A receiver delays its acknowledgement of the first write by 40 ms: the second write does not wait for it.
#[test]
fn two_small_writes_do_not_wait_for_each_other() {
    let server = Scripted::start(|peer| while peer.line("b\n") && peer.send("ok\n") {});
    for io in ["uring", "epoll"] {
        let text = format!(
            r#"
target = "tcp://{}"
[[population]]
name = "two"
connections = 2
requests = 200
[[population.step]]
send = "a\n"
[[population.step]]
send = "b\n"
expect = {{ body = "ok" }}
"#,
            server.address
        );
        let file = File::new("two.toml", &text);
        let (ended, s) = run(file.path(), &["--io", io, "--threads", "1"]);
        ended.assert_status(0);
        assert_eq!(s.count("requests.answered"), 200, "over {io}: {ended:?}");
        // But for the first ones, which are acknowledged at once, it would be 40 ms or more.
        let p50 = s.number("latency_us.p50");
        assert!(p50 > 0.0 && p50 < 38_000.0, "{p50} us over {io}");
    }
}

/// The connection rate covers all that was opened during ramps, of any population: rates are not summed.
#[test]
fn the_rate_of_several_ramps_is_that_of_all_connections() {
    let check = |name: &str, of_all: &str, stages: &str| {
        let server = Serving::start(&[]);
        let population = |name: &str, connections: u32| {
            let target = format!("tcp://{}", server.address);
            format!("[[population]]\nname = \"{name}\"\ntarget = \"{target}\"\nconnections = {connections}\n")
        };
        let text = [of_all, &population("long", 400), &population("short", 100), stages].concat();
        let file = File::new(name, &text);
        let (ended, s) = run(file.path(), &[]);
        assert_eq!((ended.status, s.count("connections.held")), (Some(0), 500), "{ended:?}");
        let (all, ramp_s) = (s.number("connections.open_per_s"), s.number("ramp_s"));
        // 400/s was the target; a busy machine may be slower, and is never faster.
        assert!((100.0..=420.0).contains(&all), "{all} over {ramp_s} s");
        let of = |name: &str| s.number(&format!("populations.{name}.connections.open_per_s"));
        (all, of("long") + of("short"))
    };
    // Both in the same time, in parts of one rate: there the sum is the same.
    let (all, sum) = check("together.toml", "ramp = \"400/s\"\nduration = \"200ms\"\n", "");
    assert!((all / sum - 1.0).abs() < 0.05, "{all}, {sum}");
    // One after the other.
    let stage = |of: &str| format!("[[stage]]\nof = [\"{of}\"]\nramp = \"400/s\"\nfor = \"100ms\"\n");
    let (all, sum) = check("in-turn.toml", "", &(stage("long") + &stage("short")));
    assert!(sum > 1.6 * all, "{all}, {sum}");
}
