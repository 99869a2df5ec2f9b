//! Checks before a run whether this machine can carry it out, with fixes. There is one list of checks: `run` reports those that fail
//! ([`preflight`]), `doctor` all of them ([`examine`]).
//!
//! A limit that cannot be read is not judged: a container that hides a file is not refused for that.

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

/// Kernel memory of one end of an idle connection, in bytes. Measured on Linux 6.18: socket, inode, file and security blob 3,900, slot in
/// a ring's table 23, armed poll 256; together 4,179. The remaining 5 % are for structures that grow with the ports in use (bind buckets
/// and their hash).
const KERNEL_BYTES_PER_SOCKET: u64 = 4_400;

/// throng's memory for one end, in bytes: a record of 40, and its share of slab, timer wheel and tables.
const USER_BYTES_PER_CONNECTION: u64 = 128;
/// throng's memory for a connection over a TUN device, in bytes: its records, and the state of its TCP.
const TUN_BYTES_PER_CONNECTION: u64 = 96;
/// Additional memory for TLS at one end: 120 bytes of state, and memory of handshakes that the allocator does not return. Measured with
/// 12,000 connections: `throng run` 236, `throng serve` 104.
const TLS_BYTES: u64 = 256;
/// Additional memory for HTTP/2: 56 bytes of session, and a share of tables that grow by doubling. Measured like TLS: `throng run` 199 to
/// 271, `throng serve` 77 to 115.
const HTTP2_BYTES: u64 = 256;

/// Descriptors other than connections: standard streams, listeners, event descriptors, exporters, store.
const OTHER_FILES: u64 = 32;

/// What a run needs of this machine.
#[derive(Clone, Debug)]
pub struct Need {
    /// The target as typed, for the command lines of fixes; `None`: no target, loopback is assumed.
    pub target: Option<String>,
    /// Maximum number of concurrent connections.
    pub connections: u64,
    /// Expected number of concurrent connections, without those reserved for slow responses.
    pub expected: u64,
    /// Maximum number of outstanding dials.
    pub dials: u64,
    /// Number of shards.
    pub threads: u64,
    /// Number of source addresses.
    pub sources: u64,
    /// The networks of source addresses given by the user; empty: chosen by throng.
    pub networks: Vec<Network>,
    /// The device that addresses would be added to (see [`route_device`](crate::route_device)).
    pub device: String,
    /// Number of addresses and ports to dial.
    pub destinations: u64,
    /// The addresses to dial.
    pub addresses: Vec<IpAddr>,
    /// Whether these are IPv4; otherwise they are IPv6.
    pub is_v4: bool,
    /// Whether the target runs on this machine, which then has both ends of each connection.
    pub both_ends_here: bool,
    /// Listeners of this machine that these dials reach.
    pub listeners: Vec<Listener>,
    /// Maximum number of 4-tuples from these sources, ports and destinations.
    pub tuples: u64,
    /// Whether io_uring is available, or why not.
    pub uring: Result<(), String>,
    /// Protocol layers of its connections, which need memory and CPU time.
    pub layers: Layers,
    /// throng's ends are not sockets of the kernel, but behind a TUN device.
    pub is_tun: bool,
}

/// TLS and HTTP/2 of a run's connections, and other state that they keep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Layers {
    /// Fraction of connections with TLS, 0..=1.
    pub tls: f64,
    /// Fraction of connections with HTTP/2, 0..=1.
    pub http2: f64,
    /// Average bytes per client connection for captured values.
    pub captures: f64,
    /// Average bytes per client connection for messages that the server sends unasked.
    pub messages: f64,
    /// Average bytes per client connection for heartbeats and PINGs.
    pub beats: f64,
    /// The TLS handshakes; `None` without TLS.
    pub handshakes: Option<Handshakes>,
    /// The requests over HTTP/2; `None` without HTTP/2.
    pub http2_requests: Option<Http2Requests>,
}

impl Layers {
    /// Average bytes per connection in user space, by layer. `ends`: number of ends on this machine.
    fn bytes(self, ends: u64) -> [(&'static str, u64); 5] {
        let (all, ends) = (|bytes: f64| bytes.ceil() as u64, ends as f64);
        [
            ("TLS", all(self.tls * TLS_BYTES as f64 * ends)),
            ("HTTP/2", all(self.http2 * HTTP2_BYTES as f64 * ends)),
            // Only the client has these.
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

    /// Sockets of this machine per connection.
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

    /// throng's part of the memory per connection.
    fn user_bytes_per_connection(&self) -> u64 {
        let layers: u64 = self.layers.bytes(1).iter().map(|(_, bytes)| bytes).sum();
        layers + if self.is_tun { TUN_BYTES_PER_CONNECTION } else { USER_BYTES_PER_CONNECTION }
    }

    /// The same need with this many connections, dialled as fast as the target accepts them.
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

    /// Without this flag, the same arguments would refer to sockets.
    fn io(&self) -> &'static str {
        if self.is_tun { "--io tun " } else { "" }
    }

    /// A `throng doctor` command line for the same target.
    fn doctor(&self, args: &str) -> String {
        let target = self.target.as_deref().map(|target| format!("{} ", shell_word(target)));
        format!("throng doctor {}{}{args}", target.unwrap_or_default(), self.io())
    }
}

/// The value of a limit, what the run needs of it, and the fix if it is insufficient.
type Checked = Result<(String, String, Option<Fix>), Skip>;

/// Why a limit is not judged.
enum Skip {
    /// It does not matter for this run.
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

/// The checks, by the names of their limits.
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

/// All limits of this machine compared with `need`, including sufficient and unreadable ones.
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

/// How many connections a machine can hold, and what limits them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of connections; `u64::MAX` if nothing can be read.
    pub connections: u64,
    /// The limit: `memory`, `address space`, `ports`, `file table`.
    pub limited_by: &'static str,
}

/// The number of connections that memory, address space, 4-tuples and (if it binds this process) the machine's file table allow,
/// regardless of `need.connections`.
pub fn capacity(root: &Root, need: &Need) -> Capacity {
    by_memory_or(capacity_beside_memory(root, need), root, need)
}

/// The number of connections that [`preflight`] does not refuse: like [`capacity`], but including the 4-tuples in TIME_WAIT, for which it
/// only warns.
pub fn capacity_after_time_wait(root: &Root, need: &Need) -> Capacity {
    by_memory_or(by_files_or_tuples(root, need, need.tuples), root, need)
}

/// Like [`capacity`], but with unlimited memory.
pub fn capacity_beside_memory(root: &Root, need: &Need) -> Capacity {
    by_files_or_tuples(root, need, need.free_tuples(root))
}

fn by_memory_or(beside: Capacity, root: &Root, need: &Need) -> Capacity {
    let by_memory = memory(root).map_or(u64::MAX, |m| m.available / need.bytes_per_connection());
    let memory = Capacity { connections: by_memory, limited_by: "memory" };
    let by_space = process::address_space_room(root, need);
    let space = Capacity { connections: by_space, limited_by: "address space" };
    // If several are equal, the first one is named.
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
    /// The 4-tuples minus those in TIME_WAIT. All of the latter are assumed to be among them, since that is unknown.
    fn free_tuples(&self, root: &Root) -> u64 {
        // TIME_WAIT of connections over a device is not in the kernel.
        let waiting = if self.is_tun { 0 } else { sock_stat(root).map_or(0, |stat| stat.tcp_tw) };
        self.tuples.saturating_sub(waiting)
    }
}

#[cfg(test)]
mod tests;
