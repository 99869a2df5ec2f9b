//! Third-party programs: started, found on their port, ended with the test.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::program::{Program, RUN_IO, until};

/// Debian's own interpreter: another one on the path would not have Debian's packages.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// A program that the kernel ends with the thread that started it, however that ends: third-party servers have no
/// `--until-stdin-ends`.
pub(crate) fn program(name: &str, args: &[&str]) -> Command {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", name]).args(args);
    command.env("PATH", folders).stdin(Stdio::null());
    command
}

/// A file of these tests, below `tests/interop`.
pub(crate) fn source(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(path);
    path.to_str().unwrap().to_owned()
}

/// The path of a test's [`folder`]. The same test with another `--io` has another one: both may run at once.
pub(crate) fn folder_path(name: &str) -> PathBuf {
    let io = std::env::var(RUN_IO).map_or(String::new(), |io| format!("{io}-"));
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("interop-{io}{name}"))
}

/// A new, empty folder that only this test writes to.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = folder_path(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The response that `curl` gets; of any certificate.
pub(crate) fn fetch(url: &str) -> String {
    let ended = Program::from(program("curl", &["-sS", "-k", "-i", "--max-time", "10", url])).end();
    assert_eq!(ended.status, Some(0), "{url}: {ended:?}");
    ended.stdout
}

/// A running server.
pub(crate) struct Server {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// A server that takes port 0 and prints which it got: the number after `before`, on either of its streams.
    pub(crate) fn announcing(before: &str, command: Command) -> Server {
        let mut program = Program::from(command);
        let mut port = None;
        until(&format!("{before:?} and a port"), || {
            let output = program.stdout() + &program.stderr();
            port = port_after(&output, before);
            assert!(port.is_some() || !program.is_ended(), "ended: {output}");
            port.is_some()
        });
        Server { program, address: SocketAddr::from(([127, 0, 0, 1], port.unwrap())) }
    }

    /// A server that needs a given address. Between the choice and its bind another program may have taken the port; then
    /// it ends, and is started with another one.
    pub(crate) fn at(command: impl Fn(SocketAddr) -> Command) -> Server {
        let mut last_words = String::new();
        for _ in 0..10 {
            let address = free_place();
            let mut program = Program::from(command(address));
            let mut ended = false;
            until("it listens, or has ended", || {
                ended = program.is_ended();
                ended || TcpStream::connect(address).is_ok()
            });
            if !ended {
                return Server { program, address };
            }
            last_words = program.stderr();
        }
        panic!("it never listened: {last_words}");
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A loopback address that no other test uses, and a port that is free there.
pub(crate) fn free_place() -> SocketAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    TcpListener::bind(SocketAddr::from(([127, 200, high, low], 0))).unwrap().local_addr().unwrap()
}

/// `8000`, from `… on port 8000 (…` after `on port `, once the number is complete.
fn port_after(output: &str, before: &str) -> Option<u16> {
    let rest = &output[output.find(before)? + before.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    rest[..end].parse().ok()
}

#[test]
fn ports_are_read_when_they_are_whole() {
    for (output, port) in [
        ("", None),
        ("on port ", None),
        ("on port 80", None),
        ("on port 8000\n", Some(8000)),
        ("listening on port 8000 (http)", Some(8000)),
        ("on port x\n", None),
    ] {
        assert_eq!(port_after(output, "on port "), port, "{output:?}");
    }
}
