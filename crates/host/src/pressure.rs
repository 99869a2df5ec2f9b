//! What else runs full: a process's table of files, the table of connections that a firewall tracks, memory that
//! the kernel takes back by killing, and the time that threads wait for a processor.

use std::fs;

use crate::{Root, files};

/// How full something is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Taken.
    pub used: u64,
    /// The most that may be.
    pub limit: u64,
}

/// The soft limit on open files of a process; `None` where it is another user's, or gone.
pub fn open_files_limit(root: &Root, pid: u32) -> Option<u64> {
    let text = root.read(format!("proc/{pid}/limits")).ok()?;
    files::limits(&text).map(|(soft, _)| soft)
}

/// Connections that the kernel tracks in this network namespace, and the most that it tracks (kernel document
/// `networking/nf_conntrack-sysctl`). `None` where it tracks none.
pub fn conntrack(root: &Root) -> Option<Fill> {
    let number = |name: &str| root.number(format!("proc/sys/net/netfilter/nf_conntrack_{name}"));
    Some(Fill { used: number("count")?, limit: number("max")? })
}

/// Processes that the kernel has killed for want of memory since it was started (`oom_kill` of `/proc/vmstat`).
pub fn oom_kills(root: &Root) -> Option<u64> {
    let text = root.read("proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// Time that the threads of a process, or of this one (`None`), were ready to run and had no processor, nanoseconds in
/// all (second field of `/proc/PID/task/TID/schedstat`, kernel document `scheduler/sched-stats`). Looks at each thread.
pub fn waited_ns(root: &Root, pid: Option<u32>) -> Option<u64> {
    let process = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let threads = fs::read_dir(root.path(format!("proc/{process}/task"))).ok()?;
    let waited = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Some(threads.filter_map(|thread| waited(thread.ok()?)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    #[test]
    fn each_is_read_from_its_file() {
        let limits = "Max open files            1024                 20000                files     \n";
        let machine = Machine::with(&[
            ("proc/7/limits", limits),
            ("proc/sys/net/netfilter/nf_conntrack_count", "65500\n"),
            ("proc/sys/net/netfilter/nf_conntrack_max", "65536\n"),
            ("proc/vmstat", "nr_free_pages 5\noom_kill 3\noom_kill_other 9\n"),
            ("proc/self/task/1/schedstat", "500 20 3\n"),
            ("proc/self/task/2/schedstat", "600 22 3\n"),
        ]);
        let root = machine.root();
        assert_eq!(open_files_limit(&root, 7), Some(1024));
        assert_eq!(conntrack(&root), Some(Fill { used: 65_500, limit: 65_536 }));
        assert_eq!((oom_kills(&root), waited_ns(&root, None)), (Some(3), Some(42)));
    }

    #[test]
    fn what_is_not_there_is_unknown() {
        let root = Machine::with(&[("proc/vmstat", "nr_free_pages 5\n")]).root();
        assert_eq!(open_files_limit(&root, 7), None);
        assert_eq!((conntrack(&root), oom_kills(&root), waited_ns(&root, None)), (None, None, None));
    }

    #[test]
    fn this_machine_is_read() {
        let root = Root::real();
        assert!(open_files_limit(&root, std::process::id()).is_some_and(|limit| limit > 0));
        assert!(waited_ns(&root, Some(std::process::id())).is_some());
    }
}
