//! Checks before a run whether this machine can perform it, with fixes. One list of checks: `run` reports those that fail
//! ([`preflight`]), `doctor` all ([`examine`]).
//!
//! What cannot be read is not judged: a container that hides a file is not refused for it.

mod places;
mod process;
mod stack;
mod target;
mod tun;

use crate::finding::Fix;
use crate::network::sock_stat;
use crate::{Finding, Listener, Root, memory, open_files};
use plan::{Handshakes, Http2Requests, Network};
pub use process::{open_files_refused, uring_refused};
use std::net::IpAddr;
pub use target::target_room;
pub use tun::tun_refused;
use units::shell_word;

/// Kernel memory of one end of an idle connection, in bytes. Measured on Linux 6.18: socket, inode, file
/// and security blob 3,900, slot in a ring's table 23, armed poll 256; together 4,179. The rest, 5 %, is
/// for what grows with the ports in use (bind buckets and their hash).
const KERNEL_BYTES_PER_SOCKET: u64 = 4_400;

/// Our own memory for one end, in bytes: a record of 40 and its share of slab, wheel and tables.
const USER_BYTES_PER_CONNECTION: u64 = 128;
/// Our own memory for a connection over a TUN device, in bytes: its records, and what the state machine keeps of it.
const TUN_BYTES_PER_CONNECTION: u64 = 96;
/// What TLS adds at one end: 120 bytes that are kept, and what an allocator does not give back of handshakes. Measured with 12,000
/// connections: `throng run` 236, `throng serve` 104.
const TLS_BYTES: u64 = 256;
/// What HTTP/2 adds: 56 bytes of the session, and its share of tables that grow by doubling. Measured in the same way: `throng run`
/// 199 to 271, `throng serve` 77 to 115.
const HTTP2_BYTES: u64 = 256;

/// Descriptors that are no connections: standard streams, listeners, event descriptors, exporters, store.
const OTHER_FILES: u64 = 32;

/// What a run needs of this machine.
#[derive(Clone, Debug)]
pub struct Need {
    /// The target as typed, for the commands of fixes; `None`: no target, loopback is assumed.
    pub target: Option<String>,
    /// Connections to hold at once.
    pub connections: u64,
    /// Those that are expected to be open at once: without what is kept for slow responses.
    pub expected: u64,
    /// Dials that may be outstanding at once.
    pub dials: u64,
    /// Shards.
    pub threads: u64,
    /// Addresses to dial from.
    pub sources: u64,
    /// The networks to dial from, as given by the user; empty: chosen by throng.
    pub networks: Vec<Network>,
    /// The device that addresses would be added to (see [`route_device`](crate::route_device)).
    pub device: String,
    /// Addresses and ports to dial to.
    pub destinations: u64,
    /// The addresses of these.
    pub addresses: Vec<IpAddr>,
    /// Whether they are IPv4; if not, they are IPv6.
    pub is_v4: bool,
    /// Whether the target runs on this machine, so that it has the other end of each connection.
    pub both_ends_here: bool,
    /// Those of this machine that listen on the target's ports.
    pub listeners: Vec<Listener>,
    /// The most 4-tuples that sources, ports and destinations give.
    pub tuples: u64,
    /// Whether io_uring works here, and if not, why.
    pub uring: Result<(), String>,
    /// What its connections have between the socket and what is measured.
    pub layers: Layers,
    /// Our ends are no sockets of the kernel: they are behind a TUN device.
    pub is_tun: bool,
}

/// TLS and HTTP/2 of a run's connections, and what else they keep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Layers {
    /// The share of connections with TLS, 0..=1.
    pub tls: f64,
    /// The share of connections with HTTP/2.
    pub http2: f64,
    /// Bytes that a client's connection has on average for what it captures.
    pub captures: f64,
    /// The same for messages that the server sends by itself.
    pub messages: f64,
    /// The same for heartbeats, and for PINGs beside requests.
    pub beats: f64,
    /// The handshakes of TLS; none without.
    pub handshakes: Option<Handshakes>,
    /// The requests over HTTP/2; none without.
    pub http2_requests: Option<Http2Requests>,
}

impl Layers {
    /// Our own memory for a connection on average, bytes, by name; `ends`: how many of its ends are here.
    fn bytes(self, ends: u64) -> [(&'static str, u64); 5] {
        let (all, ends) = (|bytes: f64| bytes.ceil() as u64, ends as f64);
        [
            ("TLS", all(self.tls * TLS_BYTES as f64 * ends)),
            ("HTTP/2", all(self.http2 * HTTP2_BYTES as f64 * ends)),
            // The other end has nothing of these.
            ("captured values", all(self.captures)),
            ("messages of the server", all(self.messages)),
            ("heartbeats and PINGs", all(self.beats)),
        ]
    }
}

impl Need {
    fn ends_here(&self) -> u64 {
        if self.both_ends_here { 2 } else { 1 }
    }

    /// Sockets of this machine for each connection.
    fn sockets_each(&self) -> u64 {
        self.ends_here() - u64::from(self.is_tun)
    }

    fn sockets(&self) -> u64 {
        self.connections.saturating_mul(self.sockets_each())
    }

    fn bytes_per_connection(&self) -> u64 {
        let layers: u64 = self.layers.bytes(self.ends_here()).iter().map(|(_, bytes)| bytes).sum();
        let ends = if self.is_tun {
            TUN_BYTES_PER_CONNECTION + KERNEL_BYTES_PER_SOCKET * self.sockets_each()
        } else {
            (KERNEL_BYTES_PER_SOCKET + USER_BYTES_PER_CONNECTION) * self.ends_here()
        };
        ends + layers
    }

    /// What throng itself has of it.
    fn user_bytes_per_connection(&self) -> u64 {
        let layers: u64 = self.layers.bytes(1).iter().map(|(_, bytes)| bytes).sum();
        layers + if self.is_tun { TUN_BYTES_PER_CONNECTION } else { USER_BYTES_PER_CONNECTION }
    }

    /// The same for this many connections, dialled as fast as the target takes them.
    #[must_use]
    pub fn with_connections(self, connections: u64) -> Need {
        Need { connections, expected: connections, dials: connections, ..self }
    }

    /// The run as a command line, with other arguments: `throng run 'http://127.0.0.{1..3}/' -c 5`.
    fn run(&self, args: &str) -> String {
        match &self.target {
            Some(target) => format!("throng run {} {}{args}", shell_word(target), self.io()),
            None => format!("throng doctor {}{args}", self.io()),
        }
    }

    /// Without it, the same arguments would be about sockets.
    fn io(&self) -> &'static str {
        if self.is_tun { "--io tun " } else { "" }
    }

    /// The same question to doctor.
    fn doctor(&self, args: &str) -> String {
        let target = self.target.as_deref().map(|target| format!("{} ", shell_word(target)));
        format!("throng doctor {}{}{args}", target.unwrap_or_default(), self.io())
    }
}

/// The value of a limit, what the run needs of it, and the fix if that is not enough.
type Checked = Result<(String, String, Option<Fix>), Skip>;

/// Why a limit is not judged.
enum Skip {
    /// It has no part in this run.
    Irrelevant,
    /// It cannot be read.
    Unread(&'static str),
}

impl From<&'static str> for Skip {
    fn from(why: &'static str) -> Skip {
        Skip::Unread(why)
    }
}

type Check = fn(&Root, &Need) -> Checked;

/// The limits by their names.
const CHECKS: &[(&str, Check)] = &[
    ("sources", places::sources),
    ("ports", places::ports),
    ("local port range", places::local_ports),
    ("memory", process::memory_room),
    ("address space", process::address_space),
    ("file table", process::file_table),
    ("open files", process::open_files_room),
    ("open files ceiling", process::open_files_ceiling),
    ("io_uring", process::uring),
    ("TUN device", tun::device),
    ("forwarding", tun::forwarding),
    ("cores", process::cores),
    ("TLS handshakes", process::handshakes),
    ("HTTP/2 requests", process::http2_requests),
    ("tcp memory", stack::tcp_memory),
    ("receive buffer", stack::receive_buffer),
    ("send buffer", stack::send_buffer),
    ("accept queue", stack::accept_queue),
    ("half-open queue", stack::half_open_queue),
    ("conntrack", stack::conntrack),
    ("time wait", stack::time_wait),
    ("connection hash", stack::hash),
    ("target's open files", target::open_files_room),
    ("target's backlog", target::backlog),
];

/// Each limit of this machine against `need`, also those that suffice and those that cannot be read.
pub fn examine(root: &Root, need: &Need) -> Vec<Finding> {
    let examined = CHECKS.iter().filter_map(|(what, check)| match check(root, need) {
        Ok((value, needed, fix)) => Some(Finding::new(what, value, needed, fix)),
        Err(Skip::Unread(why)) => Some(Finding::unknown(what, why)),
        Err(Skip::Irrelevant) => None,
    });
    examined.collect()
}

/// All limits of this machine that are insufficient for `need`, refusals first.
pub fn preflight(root: &Root, need: &Need) -> Vec<Finding> {
    let mut findings: Vec<Finding> = examine(root, need).into_iter().filter(Finding::is_trouble).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// How many connections a machine can hold, and why no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// `u64::MAX` where nothing can be read.
    pub connections: u64,
    /// What ends it: `memory`, `address space`, `ports`, `file table`.
    pub limited_by: &'static str,
}

/// The most connections that memory, address space, 4-tuples and, where it binds us, the machine's file table allow,
/// whatever `need.connections` says.
pub fn capacity(root: &Root, need: &Need) -> Capacity {
    by_memory_or(capacity_beside_memory(root, need), root, need)
}

/// The most that [`preflight`] does not refuse: the same with the 4-tuples in TIME_WAIT, for which it only warns.
pub fn capacity_after_time_wait(root: &Root, need: &Need) -> Capacity {
    by_memory_or(by_files_or_tuples(root, need, need.tuples), root, need)
}

/// The same were there always enough memory.
pub fn capacity_beside_memory(root: &Root, need: &Need) -> Capacity {
    by_files_or_tuples(root, need, need.free_tuples(root))
}

fn by_memory_or(beside: Capacity, root: &Root, need: &Need) -> Capacity {
    let by_memory = memory(root).map_or(u64::MAX, |m| m.available / need.bytes_per_connection());
    let memory = Capacity { connections: by_memory, limited_by: "memory" };
    let by_space = process::address_space_room(root, need);
    let space = Capacity { connections: by_space, limited_by: "address space" };
    // Of equal ones the first.
    [memory, space, beside].into_iter().min_by_key(|own| own.connections).expect("there are three")
}

fn by_files_or_tuples(root: &Root, need: &Need, by_ports: u64) -> Capacity {
    let by_files = match open_files(root) {
        Some(files) if !process::may_exceed_file_max(root) => {
            files.free().saturating_sub(OTHER_FILES).checked_div(need.sockets_each()).unwrap_or(u64::MAX)
        }
        _ => u64::MAX,
    };
    if by_files <= by_ports {
        Capacity { connections: by_files, limited_by: "file table" }
    } else {
        Capacity { connections: by_ports, limited_by: "ports" }
    }
}

impl Need {
    /// The 4-tuples without those in TIME_WAIT. Which of them are ours to use is not known: all may be.
    fn free_tuples(&self, root: &Root) -> u64 {
        // Those that a device has are not the kernel's.
        let waiting = if self.is_tun { 0 } else { sock_stat(root).map_or(0, |stat| stat.tcp_tw) };
        self.tuples.saturating_sub(waiting)
    }
}

#[cfg(test)]
mod tests;
