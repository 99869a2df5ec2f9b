//! Servers crippled on purpose: `run` names the side, the cause, the number of connections, and a fix.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use crate::{
    io::Walls,
    program::{Ended, Program, Serving, skip, throng_under, until},
    summary::{Summary, run},
};

/// The expected `limit`.
struct Cause<'a> {
    side: &'a str,
    cause: &'a str,
    /// Connections at which it showed.
    at: std::ops::RangeInclusive<u64>,
    /// A part of the detail, and one of the fix.
    parts: [&'a str; 2],
}

impl Cause<'_> {
    fn check(&self, target: &str, args: &[&str]) -> Summary {
        let (ended, s) = run(target, args);
        assert!(!s.at("limit").is_null(), "nothing named: {:#}", s.0);
        let limit = (s.text("limit.side"), s.text("limit.cause"));
        assert_eq!(limit, (self.side, self.cause), "{:#}", s.0);
        assert!(self.at.contains(&s.count("limit.at_connections")), "{}", s.at("limit"));
        let texts = [s.text("limit.detail"), s.text("limit.cure")];
        assert!(texts.iter().zip(self.parts).all(|(text, part)| text.contains(part)), "{texts:?}");
        // The last line of the text output is one sentence with all of it.
        let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
        assert!(["seen", "inferred", "guess"].contains(&s.text("limit.certainty")), "{}", s.at("limit"));
        assert!(last.contains(s.text("limit.sentence")) && last.ends_with(texts[1]), "{last}");
        s
    }
}

/// Before what runs a server whose CPU is judged: what else this machine does takes little of it. Without root it has no effect.
pub(crate) const BEFORE_OTHERS: [&str; 3] = ["nice", "-n", "-10"];

/// A server in Python: `crippled.py LISTEN-BACKLOG SECONDS-BETWEEN-ACCEPTS SECONDS-OF-WORK-A-REQUEST BYTES-A-CONNECTION`.
pub(crate) fn python(around: &[&str], args: [&str; 4]) -> Serving {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/black_box/crippled.py");
    let mut command = Command::new(around.first().unwrap_or(&"python3"));
    command.args(around.get(1..).unwrap_or_default());
    if !around.is_empty() {
        command.arg("python3");
    }
    command.arg(script).args(args);
    Serving::from(command, &[])
}

#[test]
fn the_targets_open_files() {
    let server = python(&["prlimit", "--nofile=300"], ["512", "0", "0", "0"]);
    let cause = Cause {
        side: "target",
        cause: "open-files",
        at: 250..=300,
        parts: ["300 files open", "prlimit --pid "],
    };
    let s = cause.check(
        &server.url("/"),
        &["-c", "600", "--ramp", "5k/s", "--think", "1m", "-d", "3s", "--timeout", "2s"],
    );
    let cure = s.text("limit.cure");
    assert!(cure.contains(&format!("--pid {} ", server.program.pid())), "{cure}");
}

/// Accepts and serves five connections, and no more; 2.5 s later it uses up its files.
const TWO_FAULTS: &str = r#"
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0), backlog=8)
print(f"http://127.0.0.1:{server.getsockname()[1]}/", flush=True)
held = []
for _ in range(5):
    connection, _ = server.accept()
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    held.append(connection)
time.sleep(2.5)
try:
    while True:
        held.append(open("/dev/null"))
except OSError:
    sys.stdin.read()
"#;

#[test]
fn the_first_of_two_faults() {
    let mut command = Command::new("prlimit");
    command.args(["--nofile=100", "python3", "-c", TWO_FAULTS]);
    let server = Serving::from(command, &[]);
    let cause = Cause {
        side: "target",
        cause: "accept-queue",
        at: 1..=14,
        parts: ["accept queue of 8 was full", "max-connections"],
    };
    let s = cause.check(
        &server.url("/"),
        &["-c", "60", "--ramp", "1k/s", "--think", "1m", "-d", "4s", "--timeout", "1500ms"],
    );
    assert!((0.0..=2.0).contains(&s.number("limit.first_seen_s")), "{}", s.at("limit"));
    let (detail, files) = (s.text("limit.detail"), s.at("observed.target.open_files"));
    assert!(detail.contains("followed by: open files (second "), "{detail}: {files}");
}

/// Serves five connections, for as long as they send, and accepts no more.
const FIVE: &str = r#"
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 0), backlog=3)
print(f"http://127.0.0.1:{server.getsockname()[1]}/", flush=True)
def serve(connection):
    while connection.recv(4096):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
for _ in range(5):
    threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
sys.stdin.read()
"#;

/// Their requests time out as the load ends, and throng closes them: the target has never had them even so.
#[test]
fn connections_that_were_never_accepted_are_not_held() {
    let mut command = Command::new("python3");
    command.args(["-c", FIVE]);
    let server = Serving::from(command, &[]);
    let args = ["-c", "20", "-d", "2s", "--timeout", "2s", "--max-lag", "1s", "--threshold", "held >= 50%"];
    let (ended, s) = run(&server.url("/"), &args);
    ended.assert_status(1);
    assert_eq!(s.count("connections.held"), 5, "{}", ended.stderr);
    // Its kernel has four more in the accept queue, until throng closes them at the very end of the load.
    assert!((5..=9).contains(&s.count("connections.seen_by_target")), "{}", ended.stderr);
}

#[test]
fn the_open_files_of_throng_itself_over_epoll() {
    let server = Walls::of_one_table(256).serve(&["--io", "epoll", "--threads", "1"]);
    let cause =
        Cause { side: "target", cause: "open-files", at: 200..=256, parts: ["256 files open", "--nofile="] };
    cause.check(
        &server.url("/"),
        &["-c", "400", "--ramp", "5k/s", "--think", "1m", "-d", "3s", "--timeout", "2s"],
    );
}

#[test]
fn a_limit_on_connections() {
    let cause = Cause {
        side: "target",
        cause: "connection-limit",
        at: 500..=500,
        parts: ["beyond 500 open ones", "maxconn"],
    };
    // Over TLS new ones are closed in their handshakes.
    for (scheme, tls, more) in [
        ("http", &[][..], &["--think", "1m"][..]),
        ("tcp", &[], &[]),
        ("https", &["--tls"], &["--think", "1m", "-k"]),
    ] {
        let server = Serving::start(&[&["--threads", "2", "--max-open", "500"], tls].concat());
        let target = server.url("").replace("http:", &format!("{scheme}:"));
        cause.check(&target, &[&["-c", "900", "-d", "1s"], more].concat());
    }
}

#[test]
fn a_short_accept_queue() {
    let server = python(&[], ["8", "0.05", "0", "0"]);
    let cause = Cause {
        side: "target",
        cause: "accept-queue",
        at: 1..=200,
        parts: ["accept queue of 8", "listen backlog (gunicorn and uvicorn: --backlog "],
    };
    cause.check(
        &server.url("/"),
        &["-c", "200", "--ramp", "5k/s", "--think", "1m", "-d", "1s", "--timeout", "2s"],
    );
}

#[test]
fn slow_accepts() {
    let server = Serving::start(&["--threads", "1", "--slow-accept", "50/s"]);
    let cause = Cause {
        side: "target",
        cause: "slow-accept",
        at: 20..=250,
        parts: ["it accepts a steady ", "--ramp "],
    };
    let args = ["-c", "400", "--ramp", "5k/s", "--think", "1m", "-d", "4s", "--timeout", "3s"];
    let s = cause.check(&server.url("/"), &args);
    let detail = s.text("limit.detail");
    let rate = detail.split_whitespace().find_map(|word| word.strip_suffix("/s,")).expect("a rate");
    let rate: f64 = rate.parse().expect("a number");
    // It accepts no more than 50/s, and fewer on a busy machine: all are dialled at once, and those that it accepts within their timeout
    // have a response.
    let seen = s.number("requests.answered") / 3.0;
    assert!(rate <= 60.0 && (0.8 * seen..=1.2 * seen).contains(&rate), "{detail}: {seen}/s");
}

#[test]
fn an_idle_timeout() {
    let server = Serving::start(&["--idle-cut", "2s"]);
    let cause =
        Cause { side: "target", cause: "idle-cut", at: 50..=50, parts: ["closed after 2", "idle timeout"] };
    let s = cause.check(&server.url("/"), &["-c", "50", "--think", "25s..40s", "-d", "20s"]);
    assert!(s.text("limit.detail").ends_with(" s of inactivity"), "{}", s.text("limit.detail"));
}

#[test]
fn a_limit_on_the_age_of_connections() {
    let server = Serving::start(&["--reset-after", "2s"]);
    let cause = Cause {
        side: "target",
        cause: "reset-after",
        at: 50..=50,
        parts: ["after they were opened", "maximum connection age"],
    };
    // Opened over more than a second: those that are opened and lost together have no age that says anything.
    let args = ["-c", "50", "--ramp", "40/s", "--think", "50ms..150ms", "-d", "20s"];
    let s = cause.check(&server.url("/"), &args);
    let detail = s.text("limit.detail");
    let age = detail.split_whitespace().find_map(|word| word.parse::<f64>().ok().filter(|n| *n < 50.0));
    assert!(age.is_some_and(|s| (1.7..=2.4).contains(&s)), "{detail}");
}

/// A run against `target` during which this server ends, which is what stopped it.
fn run_while_it_ends(server: Serving, target: &str, duration: &str) -> Summary {
    let args = ["run", target, "-c", "20", "--think", "50ms..150ms", "-d", duration, "--json", "-"];
    let mut running = Program::start(&args);
    running.wait_for("open 20 of 20");
    drop(server);
    let ended = running.end();
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("target", "ended"), "{}", s.at("limit"));
    s
}

#[test]
fn a_target_that_ends() {
    let server = Serving::start(&["--threads", "1"]);
    let url = server.url("/");
    let s = run_while_it_ends(server, &url, "20s");
    assert_eq!(s.count("limit.at_connections"), 20);
}

#[test]
fn one_of_two_targets_that_ends() {
    let first = Serving::start(&["--threads", "1"]);
    let port = first.address.port();
    let listen = format!("127.0.0.2:{port}");
    let second = throng_under(&[], &["serve", "--listen", &listen, "--until-stdin-ends", "--threads", "1"]);
    let target = format!("http://127.0.0.{{1..2}}:{port}/");
    let s = run_while_it_ends(Serving::from(second, &[]), &target, "4s");
    let sentence = format!("the target at {listen} is gone: nothing listens there any more");
    assert_eq!(s.text("limit.sentence"), sentence);
    assert_eq!(s.text("limit.cure"), format!("at {listen}: check its log and exit status"));
    assert_eq!((s.count("connections.held"), s.count("connections.dropped")), (10, 10));
}

#[test]
fn our_own_ports() {
    // More connections than one source can have to one destination: reported before the run.
    let server = Serving::start(&["--threads", "1"]);
    let ended =
        Program::start(&["run", &server.url("/"), "-c", "70000", "--sources", "127.0.0.9", "-d", "1s"]).end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("port") && ended.stderr.contains("--sources"), "{}", ended.stderr);
    // The command is the same run, with more sources.
    assert!(ended.stderr.contains(" -d 1s  # --sources with "), "{}", ended.stderr);
}

#[test]
fn the_targets_cpu() {
    let server = python(&BEFORE_OTHERS, ["512", "0", "0.005", "0"]);
    let cause = Cause { side: "target", cause: "cpu", at: 20..=20, parts: ["busiest thread", "processors"] };
    let args = ["-c", "20", "-d", "3s", "--threshold", "latency.p50 < 5ms", "--max-lag", "1s"];
    let s = cause.check(&server.url("/"), &args);
    assert_eq!((s.text("verdict"), s.at("thresholds")[0]["pass"].as_bool()), ("fail", Some(false)));
}

/// Bounded, in case it is not stopped.
const SPIN: &str = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass";

/// Spins on the first processor until it is dropped.
struct Busy(#[allow(dead_code, reason = "held")] Vec<Program>);

impl Busy {
    fn on_the_first(n: usize) -> Busy {
        let spin = || {
            let mut command = Command::new("taskset");
            command.args(["-c", "0", "python3", "-c", SPIN]).stdin(Stdio::null());
            Program::from(command)
        };
        Busy((0..n).map(|_| spin()).collect())
    }
}

/// Gets a tenth of a processor: less than it takes to keep a server busy.
pub(crate) const A_TENTH: &str = "10";
/// A thirtieth: less than a hundred handshakes a second take, so that a search is over with its first step. What takes less of a processor
/// would show no more with it, and spin for three times as long.
pub(crate) const A_THIRTIETH: &str = "15";

/// The binary with this little of a processor, to its end. None with only one processor.
pub(crate) fn starved(priority: &str, verb: &str, target: &str, args: &[&str]) -> Option<Ended> {
    if fs::read_to_string("/proc/self/status").unwrap().contains("Cpus_allowed_list:\t0\n") {
        skip("it takes two processors");
        return None;
    }
    // Beside other tests it may get next to nothing, while this keeps a processor busy: it fails soon, and runs again.
    let _busy = Busy::on_the_first(1);
    let polite = ["nice", "-n", priority, "taskset", "-c", "0"];
    let command = throng_under(&polite, &[&[verb, target, "--json", "-"], args].concat());
    Some(Program::from(command).end_within(Duration::from_secs(90)))
}

#[test]
fn our_own_cpu() {
    let server = Serving::start(&[]);
    let load = ["-c", "50", "--threads", "1", "-d", "1s", "--threshold", "latency.p99 < 10s"];
    let Some(ended) = starved(A_TENTH, "run", &server.url("/"), &load) else { return };
    let s = Summary(serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {ended:?}")));
    assert_eq!((ended.status, s.text("verdict")), (Some(4), "invalid"), "{:#}", s.0);
    assert_eq!((s.text("limit.side"), s.text("limit.cause")), ("host", "cpu"), "{:#}", s.0);
    assert!(s.at("reasons")[0].as_str().unwrap().starts_with("throng was "), "{}", s.at("reasons"));
    assert_eq!(s.at("requests.lower_bound").as_bool(), Some(true));
    assert!(ended.stderr.contains("at least ") && ended.stderr.contains("lower bound"), "{}", ended.stderr);
}

/// A control group with this much memory, and no swap.
pub(crate) struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Group> {
        // Two tests of one process each have their own.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("throng-test-{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        for (mount, limit) in
            [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")]
        {
            let limit = Path::new(mount).join(&name).join(limit);
            let Some(folder) = limit.parent().filter(|folder| fs::create_dir(folder).is_ok()) else {
                continue;
            };
            let group = Group(folder.to_owned());
            // A folder of another kind of file system has no such file.
            if limit.exists() && fs::write(&limit, bytes.to_string()).is_ok() {
                return Some(group);
            }
        }
        skip("control groups for memory need root");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        until("its processes are gone", || fs::remove_dir(&self.0).is_ok());
    }
}

/// A server in a control group with 64 MiB, which takes this much for each connection. None, with a message, if there cannot
/// be one.
pub(crate) fn short_of_memory(bytes: &str) -> Option<(Group, Serving)> {
    let group = Group::new(64 << 20)?;
    let procs = group.0.join("cgroup.procs");
    let enter = format!("echo $$ > {} && exec \"$@\"", procs.display());
    let server = python(&["sh", "-c", &enter, "sh"], ["512", "0", "0", bytes]);
    Some((group, server))
}

#[test]
fn the_targets_memory() {
    let Some((_group, server)) = short_of_memory("1000000") else { return };
    // All of them wait for it where it comes to its memory late.
    let cause = Cause { side: "target", cause: "memory", at: 10..=200, parts: ["OOM killer", "MemoryMax"] };
    cause.check(&server.url("/"), &["-c", "200", "--ramp", "100/s", "--think", "1m", "-d", "1s"]);
}
