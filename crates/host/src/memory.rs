//! Total and available memory, by the machine and by control groups.

use crate::Root;
use crate::groups::{Version, groups};
use crate::root::unexpected;
use std::io;
use std::path::{Path, PathBuf};

/// Memory, in bytes: the figures of the machine, lowered by the limits of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `MemTotal`, or the smallest control-group limit above this process.
    pub total: u64,
    /// `MemAvailable`, or the smallest remainder under such a limit. The kernel frees memory late after a large run, so that it must be
    /// read right before a run.
    pub available: u64,
}

/// Reads `/proc/meminfo` and the control groups of this process, version 1 and 2
/// (kernel documents `filesystems/proc`, `admin-guide/cgroup-v2`).
///
/// # Errors
/// `/proc/meminfo` cannot be read, or has no `MemTotal` or `MemAvailable` (Linux before 3.14).
pub fn memory(root: &Root) -> io::Result<Memory> {
    Ok(group_limits(root, "self").into_iter().fold(memory_of_all(root)?, Memory::tighter))
}

/// The smallest remainder under control group limits of another process, in bytes; `None` if it is in the same groups as this process, or
/// none has a limit.
pub(crate) fn memory_left_to(root: &Root, pid: u32) -> Option<u64> {
    let groups = |process: &str| root.read(format!("proc/{process}/cgroup")).ok();
    let theirs = groups(&pid.to_string())?;
    if groups("self").is_some_and(|ours| ours == theirs) {
        return None;
    }
    group_limits(root, &pid.to_string()).iter().map(|limit| limit.available).min()
}

/// Processes in these control groups killed by the OOM killer (`memory.events`, kernel document `admin-guide/cgroup-v2`; version 1:
/// `memory.oom_control`).
pub(crate) fn group_oom_kills(root: &Root, groups: &[(Version, PathBuf)]) -> u64 {
    let kills = |(version, group): &(Version, PathBuf)| {
        let Hierarchy { mount, events, .. } = Hierarchy::of(*version);
        root.field(Path::new(mount).join(group).join(events), "oom_kill ")
    };
    groups.iter().filter_map(kills).max().unwrap_or(0)
}

/// The control groups in which the memory of `pid` may be limited. Must be read while the process exists.
pub(crate) fn memory_groups(root: &Root, pid: u32) -> Vec<(Version, PathBuf)> {
    groups(root, &pid.to_string(), CONTROLLER)
}

/// The figures of the machine, without control groups.
///
/// # Errors
/// See [`memory`].
pub(crate) fn memory_of_all(root: &Root) -> io::Result<Memory> {
    let text = root.read("proc/meminfo")?;
    let field = |name: &str| kib_field(&text, name).ok_or_else(|| unexpected("proc/meminfo", name));
    Ok(Memory { total: field("MemTotal")?, available: field("MemAvailable")? })
}

/// Memory used by the kernel itself, in bytes: everything except free memory, the page cache, and the anonymous memory of processes, so
/// that other processes do not matter. Unlike `MemAvailable`, it counts reclaimable slabs as used: they contain the inodes of sockets.
/// `None` if it cannot be read.
pub fn kernel_memory(root: &Root) -> Option<u64> {
    let text = root.read("proc/meminfo").ok()?;
    let field = |name: &str| kib_field(&text, name);
    let other = field("MemFree")? + field("Buffers")? + field("Cached")? + field("AnonPages")?;
    Some(field("MemTotal")?.saturating_sub(other))
}

/// Reclaimable slabs, in bytes. `MemAvailable` contains nearly all of them, including the inodes of open sockets.
pub fn slab_reclaimable(root: &Root) -> Option<u64> {
    kib_field(&root.read("proc/meminfo").ok()?, "SReclaimable")
}

impl Memory {
    fn tighter(self, other: Memory) -> Memory {
        Memory { total: self.total.min(other.total), available: self.available.min(other.available) }
    }
}

/// The value of a line `Name:   123 kB`, in bytes.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The controller that limits memory.
const CONTROLLER: &str = "memory";

/// The file names of one control group version.
struct Hierarchy {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// Field of `memory.stat` with the page cache that the kernel drops before it refuses an allocation.
    reclaimable: &'static str,
    /// The file with the number of OOM kills.
    events: &'static str,
}

const V1: Hierarchy = Hierarchy {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
    events: "memory.oom_control",
};
const V2: Hierarchy = Hierarchy {
    mount: "sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file ",
    events: "memory.events",
};

/// All limits that apply to a process: of its group, and of all groups above it. A container may see its own group as the root of the
/// mount, where only the last of these paths exists.
fn group_limits(root: &Root, process: &str) -> Vec<Memory> {
    let mut limits = Vec::new();
    for (version, group) in groups(root, process, CONTROLLER) {
        limits.extend(group.ancestors().filter_map(|above| Hierarchy::of(version).limit_of(root, above)));
    }
    limits
}

impl Hierarchy {
    const fn of(version: Version) -> &'static Hierarchy {
        match version {
            Version::One => &V1,
            Version::Two => &V2,
        }
    }

    /// `None` if the group has no limit. Version 2 writes `max` then; version 1 a huge number, which lowers nothing.
    fn limit_of(&self, root: &Root, group: &Path) -> Option<Memory> {
        let directory: PathBuf = Path::new(self.mount).join(group);
        let total: u64 = root.number(directory.join(self.limit))?;
        let used: u64 = root.number(directory.join(self.usage))?;
        let reclaimable = root.field(directory.join("memory.stat"), self.reclaimable).unwrap_or(0);
        Some(Memory { total, available: total.saturating_sub(used.saturating_sub(reclaimable)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const MEMINFO: &str = "MemTotal:       16000 kB\nMemFree:         9000 kB\nMemAvailable:   12000 kB\n";
    const KIB: u64 = 1024;

    fn check(files: &[(&str, &str)], expected: Result<(u64, u64), io::ErrorKind>) {
        let machine = Machine::with(files);
        let found = memory(&machine.root()).map(|m| (m.total / KIB, m.available / KIB)).map_err(|e| e.kind());
        assert_eq!(found, expected, "{files:?}");
    }

    #[test]
    fn without_a_group_the_machine_counts() {
        check(&[("proc/meminfo", MEMINFO)], Ok((16000, 12000)));
        check(&[("proc/meminfo", MEMINFO), ("proc/self/cgroup", "")], Ok((16000, 12000)));
        check(&[("proc/meminfo", MEMINFO), ("proc/self/cgroup", "0::/gone\nnonsense\n")], Ok((16000, 12000)));
    }

    #[test]
    fn an_unreadable_store_is_an_error() {
        check(&[], Err(io::ErrorKind::NotFound));
        check(&[("proc/meminfo", "MemTotal: 5 kB\n")], Err(io::ErrorKind::InvalidData));
        check(&[("proc/meminfo", "MemTotal: x kB\nMemAvailable: 5 kB\n")], Err(io::ErrorKind::InvalidData));
    }

    #[test]
    fn kernel_memory_is_what_no_process_has() {
        let text = "MemTotal: 16000 kB\nMemFree: 9000 kB\nBuffers: 500 kB\nCached: 1500 kB\nAnonPages: 3000 kB\n\
            Slab: 77 kB\n";
        let machine = Machine::with(&[("proc/meminfo", text)]);
        assert_eq!(kernel_memory(&machine.root()).unwrap(), 2000 * KIB);
        assert!(kernel_memory(&Machine::with(&[("proc/meminfo", MEMINFO)]).root()).is_none());
    }

    fn with_group(group: &str, files: &[(&str, &str)], expected: (u64, u64)) {
        let mut all = vec![("proc/meminfo", MEMINFO), ("proc/self/cgroup", group)];
        all.extend(files);
        check(&all, Ok(expected));
    }

    #[test]
    fn version_2_limits_lower_both_figures() {
        let own = "sys/fs/cgroup/a/b/memory.max";
        let used = "sys/fs/cgroup/a/b/memory.current";
        with_group("0::/a/b\n", &[(own, "8192000\n"), (used, "2048000\n")], (8000, 6000));
        with_group("0::/a/b\n", &[(own, "max\n"), (used, "2048000\n")], (16000, 12000));
        // A full group leaves nothing, and so does one that exceeds its limit.
        with_group("0::/a/b\n", &[(own, "8192000\n"), (used, "8192000\n")], (8000, 0));
        with_group("0::/a/b\n", &[(own, "8192000\n"), (used, "9192000\n")], (8000, 0));
        // The group's page cache can be reclaimed.
        let stat = ("sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 1024000\nactive_file 9\n");
        with_group("0::/a/b\n", &[(own, "8192000\n"), (used, "2048000\n"), stat], (8000, 7000));
        // A generous group does not raise the machine's figures.
        with_group("0::/a/b\n", &[(own, "99999999999\n"), (used, "0\n")], (16000, 12000));
    }

    #[test]
    fn the_tightest_ancestor_group_counts() {
        let files = [
            ("sys/fs/cgroup/a/b/memory.max", "8192000"),
            ("sys/fs/cgroup/a/b/memory.current", "1024000"),
            ("sys/fs/cgroup/a/memory.max", "10240000"),
            ("sys/fs/cgroup/a/memory.current", "9216000"),
        ];
        with_group("0::/a/b\n", &files, (8000, 1000));
        // In a container the group's path does not exist, only the root of the mount.
        let root = [("sys/fs/cgroup/memory.max", "4096000"), ("sys/fs/cgroup/memory.current", "1024000")];
        with_group("0::/docker/0123\n", &root, (4000, 3000));
    }

    #[test]
    fn version_1_limits_do_too() {
        let at = |limit| {
            [
                ("sys/fs/cgroup/memory/job/memory.limit_in_bytes", limit),
                ("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1024000"),
                ("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 0\ntotal_inactive_file 512000\n"),
            ]
        };
        let groups = "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n";
        with_group(groups, &at("8192000"), (8000, 7500));
        with_group(groups, &at("9223372036854771712"), (16000, 12000));
        with_group("4:cpu:/job\n", &at("8192000"), (16000, 12000));
    }

    #[test]
    fn another_processs_group_is_its_own() {
        let machine = Machine::with(&[
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/7/cgroup", "0::/b\n"),
            ("proc/8/cgroup", "0::/a\n"),
            ("proc/9/cgroup", "4:cpu,memory:/old\n0::/\n"),
            ("sys/fs/cgroup/b/memory.max", "5000"),
            ("sys/fs/cgroup/b/memory.current", "2000"),
            ("sys/fs/cgroup/b/memory.events", "low 0\nhigh 1\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"),
            ("sys/fs/cgroup/memory/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
        ]);
        let root = machine.root();
        assert_eq!([7, 8, 9, 10].map(|pid| memory_left_to(&root, pid)), [Some(3000), None, None, None]);
        assert_eq!([7, 8, 9, 10].map(|pid| group_oom_kills(&root, &memory_groups(&root, pid))), [3, 0, 2, 0]);
    }

    #[test]
    fn this_machine_has_memory() {
        let found = memory(&Root::real()).unwrap();
        assert!(0 < found.available && found.available <= found.total, "{found:?}");
    }
}
