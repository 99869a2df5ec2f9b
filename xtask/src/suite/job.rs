//! A job: a process that runs tests; and which of its tests failed.

use super::network::Network;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// A process that runs tests.
pub(super) struct Job {
    /// Name of the test executable; jobs with parts of the same executable have the same name.
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// Names of the tests to run; empty: all tests of the program.
    pub(super) tests: Vec<String>,
    pub(super) folder: PathBuf,
    /// Number of tests run at once.
    pub(super) threads: usize,
    /// Whether its tests depend on real time, on sockets and timers: a failure may be due to a busy machine.
    pub(super) is_timed: bool,
}

/// Settings that all jobs share.
#[derive(Default)]
pub(super) struct Setting {
    /// The `throng` binary that jobs start, if needed.
    pub(super) throng: Option<PathBuf>,
    /// The private network namespace; `None`: the machine's network.
    pub(super) network: Option<Network>,
    pub(super) skips: Skips,
}

/// Skipped tests, with how often each was reported: only those whose requirement the suite cannot install, such as a kernel
/// feature.
#[derive(Default)]
pub(super) struct Skips(Mutex<BTreeMap<String, usize>>);

impl Skips {
    /// Records the lines of a job's standard error that begin with `skipped`; returns the other lines.
    pub(super) fn take(&self, job: &str, err: &str) -> String {
        let mut skips = self.0.lock().expect("no worker panics");
        let mut others = String::new();
        for line in err.lines() {
            if line.starts_with("skipped") {
                *skips.entry(format!("{job}: {line}")).or_default() += 1;
            } else {
                others += &format!("{line}\n");
            }
        }
        others
    }

    /// The report: one line for each skipped test, with its count.
    pub(super) fn list(&self) -> String {
        let skips = self.0.lock().expect("no worker panics");
        let lines = skips.iter().map(|(line, count)| format!("\n  {line} ({count})")).collect::<String>();
        if lines.is_empty() { "== skipped: nothing".to_owned() } else { format!("== skipped:{lines}") }
    }
}

/// A job with failed tests.
pub(super) struct Failed {
    pub(super) job: Job,
    /// Empty if the job's output does not name them.
    pub(super) tests: Vec<String>,
}

impl Failed {
    /// A job that reruns the failed tests, or all of its tests if the failed ones are unknown.
    pub(super) fn again(self) -> Job {
        let tests = if self.tests.is_empty() { self.job.tests } else { self.tests };
        Job { tests, ..self.job }
    }
}

impl Job {
    /// A compute-bound job, at low priority so that it does not delay timed jobs.
    pub(super) fn nice(self) -> Job {
        let program = self.program.into_os_string().into_string().expect("cargo prints UTF-8");
        let args = ["-n", "10", &program].map(str::to_owned).into();
        Job { program: "nice".into(), args, is_timed: false, ..self }
    }

    /// A job that runs only these tests of the same program.
    pub(super) fn of(&self, tests: &[&str]) -> Job {
        let Job { name, program, args, folder, .. } = self;
        Job {
            name: name.clone(),
            program: program.clone(),
            args: args.clone(),
            tests: tests.iter().map(|&test| test.to_owned()).collect(),
            folder: folder.clone(),
            ..*self
        }
    }

    /// The command, as cargo would start it: with all tests of the program, or with `tests` one at a time.
    pub(super) fn command(&self, tests: &[String], setting: &Setting) -> Command {
        let start = |network: &Network| network.command(&self.program);
        let mut command = setting.network.as_ref().map_or_else(|| Command::new(&self.program), start);
        command.args(&self.args).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command.envs(setting.throng.as_ref().map(|throng| ("THRONG_BIN", throng)));
        let threads = if tests.is_empty() { self.threads } else { 1 };
        command.env("RUST_TEST_THREADS", threads.to_string());
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command
    }
}

/// The output of a job that passed.
pub(super) struct Printed {
    /// Standard output, with the test harness's summary.
    pub(super) out: String,
    /// Standard error, with the skipped tests and the reasons.
    pub(super) err: String,
}

/// Runs a job to completion.
///
/// # Errors
/// The job fails; the error contains its output.
pub(super) fn finish(name: &str, mut command: Command) -> Result<Printed> {
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if !output.status.success() {
        bail!("== {name}: {}\n{out}{err}", output.status);
    }
    Ok(Printed { out, err })
}

/// Names of the failed tests in the test harness's output. Empty if they are incomplete (fewer names than the harness counted, or a
/// crash before it printed its summary): the whole job must be rerun then.
pub(super) fn failed_tests(output: &str) -> Vec<String> {
    let tests = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    // The harness appends " - should panic" to the name.
    let tests = tests.filter_map(|test| test.split(' ').next().map(str::to_owned));
    let tests: Vec<_> = tests.collect();
    let counted = counted(output).map(|[_, failed, _]| failed);
    if counted == Some(tests.len()) { tests } else { vec![] }
}

/// The numbers of passed, failed and ignored tests in the test harness's summary; `None` without a summary.
pub(super) fn counted(output: &str) -> Option<[usize; 3]> {
    let line = output.lines().find_map(|line| line.strip_prefix("test result: "))?;
    let (_, counts) = line.split_once(". ")?;
    let count =
        |name: &str| counts.split(';').find_map(|count| count.trim().strip_suffix(name)?.parse().ok());
    Some([count(" passed")?, count(" failed")?, count(" ignored").unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_shown_whole() {
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo said; echo why >&2; exit 3"]);
        let error = finish("wire", failing).err().expect("it fails").to_string();
        assert_eq!(error, "== wire: exit status: 3\nsaid\nwhy\n");
    }

    #[test]
    fn skips_are_listed_with_their_job_and_counted() {
        let skips = Skips::default();
        assert_eq!(skips.list(), "== skipped: nothing");
        let no_ipv6 = "skipped: no IPv6 here\n";
        assert_eq!(skips.take("net", &format!("a\n{no_ipv6}b\n{no_ipv6}")), "a\nb\n");
        assert_eq!(skips.take("cli", "skipped, it needs root"), "");
        let expected = "== skipped:\n  cli: skipped, it needs root (1)\n  net: skipped: no IPv6 here (2)";
        assert_eq!(skips.list(), expected);
    }

    #[test]
    fn a_job_that_did_not_name_each_failed_test_runs_again_as_a_whole() {
        let result =
            |failed: &str| format!("test result: FAILED. 3 passed; {failed} failed; 0 ignored; finished in");
        let tests = |lines: &[&str], result: &str| failed_tests(&[&lines.join("\n"), result].join("\n"));
        let lines = ["test a ... ok", "test b ... FAILED", "test c::d - should panic ... FAILED"];
        assert_eq!(tests(&lines, &result("2")), ["b", "c::d"]);
        let none = Vec::<String>::new();
        assert_eq!(tests(&lines, &result("3")), none);
        assert_eq!(tests(&lines, "error: signal: 6, SIGABRT"), none);
    }
}
