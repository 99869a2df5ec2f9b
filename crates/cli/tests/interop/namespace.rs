//! Network namespaces joined by a cable, each held by a process: they end with it, whatever becomes of the test.

use std::{
    fs,
    process::{Command, Stdio},
};

use crate::program::{Program, Serving, skip, throng, until};

/// A network and mount namespace of its own.
pub(crate) struct Namespace {
    pub(crate) holder: Program,
}

impl Namespace {
    /// The kernel ends a namespace with its last process; this one ends with our end of its standard input.
    pub(crate) fn new() -> Namespace {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "cat"]).stdin(Stdio::piped());
        let holder = Program::from(command);
        let space = format!("/proc/{}/ns/net", holder.pid());
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        until("a namespace of its own", || fs::read_link(&space).is_ok_and(|its| its != own));
        // The link changes with unshare(), the name as soon as its work is done.
        let name = format!("/proc/{}/comm", holder.pid());
        until("it is held", || fs::read_to_string(&name).is_ok_and(|name| name == "cat\n"));
        let new = Namespace { holder };
        new.run("ip link set lo up");
        new
    }

    /// A program inside.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = crate::server::program("nsenter", &["--net", "--mount", "--target"]);
        command.args([&self.holder.pid().to_string(), "--", name]);
        command
    }

    /// The same command line, inside.
    pub(crate) fn enter(&self, outside: &Command) -> Command {
        let mut command = self.command(outside.get_program().to_str().unwrap());
        command.args(outside.get_args());
        command
    }

    /// Runs a line of words inside, to its end; what it printed.
    pub(crate) fn run(&self, line: &str) -> String {
        let mut words = line.split(' ');
        let mut command = self.command(words.next().unwrap());
        command.args(words);
        let ended = Program::from(command).end();
        assert_eq!(ended.status, Some(0), "{line}: {ended:?}");
        ended.stdout
    }

    /// Sets a switch of the kernel, `net/ipv4/…`.
    pub(crate) fn set(&self, switch: &str, value: &str) {
        self.run(&format!("sysctl -q -w {switch}={value}"));
    }

    /// Puts a file in another's place.
    pub(crate) fn replace(&self, path: &str, text: &str) {
        let file = crate::program::file(&format!("interop-{}", self.holder.pid()));
        fs::write(&file, text).unwrap();
        self.run(&format!("mount --bind {} {path}", file.display()));
    }
}

/// A server's namespace and a client's, with a cable between them: 10.77.0.1 and fd77::1 on the server's side,
/// 10.77.0.2 and fd77::2 on the client's; both ends are called `cable`.
pub(crate) struct Pair {
    pub(crate) server: Namespace,
    pub(crate) client: Namespace,
}

impl Pair {
    /// None where this user may not make namespaces; that is said.
    pub(crate) fn new() -> Option<Pair> {
        if !may_make_namespaces() {
            return None;
        }
        let pair = Pair { server: Namespace::new(), client: Namespace::new() };
        let peer = pair.client.holder.pid();
        pair.server.run(&format!("ip link add cable type veth peer name cable netns {peer}"));
        for (side, host) in [(&pair.server, 1), (&pair.client, 2)] {
            side.run(&format!("ip addr add 10.77.0.{host}/24 dev cable"));
            // Duplicate addresses need not be looked for, and that takes a second.
            side.run(&format!("ip addr add fd77::{host}/64 dev cable nodad"));
            side.run("ip link set cable up");
        }
        if runs_over_tun() {
            pair.client.forward();
            pair.server.route_devices("10.77.0.2", "fd77::2");
        }
        for side in [&pair.server, &pair.client] {
            until("the cable carries", || side.run("ip -br link show cable").contains(" UP "));
            // IPv6 takes notice of it a moment later.
            until("IPv6 has its routes", || side.run("ip -6 route show dev cable").contains("fd77::/64"));
        }
        Some(pair)
    }

    /// `throng serve` on the server's side, at all its addresses or one of them.
    pub(crate) fn serve(&self, any: &str) -> Serving {
        let listen = format!("{any}:0");
        let words = ["serve", "--listen", &listen, "--until-stdin-ends", "--threads", "1"];
        Serving::from(self.server.enter(&throng(&words)), &[])
    }

    /// Peers of the connections that the server's side has open on a port, as `address:port`.
    pub(crate) fn peers(&self, port: u16) -> Vec<std::net::SocketAddr> {
        let text = self.server.run(&format!("ss -Htn state established sport = {port}"));
        let peers = text.lines().map(|line| line.split_whitespace().nth(3).expect("a peer"));
        peers.map(|peer| peer.parse().unwrap_or_else(|e| panic!("{e}: {peer}"))).collect()
    }
}

/// Whether this user may; that it may not is said.
pub(crate) fn may_make_namespaces() -> bool {
    let probe = Program::from(crate::server::program("unshare", &["--net", "--mount", "true"])).end();
    if probe.status != Some(0) {
        skip(format_args!("namespaces need root: {}", probe.stderr.trim()));
    }
    probe.status == Some(0)
}

/// A client's and a server's namespace with a router's between them: 10.88.1.2 and fd88:1::2 on the client's side,
/// 10.88.2.2 and fd88:2::2 on the server's; the router has .1 and ::1 in both networks.
pub(crate) struct Routed {
    pub(crate) client: Namespace,
    pub(crate) router: Namespace,
    pub(crate) server: Namespace,
}

impl Routed {
    /// None where this user may not make namespaces; that is said.
    pub(crate) fn new() -> Option<Routed> {
        if !may_make_namespaces() {
            return None;
        }
        let [client, router, server] = [Namespace::new(), Namespace::new(), Namespace::new()];
        for (nth, name, end) in [(1, "client", &client), (2, "server", &server)] {
            let peer = end.holder.pid();
            router.run(&format!("ip link add {name} type veth peer name cable netns {peer}"));
            for (side, device, host) in [(&router, name, 1), (end, "cable", 2)] {
                side.run(&format!("ip addr add 10.88.{nth}.{host}/24 dev {device}"));
                side.run(&format!("ip addr add fd88:{nth}::{host}/64 dev {device} nodad"));
                side.run(&format!("ip link set {device} up"));
            }
            until("the cable carries", || end.run("ip -br link show cable").contains(" UP "));
            end.run(&format!("ip route add default via 10.88.{nth}.1"));
            end.run(&format!("ip -6 route add default via fd88:{nth}::1"));
        }
        router.set("net.ipv4.ip_forward", "1");
        router.set("net.ipv6.conf.all.forwarding", "1");
        if runs_over_tun() {
            client.forward();
            router.route_devices("10.88.1.2", "fd88:1::2");
        }
        Some(Routed { client, router, server })
    }
}

/// Runs that name no `--io` have one of their own.
fn runs_over_tun() -> bool {
    std::env::var(crate::program::RUN_IO).is_ok_and(|io| io == "tun")
}

impl Namespace {
    /// Packets of TUN devices leave by the cable, and come back.
    pub(crate) fn forward(&self) {
        self.set("net.ipv4.conf.cable.forwarding", "1");
        self.set("net.ipv6.conf.all.forwarding", "1");
    }

    /// The networks of the devices are behind this neighbour.
    pub(crate) fn route_devices(&self, via4: &str, via6: &str) {
        self.run(&format!("ip route add 198.18.0.0/15 via {via4}"));
        self.run(&format!("ip -6 route add 2001:2::/48 via {via6}"));
    }
}

impl Namespace {
    /// A firewall's rule for what passes through, in a table of its own.
    pub(crate) fn forbid(&self, rule: &str) {
        self.filter("forward", rule);
    }

    /// A rule at this place of the way: `forward`, `output`, `input`.
    pub(crate) fn filter(&self, hook: &str, rule: &str) {
        self.run("nft add table inet guard");
        self.run(&format!("nft add chain inet guard {hook} {{ type filter hook {hook} priority 0 ; }}"));
        self.run(&format!("nft add rule inet guard {hook} {rule}"));
    }

    /// No rule is left.
    #[allow(dead_code, reason = "the fleet's tests use it")]
    pub(crate) fn allow(&self) {
        self.run("nft flush ruleset");
    }
}
