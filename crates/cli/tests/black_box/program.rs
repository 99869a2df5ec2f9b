//! A process of a test: what it prints, how it ends; never left running.

use std::{
    ffi::OsStr,
    fmt::Display,
    io::{Read, Write},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process, kill_process_group};

/// The timeout of everything here, however slow the machine; except for the demo.
const PATIENCE: Duration = Duration::from_secs(60);

/// The variable with the folder of stored runs.
pub(crate) const DATA: &str = "XDG_DATA_HOME";
/// The variable with the `--io` of runs that do not name one.
pub(crate) const RUN_IO: &str = "THRONG_TEST_RUN_IO";
/// The variable with the folder of an agent's name.
const STATE: &str = "XDG_STATE_HOME";

/// Says that a test leaves out what it is for, and why: past the test harness, which shows what is printed only of a test that fails.
pub(crate) fn skip(why: impl Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Among the arguments of a run: it asks its target what it was, as runs do by default.
pub(crate) const ASKS: &str = "(asks)";

/// Waits for a condition; panics with `what` on a timeout.
pub(crate) fn until(what: &str, condition: impl FnMut() -> bool) {
    until_within(PATIENCE, what, condition);
}

/// The same with another timeout.
pub(crate) fn until_within(patience: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < patience, "not within {patience:?}: {what}");
        // Between two checks; yielding alone would take a core from the processes that are waited for. A part of the time so far, for
        // a check may start a program.
        let pause = start.elapsed() / 25;
        std::thread::sleep(pause.clamp(Duration::from_millis(2), Duration::from_millis(200)));
    }
}

/// The binary under test, not started; its output is captured, and its standard input is empty. Commands that carry or
/// judge a load go [`ahead`].
///
/// Failed runs ask their target nothing, except with [`ASKS`]: servers count their connections, and it takes seconds.
pub(crate) fn throng(args: &[&str]) -> Command {
    let is_quiet = args.first() == Some(&"run") && !args.contains(&ASKS);
    let mut args: Vec<&str> = args.iter().copied().filter(|arg| *arg != ASKS).collect();
    if is_quiet {
        // After the target, where that comes first.
        let is_target = args.get(1).is_some_and(|first| !first.starts_with('-'));
        args.insert(1 + usize::from(is_target), "--no-experiments");
    }
    let args = &args[..];
    let judges = args.first().is_some_and(|verb| ["run", "find", "lab", "agent"].contains(verb));
    let mut command = throng_under(if judges { ahead() } else { &[] }, args);
    // A whole suite over another backend, without a change.
    let dials = args.first().is_some_and(|verb| ["run", "find"].contains(verb));
    if let Some(io) = std::env::var_os(RUN_IO).filter(|_| dials && !args.contains(&"--io")) {
        command.arg("--io").arg(io);
    }
    command
}

/// The same as an argument of the program that `before` names, if it names one.
pub(crate) fn throng_under(before: &[&str], args: &[&str]) -> Command {
    let given = std::env::var_os("THRONG_BIN").filter(|path| !path.is_empty());
    let binary = given.unwrap_or_else(|| env!("CARGO_BIN_EXE_throng").into());
    let words: Vec<&OsStr> = before.iter().map(OsStr::new).chain([&*binary]).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(args).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// The command that gives a program a higher priority than everything else, if this user may set that: what a test asserts of a
/// run is about its target then, not about what else keeps this machine busy. Empty if the user may not.
fn ahead() -> &'static [&'static str] {
    static MAY: LazyLock<bool> = LazyLock::new(|| {
        let tried = Command::new("chrt").args(["--rr", "1", "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    });
    if *MAY { &["chrt", "--rr", "1"] } else { &[] }
}

/// The output of a stream so far.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    /// Reads a stream to its end, in the background: a full pipe would block the writer.
    fn listen(&self, mut stream: impl Read + Send + 'static) -> JoinHandle<()> {
        let output = self.0.clone();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut piece) {
                output.lock().unwrap().extend_from_slice(&piece[..n]);
            }
        })
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).expect("throng speaks UTF-8")
    }
}

/// A running process.
pub(crate) struct Program {
    child: Child,
    start: Instant,
    out: Said,
    err: Said,
    listening: Vec<JoinHandle<()>>,
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// None if a signal ended it.
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// By the test's clock, from before its start until its end was seen, seconds: an upper bound of every duration that it
    /// reports, however busy this machine is.
    pub(crate) took_s: f64,
}

impl Ended {
    /// The exit status of a run. A busy machine makes throng late, or its agents; then it reports that it cannot
    /// judge (exit 4), which is right too. Closed loops are never late: those tests make no exception.
    pub(crate) fn assert_status(&self, expected: i32) {
        let late = self.status == Some(4) && self.stdout.contains(" was late: lag ");
        assert!(self.status == Some(expected) || late, "exit {expected} expected: {self:#?}");
    }
}

impl Program {
    pub(crate) fn start(args: &[&str]) -> Program {
        Program::from(throng(args))
    }

    /// Starts a command and captures its output.
    pub(crate) fn from(mut command: Command) -> Program {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // No run of a test is stored in the user's own store, and no agent has the user's names.
        for (variable, folder) in [(DATA, "data"), (STATE, "state")] {
            if !command.get_envs().any(|(name, _)| name == variable) {
                command.env(variable, Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder));
            }
        }
        let start = Instant::now();
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let (out, err) = (Said::default(), Said::default());
        let listening =
            vec![out.listen(child.stdout.take().unwrap()), err.listen(child.stderr.take().unwrap())];
        Program { child, start, out, err, listening }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self) -> String {
        self.out.text()
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        self.err.text()
    }

    /// Waits until standard error has a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        until(&format!("{text:?} on standard error: {:?}", self.stderr()), || {
            let output = self.stderr().contains(text);
            assert!(output || !self.is_ended(), "ended without {text:?}: {:?}", self.stderr());
            output
        });
    }

    /// Waits until a line of this second of a run is there, or of a later one: a busy machine leaves lines out.
    pub(crate) fn wait_for_second(&mut self, second: u64) {
        let of = |line: &str| line.trim_start().split_once("s ")?.0.parse::<u64>().ok();
        until(&format!("second {second}: {:?}", self.stderr()), || {
            let output = self.stderr().lines().any(|line| of(line) >= Some(second));
            assert!(output || !self.is_ended(), "ended before second {second}: {:?}", self.stderr());
            output
        });
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// To the process and its children, as a terminal does it. It must lead its own process group.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Types.
    pub(crate) fn types(&mut self, keys: &str) {
        self.child.stdin.as_mut().expect("it has a keyboard").write_all(keys.as_bytes()).expect("it listens");
    }

    /// Ends its standard input.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) fn is_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    pub(crate) fn end(self) -> Ended {
        self.end_within(PATIENCE)
    }

    pub(crate) fn end_within(mut self, patience: Duration) -> Ended {
        until_within(patience, "the end of the process", || self.is_ended());
        let status = self.child.try_wait().unwrap().unwrap().code();
        let took_s = self.start.elapsed().as_secs_f64();
        for stream in self.listening.drain(..) {
            stream.join().unwrap();
        }
        Ended { status, stdout: self.stdout(), stderr: self.stderr(), took_s }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Both fail if it has ended, and that is the aim.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `throng serve` on a port of its own.
pub(crate) struct Serving {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
}

impl Serving {
    /// The standard input is kept open: if this test is killed, the server ends with it.
    pub(crate) fn start(args: &[&str]) -> Serving {
        Serving::from(throng(&["serve", "--listen", "127.0.0.1:0", "--until-stdin-ends"]), args)
    }

    pub(crate) fn from(mut command: Command, args: &[&str]) -> Serving {
        command.args(args).stdin(Stdio::piped());
        let mut program = Program::from(command);
        until("the server's first line", || {
            assert!(!program.is_ended(), "the server ended: {}", program.stderr());
            // With TLS the line of its certificate comes first.
            program.stdout().lines().any(|line| line.contains("://")) && program.stdout().ends_with('\n')
        });
        let line = program.stdout();
        let after = |word: &'static str| line.split_whitespace().find_map(move |it| it.strip_prefix(word));
        let url = after("http://").or_else(|| after("https://"));
        let address = url.and_then(|url| url.strip_suffix('/')).and_then(|a| a.parse().ok());
        Serving { program, address: address.unwrap_or_else(|| panic!("no address: {line:?}")) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A name for a file that only this test writes; the file is gone.
pub(crate) fn file(name: &str) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}
