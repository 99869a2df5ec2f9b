//! Checks of the limits of a process: memory, files, rings, processors.

use super::{Checked, Need, OTHER_FILES, Skip};
use crate::files::{io_uring_disabled, limits_of};
use crate::finding::Fix;
use crate::memory::memory_of_all;
use crate::processors::processors;
use crate::rights::has_capability;
use crate::{Finding, Root, Severity, memory, open_files};
use units::{Bytes, Count};

pub(super) fn memory_room(root: &Root, need: &Need) -> Checked {
    let unread = |_| "/proc/meminfo cannot be read";
    let (memory, all) = (memory(root).map_err(unread)?, memory_of_all(root).map_err(unread)?);
    let in_group = memory.available < all.available;
    let (owner, more) = if in_group {
        (" in the control group", "raise the group's memory limit")
    } else {
        ("", "free memory")
    };
    let needed = need.connections.saturating_mul(need.bytes_per_connection());
    let ends = match (need.both_ends_here, need.is_tun) {
        (true, true) => ", with the target's end",
        (true, false) => ", both ends here",
        _ => "",
    };
    let fix = (needed > memory.available).then(|| {
        let fitting = memory.available / need.bytes_per_connection();
        let command = match fitting {
            0 => format!("# {more}: there is not enough for one connection"),
            _ => need.run(&format!("-c {fitting}  # or {more}")),
        };
        Fix::manual(Severity::Refuse, command)
    });
    let value = format!("{} available{owner}", Bytes(memory.available).brief());
    let (needed, each) = (Bytes(needed).brief(), Count(need.bytes_per_connection()));
    let layers = need.layers.bytes(need.ends_here()).into_iter().filter(|(_, bytes)| *bytes > 0);
    let layers: String = layers.map(|(name, bytes)| format!(", {name} {bytes} of them")).collect();
    Ok((value, format!("{needed} needed ({each} bytes per connection{ends}{layers})"), fix))
}

/// Address space of a run, and again of each of its threads, in bytes: mostly reserved and never used, such as arenas of the allocator.
/// Measured without connections: 1, 2, 4 and 8 threads needed less than 130, 200, 350 and 500 MiB.
const ADDRESS_SPACE: u64 = 80 << 20;

/// The limit of address space, and what a run uses of it without connections; `None` without a limit.
fn space(root: &Root, need: &Need) -> Option<(u64, u64)> {
    let limit = limits_of(root, "self", "Max address space").filter(|(soft, _)| *soft < u64::MAX);
    // The first field of proc_pid_statm(5).
    let pages: u64 = root.number("proc/self/statm").unwrap_or(0);
    let mapped = pages.saturating_mul(rustix::param::page_size() as u64);
    let threads = ADDRESS_SPACE.saturating_mul(need.threads.saturating_add(1));
    limit.map(|(limit, _)| (limit, mapped.saturating_add(threads)))
}

/// Number of connections that fit into the address space.
pub(super) fn address_space_room(root: &Root, need: &Need) -> u64 {
    let room =
        |(limit, taken): (u64, u64)| limit.saturating_sub(taken) / need.user_bytes_per_connection().max(1);
    space(root, need).map_or(u64::MAX, room)
}

/// `RLIMIT_AS`: allocations may fail although memory is available.
pub(super) fn address_space(root: &Root, need: &Need) -> Checked {
    let (limit, taken) = space(root, need).ok_or(Skip::Irrelevant)?;
    let needed = taken.saturating_add(need.connections.saturating_mul(need.user_bytes_per_connection()));
    let fix = (needed > limit)
        .then(|| Fix::manual(Severity::Refuse, "ulimit -v unlimited  # or use fewer --threads"));
    let value = format!("{} allowed (ulimit -v)", Bytes(limit).brief());
    let of = Count(need.threads).of("thread");
    Ok((value, format!("{} needed with {of}", Bytes(needed).brief()), fix))
}

/// Every socket is a file, even if it is only a direct descriptor of a ring.
pub(super) fn file_table(root: &Root, need: &Need) -> Checked {
    if need.sockets_each() == 0 {
        return Err(Skip::Irrelevant);
    }
    let files = open_files(root).ok_or("/proc/sys/fs cannot be read")?;
    let needed = need.sockets().saturating_add(OTHER_FILES);
    let fix = (files.free() < needed).then(|| {
        let severity = if may_exceed_file_max(root) { Severity::Warn } else { Severity::Refuse };
        Fix::setting(severity, "fs.file-max", files.file_used.saturating_add(needed))
    });
    let value = format!("{} free on this machine", Count(files.free()));
    Ok((value, format!("{} needed", Count(needed)), fix))
}

/// Whether this process may exceed `fs.file-max`: the kernel allows it with `CAP_SYS_ADMIN` (alloc_empty_file). In a user namespace the
/// capability may be set without effect, hence there is still a warning.
pub(super) fn may_exceed_file_max(root: &Root) -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    has_capability(root, CAP_SYS_ADMIN)
}

/// Descriptors that one process needs.
fn files_needed(need: &Need, hard: u64) -> u64 {
    let rings = need.connections.div_ceil(hard.max(1));
    match need.uring {
        Ok(()) => rings.saturating_mul(2).saturating_add(OTHER_FILES),
        Err(_) => need.connections.saturating_add(OTHER_FILES),
    }
}

/// Rounds up to a power of two, as limits usually are.
fn round_limit(files: u64) -> u64 {
    files.checked_next_power_of_two().unwrap_or(u64::MAX)
}

/// The limit applies to each table, not to their sum, so that it refuses nothing: rings of direct descriptors exceed it with two
/// descriptors each (ring and event), and without rings, threads have a table each.
pub(super) fn open_files_room(root: &Root, need: &Need) -> Checked {
    if need.is_tun {
        return Err(Skip::Irrelevant);
    }
    let files = open_files(root).ok_or("/proc/self/limits cannot be read")?;
    let needed = files_needed(need, files.hard);
    let fix = (needed > files.hard).then(|| {
        let limit = round_limit(needed);
        let threads = need.connections.div_ceil(files.hard.saturating_sub(OTHER_FILES).max(1));
        let without = match need.uring {
            Ok(()) => String::new(),
            Err(_) => {
                format!("; until then {} threads, each with its own file table, are used", Count(threads))
            }
        };
        let lasting = format!("'* - nofile {limit}' in /etc/security/limits.conf lasts");
        Fix::manual(Severity::Warn, format!("ulimit -n {limit}  # as root; {lasting}{without}"))
    });
    let passed = match need.uring {
        Ok(()) if fix.is_none() && need.connections > files.hard => {
            let rings = need.connections.div_ceil(files.hard.max(1));
            format!(", exceeded with {} tables of io_uring", Count(rings))
        }
        _ => String::new(),
    };
    let value = format!("{} allowed", Count(files.hard));
    Ok((value, format!("{} needed{passed}", Count(needed)), fix))
}

/// `fs.nr_open`: the maximum of the limit of any process.
pub(super) fn open_files_ceiling(root: &Root, need: &Need) -> Checked {
    if need.is_tun {
        return Err(Skip::Irrelevant);
    }
    // If it cannot be read, the check of `open files` reports that.
    let files = open_files(root).ok_or(Skip::Irrelevant)?;
    let needed = files_needed(need, files.hard);
    let limit = if needed > files.hard { round_limit(needed) } else { needed };
    let fix = (limit > files.nr_open).then(|| Fix::setting(Severity::Warn, "fs.nr_open", limit));
    let value = format!("{} at most", Count(files.nr_open));
    Ok((value, format!("{} needed", Count(limit)), fix))
}

pub(super) fn uring(root: &Root, need: &Need) -> Checked {
    if need.is_tun {
        return Err(Skip::Irrelevant);
    }
    let Err(reason) = &need.uring else { return Ok(("allowed".to_owned(), String::new(), None)) };
    let mut fix = allow_uring(root);
    fix.command += if fix.command.contains('#') { "; " } else { "  # " };
    fix.command += "epoll is used instead";
    Ok((format!("not available ({reason})"), String::new(), Some(fix)))
}

fn allow_uring(root: &Root) -> Fix {
    match io_uring_disabled(root) {
        Some(1 | 2) => Fix::setting(Severity::Warn, "kernel.io_uring_disabled", 0),
        _ => Fix::manual(
            Severity::Warn,
            "docker run --security-opt seccomp=unconfined  # or allow io_uring_setup, _enter and _register \
             in the container's seccomp profile",
        ),
    }
}

/// The finding if io_uring was requested by name and is refused, for the reason `why`.
pub fn uring_refused(root: &Root, why: impl std::fmt::Display) -> Finding {
    let command = format!("{}, or --io epoll", allow_uring(root).command);
    let fix = Fix::manual(Severity::Refuse, command);
    Finding::new("io_uring", format!("not available ({why})"), String::new(), Some(fix))
}

/// The finding if a run over epoll needs `needed` open files and only `limit` are allowed. `fix`: a command.
pub fn open_files_refused(limit: u64, needed: u64, fix: String) -> Finding {
    let fix = Fix::manual(Severity::Refuse, fix);
    let (limit, needed) = (Count(limit), Count(needed));
    Finding::new("open files", format!("{limit} allowed"), format!("{needed} needed over epoll"), Some(fix))
}

/// Threads that share a processor delay each other.
pub(super) fn cores(root: &Root, need: &Need) -> Checked {
    let cores = processors(root).ok_or("Cpus_allowed_list cannot be read")?;
    let fix = (need.threads > cores).then(|| {
        Fix::manual(Severity::Warn, need.run(&format!("-c {} --threads {cores}", need.connections)))
    });
    let value = format!("{} for this process", Count(cores));
    Ok((value, Count(need.threads).of("thread"), fix))
}

/// CPU time of one end for opening a connection with a full TLS handshake, including its first request, in microseconds. Measured on a
/// processor of 2023 with TLS 1.3 and a P-256 certificate: `throng run` 155, `throng serve` 131; resumed 118 and 117. The command is in
/// docs/reference/doctor.md.
const HANDSHAKE_US: f64 = 155.0;

/// CPU time for TLS handshakes, of throng and of the target. Processors differ, so that this only warns.
pub(super) fn handshakes(root: &Root, need: &Need) -> Checked {
    let wanted = need.layers.handshakes.ok_or(Skip::Irrelevant)?;
    // If it cannot be read, the check of `cores` reports that.
    let cores = processors(root).ok_or(Skip::Irrelevant)?;
    // One end uses its threads; two ends on this machine share all processors.
    let cores = if need.both_ends_here { cores } else { cores.min(need.threads) };
    let each_us = HANDSHAKE_US * need.ends_here() as f64;
    let most = (cores as f64 * 1e6 / each_us) as u64;
    let fix = wanted.per_s.filter(|per_s| *per_s > most as f64).map(|_| {
        let slower = need.run(&format!("-c {} --ramp {most}/s", need.connections));
        Fix::manual(
            Severity::Warn,
            format!("{slower}  # or fewer arrivals, more processors or more machines"),
        )
    });
    let needed = match wanted.per_s {
        Some(per_s) => format!("{}/s", Count(per_s.ceil() as u64)),
        None => format!("{:.1} s of CPU for {}", wanted.count as f64 * each_us / 1e6, Count(wanted.count)),
    };
    let ends = if need.both_ends_here { ", both ends here" } else { "" };
    Ok((
        format!("about {}/s with {}{ends}", Count(most), Count(cores).of("processor")),
        format!("{needed} ({each_us:.0} µs of CPU each, full)"),
        fix,
    ))
}

/// CPU time of `throng run` for an HTTP/2 request, in microseconds. With several streams, one receive returns several responses. Measured
/// against nginx (`bench/results/http2.json`); HTTP/1.1 takes about 6.
fn http2_us(streams: u16) -> f64 {
    match streams {
        100.. => 2.0,
        10.. => 2.4,
        _ => 4.9,
    }
}

/// The rate that throng itself can send over HTTP/2; the target needs processors too. Like [`handshakes`], this only warns.
pub(super) fn http2_requests(root: &Root, need: &Need) -> Checked {
    let wanted = need.layers.http2_requests.ok_or(Skip::Irrelevant)?;
    let cores = processors(root).ok_or(Skip::Irrelevant)?.min(need.threads);
    let each_us = http2_us(wanted.streams);
    let most = (cores as f64 * 1e6 / each_us) as u64;
    let fix = wanted.per_s.filter(|per_s| *per_s > most as f64).map(|_| {
        let text = "# lower the rate, raise --streams, or use more processors or machines";
        Fix::manual(Severity::Warn, text.to_owned())
    });
    let needed = wanted.per_s.map_or(String::new(), |per_s| format!("{}/s ", Count(per_s.ceil() as u64)));
    Ok((
        format!("about {}/s from throng with {}", Count(most), Count(cores).of("processor")),
        format!("{needed}({each_us} µs of CPU each)"),
        fix,
    ))
}
