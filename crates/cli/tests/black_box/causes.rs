//! Servers crippled on purpose: what `run` sees of them in `/proc`, and says. What follows from what is seen, for each cause, is
//! judged on the stored runs of `corpus`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use rustix::process::Signal;

use crate::{
    program::{ASKS, Program, Serving, skip, until},
    summary::{Summary, run},
};

fn limit(s: &Summary) -> (&str, &str, &str) {
    (s.text("limit.side"), s.text("limit.cause"), s.text("limit.certainty"))
}

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
    let args = ["-c", "600", "--ramp", "5k/s", "--think", "1m", "-d", "3s", "--timeout", "2s"];
    let (ended, s) = run(&server.url("/"), &args);
    ended.assert_status(1);
    assert_eq!(limit(&s), ("target", "open-files", "seen"), "{:#}", s.0);
    assert!((250..=300).contains(&s.count("limit.at_connections")), "{}", s.at("limit"));
    let (sentence, fix) = (s.text("limit.sentence"), s.text("limit.cure"));
    assert_eq!(sentence, "the target ran out of open files: 300 of 300 used");
    assert!(s.text("limit.detail").contains("300 files open"), "{}", s.at("limit"));
    assert!(fix.contains(&format!("prlimit --pid {} ", server.program.pid())), "{fix}");
    // The last line of the text output is one sentence with all of it.
    let last = ended.stderr.trim_end().lines().last().unwrap_or_default();
    assert!(last.contains(sentence) && last.ends_with(fix), "{last}");
}

#[test]
fn connections_in_the_queue_of_a_stopped_process_are_not_held() {
    let server = Serving::start(&["--threads", "1"]);
    server.program.signal(Signal::STOP);
    let (ended, s) = run(&server.url("").replace("http", "tcp"), &["-c", "100", "-d", "1s"]);
    server.program.signal(Signal::CONT);
    let counts =
        ["connections.opened", "connections.held", "connections.unaccepted"].map(|path| s.count(path));
    assert_eq!(counts, [100, 0, 100], "{:#}", s.at("connections"));
    assert_eq!((ended.status, limit(&s)), (Some(1), ("target", "stall", "seen")), "{:#}", s.at("limit"));
    let (_, s) = run(&server.url("").replace("http", "tcp"), &["-c", "100", "-d", "1s"]);
    let counts =
        ["connections.opened", "connections.held", "connections.unaccepted"].map(|path| s.count(path));
    assert_eq!((counts, s.text("verdict")), ([100, 100, 0], "pass"), "{:#}", s.at("connections"));
    assert!(s.text("headline").contains("no requests sent"), "{}", s.text("headline"));
}

#[test]
fn our_own_ports() {
    // More connections than one source can have to one destination: reported before the run.
    let server = Serving::start(&["--threads", "1"]);
    let ended =
        Program::start(&["run", &server.url("/"), "-c", "70000", "--sources", "127.0.0.9", "-d", "1s", ASKS])
            .end();
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("port") && ended.stderr.contains("--sources"), "{}", ended.stderr);
    // The command is the same run, with more sources.
    assert!(ended.stderr.contains(" -d 1s  # --sources with "), "{}", ended.stderr);
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
