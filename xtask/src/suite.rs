//! The workspace's tests: one build of everything, then its test executables side by side.

use crate::command::{command, messages, metadata, output, root};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

mod job;
mod lanes;
mod network;
mod room;

use job::{Failed, Job, Setting};
use lanes::{Lane, run_lanes};
use network::Network;

/// Jobs of a lane, and how many of them run at once at most, on two processors. Lanes run side by side: what mostly waits for sockets, timers
/// and other processes. Of all lanes a job starts only where there is [`room::Room`] for it, so that targets get their processor time.
const LANES: &[(&[&str], usize)] = &[
    (&["labs", "web", "exporters", "fleet/machines"], 1),
    (&["cli/audit", "net/peers", "net/relay", "cli/fleet"], 2),
    (&["cli/interop"], 2),
    (&["cli/black_box"], 2),
];
/// Jobs in [`LANES`] that are commands of this program.
const COMMANDS: &[&str] = &["web", "labs"];
/// Jobs in [`LANES`] that stay one process: tests of the audit wait for one another, and those of peers are many and short.
const WHOLE: &[&str] = &["cli/audit", "net/peers", "net/relay"];
/// The target of the black-box tests.
const BLACK_BOX: &str = "black_box";
/// Tests of a process, of the other jobs: few, for lanes that are done take some of those that are not.
const PIECE: usize = 2;
/// Tests that mostly compute and take longest: they start first, so that none of them runs alone at the end.
const LONG: &[&str] = &["run/simulation", "run/drawn", "run/million", "run/ten_million", "run/allocations"];
/// No more timed tests than this are run again: more, a tenth of them, fail because of what was changed, not for want of a processor.
const AGAIN: usize = 60;
/// How many run at once in the first, the second and the third attempt: what is wrong fails each time, what came late on a machine that
/// others use too does not.
const ATTEMPTS: [usize; 3] = [3, 1, 1];

/// Black-box tests of gate one: modules that need no other program, and whose runs last for a second or two.
const FIRST: &[&str] = &[
    "compares",
    "costs",
    "echoes",
    "expects",
    "figures",
    "formats",
    "help",
    "logins",
    "output",
    "places",
    "pushes",
    "replays",
    "reports",
    "responses",
    "seeds",
    "serving",
    "stores",
    "thresholds",
    "usage",
];

/// What a build made.
pub(crate) struct Built {
    /// The `throng` that black-box tests, browser tests and labs start.
    pub(crate) throng: PathBuf,
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

/// Compiles what [`run_first`] runs, as `cargo test` does.
///
/// # Errors
/// A compiler's error, or a warning.
pub(crate) fn build_first() -> Result<Built> {
    let metadata = metadata()?;
    let names = integration_tests(&metadata);
    let is_first =
        |name: &&str| *name == BLACK_BOX || lanes().all(|lane| lane.rsplit('/').next() != Some(*name));
    let names = names.into_iter().filter(is_first).flat_map(|name| ["--test", name]);
    let messages = compile(
        &["test", "--no-run", "--workspace", "--lib", "--bins"].into_iter().chain(names).collect::<Vec<_>>(),
    )?;
    Ok(Built { throng: build_throng()?, tests: executables(&messages)? })
}

/// Compiles what [`run_rest`] runs, with all features; then `throng` without them, as users build it: little of the workspace depends on a
/// feature.
///
/// # Errors
/// As [`build_first`].
pub(crate) fn build_rest() -> Result<Built> {
    let names = lanes().filter_map(|lane| lane.split_once('/')).flat_map(|(_, name)| ["--test", name]);
    let words = ["test", "--no-run", "--workspace", "--features", "throng-cli/parquet"];
    let mut tests = executables(&compile(&words.into_iter().chain(names).collect::<Vec<_>>())?)?;
    // Unit tests that only a feature has.
    let words = ["test", "--no-run", "--package", "exporters", "--features", "parquet", "--lib"];
    tests.extend(executables(&compile(&words)?)?);
    Ok(Built { throng: build_throng()?, tests })
}

/// Compiles `throng`, and `throng-lab` beside it; the path of the first.
///
/// # Errors
/// As [`build_first`].
pub(crate) fn build_throng() -> Result<PathBuf> {
    // A test beside it, since without any cargo would leave out features that only tests want, and build what has them anew.
    let words = ["build", "--workspace", "--bin", "throng", "--bin", "throng-lab", "--test", "open_files"];
    compile(&words)?.iter().find_map(throng).context("cargo built no throng")
}

fn compile(words: &[&str]) -> Result<Vec<Value>> {
    messages(command("cargo", words)?)
}

fn executables(messages: &[Value]) -> Result<Vec<Executable>> {
    let tests: Vec<_> = messages.iter().filter_map(executable).collect();
    if tests.is_empty() {
        bail!("cargo built no tests");
    }
    Ok(tests)
}

/// The jobs of all lanes.
fn lanes() -> impl Iterator<Item = &'static str> {
    LANES.iter().flat_map(|(names, _)| names.iter().copied())
}

fn integration_tests(metadata: &Value) -> Vec<&str> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    targets.filter(|target| is_integration(target)).filter_map(|target| target["name"].as_str()).collect()
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

/// Runs what gate one has: tests that compute, and beside them some black-box tests.
///
/// # Errors
/// The names of jobs that failed.
pub(crate) fn run_first(built: Built) -> Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    let (mut black_box, rest): (Vec<_>, Vec<_>) =
        built.tests.into_iter().partition(|test| test.name.ends_with(BLACK_BOX));
    let black_box = black_box.pop().context("cargo built no black-box tests")?;
    let jobs = black_box
        .timed(processors, |test| FIRST.iter().any(|module| test.starts_with(&format!("{module}::"))))?;
    let lane = Lane { jobs: jobs.into(), workers: processors.max(2) };
    let setting = Setting { throng: Some(built.throng), ..Setting::default() };
    let failed = beside(vec![lane], computing(rest, processors), &setting);
    names(again(failed, &setting))
}

/// Runs what gate one leaves out, the browser's tests and the labs too; prints a line for each job that has passed, and the output of one
/// that has not. A few timed tests that fail run again, alone; those that pass then are named.
///
/// # Errors
/// The names of jobs that failed.
pub(crate) fn run_rest(built: Built) -> Result<()> {
    let processors = std::thread::available_parallelism()?.get();
    let mut tests = built.tests;
    let mut lanes = Vec::new();
    for (names, at_once) in LANES {
        let mut jobs = Vec::new();
        for name in *names {
            match tests.iter().position(|test| test.name == *name) {
                Some(at) => jobs.extend(tests.swap_remove(at).timed(processors, |_| true)?),
                None if COMMANDS.contains(name) => jobs.push(own_command(name)?),
                None => bail!("no such tests: {name}"),
            }
        }
        lanes.push(Lane { jobs: jobs.into(), workers: (at_once * processors / 2).max(1) });
    }
    let network = Network::new().inspect_err(|error| println!("tests share the machine's network: {error}"));
    let setting = Setting { throng: Some(built.throng), network: network.ok(), ..Setting::default() };
    let failed = run_lanes(lanes, &setting);
    let failed = again(failed, &setting);
    println!("{}", setting.skips.list());
    names(failed)
}

/// Lanes of timed tests, and beside them, on the processor time that they leave, tests that compute.
fn beside(lanes: Vec<Lane>, computing: Vec<Job>, setting: &Setting) -> Vec<Failed> {
    // Two, for each ends with its longest test alone.
    let computing = vec![Lane { jobs: computing.into(), workers: 2 }];
    std::thread::scope(|scope| {
        let computed = scope.spawn(|| run_lanes(computing, setting));
        let mut failed = run_lanes(lanes, setting);
        failed.extend(computed.join().expect("no job panics"));
        failed
    })
}

/// Tests that mostly compute, long ones first.
fn computing(mut tests: Vec<Executable>, threads: usize) -> Vec<Job> {
    tests.sort_by_key(|test| LONG.iter().position(|name| *name == test.name).unwrap_or(LONG.len()));
    tests.into_iter().map(|test| test.job(threads).nice()).collect()
}

/// Runs timed tests that failed again, a few side by side and then one at a time, until they pass or all [`ATTEMPTS`] have failed, unless
/// more than [`AGAIN`] failed; returns what failed each time, and what was not run again.
fn again(failed: Vec<Failed>, setting: &Setting) -> Vec<Failed> {
    let count: usize = failed.iter().map(|failed| failed.tests.len().max(1)).sum();
    let (mut timed, mut still): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|failed| failed.job.is_timed && count <= AGAIN);
    for workers in ATTEMPTS {
        let before = each(&timed);
        let jobs = timed.into_iter().map(Failed::again).collect();
        timed = run_lanes(vec![Lane { jobs, workers }], setting);
        let after = each(&timed);
        let passed: Vec<_> = before.into_iter().filter(|test| !after.contains(test)).collect();
        if !passed.is_empty() {
            println!("failed beside others, passed when run again: {}", passed.join(", "));
        }
    }
    still.extend(timed);
    still
}

/// Each test that failed, or the job that does not name them.
fn each(failed: &[Failed]) -> Vec<String> {
    let of = |Failed { job, tests }: &Failed| match &tests[..] {
        [] => vec![job.name.clone()],
        tests => tests.iter().map(|test| format!("{} {test}", job.name)).collect(),
    };
    failed.iter().flat_map(of).collect()
}

fn names(failed: Vec<Failed>) -> Result<()> {
    match failed.iter().map(|failed| &*failed.job.name).collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ref names => {
            let mut names = names.to_vec();
            names.sort_unstable();
            names.dedup();
            bail!("failed: {}", names.join(", "))
        }
    }
}

impl Executable {
    fn job(self, threads: usize) -> Job {
        let Executable { name, path: program, folder } = self;
        Job { name, program, args: vec![], tests: vec![], folder, threads, is_timed: true }
    }

    /// Jobs of a few of these tests each, or one of all.
    ///
    /// # Errors
    /// It does not list its tests.
    fn timed(self, processors: usize, is_it: impl Fn(&str) -> bool) -> Result<Vec<Job>> {
        if WHOLE.contains(&&*self.name) {
            return Ok(vec![self.job(processors)]);
        }
        let mut list = Command::new(&self.path);
        list.args(["--list", "--format", "terse"]);
        let listed = output(list)?;
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests: Vec<_> = tests.filter(|test| is_it(test)).collect();
        if tests.is_empty() {
            bail!("{} lists no tests", self.name);
        }
        let job = self.job(1);
        // From the last on: interop ends with tests that run whole suites again, and would run alone at the end.
        Ok(tests.rchunks(PIECE).map(|tests| job.of(tests)).collect())
    }
}

/// A command of this program itself, even if the build has replaced it.
fn own_command(name: &str) -> Result<Job> {
    let path = format!("/proc/{}/exe", std::process::id()).into();
    let test = Executable { name: name.to_owned(), path, folder: root()?.join("xtask") };
    Ok(Job { args: vec![name.to_owned()], ..test.job(1) })
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
    fn the_first_black_box_tests_exist() {
        let folder = root().unwrap().join("crates/cli/tests/black_box");
        for module in FIRST {
            let text = std::fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap_or_default();
            assert!(text.contains("#[test]"), "{module} has no tests");
        }
    }

    #[test]
    fn integration_tests_are_those_of_all_packages() {
        let target = |kind: &str, name: &str| json!({ "kind": [kind], "name": name });
        let names = ["limits", "black_box"].map(|name| target("test", name));
        let metadata = json!({ "packages": [{ "targets": [target("lib", "run")] }, { "targets": names }] });
        assert_eq!(integration_tests(&metadata), ["limits", "black_box"]);
    }

    fn shell(name: &str, script: &str, is_timed: bool) -> Job {
        let args = ["-c", script, "sh"].map(str::to_owned).into();
        let (program, folder) = ("sh".into(), ".".into());
        Job { name: name.to_owned(), program, args, tests: vec![], folder, threads: 1, is_timed }
    }

    fn alone(job: Job) -> Vec<Failed> {
        run_lanes(vec![Lane { jobs: [job].into(), workers: 1 }], &Setting::default())
    }

    #[test]
    fn a_job_that_fails_stops_no_other() {
        let job = |name: &str, status: &str| shell(name, &format!("exit {status}"), false);
        let lane = |jobs: Vec<Job>| Lane { jobs: jobs.into(), workers: 1 };
        let jobs = [vec![job("c", "2"), job("b", "0")], vec![job("a", "1"), job("a", "3")]];
        let failed = run_lanes(jobs.map(lane).into(), &Setting::default());
        assert_eq!(names(failed).unwrap_err().to_string(), "failed: a, c");
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
            let failed = again(alone(shell("timed", &script, true)), &Setting::default());
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
            let failed = alone(shell("timed", script, is_timed));
            assert_eq!(failed.iter().map(|failed| failed.tests.clone()).collect::<Vec<_>>(), [["c"]]);
            again(failed, &Setting::default()).len()
        };
        assert_eq!((run(CROWDED, true), run(CROWDED, false)), (0, 1));
        let never = "echo test c ... FAILED; echo 'test result: FAILED. 0 passed; 1 failed;'; exit 1";
        assert_eq!(run(never, true), 1);
        let tests = |count: usize| vec!["c".to_owned(); count];
        let many = |count: usize| {
            again(vec![Failed { job: shell("timed", "", true), tests: tests(count) }], &Setting::default())
        };
        assert_eq!((many(AGAIN).len(), many(AGAIN + 1).len()), (0, 1));
    }
}
