//! Runs the workspace's tests: builds everything once, then runs the test executables in parallel.

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

/// The lanes of timed jobs (those that mostly wait for sockets, timers and other processes), each with the number of jobs it runs
/// at once per two processors. Lanes run in parallel. In all lanes a job starts only if there is [`room::Room`] for it, so that its
/// target gets CPU time.
const LANES: &[(&[&str], usize)] = &[
    (&["labs", "web", "exporters", "fleet/machines"], 1),
    (&["cli/audit", "net/peers", "net/relay", "cli/fleet"], 2),
    (&["cli/interop"], 2),
    (&["cli/black_box"], 2),
];
/// Jobs in [`LANES`] that are commands of this program rather than test executables.
const COMMANDS: &[&str] = &["web", "labs"];
/// Jobs in [`LANES`] that are not split into several processes: tests of the audit wait for one another, and those of peers are
/// numerous and short.
const WHOLE: &[&str] = &["cli/audit", "net/peers", "net/relay"];
/// Name of the black-box test executable.
const BLACK_BOX: &str = "black_box";
/// Number of tests per process when a test executable is split: small, because a lane without jobs takes over jobs of other lanes.
const PIECE: usize = 2;
/// The longest compute-bound tests: they start first, so that none of them runs alone at the end.
const LONG: &[&str] = &["run/simulation", "run/drawn", "run/million", "run/ten_million", "run/allocations"];
/// Maximum number of failed timed tests that are rerun. If a tenth of all timed tests fail, the cause is a change to the code, not
/// a busy machine.
const AGAIN: usize = 60;
/// Number of jobs at once in each rerun of failed timed tests. A test that fails in all of them is wrong; one that passes was
/// slowed down by other programs on the machine.
const ATTEMPTS: [usize; 3] = [3, 1, 1];

/// Modules of black-box tests in gate one: they need no other program, and their runs take a second or two.
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

/// The results of a build.
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
    /// The package's folder, the working directory of its tests.
    folder: PathBuf,
}

/// Compiles the tests of [`run_first`], as `cargo test` does.
///
/// # Errors
/// A compiler error or a warning.
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

/// Compiles the tests of [`run_rest`] with all features; then `throng` without features, as users build it. Few crates depend on a
/// feature, so little is compiled twice.
///
/// # Errors
/// As [`build_first`].
pub(crate) fn build_rest() -> Result<Built> {
    let names = lanes().filter_map(|lane| lane.split_once('/')).flat_map(|(_, name)| ["--test", name]);
    let words = ["test", "--no-run", "--workspace", "--features", "throng-cli/parquet"];
    let mut tests = executables(&compile(&words.into_iter().chain(names).collect::<Vec<_>>())?)?;
    // Unit tests that need a feature.
    let words = ["test", "--no-run", "--package", "exporters", "--features", "parquet", "--lib"];
    tests.extend(executables(&compile(&words)?)?);
    Ok(Built { throng: build_throng()?, tests })
}

/// Compiles `throng` and `throng-lab`; returns the path of `throng`.
///
/// # Errors
/// As [`build_first`].
pub(crate) fn build_throng() -> Result<PathBuf> {
    // With a test among the targets, cargo keeps the features that only dev-dependencies enable. Without one it would drop them and
    // rebuild the crates concerned.
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

/// The names of the jobs of all lanes.
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

/// The test executable in a JSON message of cargo, if the message is about one.
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

/// The path of the `throng` binary, if a JSON message of cargo is about it.
fn throng(message: &Value) -> Option<PathBuf> {
    let is_throng = message["target"]["name"] == "throng" && message["profile"]["test"] == false;
    is_throng.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}

/// Runs gate one: compute-bound tests, in parallel with some black-box tests.
///
/// # Errors
/// Jobs failed; the error has their names.
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

/// Runs gate two, browser tests and labs included. Prints a line for each job that passed, and the output of each that failed.
/// Timed tests that failed are rerun if they are few; those that pass then are listed.
///
/// # Errors
/// Jobs failed; the error has their names.
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

/// Runs lanes of timed tests, and in parallel compute-bound tests on the CPU time that the timed tests leave.
fn beside(lanes: Vec<Lane>, computing: Vec<Job>, setting: &Setting) -> Vec<Failed> {
    // Two workers, so that the longest test at the end does not leave the processors to a single job.
    let computing = vec![Lane { jobs: computing.into(), workers: 2 }];
    std::thread::scope(|scope| {
        let computed = scope.spawn(|| run_lanes(computing, setting));
        let mut failed = run_lanes(lanes, setting);
        failed.extend(computed.join().expect("no job panics"));
        failed
    })
}

/// Jobs of compute-bound tests, the longest first.
fn computing(mut tests: Vec<Executable>, threads: usize) -> Vec<Job> {
    tests.sort_by_key(|test| LONG.iter().position(|name| *name == test.name).unwrap_or(LONG.len()));
    tests.into_iter().map(|test| test.job(threads).nice()).collect()
}

/// Reruns the timed tests that failed, several at once and then one at a time, until they pass or [`ATTEMPTS`] are used up; reruns
/// nothing if more than [`AGAIN`] failed. Returns what failed each time or was not rerun.
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

/// The failed tests, or the job's name if it does not name its tests.
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

    /// Splits the matching tests into jobs of [`PIECE`] tests each; a single job for executables in [`WHOLE`].
    ///
    /// # Errors
    /// The executable does not list its tests, or none matches.
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
        // Starting from the last: the last tests of interop run whole suites and take longest, so they must not start last.
        Ok(tests.rchunks(PIECE).map(|tests| job.of(tests)).collect())
    }
}

/// A job that runs a command of this program. The path in `/proc` works even if the build has replaced the executable.
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
        // Binaries that tests start are built too, but are no tests.
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

    /// A shell script that fails unless it runs with selected tests and a single test thread.
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
