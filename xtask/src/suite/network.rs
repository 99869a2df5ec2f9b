//! A private network namespace for the tests.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Creates a network namespace within another one, because the size of a namespace's table of connections is taken from the sysctl
/// of the namespace in which it is created. Then waits for the end of standard input, which closes however this process ends. The
/// table has a fourth of the default size: throng and its tests list the connections of a port some ten thousand times, and the
/// kernel walks the whole table for each.
const MAKE: &str = "sysctl -qw net.ipv4.tcp_child_ehash_entries=65536 && exec unshare --net sh -c '\
    ip link set lo up && ip link add device type veth peer wire && ip link set device up && ip link set wire up && \
    ip address add 198.51.100.1/24 dev device && ip route add 192.0.2.0/24 dev device && echo ready && exec cat'";

/// A network namespace with a loopback device and with a device that leads nowhere, which has an address and a route (RFC 5737), as
/// machines do. There is no default route, so that resolving a name succeeds or fails at once. Sockets, counters and ports of other
/// programs are not visible in it. It exists until this value is dropped.
pub(super) struct Network(Child);

impl Network {
    /// Creates the namespace.
    ///
    /// # Errors
    /// The namespace cannot be created: that needs CAP_SYS_ADMIN.
    pub(super) fn new() -> Result<Network> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "sh", "-c", MAKE]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let made = Network(unshare.stderr(Stdio::null()).spawn().context("cannot start unshare")?);
        made.ready()
    }

    fn ready(mut self) -> Result<Network> {
        let mut line = String::new();
        BufReader::new(self.0.stdout.take().expect("it is piped")).read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("no network namespace can be made");
        }
        Ok(self)
    }

    /// A command that runs in this namespace.
    pub(super) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.0.id())).arg("--").arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn it_has_devices_and_sockets_of_its_own() {
        let Ok(network) = Network::new() else {
            let _ = writeln!(std::io::stderr(), "skipped: no network namespace can be made");
            return;
        };
        let devices = network.command("cat").arg("/proc/net/dev").output().unwrap();
        let devices = String::from_utf8(devices.stdout).unwrap();
        let names: Vec<_> =
            devices.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim()).collect();
        assert!(names.contains(&"lo") && names.contains(&"device"), "{devices}");
        let listening = network.command("cat").arg("/proc/net/tcp").output().unwrap();
        assert_eq!(String::from_utf8(listening.stdout).unwrap().lines().count(), 1);
        let namespace = format!("/proc/{}/ns/net", network.0.id());
        drop(network);
        assert!(!std::path::Path::new(&namespace).exists());
    }
}
