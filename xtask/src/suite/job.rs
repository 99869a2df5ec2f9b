//! A process that runs tests, and what of it failed.

use super::network::Network;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// A process that runs tests.
pub(super) struct Job {
    /// Several jobs may have parts of the same tests, and then the same name.
    pub(super) name: String,
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// Those that it runs; empty: all that the program has.
    pub(super) tests: Vec<String>,
    pub(super) folder: PathBuf,
    /// Tests that it runs at once.
    pub(super) threads: usize,
    /// Waits for sockets and timers, and judges them: what fails may have failed for want of a processor.
    pub(super) is_timed: bool,
}

/// What all jobs are started with.
#[derive(Default)]
pub(super) struct Setting {
    /// The `throng` that they start, if any does.
    pub(super) throng: Option<PathBuf>,
    /// The network that they have to themselves; without one they have the machine's.
    pub(super) network: Option<Network>,
    pub(super) skips: Skips,
}

/// What tests reported as skipped: only what the suite cannot install, such as a feature of the kernel.
#[derive(Default)]
pub(super) struct Skips(Mutex<BTreeMap<String, usize>>);

impl Skips {
    /// Takes the lines that begin with `skipped`, of a job's standard error; returns the others.
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

    /// A line for each, with how often it was reported.
    pub(super) fn list(&self) -> String {
        let skips = self.0.lock().expect("no worker panics");
        let lines = skips.iter().map(|(line, count)| format!("\n  {line} ({count})")).collect::<String>();
        if lines.is_empty() { "== skipped: nothing".to_owned() } else { format!("== skipped:{lines}") }
    }
}

/// What did not pass.
pub(super) struct Failed {
    pub(super) job: Job,
    /// Empty where the job does not name its tests.
    pub(super) tests: Vec<String>,
}

impl Failed {
    /// A job of what failed; of all that it was where it does not name that.
    pub(super) fn again(self) -> Job {
        let tests = if self.tests.is_empty() { self.job.tests } else { self.tests };
        Job { tests, ..self.job }
    }
}

impl Job {
    /// It computes, on the processor time that the timed jobs leave, so that these are not late.
    pub(super) fn nice(self) -> Job {
        let program = self.program.into_os_string().into_string().expect("cargo prints UTF-8");
        let args = ["-n", "10", &program].map(str::to_owned).into();
        Job { program: "nice".into(), args, is_timed: false, ..self }
    }

    /// A job of some of its tests.
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

    /// As cargo starts it: all of the program's tests, or `tests` one at a time.
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

/// What a job printed that has passed.
pub(super) struct Printed {
    /// Standard output, with what the test harness counted.
    pub(super) out: String,
    /// Standard error: which tests were skipped, and why.
    pub(super) err: String,
}

/// Runs a job to its end.
///
/// # Errors
/// It fails: with all of its output.
pub(super) fn finish(name: &str, mut command: Command) -> Result<Printed> {
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if !output.status.success() {
        bail!("== {name}: {}\n{out}{err}", output.status);
    }
    Ok(Printed { out, err })
}

/// The tests that failed, as the test harness names them; none if it did not list as many as it counted, or crashed before it
/// counted: the whole job has to run again then.
pub(super) fn failed_tests(output: &str) -> Vec<String> {
    let tests = output.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    // The harness appends " - should panic" to the name.
    let tests = tests.filter_map(|test| test.split(' ').next().map(str::to_owned));
    let tests: Vec<_> = tests.collect();
    let counted = counted(output).map(|[_, failed, _]| failed);
    if counted == Some(tests.len()) { tests } else { vec![] }
}

/// Tests that passed, failed and were ignored, as the test harness counted them; none if it counted none.
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
