//! Checks of the target's limits, if it is on this machine.

use super::{Checked, Need, OTHER_FILES, Skip};
use crate::files::{limits, open_descriptors};
use crate::finding::Fix;
use crate::listener::{carriers, holds_in_main_table, listener_pids, program};
use crate::{Root, Severity, somaxconn};
use judge::{USUAL_SOMAXCONN, longer_queue};
use std::fs;
use std::path::Path;
use units::Count;

/// Shown if there is no listener; a translated address has its listener elsewhere.
const NOBODY: &str = "no listener on this machine: not started yet, or behind address translation (a published container \
    port)";

/// A process that serves the target.
struct Server {
    pid: u32,
    name: String,
    /// Its present limit on open files, which it may have changed itself.
    limit: u64,
    open: u64,
    /// How it exceeds that limit, which applies to each file table; `None` if it does not.
    passes_by: Option<&'static str>,
}

/// The limit on open files of the accepting processes, the most frequent bottleneck.
pub(super) fn open_files_room(root: &Root, need: &Need) -> Checked {
    let servers = servers(root, need)?;
    let first = servers.first().ok_or("its process belongs to another user; run as root")?;
    let fix = (room(&servers) < need.expected).then(|| {
        let each = need.expected.div_ceil(servers.len() as u64).saturating_add(first.open.max(OTHER_FILES));
        let limit = each.checked_next_power_of_two().unwrap_or(u64::MAX);
        let one = |server: &Server| format!("prlimit --pid {} --nofile={limit}", server.pid);
        Fix::manual(Severity::Warn, servers.iter().map(one).collect::<Vec<_>>().join(" && "))
    });
    let passed = first.passes_by.map(|by| format!(", exceeded with {by}")).unwrap_or_default();
    let others = match servers.len() {
        1 => String::new(),
        n => format!(", and so on: {} processes", Count(n as u64)),
    };
    let (Server { name, pid, .. }, limit, open) = (first, Count(first.limit), Count(first.open));
    let value = format!("{name} ({pid}): {limit} allowed, {open} open{passed}{others}");
    Ok((value, format!("{} needed", Count(need.expected)), fix))
}

/// Number of connections that the target's processes may still accept with their present limits; `None` if unknown.
pub fn target_room(root: &Root, need: &Need) -> Option<u64> {
    let servers = servers(root, need).ok()?;
    (!servers.is_empty()).then(|| room(&servers))
}

fn room(servers: &[Server]) -> u64 {
    servers.iter().map(Server::room).fold(0, u64::saturating_add)
}

fn pids(root: &Root, need: &Need) -> Vec<u32> {
    carriers(root, &listener_pids(root, &need.listeners))
}

/// The accepting processes that this user may inspect.
fn servers(root: &Root, need: &Need) -> Result<Vec<Server>, Skip> {
    if need.target.is_none() || !need.both_ends_here {
        return Err(Skip::Irrelevant);
    }
    if need.listeners.is_empty() {
        return Err(Skip::Unread(NOBODY));
    }
    Ok(pids(root, need).into_iter().filter_map(|pid| server(root, pid, need)).collect())
}

impl Server {
    /// Number of connections that it may still accept.
    fn room(&self) -> u64 {
        if self.passes_by.is_some() { u64::MAX } else { self.limit.saturating_sub(self.open) }
    }
}

fn server(root: &Root, pid: u32, need: &Need) -> Option<Server> {
    let (limit, _) = limits(root, &pid.to_string())?;
    let open = open_descriptors(root, &pid.to_string())?;
    let passes_by = if has_rings(root, pid) {
        Some("tables of io_uring")
    } else if !holds_in_main_table(root, pid, &need.listeners) {
        Some("file tables of its threads")
    } else {
        None
    };
    Some(Server { pid, name: program(root, pid), limit, open, passes_by })
}

/// Rings are created before connections arrive, so that checking the first descriptors suffices.
fn has_rings(root: &Root, pid: u32) -> bool {
    const FIRST: usize = 256;
    let Ok(descriptors) = fs::read_dir(root.path(format!("proc/{pid}/fd"))) else { return false };
    let mut links = descriptors.take(FIRST).filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link == Path::new("anon_inode:[io_uring]"))
}

/// Number of connections that may wait at the target's listeners to be accepted.
pub(super) fn backlog(root: &Root, need: &Need) -> Checked {
    if need.target.is_none() || !need.both_ends_here || need.listeners.is_empty() {
        return Err(Skip::Irrelevant);
    }
    let queues: Option<Vec<u64>> = need.listeners.iter().map(|l| l.backlog).collect();
    let queues = queues.ok_or("cannot be read (netlink is not permitted)")?;
    let all = queues.iter().copied().fold(0, u64::saturating_add);
    let (needed, in_words) = need.waiting_dials();
    let most = somaxconn(root).unwrap_or(u64::MAX);
    let fix = (all < needed).then(|| {
        let own = queues.iter().any(|queue| *queue < most).then_some(USUAL_SOMAXCONN);
        let allowed = need.is_limited_by_somaxconn(most).then_some(USUAL_SOMAXCONN);
        let fix = match longer_queue(&name(root, need), own, allowed) {
            (Some(command), then) => format!("{command}  # then {then}"),
            (None, what) => format!("# {what}"),
        };
        Fix::manual(Severity::Warn, fix)
    });
    let value = format!("at most {} waiting", Count(all));
    Ok((value, in_words, fix))
}

/// The name of the target's process; empty if it is not visible.
fn name(root: &Root, need: &Need) -> String {
    pids(root, need).first().map_or(String::new(), |pid| program(root, *pid))
}
