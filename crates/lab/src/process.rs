//! Runs a server as child processes: builds it, starts it, waits until it is ready, and finally ends all its processes.
//!
//! Each process is the leader of a process group and gets SIGTERM when this process ends, so that no server outlives the lab.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    thread,
    time::Duration,
};

use host::Root;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, setrlimit};
use units::{Clock, Nanos};

use crate::{
    error::Error,
    file::{self, Lab, Server},
    log::Log,
    needs, source,
    template::{Environment, Values},
    workspace::Workspace,
};

/// Interval between checks of a process.
pub(crate) const POLL: Duration = Duration::from_millis(50);
/// Maximum time for a server to end after SIGTERM.
const STOP_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Timeout of a request to a throng process.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of a log's last lines in an error message.
const LAST_LINES: usize = 12;
/// Number of open files that a server needs besides its connections.
const OTHER_FILES: u64 = 500;

/// A running server, which ends when this is dropped.
pub struct Running {
    processes: Vec<Process>,
    /// The address of each process; all have the same port.
    pub addresses: Vec<SocketAddr>,
    /// Whether the server speaks TLS.
    pub is_secured: bool,
    /// Heap size of each process in MiB, if it is a Java virtual machine.
    pub(crate) heap_mib: Option<u64>,
}

struct Process {
    child: Child,
    log: Log,
}

/// A port that is momentarily free on all loopback addresses.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}

/// The number of server processes required for these connections, given the limit on open files per process.
fn processes(server: &Server, connections: u64) -> u8 {
    let files = connections + OTHER_FILES;
    match server.connections_each {
        Some(each) if files > raised_open_files(files) => {
            connections.div_ceil(each.max(1)).clamp(1, 250) as u8
        }
        _ => 1,
    }
}

/// The limit on open files for a server, raised to `wanted` if permitted; child processes inherit it.
fn raised_open_files(wanted: u64) -> u64 {
    let hard = host::open_files(&Root::real()).map_or(u64::MAX, |files| files.hard);
    let more = Rlimit { current: Some(wanted), maximum: Some(wanted) };
    if hard < wanted && setrlimit(Resource::Nofile, more).is_ok() { wanted } else { hard }
}

impl Running {
    /// Builds the server if its folder has changed, starts as many processes as the connections require, and waits until all are ready.
    /// `variant` overrides its environment.
    ///
    /// # Errors
    /// Something is missing, or the server does not build, start or become ready; the error contains the last lines that it printed.
    pub(crate) fn start(
        workspace: &Workspace,
        server: &Server,
        connections: u64,
        variant: &Environment,
        progress: &dyn Fn(&str),
    ) -> Result<Running, Error> {
        let (mut values, processes) = (workspace.values.clone(), processes(server, connections));
        let heap_mib = server.heap_mib(values.scale / f64::from(processes)).map_err(Error::Machine)?;
        values.named.extend(heap_mib.map(|mib| ("heap", mib.to_string())));
        // A variant may set its own heap.
        let heap_mib = variant.get("HEAP").and_then(|mib| mib.parse().ok()).or(heap_mib);
        build(workspace, server, &values, progress)?;
        workspace.make_log()?;
        let port = free_port().map_err(|e| Error::Machine(e.to_string()))?;
        values.named.insert("port", port.to_string());
        let is_secured = server.is_secured();
        let mut running = Running { processes: Vec::new(), addresses: Vec::new(), is_secured, heap_mib };
        for nth in 1..=processes {
            let address = Ipv4Addr::new(127, 0, 0, nth);
            values.named.insert("address", address.to_string());
            let log = workspace.log.join(format!("server-{nth}.log"));
            let line = values.fill(&server.start).map_err(Error::Machine)?;
            // Raises the soft limit of open files to the hard limit.
            let line = format!("ulimit -n \"$(ulimit -H -n)\"; exec {line}");
            let shell = workspace.shell(&["-c", &line], &[&server.environment, variant], &values)?;
            running.processes.push(Process::spawn(shell, &log)?);
            running.addresses.push((address, port).into());
        }
        running.wait(server)?;
        progress(&format!("{} logs to {}", server.name, workspace.log.display()));
        Ok(running)
    }

    /// The server's host as throng's targets accept it: `127.0.0.{1..3}:4000`.
    pub(crate) fn host(&self) -> String {
        match self.addresses.as_slice() {
            [one] => one.to_string(),
            all => format!("127.0.0.{{1..{}}}:{}", all.len(), all[0].port()),
        }
    }

    fn wait(&mut self, server: &Server) -> Result<(), Error> {
        let within =
            Nanos::parse(&server.ready.within).map_err(|e| Error::Machine(format!("ready.within: {e}")))?;
        let clock = Clock::start();
        for nth in 0..self.addresses.len() {
            while !is_ready(self.addresses[nth], server) {
                if let Some(ended) = self.ended() {
                    return Err(Error::Machine(ended));
                }
                if clock.now() > within {
                    let printed = self.processes[nth].last_lines();
                    let what = format!("{}: not ready within {within}\n{printed}", server.name);
                    return Err(Error::Machine(what));
                }
                thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// If one of its processes has ended, a message with its exit status and its last output.
    pub fn ended(&mut self) -> Option<String> {
        let ended = |process: &mut Process| {
            let status = process.child.try_wait().ok().flatten()?;
            process.log.wait();
            Some(format!("the server ended: {}\n{}", reason(status), process.last_lines()))
        };
        self.processes.iter_mut().rev().find_map(ended)
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
        while clock.now() < STOP_TIMEOUT && self.processes.iter_mut().any(is_left) {
            thread::sleep(POLL);
        }
        for process in &mut self.processes {
            // Also ends processes that the server left in its group.
            signal(process, Signal::KILL);
            let _ = process.child.wait();
            process.log.wait();
        }
    }
}

fn reason(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// Clones a server's sources and builds it, if its folder or its sources have changed.
///
/// # Errors
/// Something is missing, or the build fails; the error contains the last lines that it printed.
pub(crate) fn build(
    workspace: &Workspace,
    server: &Server,
    values: &Values,
    progress: &dyn Fn(&str),
) -> Result<(), Error> {
    let missing = needs::missing(server);
    if !missing.is_empty() {
        return Err(Error::Machine(missing.join("\n")));
    }
    fs::create_dir_all(&workspace.work).map_err(Error::at(&workspace.work))?;
    source::clone_missing(server, &workspace.work)?;
    for log in run_build_lines(workspace, server, values)? {
        progress(&format!("{} was built: {}", server.name, log.display()));
    }
    Ok(())
}

/// Runs a server's build commands, unless they have been run with the same folder and sources; returns the log of each.
fn run_build_lines(workspace: &Workspace, server: &Server, values: &Values) -> Result<Vec<PathBuf>, Error> {
    let Workspace { lab, work, .. } = workspace;
    let mut state = DefaultHasher::new();
    // Hashes the commands before placeholders are replaced, since a build does not depend on the location of the lab.
    server.build.hash(&mut state);
    let sources = server.sources.iter().map(|own| source::source_folder(work).join(&own.folder));
    for folder in [lab.folder.clone()].into_iter().chain(sources) {
        hash_folder(lab, &folder, &mut state).map_err(Error::at(&folder))?;
    }
    let (stamp, now) = (work.join(format!("built-{}", server.name)), state.finish().to_string());
    if fs::read_to_string(&stamp).is_ok_and(|then| then == now) {
        return Ok(Vec::new());
    }
    let lines = server.build.iter().map(|line| values.fill(line)).collect::<Result<Vec<_>, _>>();
    let mut logs = Vec::new();
    for (nth, line) in (1..).zip(lines.map_err(Error::Machine)?) {
        // Ends with this process, as a server does, together with all processes that it started.
        let shell = format!("trap 'trap - TERM; kill 0' TERM\n(\n{line}\n) &\nwait $!");
        let command = workspace.shell(&["-ec", &shell], &[&server.environment], values)?;
        let mut process = Process::spawn(command, &work.join(format!("build-{}-{nth}.log", server.name)))?;
        let status = process.child.wait().map_err(Error::at("setpriv"))?;
        process.log.wait();
        if !status.success() {
            let (printed, log) = (process.last_lines(), process.log.path.display());
            let what = format!("build failed: {}: {line}\n{printed}\nfull log: {log}", reason(status));
            return Err(Error::Machine(what));
        }
        logs.push(process.log.path);
    }
    fs::write(&stamp, now).map_err(Error::at(&stamp))?;
    Ok(logs)
}

impl Process {
    /// Takes the command by value, because it must be dropped: it holds a writing end of the pipe.
    fn spawn(mut command: Command, log: &Path) -> Result<Process, Error> {
        let (ours, theirs) = std::io::pipe().map_err(Error::at(log))?;
        let both = theirs.try_clone().map_err(Error::at(log))?;
        let child = command.stdout(theirs).stderr(both).spawn().map_err(Error::at("setpriv"))?;
        Ok(Process { child, log: Log::of(ours, log).map_err(Error::at(log))? })
    }

    fn last_lines(&self) -> String {
        let text = fs::read(&self.log.path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }
}

/// Hashes all files of a folder except packages that were installed there and files that describe the load.
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

/// Sends a request to a throng process; returns the status and the body.
pub(crate) fn request(
    at: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all((head + body).as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(std::io::ErrorKind::InvalidData)?, body.to_owned()))
}

fn is_ready(at: SocketAddr, server: &Server) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&at, Duration::from_secs(1)) else { return false };
    // With TLS, an accepted connection is enough.
    if server.ready.tcp || server.is_secured() {
        return true;
    }
    let request = format!("GET {} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n", server.ready.path);
    let mut head = [0; 12];
    let read = stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .and_then(|()| stream.read_exact(&mut head));
    // Any response counts.
    read.is_ok() && head.starts_with(b"HTTP/1.")
}
