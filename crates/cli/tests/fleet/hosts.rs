//! Hosts in namespaces of their own, on one network.

use std::{path::Path, process::Command};

use crate::{
    fleet::nats_at,
    namespace::{Namespace, may_make_namespaces},
    program::{Program, until},
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

    /// A NATS server on the first host.
    pub(crate) fn nats(&self, at: &str, folder: &Path) -> Program {
        Program::from(self.enter(0, &nats_at(at.parse().unwrap(), folder)))
    }

    /// A target on the first host, which listens.
    pub(crate) fn serve(&self, at: &str) -> Program {
        let server = Program::from(self.throng(0, &["serve", "http", "--listen", at, "--threads", "1"]));
        until("the server listens", || server.stdout().contains(at));
        server
    }

    /// An agent that has joined.
    pub(crate) fn agent(&self, host: usize, nats: &str, allow: &str) -> Program {
        let agent = Program::from(self.throng(host, &["agent", "--nats", nats, "--allow", allow]));
        until("an agent", || agent.stdout().starts_with("agent "));
        agent
    }

    /// Requests that a target on the first host has counted, with the one that asks for it.
    pub(crate) fn requests(&self, at: &str) -> u64 {
        let stats = self.run(0, &format!("curl -s http://{at}/stats"));
        serde_json::from_str::<serde_json::Value>(&stats).unwrap()["requests"].as_u64().unwrap()
    }

    /// What a host sends to this port is lost.
    pub(crate) fn drop_to(&self, host: usize, port: u16) {
        self.hosts[host].filter("output", &format!("tcp dport {port} drop"));
    }

    /// Nothing is lost any more.
    pub(crate) fn drop_nothing(&self, host: usize) {
        self.hosts[host].allow();
    }

    /// Runs a line of words on a host, to its end; what it printed.
    pub(crate) fn run(&self, host: usize, line: &str) -> String {
        self.hosts[host].run(line)
    }
}
