//! The workspace's tests: one build of everything, then its test executables side by side.

use crate::command::{command, messages, metadata, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Jobs that run one after another, each with the number of tests that it runs at once, per processor.
type Lane = &'static [(&'static str, usize)];

/// What mostly waits for sockets, timers and other processes. Lanes run side by side.
const LANES: &[Lane] = &[
    &[("cli/black_box", 2), ("cli/audit", 1)],
    &[("cli/interop", 1), ("net/peers", 1)],
    // A fleet's tests mostly wait.
    &[("labs", 1), ("cli/fleet", 2), ("web", 1)],
];
/// Jobs in [`LANES`] that are verbs of this program.
const VERBS: &[&str] = &["web", "labs"];
/// Tests that mostly compute and take longest: they start first, so that none of them runs alone at the end.
const LONG: &[&str] = &["run/simulation", "run/million", "run/ten_million", "run/allocations"];
/// No more timed tests than this are run again: more fail because of what was changed, not for want of a processor.
const AGAIN: usize = 12;
/// How often, at most: what is wrong fails each time, what came late on a machine that others use too does not.
const ATTEMPTS: usize = 3;

/// What a build made.
pub(crate) struct Built {
    /// The `throng` that black-box tests, browser tests and labs start; none in a quick build.
    throng: Option<PathBuf>,
    tests: Vec<Executable>,
}

/// A test executable.
#[derive(Debug, PartialEq)]
struct Executable {
    /// `crate` for a crate's unit tests, `crate/file` for its integration tests.
    name: String,
    path: PathBuf,
    /// The package's folder: the working directory of its tests.
    folder: PathBuf,
}

/// Compiles the workspace and its tests, with all features; then `throng` without them, as users build it: little of the workspace
/// depends on a feature.
///
/// # Errors
/// A compiler's or clippy's error, or a warning.
pub(crate) fn build() -> Result<Built> {
    let tests = tests(&["--lib", "--bins", "--tests"])?;
    // A test beside it, since without any cargo would leave out features that only tests want, and build what has them anew.
    let words = ["build", "--workspace", "--bin", "throng", "--test", "open_files"];
    let throng = compile(&words)?.iter().find_map(throng).context("cargo built no throng")?;
    Ok(Built { throng: Some(throng), tests })
}

/// Compiles what [`run_quick`] runs.
///
/// # Errors
/// As [`build`].
pub(crate) fn build_quick() -> Result<Built> {
    let metadata = metadata()?;
    let names = quick_tests(&metadata);
    let names = names.iter().flat_map(|name| ["--test", name]);
    let tests = tests(&["--lib", "--bins"].into_iter().chain(names).collect::<Vec<_>>())?;
    Ok(Built { throng: None, tests })
}

fn tests(which: &[&str]) -> Result<Vec<Executable>> {
    let words = [&["test", "--no-run", "--workspace", "--features", "cli/parquet"], which].concat();
    let tests: Vec<_> = compile(&words)?.iter().filter_map(executable).collect();
    if tests.is_empty() {
        bail!("no tests built: cargo {}", words.join(" "));
    }
    Ok(tests)
}

/// Clippy is the compiler, so that nothing is compiled once more for its sake.
fn compile(words: &[&str]) -> Result<Vec<Value>> {
    let mut cargo = command("cargo", words)?;
    cargo.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    messages(cargo)
}

/// Integration tests that are neither in a lane nor long.
fn quick_tests(metadata: &Value) -> Vec<&str> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let names = targets.filter(|target| is_integration(target)).filter_map(|target| target["name"].as_str());
    let slow =
        || LANES.iter().flat_map(|lane| lane.iter().map(|(name, _)| *name)).chain(LONG.iter().copied());
    names.filter(|name| slow().all(|slow| slow.rsplit('/').next() != Some(name))).collect()
}

fn is_integration(target: &Value) -> bool {
    target["kind"] == serde_json::json!(["test"])
}

/// The test executable that a message of cargo names.
fn executable(message: &Value) -> Option<Executable> {
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = folder.file_name()?.to_str()?;
    let name = match message["target"]["name"].as_str()? {
        target if is_integration(&message["target"]) => format!("{package}/{target}"),
        _ => package.to_owned(),
    };
    Some(Executable { name, path: message["executable"].as_str()?.into(), folder: folder.into() })
}

/// The path of `throng` itself, if a message of cargo names it.
fn throng(message: &Value) -> Option<PathBuf> {
    let is_throng = message["target"]["name"] == "throng" && message["profile"]["test"] == false;
    is_throng.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

/// A process that runs tests.
struct Job {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    folder: PathBuf,
    /// Tests that it runs at once.
    threads: usize,
    /// Waits for sockets and timers, and judges them: what fails may have failed for want of a processor.
    is_timed: bool,
}

/// What did not pass.
struct Failed {
    job: Job,
    /// Empty where the job does not name its tests.
    tests: Vec<String>,
}

/// Runs all tests, the browser's and the labs; prints a line for each job that has passed, and the output of one that has not.
/// A few timed tests that fail run again, alone; those that pass then are named.
///
/// # Errors
/// The names of jobs that failed.
pub(crate) fn run(built: Built) -> Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    let mut rest = built.tests;
    let mut lanes = Vec::new();
    for lane in LANES {
        let mut jobs = Vec::new();
        for (name, threads) in *lane {
            let job = match rest.iter().position(|test| test.name == *name) {
                Some(at) => rest.swap_remove(at).job(threads * processors),
                None if VERBS.contains(name) => verb(name)?,
                None => bail!("no such tests: {name}"),
            };
            jobs.push(job);
        }
        lanes.push(jobs);
    }
    lanes.push(computing(rest, processors));
    let throng = built.throng.as_deref();
    names(again(run_lanes(lanes, throng), throng))
}

/// Runs the tests that are over in a minute.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_quick(built: Built) -> Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    names(run_lanes(vec![computing(built.tests, processors)], None))
}

/// Tests that mostly compute, long ones first.
fn computing(mut tests: Vec<Executable>, threads: usize) -> Vec<Job> {
    tests.sort_by_key(|test| LONG.iter().position(|name| *name == test.name).unwrap_or(LONG.len()));
    tests.into_iter().map(|test| test.job(threads).nice()).collect()
}

/// Each lane's jobs one after another, the lanes side by side; what failed.
fn run_lanes(lanes: Vec<Vec<Job>>, throng: Option<&Path>) -> Vec<Failed> {
    let run = |job: Job| match finish(&job.name, job.command(&[], throng)) {
        Ok(()) => None,
        Err(error) => {
            println!("{error:#}");
            Some(Failed { tests: failed_tests(&format!("{error:#}")), job })
        }
    };
    std::thread::scope(|scope| {
        let start = |jobs: Vec<Job>| scope.spawn(|| jobs.into_iter().filter_map(run).collect::<Vec<_>>());
        let lanes: Vec<_> = lanes.into_iter().map(start).collect();
        lanes.into_iter().flat_map(|lane| lane.join().expect("no job panics")).collect()
    })
}

/// Runs timed tests that failed again, one at a time, until they pass or have failed [`ATTEMPTS`] times, unless they are so many
/// that it is not for want of a processor; what failed each time, and what was not run again.
fn again(failed: Vec<Failed>, throng: Option<&Path>) -> Vec<Failed> {
    let count: usize = failed.iter().map(|failed| failed.tests.len().max(1)).sum();
    let passes_alone = |Failed { job, tests }: &Failed| {
        if !job.is_timed || count > AGAIN {
            return false;
        }
        let mut left = tests.clone();
        for _ in 0..ATTEMPTS {
            match finish(&job.name, job.command(&left, throng)) {
                Ok(()) => {
                    let which = if tests.is_empty() { "all of it" } else { &tests.join(", ") };
                    println!("{}: failed beside others, passed alone: {which}", job.name);
                    return true;
                }
                Err(error) => {
                    left = failed_tests(&format!("{error:#}"));
                    println!("{error:#}");
                }
            }
        }
        false
    };
    failed.into_iter().filter(|failed| !passes_alone(failed)).collect()
}

fn names(failed: Vec<Failed>) -> Result<()> {
    match failed.iter().map(|failed| &*failed.job.name).collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ref names => bail!("failed: {}", names.join(", ")),
    }
}

/// The tests that failed, as the test harness names them; none if it did not list as many as it counted, or crashed before it
/// counted: the whole job has to run again then.
fn failed_tests(output: &str) -> Vec<String> {
    let tests = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    // The harness appends " - should panic" to the name.
    let tests = tests.filter_map(|test| test.split(' ').next().map(str::to_owned));
    let tests: Vec<_> = tests.collect();
    let counted = output.lines().find_map(|line| {
        let (_, failed) = line.strip_prefix("test result: FAILED. ")?.split_once("passed; ")?;
        failed.split(' ').next()?.parse().ok()
    });
    if counted == Some(tests.len()) { tests } else { vec![] }
}

impl Executable {
    fn job(self, threads: usize) -> Job {
        let Executable { name, path: program, folder } = self;
        Job { name, program, args: vec![], folder, threads, is_timed: true }
    }
}

/// A verb of this very program, even if the build has replaced it.
fn verb(name: &str) -> Result<Job> {
    let test =
        Executable { name: name.to_owned(), path: "/proc/self/exe".into(), folder: root()?.join("xtask") };
    Ok(Job { args: vec![name.to_owned()], ..test.job(1) })
}

impl Job {
    /// It computes, on the processor time that the timed jobs leave, so that these are not late.
    fn nice(self) -> Job {
        let program = self.program.into_os_string().into_string().expect("cargo prints UTF-8");
        let args = ["-n", "19", &program].map(str::to_owned).into();
        Job { program: "nice".into(), args, is_timed: false, ..self }
    }

    /// As cargo starts it: all of its tests, or `tests` one at a time.
    fn command(&self, tests: &[String], throng: Option<&Path>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.envs(throng.map(|throng| ("THRONG_BIN", throng)));
        let threads = if tests.is_empty() { self.threads } else { 1 };
        command.env("RUST_TEST_THREADS", threads.to_string());
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command
    }
}

/// Runs a job to its end and prints a line; what it printed on standard error too: which tests were skipped, and why.
///
/// # Errors
/// It fails: with all of its output.
fn finish(name: &str, mut command: Command) -> Result<()> {
    let begin = Instant::now();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("== {name}: {}\n{out}{err}", output.status);
    }
    println!("{}{err}", summary(name, &out, begin.elapsed()));
    Ok(())
}

/// One line: what the test harness counted.
fn summary(name: &str, out: &str, took: Duration) -> String {
    let counts = out.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    let counts: Vec<&str> = counts.map(|line| line.split("; finished").next().unwrap_or(line)).collect();
    format!("{name}: {} in {:.1} s\n", counts.join("; "), took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_executable_is_named_by_its_crate_and_file() {
        let message = |kind: &str, target: &str, test: bool| {
            json!({
                "reason": "compiler-artifact", "manifest_path": "/a/crates/cli/Cargo.toml",
                "target": { "kind": [kind], "name": target }, "profile": { "test": test }, "executable": "/t/x",
            })
        };
        let name = |message: &Value| executable(message).map(|executable| executable.name);
        assert_eq!(name(&message("test", "black_box", true)).as_deref(), Some("cli/black_box"));
        assert_eq!(name(&message("bin", "throng", true)).as_deref(), Some("cli"));
        assert_eq!(executable(&message("test", "x", true)).unwrap().folder, Path::new("/a/crates/cli"));
        // What tests start is built too, and is no test.
        assert_eq!(name(&message("bin", "throng", false)), None);
        assert_eq!(throng(&message("bin", "throng", false)).as_deref(), Some(Path::new("/t/x")));
        assert_eq!(throng(&message("bin", "throng", true)), None);
    }

    #[test]
    fn what_is_in_a_lane_or_long_is_not_quick() {
        let target = |kind: &str, name: &str| json!({ "kind": [kind], "name": name });
        let names = ["limits", "black_box", "simulation"].map(|name| target("test", name));
        let metadata = json!({ "packages": [{ "targets": [target("lib", "run")] }, { "targets": names }] });
        assert_eq!(quick_tests(&metadata), ["limits"]);
    }

    #[test]
    fn what_passed_is_a_line_and_what_failed_is_shown_whole() {
        let out = "running 2 tests\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; finished in 0.1s\n";
        let line = summary("wire", out, Duration::from_millis(1250));
        assert_eq!(line, "wire: 2 passed; 0 failed; 1 ignored in 1.2 s\n");
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo said; echo why >&2; exit 3"]);
        let error = finish("wire", failing).unwrap_err().to_string();
        assert_eq!(error, "== wire: exit status: 3\nsaid\nwhy\n");
    }

    fn shell(name: &str, script: &str, is_timed: bool) -> Job {
        let args = ["-c", script, "sh"].map(str::to_owned).into();
        Job { name: name.to_owned(), program: "sh".into(), args, folder: ".".into(), threads: 1, is_timed }
    }

    #[test]
    fn a_job_that_fails_stops_no_other() {
        let job = |name: &str, status: &str| shell(name, &format!("exit {status}"), false);
        let failed = run_lanes(vec![vec![job("a", "1"), job("b", "0")], vec![job("c", "2")]], None);
        assert_eq!(names(failed).unwrap_err().to_string(), "failed: a, c");
    }

    #[test]
    fn a_job_that_did_not_name_each_failed_test_runs_again_as_a_whole() {
        let result = |failed: &str| format!("test result: FAILED. 3 passed; {failed} failed; 0 ignored");
        let tests = |lines: &[&str], result: &str| failed_tests(&[&lines.join("\n"), result].join("\n"));
        let lines = ["test a ... ok", "test b ... FAILED", "test c::d - should panic ... FAILED"];
        assert_eq!(tests(&lines, &result("2")), ["b", "c::d"]);
        let none = Vec::<String>::new();
        assert_eq!(tests(&lines, &result("3")), none);
        assert_eq!(tests(&lines, "error: signal: 6, SIGABRT"), none);
    }

    #[test]
    fn a_timed_test_that_fails_alone_too_has_two_more_attempts() {
        let folder = std::env::temp_dir().join(format!("throng-suite-{}", std::process::id()));
        let runs = |passes_at: usize| {
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir(&folder).unwrap();
            let script = format!(
                "touch {0}/$$; [ $(ls {0} | wc -l) = {passes_at} ] && exit; echo test c ... FAILED; \
                 echo 'test result: FAILED. 0 passed; 1 failed;'; exit 1",
                folder.display()
            );
            let failed = again(run_lanes(vec![vec![shell("timed", &script, true)]], None), None);
            (failed.len(), std::fs::read_dir(&folder).unwrap().count())
        };
        assert_eq!((runs(2), runs(4), runs(5)), ((0, 2), (0, 4), (1, 4)));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Fails unless it is run for certain tests alone.
    const CROWDED: &str = "[ $1 ] && [ $RUST_TEST_THREADS = 1 ] && exit; echo test a::b ... ok; \
        echo test c ... FAILED; echo 'test result: FAILED. 1 passed; 1 failed;'; exit 1";

    #[test]
    fn a_timed_test_that_fails_runs_again_alone() {
        let run = |script: &str, is_timed: bool| {
            let failed = run_lanes(vec![vec![shell("timed", script, is_timed)]], None);
            assert_eq!(failed.iter().map(|failed| failed.tests.clone()).collect::<Vec<_>>(), [["c"]]);
            again(failed, None).len()
        };
        assert_eq!((run(CROWDED, true), run(CROWDED, false)), (0, 1));
        let never = "echo test c ... FAILED; echo 'test result: FAILED. 0 passed; 1 failed;'; exit 1";
        assert_eq!(run(never, true), 1);
        let tests = |count: usize| vec!["c".to_owned(); count];
        let many =
            |count: usize| again(vec![Failed { job: shell("timed", "", true), tests: tests(count) }], None);
        assert_eq!((many(AGAIN).len(), many(AGAIN + 1).len()), (0, 1));
    }
}
