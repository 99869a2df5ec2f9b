//! Labs: a server is built, started, loaded and stopped, and the published figures are shown beside the current ones.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    program::{Ended, Program, Signal, file, until},
    stores::Data,
};

/// A folder of labs with one in it, whose server is `throng serve`.
struct Labs {
    data: Data,
    folder: PathBuf,
}

const LAB: &str = r#"
title = "Our own"

[[server]]
name = "ours"
build = ["echo built >> {work}/builds"]
start = "$THRONG serve --listen {address}:{port} $MORE"
version = "echo of today"
environment = { MORE = "--threads 1" }

[[server]]
name = "secured"
build = ["openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x -addext subjectAltName=IP:127.0.0.1 -keyout {work}/key.pem -out {work}/cert.pem"]
start = "$THRONG serve --listen {address}:{port} --tls-cert {work}/cert.pem --tls-key {work}/key.pem"
certificate = "{work}/cert.pem"

[[server]]
name = "elsewhere"
needs = [{ program = "no-such-program", package = "none" }]
start = "no-such-program"

[soak]
name = "soak"
title = "for long"
words = ["{url}/", "-c", "{scale 100}", "--think", "100ms", "-d", "{for 20m}"]

[[plot]]
experiments = ["hold"]
figure = "open"

[[experiment]]
name = "hold"
title = "a hundred connections"
words = ["{url}/", "-c", "{scale 100}", "--think", "100ms", "-d", "2s"]
then = { "connections.peak" = 100, "latency_us.p50" = 570 }
look = "how little it takes"

[[experiment]]
name = "limit"
title = "more than it lets in"
words = ["{url}/", "-c", "60", "--think", "100ms", "-d", "1s"]
limit = "connection-limit"
variants = { "twenty" = { MORE = "--max-open 20" }, "forty" = { MORE = "--max-open 40" } }

[[experiment]]
name = "shared"
title = "by three at the same time"
words = ["{url}/", "-c", "{scale 90}", "--think", "100ms", "-d", "{for 1h}"]
clients = 3

[[experiment]]
name = "agents"
title = "by three agents, each driven by requests"
agents = 3
words = ["ws={ws}/ws/echo", "count={scale 90}", "ping=500ms"]
hold = "{for 2s}"
then = { "connections.peak" = "{scale 90}" }

[[experiment]]
name = "tls"
title = "over TLS"
servers = ["secured"]
words = ["{url}/", "-c", "{scale 100}", "--think", "100ms", "-d", "1s"]

[[experiment]]
name = "tls-file"
title = "over TLS, from a file"
servers = ["secured"]
scenario = "echoes.toml"

[[experiment]]
name = "away"
title = "what is not here"
servers = ["elsewhere"]
words = ["{url}/", "-c", "1"]
"#;

const ECHOES: &str = r#"
target = "{ws}/ws/echo"
connections = "{scale 100}"
ping = "100ms"
duration = "1s"
"#;

impl Labs {
    fn new(name: &str) -> Labs {
        let folder = file(&format!("labs-{name}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("own")).unwrap();
        fs::write(folder.join("own/lab.toml"), LAB).unwrap();
        fs::write(folder.join("own/echoes.toml"), ECHOES).unwrap();
        Labs { data: Data::new(&format!("labs-{name}-data")), folder }
    }

    fn throng(&self, args: &[&str]) -> Command {
        let mut throng = self.data.throng(&[&["lab"], args].concat());
        throng.env("THRONG_LABS", &self.folder).env("XDG_CACHE_HOME", self.folder.join("cache"));
        throng
    }

    fn end(&self, args: &[&str]) -> Ended {
        Program::from(self.throng(args)).end()
    }

    /// The stored trials.
    fn kept(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(self.data.0.join("throng/labs.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Servers left running: no other test has this folder's name in its arguments.
    fn left(&self) -> usize {
        let mark = self.folder.join("cache").to_string_lossy().into_owned();
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter(|entry| {
            fs::read(entry.path().join("environ"))
                .is_ok_and(|environ| String::from_utf8_lossy(&environ).contains(&mark))
        })
        .count()
    }
}

#[test]
fn then_stands_beside_now() {
    let labs = Labs::new("then");
    let ended = labs.end(&["run", "own", "--variant", "hold", "--scale", "0.5"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let text = &ended.stdout;
    let row = |name: &str| {
        let line = text.lines().rfind(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("no {name}: {text}"))
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(text.contains("own · hold · ours (scale 0.5): a hundred connections"), "{text}");
    let connections = text.lines().find(|line| line.starts_with("  connections  ") && line.ends_with(" 50"));
    assert!(connections.is_some_and(|line| line.contains(" 100 ")), "{text}");
    assert!(row("look").join(" ") == "look at: how little it takes", "{text}");
    assert!(text.contains("570 µs") && text.contains("pass: all 50 connections held"), "{text}");
    assert_eq!(labs.data.runs()[0]["tags"][0], "lab.own.hold.ours");
    assert_eq!(labs.left(), 0);
    // Built once, as long as nothing changes.
    labs.end(&["run", "own", "--variant", "hold", "--scale", "0.1"]);
    let builds = labs.folder.join("cache/throng/labs/own/builds");
    assert_eq!(fs::read_to_string(&builds).unwrap(), "built\n");
}

#[test]
fn what_was_built_is_found_by_a_run() {
    let labs = Labs::new("build");
    let ended = labs.end(&["build", "own", "--variant", "ours"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("ours was built: "), "{ended:?}");
    let ended = labs.end(&["run", "own", "--variant", "hold", "--scale", "0.1"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let builds = labs.folder.join("cache/throng/labs/own/builds");
    assert_eq!(fs::read_to_string(&builds).unwrap(), "built\n");
    // It needs a program that no machine has.
    let ended = labs.end(&["build", "own", "--variant", "elsewhere"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("no-such-program: apt-get install none"), "{ended:?}");
}

#[test]
fn variants_and_limits_are_those_of_the_lab() {
    let labs = Labs::new("limits");
    let ended = labs.end(&["run", "own", "--variant", "limit"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for (name, at) in [("forty", 40), ("twenty", 20)] {
        let limited = format!("own · limit · ours, {name} (scale 1)");
        assert!(ended.stdout.contains(&limited), "{ended:?}");
        assert!(ended.stdout.contains(&format!("immediately closes connections beyond {at};")), "{ended:?}");
    }
    let one = labs.end(&["run", "own", "--variant", "limit", "--variant", "forty"]);
    assert!(!one.stdout.contains("twenty") && one.stdout.contains("forty"), "{one:?}");
    assert_eq!(labs.left(), 0);
}

#[test]
fn the_certificate_of_a_server_is_trusted() {
    let labs = Labs::new("tls");
    let list = labs.end(&["list"]).stdout;
    let is_listed = |line: &str| line.split_whitespace().eq(["server", "secured", "ready,", "TLS"]);
    assert!(list.lines().any(is_listed), "{list}");
    let ended = labs.end(&["run", "own", "--variant", "secured", "--scale", "0.2"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let file = labs.folder.join("cache/throng/labs/own/cert.pem");
    assert_eq!(labs.kept().len(), 2, "{ended:?}");
    for (trial, scheme) in labs.kept().iter().zip(["https", "wss"]) {
        let summary = &trial["summary"];
        assert_eq!(summary["connections"]["held"], 20, "{trial}");
        let handshakes = |kind: &str| summary[kind]["count"].as_u64().unwrap();
        assert_eq!(handshakes("tls_us") + handshakes("tls_resumed_us"), 20, "{trial}");
        let words: Vec<&str> =
            trial["words"].as_array().unwrap().iter().filter_map(|word| word.as_str()).collect();
        if scheme == "https" {
            assert!(words[1].starts_with("https://127.0.0.1:"), "{words:?}");
            assert!(words.ends_with(&["--cacert", file.to_str().unwrap()]), "{words:?}");
        } else {
            assert_eq!(words, ["run", "echoes.toml"]);
        }
    }
    let up = Program::from(labs.throng(&["up", "own", "--server", "secured"]));
    until("the server listens", || up.stdout().contains("secured listens at https://127.0.0.1:"));
    drop(up);
    until("nobody is left", || labs.left() == 0);
}

#[test]
fn several_clients_are_reported_as_one() {
    let labs = Labs::new("clients");
    let ended = labs.end(&["run", "own", "--variant", "shared", "--for", "3s"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let title = "own · shared · ours (scale 1, for 3s, 3 clients): by three at the same time";
    assert!(ended.stdout.contains(title), "{ended:?}");
    assert!(ended.stdout.contains("  3 clients, each: pass: all 30 connections held"), "{ended:?}");
    let kept = labs.kept();
    let summary = &kept[0]["summary"];
    assert_eq!(summary["connections"]["peak"], 90.0, "{summary}");
    // 30 requests a second on each of 90 connections, and each counted once among the latencies.
    let (runs, count) = (labs.data.runs(), summary["latency_us"]["count"].as_u64().unwrap());
    // Again where throng itself was the limit, on a busy machine.
    assert_eq!(runs.len(), 3 * (1 + ended.stderr.matches("repeating: ").count()));
    assert!((2_000..3_000).contains(&count), "{summary}");
    assert!(summary["requests"]["answered"].as_f64().unwrap() >= count as f64, "{summary}");
    assert_eq!(labs.left(), 0);
}

#[test]
fn agents_hold_the_load_and_their_counts_agree() {
    let labs = Labs::new("agents");
    let ended = labs.end(&["run", "own", "--variant", "agents", "--for", "2s"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("pass: 3 agents held 90 of 90 WebSockets, ping p50 "), "{ended:?}");
    let kept = labs.kept();
    let summary = &kept[0]["summary"];
    let c = &summary["connections"];
    let figures = ["wanted", "opened", "peak", "held", "failed", "dropped"].map(|figure| c[figure].as_u64());
    assert_eq!(figures, [90, 90, 90, 90, 0, 0].map(Some), "{summary}");
    let answered = summary["requests"]["answered"].as_u64().unwrap();
    assert!(answered >= 90 * 2, "{summary}");
    assert!(summary["latency_us"]["count"].as_u64() == Some(answered) && kept[0]["clients"] == 3, "{kept:?}");
    assert_eq!(summary["reasons"], serde_json::json!([]), "{summary}");
    assert_eq!(labs.left(), 0);
}

#[test]
fn a_soak_reports_its_progress() {
    let labs = Labs::new("soak");
    let ended = labs.end(&["soak", "own", "--for", "10s", "--scale", "0.2"]);
    // A busy machine makes throng late, and then a run is not as expected.
    let late = ended.status == Some(1) && ended.stdout.contains("invalid: ");
    assert!(ended.status == Some(0) || late, "{ended:?}");
    let stands: Vec<&str> =
        ended.stderr.lines().filter(|line| line.contains("  20 open  0 lost  ")).collect();
    assert!((8..=20).contains(&stands.len()), "{ended:?}");
    assert!(ended.stdout.contains("too short to test for drift"), "{ended:?}");
    let none = labs.end(&["soak", "own", "--for", "long"]);
    assert_eq!(none.status, Some(2), "{none:?}");
    assert!(none.stderr.contains("--for: "), "{none:?}");
    assert_eq!(labs.left(), 0);
}

#[test]
fn stored_runs_are_compared() {
    let labs = Labs::new("compare");
    let none = labs.end(&["compare"]);
    assert_eq!(none.status, Some(2), "{none:?}");
    assert!(none.stderr.contains("run `throng lab run`, or select a file"), "{none:?}");
    let ended = labs.end(&["run", "own", "--variant", "hold", "--scale", "0.5", "--times", "2"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    fs::write(labs.folder.join("own/findings.md"), "It held {{hold/ours connections.held}}.\n").unwrap();
    let page = labs.folder.join("page.md");
    let compared = labs.end(&["compare", "own", "--markdown", page.to_str().unwrap(), "--json", "-"]);
    assert_eq!(compared.status, Some(0), "{compared:?}");
    let json: serde_json::Value = serde_json::from_str(&compared.stdout).unwrap();
    let trial = &json["trials"][0];
    assert_eq!((&trial["times"], &trial["expected"]), (&2.into(), &true.into()), "{json}");
    assert_eq!(trial["medians"]["connections.peak"], 50.0, "{json}");
    assert!(
        compared.stderr.contains("own · hold · ours (scale 0.5): a hundred connections, 2 times"),
        "{compared:?}"
    );
    let text = fs::read_to_string(&page).unwrap();
    for expected in [
        "It held 50.",
        "`ours` is of today.",
        "| connections | 100 | 50 |",
        "(experiments/own-hold-open.svg)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        fs::read_to_string(labs.folder.join("experiments/own-hold-open.svg"))
            .unwrap()
            .contains("connections open")
    );
    let all = labs.data.0.join("throng/labs.jsonl");
    fs::write(&all, fs::read_to_string(&all).unwrap() + "{}\n").unwrap();
    let damaged = labs.end(&["compare"]);
    assert_eq!(damaged.status, Some(2), "{damaged:?}");
    assert!(damaged.stderr.contains("labs.jsonl: line 3: not throng.lab/1"), "{damaged:?}");
}

/// What is in the repository: generated figures.
#[test]
fn the_page_of_experiments_is_made_of_what_is_stored() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let labs = Labs::new("page");
    let (page, kept) = (labs.folder.join("experiments.md"), root.join("labs/results.jsonl"));
    let mut throng = labs.throng(&["compare"]);
    throng.args(["--results".as_ref(), kept.as_os_str(), "--markdown".as_ref(), page.as_os_str()]);
    throng.env("THRONG_LABS", root.join("labs"));
    let ended = Program::from(throng).end();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let cure = "`throng lab compare --results labs/results.jsonl --markdown docs/experiments.md` makes it";
    let is_as_made = |name: &Path| {
        let made = fs::read_to_string(labs.folder.join(name)).unwrap();
        let there = fs::read_to_string(root.join("docs").join(name)).unwrap_or_default();
        assert!(made == there, "{}: {cure}", name.display());
        made
    };
    let text = is_as_made(Path::new("experiments.md"));
    // Nothing that the findings mention was left out.
    let prose = |line: &&str| !line.starts_with('|');
    assert!(!text.lines().filter(prose).any(|line| line.contains('–')), "a figure that is not there: {text}");
    let names = |folder: &Path| -> BTreeSet<OsString> {
        fs::read_dir(folder).unwrap().flatten().map(|picture| picture.file_name()).collect()
    };
    let pictures = names(&labs.folder.join("experiments"));
    assert!(!pictures.is_empty());
    assert_eq!(names(&root.join("docs/experiments")), pictures, "{cure}");
    for picture in pictures {
        is_as_made(&Path::new("experiments").join(picture));
    }
}

/// 20 MB before it begins to serve, twice.
#[test]
fn logs_are_capped_kept_and_named() {
    let labs = Labs::new("logs");
    let toml = labs.folder.join("own/lab.toml");
    let loud = "yes loud | head -c 20000000; echo ready; exec \"$@\"\n";
    fs::write(labs.folder.join("own/loud"), loud).unwrap();
    fs::write(&toml, LAB.replace("\"$THRONG serve", "\"sh {folder}/loud $THRONG serve")).unwrap();
    let ended = labs.end(&["run", "own", "--variant", "hold", "--scale", "0.1", "--times", "2"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let after = |what: &str| -> Vec<PathBuf> {
        ended.stderr.lines().filter_map(|line| Some(PathBuf::from(line.split_once(what)?.1))).collect()
    };
    let (logs, built) = (after("ours logs to "), after("ours was built: "));
    // A run that a busy machine spoilt is repeated.
    let again = after("throng: repeating: ").len();
    assert_eq!((logs.len(), built.len()), (2 + again, 1), "{}", ended.stderr);
    assert!(built[0].is_file() && logs[0] != logs[1], "{}", ended.stderr);
    for folder in logs {
        let text = fs::read_to_string(folder.join("server-1.log")).unwrap();
        assert!((9 << 20..10 << 20).contains(&text.len()), "{} bytes", text.len());
        assert!(text.starts_with("loud\n") && text.contains(" bytes omitted …"), "{}", folder.display());
        assert!(text.contains("\nready\n"), "{}", folder.display());
    }
    assert_eq!(labs.left(), 0);
}

#[test]
fn a_server_is_ready_when_its_files_and_sources_are_there() {
    let labs = Labs::new("sources");
    let (toml, source) = (labs.folder.join("own/lab.toml"), labs.folder.join("sources"));
    let needs =
        format!("needs = [{{ file = \"{}\", package = \"kit-data\" }}]", source.join("kit.dat").display());
    let own =
        "sources = [{ folder = \"kit\", git = \"https://127.0.0.1:9/kit\", at = \"v1\", has = \"src\" }]";
    let text = LAB
        .replacen("build = [\"echo built", &format!("{needs}\n{own}\nbuild = [\"echo built"), 1)
        .replace("version = \"echo of today\"", "version = \"cat {source}/kit/src/version\"");
    fs::write(&toml, text).unwrap();
    let list = |named: Option<&Path>| {
        let mut throng = labs.throng(&["list"]);
        match named {
            Some(named) => throng.env("LAB_SOURCE", named),
            None => throng.env_remove("LAB_SOURCE"),
        };
        let ended = Program::from(throng).end();
        ended
            .stdout
            .lines()
            .skip_while(|line| !line.contains("server       ours"))
            .take(2)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(list(None).contains("cannot run here"), "{}", list(None));
    assert!(list(None).contains("kit.dat: apt-get install kit-data"), "{}", list(None));
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("kit.dat"), "").unwrap();
    assert!(list(None).contains("LAB_SOURCE is not set; "), "{}", list(None));
    assert!(
        list(Some(&source)).contains("sources/kit/src is missing; check out kit ("),
        "{}",
        list(Some(&source))
    );
    assert!(list(Some(Path::new("git"))).contains("cloned first"), "{}", list(Some(Path::new("git"))));
    fs::create_dir_all(source.join("kit/src")).unwrap();
    fs::write(source.join("kit/src/version"), "kit 1.2\n").unwrap();
    assert!(list(Some(&source)).contains(" ready"), "{}", list(Some(&source)));
    let run = || {
        let mut throng = labs.throng(&["run", "own", "--variant", "hold", "--scale", "0.1"]);
        throng.env("LAB_SOURCE", &source);
        let ended = Program::from(throng).end();
        assert_eq!(ended.status, Some(0), "{ended:?}");
        fs::read_to_string(labs.folder.join("cache/throng/labs/own/builds")).unwrap()
    };
    assert_eq!(run(), "built\n");
    assert_eq!(labs.kept()[0]["server_version"], "kit 1.2");
    // Another version of the source is built again.
    fs::write(source.join("kit/src/version"), "kit 1.3\n").unwrap();
    assert_eq!(run(), "built\nbuilt\n");
    assert_eq!(labs.kept()[1]["server_version"], "kit 1.3");
}

#[test]
fn an_impossible_lab_is_reported() {
    let labs = Labs::new("wrong");
    let check = |args: &[&str], status: i32, expected: &str| {
        let ended = labs.end(args);
        assert_eq!(ended.status, Some(status), "{args:?}: {ended:?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(expected), "{args:?}: {ended:?}");
    };
    check(&["list"], 0, "no-such-program: apt-get install none");
    check(&["run", "others"], 2, "no such lab; use own: others");
    check(
        &["run", "own", "--variant", "none"],
        2,
        "--variant: own has no experiment, server or variant none",
    );
    check(&["run", "own", "--variant", "away"], 3, "not run: no-such-program: apt-get install none");
    check(&["run", "own", "--scale", "nan"], 2, "greater than 0 and at most 100");
    check(&["run", "own", "--times", "0"], 2, "--times");
    check(&["run", "own", "--at", "https://127.0.0.1:1/x"], 2, "--at: use http://HOST:PORT, or https://, ");
    check(&["run", "own", "--results", "/proc/none"], 2, "--results /proc/none: ");
    check(&["up", "own", "--env", "x"], 2, "--env: x is not NAME=VALUE");
    check(&["up", "own", "--server", "elsewhere"], 3, "no-such-program: apt-get install none");
    let toml = labs.folder.join("own/lab.toml");
    fs::write(&toml, LAB.replace("$THRONG serve", "sh -c 'echo no; exit 7'")).unwrap();
    check(&["run", "own", "--variant", "hold"], 3, "the server ended: exit status 7\nthrong: no\n");
    fs::write(&toml, LAB.replace("echo built", "echo why; false #")).unwrap();
    check(&["run", "own", "--variant", "hold"], 3, "build failed: exit status 1: echo why; false # >> ");
    fs::write(&toml, LAB.replace("title = \"Our own\"", "titel = \"Our own\"")).unwrap();
    check(&["list"], 2, "own/lab.toml: line 2: ");
    assert_eq!(labs.left(), 0);
}

#[test]
fn a_server_goes_with_throng_however_that_ends() {
    for signal in [Signal::INT, Signal::KILL] {
        let labs = Labs::new(if signal == Signal::INT { "asked" } else { "killed" });
        let up = Program::from(labs.throng(&["up", "own"]));
        until("the server listens", || up.stdout().contains("ours listens at http://127.0.0.1:"));
        assert!(labs.left() >= 2, "throng and its server");
        up.signal(signal);
        let ended = up.end();
        assert_eq!(ended.status.is_some(), signal == Signal::INT, "{ended:?}");
        until("nobody is left", || labs.left() == 0);
    }
}
