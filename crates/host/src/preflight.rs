//! Can this machine do the run? Asked before it starts, answered with cures.
//!
//! What cannot be read is not judged: a container that hides a file is not refused for it.

use crate::{Finding, Root, Severity, io_uring_disabled, memory, open_files, sock_stat};
use std::net::IpAddr;
use units::{Bytes, Count};

/// Kernel memory of one end of an idle connection, in bytes. Measured on Linux 6.18: socket, inode, file
/// and security blob 3,900, slot in a ring's table 23, armed poll 256; together 4,179. The rest, 5 %, is
/// for what grows with the ports in use (bind buckets and their hash).
pub const KERNEL_BYTES_PER_SOCKET: u64 = 4_400;

/// Our own memory for one end, in bytes: a record of 40 and its share of slab, wheel and tables.
pub const USER_BYTES_PER_CONNECTION: u64 = 128;

/// Descriptors that are no connections: standard streams, listeners, event descriptors, exporters, store.
const OTHER_FILES: u64 = 32;

/// What a run asks of this machine.
#[derive(Clone, Debug)]
pub struct Need {
    /// Connections to hold at once.
    pub connections: u64,
    /// Addresses to dial from.
    pub sources: u64,
    /// Addresses and ports to dial to.
    pub destinations: u64,
    /// Whether the target runs on this machine, so that it has the other end of each connection.
    pub both_ends_here: bool,
    /// The most 4-tuples that sources, ports and destinations give.
    pub tuples: u64,
    /// Sources asked for that are not addresses of this machine (see [`foreign`](crate::foreign)).
    pub foreign_sources: Vec<IpAddr>,
    /// Whether io_uring works here, and if not, why.
    pub uring: Result<(), String>,
}

impl Need {
    fn ends_here(&self) -> u64 {
        if self.both_ends_here { 2 } else { 1 }
    }

    fn sockets(&self) -> u64 {
        self.connections.saturating_mul(self.ends_here())
    }

    fn bytes_per_connection(&self) -> u64 {
        (KERNEL_BYTES_PER_SOCKET + USER_BYTES_PER_CONNECTION) * self.ends_here()
    }
}

/// All that stands in the way of `need` on this machine, refusals first.
pub fn preflight(root: &Root, need: &Need) -> Vec<Finding> {
    let checks = [
        sources,
        ports,
        memory_room,
        file_table,
        open_files_room,
        uring,
        tcp_memory,
        conntrack,
        time_wait,
        hash,
    ];
    let mut findings: Vec<Finding> = checks.iter().filter_map(|check| check(root, need)).collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// The most connections that memory, 4-tuples and, where it binds us, the machine's file table allow,
/// whatever `need.connections` says. `u64::MAX` where nothing can be read.
pub fn capacity(root: &Root, need: &Need) -> u64 {
    let by_memory = memory(root).map_or(u64::MAX, |m| m.available / need.bytes_per_connection());
    let by_files = match open_files(root) {
        Ok(files) if !may_exceed_file_max(root) => {
            files.free().saturating_sub(OTHER_FILES) / need.ends_here()
        }
        _ => u64::MAX,
    };
    by_memory.min(by_files).min(need.tuples)
}

fn sources(_: &Root, need: &Need) -> Option<Finding> {
    let first = need.foreign_sources.first()?;
    let value = match need.foreign_sources.len() - 1 {
        0 => format!("{first} is not an address of this machine"),
        more => format!("{first} and {} more are not addresses of this machine", Count(more as u64)),
    };
    let cure = match first {
        IpAddr::V4(first) => format!("ip addr add {first}/32 dev lo, or choose another"),
        IpAddr::V6(first) => format!(
            "ip addr add {first}/128 dev lo, or choose another; where a local route has it, sysctl -w \
             net.ipv6.ip_nonlocal_bind=1"
        ),
    };
    Some(Finding { what: "sources", value, needed: String::new(), cure, severity: Severity::Refuse })
}

fn ports(_: &Root, need: &Need) -> Option<Finding> {
    if need.tuples >= need.connections {
        return None;
    }
    // Each source, and each destination, adds as many as one has now.
    let times = |of: u64| need.connections.div_ceil((need.tuples / of.max(1)).max(1));
    Some(Finding {
        what: "ports",
        value: format!("{} ways to dial (address, port, destination)", Count(need.tuples)),
        needed: format!("{} needed", Count(need.connections)),
        cure: format!(
            "--sources with {} addresses (now {}), or {} destinations (now {})",
            Count(times(need.sources)),
            Count(need.sources),
            Count(times(need.destinations)),
            Count(need.destinations),
        ),
        severity: Severity::Refuse,
    })
}

fn memory_room(root: &Root, need: &Need) -> Option<Finding> {
    let available = memory(root).ok()?.available;
    let needed = need.connections.saturating_mul(need.bytes_per_connection());
    if needed <= available {
        return None;
    }
    let ends = if need.both_ends_here { ", both ends here" } else { "" };
    Some(Finding {
        what: "memory",
        value: format!("{} available", Bytes(available).brief()),
        needed: format!(
            "{} needed ({} bytes a connection{ends})",
            Bytes(needed).brief(),
            Count(need.bytes_per_connection())
        ),
        cure: format!("-c {}, or free memory", available / need.bytes_per_connection()),
        severity: Severity::Refuse,
    })
}

/// Each socket is a file, also one that is only a direct descriptor of a ring.
fn file_table(root: &Root, need: &Need) -> Option<Finding> {
    let files = open_files(root).ok()?;
    let needed = need.sockets().saturating_add(OTHER_FILES);
    (files.free() < needed).then(|| Finding {
        what: "file table",
        value: format!("{} free on this machine", Count(files.free())),
        needed: format!("{} needed", Count(needed)),
        cure: format!("sysctl -w fs.file-max={}", files.file_used.saturating_add(needed)),
        severity: if may_exceed_file_max(root) { Severity::Warn } else { Severity::Refuse },
    })
}

/// The kernel lets a process with `CAP_SYS_ADMIN` open files beyond `fs.file-max` (alloc_empty_file). In a
/// user namespace the bit may be set and not count, hence still a warning.
fn may_exceed_file_max(root: &Root) -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let status = root.read("proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    bits >> CAP_SYS_ADMIN & 1 == 1
}

/// The limit holds for each table, not for their sum, so it refuses nothing: rings of direct descriptors
/// pass it with two descriptors each (ring and event), and threads with a table each do without rings.
fn open_files_room(root: &Root, need: &Need) -> Option<Finding> {
    let files = open_files(root).ok()?;
    let rings = need.connections.div_ceil(files.hard.max(1));
    let needed = match need.uring {
        Ok(()) => rings.saturating_mul(2).saturating_add(OTHER_FILES),
        Err(_) => need.connections.saturating_add(OTHER_FILES),
    };
    if needed <= files.hard {
        return None;
    }
    let limit = needed.checked_next_power_of_two().unwrap_or(u64::MAX);
    let allow =
        if limit > files.nr_open { format!("sysctl -w fs.nr_open={limit}, then ") } else { String::new() };
    let threads = need.connections.div_ceil(files.hard.saturating_sub(OTHER_FILES).max(1));
    let without = match need.uring {
        Ok(()) => String::new(),
        Err(_) => format!(", else {} threads with a table each take them", Count(threads)),
    };
    Some(Finding {
        what: "open files",
        value: format!("{} allowed", Count(files.hard)),
        needed: format!("{} needed", Count(needed)),
        cure: format!("{allow}ulimit -n {limit}{without}"),
        severity: Severity::Warn,
    })
}

fn uring(root: &Root, need: &Need) -> Option<Finding> {
    let reason = need.uring.as_ref().err()?;
    let cure = match io_uring_disabled(root) {
        Some(1 | 2) => "sysctl -w kernel.io_uring_disabled=0",
        _ => "allow io_uring_setup, _enter and _register in the container's seccomp profile",
    };
    Some(Finding {
        what: "io_uring",
        value: format!("not available ({reason})"),
        needed: String::new(),
        cure: format!("{cure}; epoll is used until then"),
        severity: Severity::Warn,
    })
}

/// Idle connections hold no buffer, so only those with data in flight take a page an end. One in sixteen
/// is what think times of 5 s and answers within 0.3 s come to (0.3 / 5.3, by Little's law).
fn tcp_memory(root: &Root, need: &Need) -> Option<Finding> {
    const IDLE_FOR_EACH_BUSY: u64 = 16;
    let limits = root.read("proc/sys/net/ipv4/tcp_mem").ok()?;
    let limit: u64 = limits.split_whitespace().nth(2)?.parse().ok()?;
    let used = sock_stat(root).map_or(0, |stat| stat.tcp_mem_pages);
    let needed = need.sockets().div_ceil(IDLE_FOR_EACH_BUSY);
    let raised = used.saturating_add(needed);
    (raised > limit).then(|| Finding {
        what: "tcp memory",
        value: format!("{} pages free", Count(limit.saturating_sub(used))),
        needed: format!("{} needed when one socket in {IDLE_FOR_EACH_BUSY} is busy", Count(needed)),
        cure: format!(
            "sysctl -w net.ipv4.tcp_mem='{} {raised} {}'",
            raised / 4 * 3,
            raised.saturating_mul(2)
        ),
        severity: Severity::Warn,
    })
}

/// One entry a connection, also with both ends here. Only a warning: whether packets are tracked at all
/// depends on the firewall's rules.
fn conntrack(root: &Root, need: &Need) -> Option<Finding> {
    let limit: u64 = root.number("proc/sys/net/netfilter/nf_conntrack_max").filter(|limit| *limit > 0)?;
    let used: u64 = root.number("proc/sys/net/netfilter/nf_conntrack_count").unwrap_or(0);
    let needed = used.saturating_add(need.connections);
    (needed > limit).then(|| Finding {
        what: "conntrack",
        value: format!("{} entries free", Count(limit.saturating_sub(used))),
        needed: format!("{} needed if this traffic is tracked", Count(need.connections)),
        cure: format!("sysctl -w net.netfilter.nf_conntrack_max={needed}"),
        severity: Severity::Warn,
    })
}

/// Beyond it closed connections skip TIME_WAIT, and a late packet may meet the next one on its ports
/// (RFC 9293, 3.6.1): untidy, not wrong.
fn time_wait(root: &Root, need: &Need) -> Option<Finding> {
    let limit: u64 = root.number("proc/sys/net/ipv4/tcp_max_tw_buckets")?;
    (need.connections > limit).then(|| Finding {
        what: "time wait",
        value: format!("{} allowed", Count(limit)),
        needed: format!("{} when all close at once", Count(need.connections)),
        cure: format!("sysctl -w net.ipv4.tcp_max_tw_buckets={}", need.connections),
        severity: Severity::Warn,
    })
}

/// Each packet walks a chain of the hash of connections. Up to 4.6 sockets a bucket, no cost was measured
/// (1.2 million in 262,144 buckets); at 7.6, some. Negative: the buckets are shared with the host's.
fn hash(root: &Root, need: &Need) -> Option<Finding> {
    const SOCKETS_PER_BUCKET: u64 = 5;
    let buckets = root.number::<i64>("proc/sys/net/ipv4/tcp_ehash_entries")?.unsigned_abs();
    let enough = need.sockets().div_ceil(SOCKETS_PER_BUCKET).checked_next_power_of_two()?;
    (need.sockets() > buckets.saturating_mul(SOCKETS_PER_BUCKET)).then(|| Finding {
        what: "connection hash",
        value: format!("{} buckets", Count(buckets)),
        needed: format!("{} sockets make chains longer than {SOCKETS_PER_BUCKET}", Count(need.sockets())),
        cure: format!(
            "sysctl -w net.ipv4.tcp_child_ehash_entries={enough}, then run in a new network namespace"
        ),
        severity: Severity::Warn,
    })
}

#[cfg(test)]
mod tests;
