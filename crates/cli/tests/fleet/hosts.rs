//! Hosts in namespaces of their own, on one network.

use std::process::Command;

use crate::{
    namespace::{Namespace, may_make_namespaces},
    program::until,
};

/// Hosts on one network: 10.66.0.1 and so on, with a bridge between them.
pub(crate) struct Hosts {
    hosts: Vec<Namespace>,
    _bridge: Namespace,
}

impl Hosts {
    /// None where this user may not make namespaces; that is said.
    pub(crate) fn new(hosts: usize) -> Option<Hosts> {
        if !may_make_namespaces() {
            return None;
        }
        let bridge = Namespace::new();
        bridge.run("ip link add bridge type bridge forward_delay 0");
        bridge.run("ip link set bridge up");
        let hosts: Vec<Namespace> = (0..hosts).map(|_| Namespace::new()).collect();
        for (nth, host) in (1..).zip(&hosts) {
            let peer = host.holder.pid();
            bridge.run(&format!("ip link add to-{nth} type veth peer name cable netns {peer}"));
            bridge.run(&format!("ip link set to-{nth} master bridge up"));
            host.run(&format!("ip addr add 10.66.0.{nth}/24 dev cable"));
            host.run("ip link set cable up");
        }
        for host in &hosts {
            until("the cable carries", || host.run("ip -br link show cable").contains(" UP "));
        }
        Some(Hosts { hosts, _bridge: bridge })
    }

    /// The same command line, on a host.
    pub(crate) fn enter(&self, host: usize, outside: &Command) -> Command {
        self.hosts[host].enter(outside)
    }

    /// The binary under test, on a host.
    pub(crate) fn throng(&self, host: usize, args: &[&str]) -> Command {
        self.enter(host, &crate::program::throng(args))
    }

    /// Runs a line of words on a host, to its end; what it printed.
    pub(crate) fn run(&self, host: usize, line: &str) -> String {
        self.hosts[host].run(line)
    }
}
