//! The audit: every figure of the summary, the report, the page and the metrics against outside counts, in one run of each load
//! model (`docs/reference/audit.md`).
//!
//! What counts outside is written in Python and shares nothing with throng: a server that keeps its own books (`server.py`), a
//! capture of every packet (`capture.py`, `wire.py`), and the kernel's counters (`kernel.py`). `rules_*.py` are the tables that say
//! what each figure is held against; a figure that is in none of them fails the test. Each model has a network namespace of its
//! own, which takes root; without it the tests are skipped, and say so.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

/// One at a time: a machine that is busy with another model's run makes throng late in this one's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn unshared(words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--"]).args(words);
    command
}

/// Whether this user may make namespaces; that it may not is said past the test harness, which shows only what failed.
fn may() -> bool {
    let tried = unshared(&["true"]).output();
    let may = tried.as_ref().is_ok_and(|tried| tried.status.success());
    if !may {
        let _ = writeln!(std::io::stderr(), "skipped, a namespace and a capture need root: {tried:?}");
    }
    may
}

/// The binary under test: `THRONG_BIN`, or the one that cargo built for this.
fn binary() -> PathBuf {
    let given = std::env::var_os("THRONG_BIN").filter(|path| !path.is_empty());
    given.map_or_else(|| env!("CARGO_BIN_EXE_throng").into(), PathBuf::from)
}

/// A wrong formula is wrong in each run. One event beyond a bound of some milliseconds is a busy machine's doing, and shows in
/// other figures in the next.
const RUNS: usize = 5;

/// Runs a load model, and asks that every figure is right, in one of the runs at least.
fn audit(model: &str) {
    audit_over("auto", model);
}

/// The same with this `--io`.
fn audit_over(io: &str, model: &str) {
    if !may() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut always, mut outputs) = (None::<BTreeSet<String>>, Vec::new());
    for _ in 0..RUNS {
        let output = match run(io, model) {
            Audited::Right => return,
            // Nothing is known of figures that were wrong before.
            Audited::Skipped if always.is_some() => continue,
            Audited::Skipped => return,
            Audited::Wrong(output) => output,
        };
        let wrong = wrong_figures(&output);
        assert!(!wrong.is_empty(), "the audit itself failed: {output}");
        assert!(!output.contains("no outside count, and not said"), "not in the tables: {output}");
        let still = always.map_or(wrong.clone(), |always| always.intersection(&wrong).cloned().collect());
        if still.is_empty() {
            return;
        }
        always = Some(still);
        outputs.push(output);
    }
    panic!("wrong in each of {} runs: {always:#?}\n{}", outputs.len(), outputs.join("\n"));
}

/// The figures that a run's output lists as wrong, without digits: a metric comes with the number of its line, which differs from
/// run to run. Percentiles of one distribution are one figure then.
fn wrong_figures(output: &str) -> BTreeSet<String> {
    let figures = output.lines().filter_map(|line| line.strip_prefix("wrong: ")?.split_once(" = "));
    figures.map(|(figure, _)| figure.replace(|c: char| c.is_ascii_digit(), "")).collect()
}

/// The outcome of a run.
enum Audited {
    Right,
    /// Throng, or the audit itself, had no processor for too long.
    Skipped,
    /// With its output.
    Wrong(String),
}

/// One run. The table of all figures is `audit.txt` of the model's folder.
fn run(io: &str, model: &str) -> Audited {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit").join(format!("{model}-{io}"));
    let _ = fs::remove_dir_all(&folder);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/audit/audit.py");
    let words = [Path::new(model), &binary(), &folder].map(|word| word.to_str().unwrap().to_owned());
    let mut command =
        unshared(&["python3", script.to_str().unwrap(), words[0].as_str(), &words[1], &words[2], io]);
    // No compiled modules beside the sources.
    let ended = command.env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    if !ended.status.success() {
        return Audited::Wrong(format!("{}\n{out}{err}", folder.join("audit.txt").display()));
    }
    if out.starts_with("skipped") {
        let _ = write!(std::io::stderr(), "{out}");
        return Audited::Skipped;
    }
    Audited::Right
}

#[test]
fn closed_loop() {
    audit("closed");
}

#[test]
fn think_time_and_several_destinations() {
    audit("think");
}

#[test]
fn open_loop_rate() {
    audit("rate");
}

#[test]
fn arrivals() {
    audit("arrivals");
}

#[test]
fn messages_over_websocket() {
    audit("messages");
}

#[test]
fn control_pings() {
    audit("pings");
}

#[test]
fn messages_over_tcp() {
    audit("echo");
}

#[test]
fn connections_held_idle() {
    audit("idle");
}

#[test]
fn two_populations_with_steps_and_a_probe() {
    audit("populations");
}

/// Connections of throng's own TCP are counted as those of the kernel are.
#[test]
fn closed_loop_over_a_device() {
    audit_over("tun", "closed");
}

#[test]
fn several_destinations_over_a_device() {
    audit_over("tun", "think");
}

#[test]
fn messages_over_a_device() {
    audit_over("tun", "messages");
}

#[test]
fn only_figures_that_are_wrong_can_be_right_in_the_next_run() {
    let output = "rate: 2 figures compared, 1 wrong\nwrong: metrics 12: latency_p99 = 3: no outside count\nwrong: tick: sent = 1, outside 2";
    assert_eq!(
        wrong_figures(output),
        BTreeSet::from(["metrics : latency_p".to_owned(), "tick: sent".to_owned()])
    );
    assert!(wrong_figures("Traceback\n    rows = table.rows\nValueError: x = 1").is_empty());
}
