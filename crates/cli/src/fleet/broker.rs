//! Runs a `nats-server` for a fleet: `throng fleet broker`, and `throng run --fleet own`.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{BufRead, BufReader, Read, Write},
    net::{IpAddr, SocketAddr},
    os::unix::{
        fs::{OpenOptionsExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use fleet::{Access, Link, Server};
use host::Root;
use run::Interrupt;
use rustix::{
    fs::{FlockOperation, flock},
    process::{Pid, Signal, kill_process},
};
use serde_json::Value;
use units::{Clock, Nanos, shell_word};

use crate::{Failure, args::BrokerArgs, message, mistakes::Mistakes, print_stdout, signals};

/// Maximum time until the server is ready.
const READY_WITHIN: Nanos = Nanos::from_secs(15);
/// Maximum time until the server ends after SIGTERM.
const ENDS_WITHIN: Nanos = Nanos::from_secs(5);
const LOOKS: Duration = Duration::from_millis(50);
/// Maximum size of a message that the server accepts, in bytes; throng does not read longer ones.
const MAX_PAYLOAD: usize = 8 << 20;
/// Limit of JetStream's storage.
const MAX_STORE: &str = "4GB";
/// Number of the log's last lines in an error message.
const LAST_LINES: usize = 5;

/// Serves until a signal; returns the exit status.
pub(crate) fn broker(args: &BrokerArgs) -> Result<u8, Failure> {
    let mut mistakes = Mistakes::default();
    let listen = mistakes.address("--listen", &args.listen, "0.0.0.0:4222");
    let folder =
        args.dir.as_ref().map(PathBuf::from).or_else(|| Some(store::folders::state()?.join("broker")));
    if folder.is_none() {
        mistakes.add("--dir: no folder for token and streams; set HOME, or use --dir DIR");
    }
    mistakes.end(())?;
    let folder = folder.expect("it is no mistake");
    let stop = signals::order_to_stop(args.until_stdin_ends)?;
    if args.tls_cert.is_none() && !listen.ip().is_loopback() {
        message(
            "connections to this broker, including its token, are not encrypted; use --tls-cert or a private network",
        );
    }
    let Some(mut broker) = Broker::start(listen, &folder, args, &stop)? else { return Ok(0) };
    print_stdout(&broker.text())?;
    while !stop.load(Relaxed) {
        thread::sleep(LOOKS);
        if let Some(status) = broker.child.try_wait().map_err(Failure::machine)? {
            return Err(Failure::machine(format!("nats-server has ended, {status}{}", broker.last_lines())));
        }
    }
    broker.end();
    Ok(0)
}

/// A running `nats-server`, with what is needed to join it.
struct Broker {
    child: Child,
    listen: SocketAddr,
    scheme: &'static str,
    token_file: PathBuf,
    log: PathBuf,
    /// A lock on the folder, which only one server may use.
    _lock: File,
}

impl Broker {
    /// Starts the server; `None` if `stop` is set before it is ready.
    fn start(
        listen: SocketAddr,
        folder: &Path,
        args: &BrokerArgs,
        stop: &AtomicBool,
    ) -> Result<Option<Broker>, Failure> {
        let at = |e: std::io::Error| Failure::machine(format!("--dir {}: {e}", folder.display()));
        fs::create_dir_all(folder).map_err(at)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(at)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"));
        let lock = lock.map_err(at)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let folder = folder.display();
            Failure::machine(format!("a broker runs in {folder} already; use it, or another --dir DIR"))
        })?;
        let token_file = folder.join("token");
        let token = token(&token_file).map_err(at)?;
        let config = folder.join("nats.conf");
        write_private(&config, &configuration(listen, &token, folder, args)).map_err(at)?;
        let log = folder.join("nats.log");
        let output = File::create(&log).map_err(at)?;
        let errors = output.try_clone().map_err(at)?;
        let ports = folder.join("ports");
        let _ = fs::remove_dir_all(&ports);
        fs::create_dir_all(&ports).map_err(at)?;
        let child = bound(&args.nats_server)
            .arg("--config")
            .arg(&config)
            .arg("--ports_file_dir")
            .arg(&ports)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|e| Failure::machine(format!("setpriv, of util-linux, cannot be started: {e}")))?;
        let scheme = if args.tls_cert.is_some() { "tls" } else { "nats" };
        let mut broker = Broker { child, listen, scheme, token_file, log, _lock: lock };
        let is_ready = broker.wait(&ports, &token, &args.nats_server, stop)?;
        Ok(is_ready.then_some(broker))
    }

    /// Waits until the server accepts the token at its actual port; false if `stop` is set before.
    fn wait(&mut self, ports: &Path, token: &str, program: &str, stop: &AtomicBool) -> Result<bool, Failure> {
        let clock = Clock::start();
        let mut why = String::new();
        while !stop.load(Relaxed) {
            if let Some(status) = self.child.try_wait().map_err(Failure::machine)? {
                let status = match status.code() {
                    // setpriv(1) uses 127 if the program does not exist.
                    Some(127) => {
                        return Err(Failure::machine(format!(
                            "{program} is not on the path; install it (Debian: apt-get install nats-server), or use \
                            a running one: --fleet nats://HOST:4222"
                        )));
                    }
                    _ => status.to_string(),
                };
                return Err(Failure::machine(format!(
                    "nats-server did not start, {status}{}",
                    self.last_lines()
                )));
            }
            if clock.now() > READY_WITHIN {
                let lines = self.last_lines();
                return Err(Failure::machine(format!(
                    "nats-server is not ready within {READY_WITHIN}: {why}{lines}"
                )));
            }
            if let Some(port) = port_in(ports, self.child.id()) {
                self.listen.set_port(port);
                // The name in a certificate is not known here, so with TLS it is enough that the server listens.
                match (self.scheme, connect(self.listen, token, stop)) {
                    ("tls", _) | (_, Ok(true)) => return Ok(true),
                    (_, Ok(false)) => break,
                    (_, Err(reason)) => why = reason,
                }
            }
            thread::sleep(LOOKS);
        }
        Ok(false)
    }

    /// The URL for other machines.
    fn url(&self) -> String {
        let ip = match self.listen.ip() {
            ip if !ip.is_unspecified() => ip,
            unspecified => {
                let own = host::local_addresses(&Root::real());
                let is_usable = |ip: &&IpAddr| !ip.is_loopback() && ip.is_ipv4() == unspecified.is_ipv4();
                let loopback = || {
                    if unspecified.is_ipv4() {
                        [127, 0, 0, 1].into()
                    } else {
                        [0, 0, 0, 0, 0, 0, 0, 1].into()
                    }
                };
                own.iter().find(is_usable).copied().unwrap_or_else(loopback)
            }
        };
        format!("{}://{}", self.scheme, SocketAddr::new(ip, self.listen.port()))
    }

    fn text(&self) -> String {
        let (url, file) = (self.url(), shell_word(&self.token_file.display().to_string()));
        let name =
            self.token_file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        format!(
            "broker at {url}, token in {file}\n\
            start an agent on each machine, with a copy of that file, and the targets that it may load:\n  \
            throng agent --nats {url} --nats-token-file {name} --allow HOST[:PORT]\n\
            then, here:\n  \
            throng run TARGET --fleet {url} --nats-token-file {file}\n"
        )
    }

    fn last_lines(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(|line| format!("\n{line}")).collect()
    }

    fn end(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let clock = Clock::start();
        while self.child.try_wait().is_ok_and(|status| status.is_none()) {
            if clock.now() > ENDS_WITHIN {
                let _ = self.child.kill();
            }
            thread::sleep(LOOKS);
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.end();
    }
}

/// A command whose process is killed by the kernel when this process ends for whatever reason, and that does not get Ctrl-C.
fn bound(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]).process_group(0);
    // Debian installs the server in a folder that is not on every user's PATH.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    command
}

/// The token in this file; if there is none, 256 random bits are written to it.
fn token(file: &Path) -> std::io::Result<String> {
    if let Ok(text) = fs::read_to_string(file)
        && !text.trim().is_empty()
    {
        return Ok(text.trim().to_owned());
    }
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_private(file, &format!("{token}\n"))?;
    Ok(token)
}

fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(file)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// The server's configuration; port -1 requests a free port.
fn configuration(listen: SocketAddr, token: &str, folder: &Path, args: &BrokerArgs) -> String {
    let port = if listen.port() == 0 { -1 } else { i32::from(listen.port()) };
    let (store, ip) = (quoted(&folder.join("jetstream").display().to_string()), listen.ip());
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => {
            format!("tls {{ cert_file: {}, key_file: {} }}\n", quoted(cert), quoted(key))
        }
        _ => String::new(),
    };
    format!(
        "# Made by throng fleet broker.\n\
        host: \"{ip}\"\nport: {port}\nauthorization {{ token: \"{token}\" }}\nmax_payload: {MAX_PAYLOAD}\n\
        jetstream {{ store_dir: {store}, max_file_store: {MAX_STORE} }}\n{tls}"
    )
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The port from the file that the server writes: `{"nats":["nats://127.0.0.1:34567"],…}`.
fn port_in(folder: &Path, pid: u32) -> Option<u16> {
    let text = fs::read_to_string(folder.join(format!("nats-server_{pid}.ports"))).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    value["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
}

/// Whether the server accepts the token; false if `stop` is set before.
fn connect(listen: SocketAddr, token: &str, stop: &AtomicBool) -> Result<bool, String> {
    let ip: IpAddr = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => [127, 0, 0, 1].into(),
        IpAddr::V6(ip) if ip.is_unspecified() => [0, 0, 0, 0, 0, 0, 0, 1].into(),
        ip => ip,
    };
    let access = Access { token: Some(token.to_owned()), ..Access::default() };
    let server = Server::with(&format!("nats://{}", SocketAddr::new(ip, listen.port())), access);
    let server = server.map_err(|why| why.to_string())?;
    let link = Link::connect_unless(&|| stop.load(Relaxed), &server, Arc::new(|_: &str| ()));
    link.map(|link| link.is_some()).map_err(|failed| failed.why)
}

/// `throng fleet broker` as a child process for a run. The broker and its server end with this process.
pub(crate) struct OwnBroker {
    child: Child,
    pub(crate) server: Server,
}

impl OwnBroker {
    /// Starts the broker, and prints how agents join. `listen` replaces the default, all addresses at NATS' port. `interrupt` ends
    /// the wait for the broker.
    pub(crate) fn start(
        listen: Option<&str>,
        target: &str,
        interrupt: &Interrupt,
    ) -> Result<OwnBroker, Failure> {
        let failed = |e: &dyn std::fmt::Display| {
            Failure::machine(format!("--fleet own: the broker did not start: {e}"))
        };
        let mut command = Command::new(std::env::current_exe().map_err(|e| failed(&e))?);
        command.args(["fleet", "broker", "--until-stdin-ends"]);
        command.args(listen.iter().flat_map(|listen| ["--listen", listen]));
        // A separate process group: Ctrl-C must not end the server before the agents are done.
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn();
        let mut child = child.map_err(|e| failed(&e))?;
        let out = child.stdout.take().expect("standard output is piped");
        let Some(first) = first_line(out, interrupt) else {
            // The kernel then kills the server.
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::interrupted("--fleet own", "the broker was not ready yet"));
        };
        let found = first.strip_prefix("broker at ").and_then(|rest| rest.split_once(", token in "));
        let Some((url, file)) = found else {
            // The broker has printed the reason.
            let _ = child.wait();
            return Err(failed(&"see above"));
        };
        let file = file.trim_matches('\'');
        let token = fs::read_to_string(file).map_err(|e| failed(&e))?;
        let access = Access { token: Some(token.trim().to_owned()), ..Access::default() };
        let server = Server::with(url, access).map_err(|e| failed(&e))?;
        message(&format!(
            "waiting for agents; on each machine, with a copy of {file}: throng agent --nats {url} --nats-token-file \
            token{}",
            allowed(target)
        ));
        Ok(OwnBroker { child, server })
    }
}

/// The first line, empty if there is none; `None` if interrupted before.
fn first_line(out: impl Read + Send + 'static, interrupt: &Interrupt) -> Option<String> {
    let (read, line) = mpsc::channel();
    thread::spawn(move || {
        let first = BufReader::new(out).lines().map_while(Result::ok).next();
        let _ = read.send(first.unwrap_or_default());
    });
    while !interrupt.is_set() {
        match line.recv_timeout(LOOKS) {
            Err(RecvTimeoutError::Timeout) => {}
            read => return Some(read.unwrap_or_default()),
        }
    }
    None
}

impl Drop for OwnBroker {
    fn drop(&mut self) {
        // The broker ends at the end of its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The argument ` --allow 10.0.0.7:8000` for a plain target that is not on loopback; otherwise empty.
fn allowed(target: &str) -> String {
    let authority =
        target.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host).trim_matches(['[', ']']);
    let is_loopback = host.parse().map_or(host == "localhost", |ip: IpAddr| ip.is_loopback());
    if authority.is_empty() || is_loopback || authority.contains('{') {
        String::new()
    } else {
        format!(" --allow {authority}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_to_allow_the_target() {
        for (target, expected) in [
            ("http://10.0.0.7:8000/x", " --allow 10.0.0.7:8000"),
            ("tcp://host", " --allow host"),
            ("http://127.0.0.1:8000/", ""),
            ("ws://[::1]:8000/", ""),
            ("http://localhost/", ""),
            ("scenario.toml", ""),
            ("http://10.0.0.{1..3}/", ""),
        ] {
            assert_eq!(allowed(target), expected, "{target}");
        }
    }

    #[test]
    fn a_token_is_kept_and_its_owners_alone() {
        let file = std::env::temp_dir().join(format!("throng-token-{}", std::process::id()));
        let first = token(&file).unwrap();
        assert_eq!((first.len(), token(&file).unwrap()), (64, first.clone()));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_file(&file).unwrap();
        assert_ne!(token(&file).unwrap(), first);
        fs::remove_file(&file).unwrap();
    }
}
