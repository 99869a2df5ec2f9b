//! A server as processes: built, started, ready, and gone without a trace.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use units::{Clock, Nanos};

use crate::{
    file::{self, Lab, Server},
    log::Log,
    source,
    template::Values,
};

/// Looked at so often.
const LOOK: Duration = Duration::from_millis(50);
/// Time for a server to end after SIGTERM.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// Lines of a log that are shown.
const TOLD: usize = 12;

/// A server that runs, until it is dropped.
pub struct Running {
    processes: Vec<Process>,
    /// Where each listens; one port.
    pub addresses: Vec<SocketAddr>,
    /// What building it printed, where it was built just now.
    pub build_logs: Vec<PathBuf>,
}

struct Process {
    child: Child,
    log: Log,
}

/// Where a server is built, and where it logs.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    /// What is built stays here.
    pub work: &'a Path,
    /// Of one trial.
    pub log: &'a Path,
}

/// How processes ended unexpectedly.
pub type Stopped = Vec<String>;

/// A free port on all of loopback, for a moment.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}

impl Running {
    /// Builds the server if its folder has changed, starts this many processes of it, and waits until all are ready.
    /// `values` need not have `address` and `port`; `variant` overrides the environment.
    ///
    /// # Errors
    /// What does not build, start or get ready, with the last lines that it said.
    pub fn start(
        lab: &Lab,
        server: &Server,
        processes: u8,
        values: &Values,
        variant: &[(String, String)],
        folders: Folders,
    ) -> Result<Running, String> {
        let Folders { work, log } = folders;
        for folder in [work, log] {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        source::clone_missing(server, work)?;
        let build_logs = build(lab, server, values, work)?;
        let port = free_port().map_err(|e| e.to_string())?;
        let mut running = Running { processes: Vec::new(), addresses: Vec::new(), build_logs };
        for nth in 1..=processes.max(1) {
            let address = Ipv4Addr::new(127, 0, 0, nth);
            let mut own = values.clone();
            own.named.extend([("address", address.to_string()), ("port", port.to_string())]);
            let process = start(lab, server, &own, variant, &log.join(format!("server-{nth}.log")))?;
            running.processes.push(process);
            running.addresses.push((address, port).into());
        }
        running.wait(server)?;
        Ok(running)
    }

    fn wait(&mut self, server: &Server) -> Result<(), String> {
        let within = Nanos::parse(&server.ready.within).map_err(|e| format!("ready.within: {e}"))?;
        let clock = Clock::start();
        for nth in 0..self.addresses.len() {
            while !is_ready(self.addresses[nth], server) {
                if let Some(ended) = self.stopped().pop() {
                    return Err(ended);
                }
                if clock.now() > within {
                    let said = last_lines(&self.processes[nth].log);
                    return Err(format!("{}: not ready within {within}\n{said}", server.name));
                }
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    /// Those that have ended meanwhile, and what they said last.
    pub fn stopped(&mut self) -> Stopped {
        let ended = |process: &mut Process| {
            let status = process.child.try_wait().ok().flatten()?;
            process.log.wait();
            Some(format!("the server ended: {}\n{}", told(status), last_lines(&process.log)))
        };
        self.processes.iter_mut().filter_map(ended).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let signal = |process: &Process, signal| {
            let group = Pid::from_child(&process.child);
            let _ = kill_process_group(group, signal);
        };
        self.processes.iter().for_each(|process| signal(process, Signal::TERM));
        let clock = Clock::start();
        let is_left = |process: &mut Process| process.child.try_wait().is_ok_and(|status| status.is_none());
        while clock.now() < PATIENCE && self.processes.iter_mut().any(is_left) {
            thread::sleep(LOOK);
        }
        for process in &mut self.processes {
            // Processes that it left are ended too.
            signal(process, Signal::KILL);
            let _ = process.child.wait();
            process.log.wait();
        }
    }
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// Runs a server's build lines, unless that was done with this folder and these sources. What each printed, if so.
fn build(lab: &Lab, server: &Server, values: &Values, work: &Path) -> Result<Vec<PathBuf>, String> {
    let lines = server.build.iter().map(|line| values.fill(line)).collect::<Result<Vec<_>, _>>()?;
    let mut state = DefaultHasher::new();
    // Not where it lies: what is built does not depend on that.
    server.build.hash(&mut state);
    let sources = server.sources.iter().map(|own| source::source_folder(work).join(&own.folder));
    for folder in [lab.folder.clone()].into_iter().chain(sources) {
        hash_folder(lab, &folder, &mut state).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let (stamp, now) = (work.join(format!("built-{}", server.name)), state.finish().to_string());
    if fs::read_to_string(&stamp).is_ok_and(|then| then == now) {
        return Ok(Vec::new());
    }
    let mut logs = Vec::new();
    for (nth, line) in (1..).zip(&lines) {
        // It ends when we do, as a server does, and with it all that it started.
        let shell = format!("trap 'trap - TERM; kill 0' TERM\n(\n{line}\n) &\nwait $!");
        let mut command = command(lab, &["-ec", &shell]);
        for (name, value) in &server.environment {
            command.env(name, values.fill(value)?);
        }
        let mut process = spawn(command, &work.join(format!("build-{}-{nth}.log", server.name)))?;
        let status = process.child.wait().map_err(|e| format!("setpriv: {e}"))?;
        process.log.wait();
        if !status.success() {
            let (said, log) = (last_lines(&process.log), process.log.path.display());
            return Err(format!("build failed: {}: {line}\n{said}\nfull log: {log}", told(status)));
        }
        logs.push(process.log.path);
    }
    fs::write(&stamp, now).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(logs)
}

/// A shell that is gone when we are, in a process group of its own.
fn command(lab: &Lab, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "sh"]).args(words);
    command.current_dir(&lab.folder).stdin(Stdio::null()).process_group(0);
    command
}

/// The command goes with the call: it holds an end of the pipe.
fn spawn(mut command: Command, log: &Path) -> Result<Process, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", log.display());
    let (ours, theirs) = std::io::pipe().map_err(failed)?;
    let both = theirs.try_clone().map_err(failed)?;
    let child = command.stdout(theirs).stderr(both).spawn().map_err(|e| format!("setpriv: {e}"))?;
    Ok(Process { child, log: Log::of(ours, log).map_err(failed)? })
}

/// Of all files, but those that a package manager put there, and those that say what is done with the server.
fn hash_folder(lab: &Lab, folder: &Path, state: &mut impl Hasher) -> std::io::Result<()> {
    let is_load = |path: &Path| {
        let scenarios = lab.experiments.iter().chain(&lab.soak).filter_map(|one| one.scenario.as_deref());
        path.extension().is_some_and(|ending| ending == "md")
            || scenarios.chain([file::FILE]).any(|name| path == lab.folder.join(name))
    };
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries.into_iter().filter(|path| !is_load(path)) {
        path.file_name().hash(state);
        if path.is_dir() {
            if !["node_modules", "target", ".git"].iter().any(|name| path.ends_with(name)) {
                hash_folder(lab, &path, state)?;
            }
        } else {
            fs::read(&path)?.hash(state);
        }
    }
    Ok(())
}

/// With all the files it may have.
fn start(
    lab: &Lab,
    server: &Server,
    values: &Values,
    variant: &[(String, String)],
    log: &Path,
) -> Result<Process, String> {
    let line = values.fill(&server.start)?;
    let mut command = command(lab, &["-c", &format!("ulimit -n \"$(ulimit -H -n)\"; exec {line}")]);
    for (name, value) in &server.environment {
        command.env(name, values.fill(value)?);
    }
    for (name, value) in variant {
        command.env(name, values.fill(value)?);
    }
    spawn(command, log)
}

fn is_ready(at: SocketAddr, server: &Server) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&at, Duration::from_secs(1)) else { return false };
    if server.ready.tcp {
        return true;
    }
    let request = format!("GET {} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n", server.ready.path);
    let mut head = [0; 12];
    let asked = stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .and_then(|()| stream.read_exact(&mut head));
    // Any response will do.
    asked.is_ok() && head.starts_with(b"HTTP/1.")
}

fn last_lines(log: &Log) -> String {
    let text = fs::read(&log.path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TOLD)..].join("\n")
}
