//! Samples the target on this machine, and the machine itself, once a second.

use std::path::PathBuf;

use samples::{HostSample, JvmSample, ProcessMemory, TargetSample};
use units::Nanos;

use crate::{
    Listener, Processes, Root, UsageSample,
    files::{limits, table_count, table_size},
    groups::Version,
    jvm,
    listener::{carriers, holds_in_main_table, listener_pids, numbers, program},
    log::LogReader,
    memory::{group_oom_kills, kernel_memory, memory, memory_groups, memory_left_to, slab_reclaimable},
    network::{conntrack_drops, net_counters, sock_stat},
    processors::cpu_quota,
    threads::Threads,
};

/// Interval of the search for child processes.
const REFRESH: Nanos = Nanos::from_secs(10);
/// Maximum number of threads whose file tables are read, if each has its own.
const MAX_TABLES: usize = 64;
/// If the kernel does not report the size of a table (before 6.2), descriptors are counted at this interval, up to `MAX_COUNTED`.
const RECOUNT: Nanos = Nanos::from_secs(5);
const MAX_COUNTED: usize = 20_000;
/// Depth of the search for children: a master, its workers, and their children.
const GENERATIONS: usize = 3;
/// Maximum number of processes.
const MAX_PROCESSES: usize = 256;

/// Samples the processes that listen on a target's ports.
#[derive(Debug)]
pub struct Watch {
    root: Root,
    ports: Vec<u16>,
    /// The process to name; with a master and workers, the first worker. `None`: no process, or one of another user.
    pid: Option<u32>,
    command: String,
    /// Its control groups, read while it exists.
    groups: Vec<(Version, PathBuf)>,
    processes: Processes,
    refreshed: Nanos,
    /// The Java virtual machines among the processes.
    jvms: Vec<u32>,
    /// The threads of these processes have their own file tables.
    own_tables: bool,
    /// The last count of descriptors, with its time.
    counted: Option<(Nanos, Option<u64>)>,
    /// The threads at the beginning.
    threads: Threads,
    /// Reads its logs, if requested.
    logs: Option<LogReader>,
}

impl Watch {
    /// Finds the processes that listen on these ports by their descriptors.
    pub fn new(root: &Root, ports: &[u16], listeners: &[Listener]) -> Watch {
        let here: Vec<Listener> = listeners.iter().filter(|l| ports.contains(&l.port)).copied().collect();
        let holders = listener_pids(root, &here);
        let pid = carriers(root, &holders).first().copied();
        // The first process is the one named: its limits and control group apply to all.
        let mut ordered: Vec<u32> = pid.into_iter().collect();
        ordered.extend(holders.iter().copied().filter(|holder| Some(*holder) != pid));
        let mut watch = Watch {
            root: root.clone(),
            command: pid.map_or(String::new(), |pid| program(root, pid)),
            groups: pid.map_or(Vec::new(), |pid| memory_groups(root, pid)),
            ports: ports.to_vec(),
            pid,
            processes: Processes::new(root, &ordered),
            refreshed: Nanos::ZERO,
            jvms: Vec::new(),
            own_tables: pid.is_some_and(|pid| !holds_in_main_table(root, pid, &here)),
            counted: None,
            threads: Threads::from_now_on(root, std::iter::empty()),
            logs: None,
        };
        watch.refresh();
        watch.threads = Threads::from_now_on(root, watch.processes.pids());
        watch
    }

    /// Also reads its logs from now on.
    #[must_use]
    pub fn with_logs(mut self) -> Watch {
        self.logs = Some(LogReader::from_now_on(&self.root, self.processes.pids().collect()));
        self
    }

    /// Whether a process was found and at least one still exists.
    pub fn is_alive(&self) -> bool {
        self.processes.pids().next().is_some()
    }

    /// Memory and CPU time of all its processes; `None` if none was found.
    pub fn usage_sample(&mut self) -> Option<UsageSample> {
        self.pid.map(|_| self.processes.usage_sample())
    }

    /// A complete sample of the target. `listeners`: with their current queues, from netlink; empty if that is forbidden.
    pub fn sample(&mut self, now: Nanos, listeners: &[Listener]) -> Option<TargetSample> {
        let pid = self.pid?;
        if now.since(self.refreshed) >= REFRESH {
            self.refreshed = now;
            self.refresh();
        }
        let here = || listeners.iter().filter(|l| self.ports.contains(&l.port));
        Some(TargetSample {
            pid,
            command: self.command.clone(),
            accept_queue: here().filter_map(|l| l.waiting).max(),
            accept_backlog: here().filter_map(|l| l.backlog).min(),
            open_files: self.fullest_table(now),
            // A server may raise its own limit, and prlimit(1) that of any process.
            open_files_limit: limits(&self.root, &pid.to_string()).map(|(soft, _)| soft),
            memory_available: memory_left_to(&self.root, pid),
            group_oom_kills: group_oom_kills(&self.root, &self.groups),
            cpu_quota: cpu_quota(&self.root, &pid.to_string()),
            jvm: self.jvm(),
            threads_gone: self.threads.gone(&self.root),
            log: self.logs.as_mut().map_or(Vec::new(), |logs| logs.sample().to_vec()),
            process: self.processes.sample(now),
            processes: self.each(pid),
        })
    }

    /// The processes as of the last sample, this one first.
    fn each(&self, first: u32) -> Vec<ProcessMemory> {
        let mut each: Vec<ProcessMemory> = self.processes.memory().collect();
        each.sort_unstable_by_key(|own| (own.pid != first, own.pid));
        each.truncate(TargetSample::MAX_PROCESSES);
        each
    }

    /// The Java virtual machines among its processes.
    pub fn jvms(&self) -> &[u32] {
        &self.jvms
    }

    fn jvm(&self) -> Option<JvmSample> {
        let all = self.jvms.iter().filter_map(|pid| jvm::sample(&self.root, *pid));
        all.reduce(|sum, one| sum.plus(&one))
    }

    /// Adds child processes created meanwhile.
    fn refresh(&mut self) {
        let mut parents: Vec<u32> = self.processes.pids().collect();
        for _ in 0..GENERATIONS {
            let born: Vec<u32> = parents.iter().flat_map(|parent| children(&self.root, *parent)).collect();
            if born.is_empty() || self.processes.pids().count() + born.len() > MAX_PROCESSES {
                break;
            }
            born.iter().for_each(|child| self.processes.add(*child));
            parents = born;
        }
        let is_jvm = |pid: &u32| jvm::sample(&self.root, *pid).is_some();
        self.jvms = self.processes.pids().filter(is_jvm).collect();
        if let Some(logs) = &mut self.logs {
            logs.open(self.processes.pids().collect());
        }
    }

    fn fullest_table(&mut self, now: Nanos) -> Option<u64> {
        let tables = self.tables();
        if let Some(most) = tables.iter().filter_map(|table| table_size(&self.root, table)).max() {
            return Some(most);
        }
        if let Some((at, count)) = self.counted
            && now.since(at) < RECOUNT
            && self.is_alive()
        {
            return count;
        }
        let count = |table: &String| table_count(&self.root, table, MAX_COUNTED);
        // If the maximum was reached, the number is unknown.
        let most = tables.iter().filter_map(count).max().filter(|most| *most < MAX_COUNTED as u64);
        self.counted = Some((now, most));
        most
    }

    /// File tables, as paths below `/proc`.
    fn tables(&self) -> Vec<String> {
        let of_process = |pid: u32| match self.own_tables {
            true => {
                let threads = numbers(&self.root, &format!("proc/{pid}/task"));
                threads.iter().take(MAX_TABLES).map(|tid| format!("{pid}/task/{tid}")).collect()
            }
            false => vec![pid.to_string()],
        };
        self.processes.pids().flat_map(of_process).take(MAX_TABLES).collect()
    }
}

/// Children of a process that run the same program, that is, workers. Others, such as processes that a shell or a test started besides
/// its server, do not serve the target.
fn children(root: &Root, parent: u32) -> Vec<u32> {
    let program = |pid: u32| std::fs::read_link(root.path(format!("proc/{pid}/exe"))).ok();
    let tasks = format!("proc/{parent}/task");
    let lists = numbers(root, &tasks).into_iter().take(MAX_TABLES);
    let text: String = lists.filter_map(|tid| root.read(format!("{tasks}/{tid}/children")).ok()).collect();
    let Some(own) = program(parent).filter(|_| !text.trim().is_empty()) else { return Vec::new() };
    let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
    // A server and throng may have the same parent, or be parent and child; throng is never the target.
    pids.filter(|pid| *pid != std::process::id() && program(*pid).as_ref() == Some(&own)).collect()
}

/// Samples the machine. Unreadable values are zero or `None`.
pub fn host_sample(root: &Root) -> HostSample {
    let number = |file: &str| root.number(format!("proc/sys/net/netfilter/{file}"));
    let tcp_mem = root.read("proc/sys/net/ipv4/tcp_mem").unwrap_or_default();
    HostSample {
        sockets: sock_stat(root).unwrap_or_default(),
        tcp: net_counters(root).unwrap_or_default(),
        tcp_mem_pressure_pages: tcp_mem.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()),
        conntrack: number("nf_conntrack_count"),
        conntrack_max: number("nf_conntrack_max"),
        conntrack_drops: conntrack_drops(root),
        memory_available: memory(root).map_or(0, |memory| memory.available),
        kernel_bytes: kernel_memory(root).unwrap_or(0),
        slab_reclaimable_bytes: slab_reclaimable(root).unwrap_or(0),
        oom_kills: oom_kills(root),
    }
}

/// Number of processes killed by the OOM killer since boot, including those in control groups.
pub fn oom_kills(root: &Root) -> u64 {
    root.field("proc/vmstat", "oom_kill ").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const NGINX: &str = "/usr/sbin/nginx";

    /// A process with a program, a parent, descriptors and children.
    fn process(machine: &Machine, pid: u32, parent: u32, program: &str, links: &[&str], children: &str) {
        let file = |name: &str| format!("proc/{pid}/{name}");
        let stat = format!("{pid} (x) S {parent} 1 1 0 -1 0 1 0 0 0 10 5 7 8 20 0 2 0 147 3 9\n");
        machine.write(&file("stat"), &stat);
        machine.write(&file("statm"), "9 4 1\n");
        machine.write(&file("limits"), &format!("Max open files  {}  1048576  files\n", 1000 + pid));
        machine.write(&file(&format!("task/{pid}/children")), children);
        machine.link(&file("exe"), program);
        for (fd, link) in links.iter().enumerate() {
            machine.link(&file(&format!("fd/{fd}")), link);
        }
    }

    fn listener(port: u16, inode: u64, waiting: u64, backlog: u64) -> Listener {
        let address = "0.0.0.0".parse().unwrap();
        let (backlog, waiting) = (Some(backlog), Some(waiting));
        Listener { address, port, is_only_ipv6: false, inode, backlog, waiting, dropped: None }
    }

    #[test]
    fn workers_and_their_queue_are_seen() {
        let machine = Machine::with(&[("proc/sys/net/netfilter/nf_conntrack_count", "12\n")]);
        process(&machine, 20, 1, NGINX, &["socket:[70]"], "21 22 29 ");
        process(&machine, 21, 20, NGINX, &["socket:[70]", "socket:[801]", "socket:[802]"], "");
        process(&machine, 22, 20, NGINX, &["socket:[70]", "socket:[803]"], "");
        process(&machine, 29, 20, "/usr/bin/logger", &[], "");
        let listeners = [listener(80, 70, 3, 511), listener(81, 71, 900, 9)];
        let mut watch = Watch::new(&machine.root(), &[80], &listeners);
        let seen = watch.sample(Nanos::ZERO, &listeners).unwrap();
        assert_eq!((seen.pid, seen.process.processes, seen.process.threads), (21, 3, 6));
        let page = rustix::param::page_size() as u64;
        let each: Vec<(u32, u64)> = seen.processes.iter().map(|own| (own.pid, own.rss_bytes)).collect();
        assert_eq!(each, [(21, 4 * page), (20, 4 * page), (22, 4 * page)], "the one that is named first");
        assert_eq!((seen.open_files, seen.open_files_limit), (Some(3), Some(1021)));
        assert_eq!((seen.accept_queue, seen.accept_backlog), (Some(3), Some(511)));
        assert_eq!(watch.sample(Nanos::ZERO, &[]).unwrap().accept_queue, None);
        let host = host_sample(&machine.root());
        assert_eq!((host.conntrack, host.conntrack_max), (Some(12), None));
    }

    #[test]
    fn workers_that_hold_no_listener_are_children() {
        let machine = Machine::with(&[]);
        process(&machine, 30, 1, "/usr/bin/node", &["socket:[70]"], "31\n");
        process(&machine, 31, 30, "/usr/bin/node", &["socket:[9]"], "32");
        process(&machine, 32, 31, "/usr/bin/node", &[], "");
        let listeners = [listener(80, 70, 0, 511)];
        let mut watch = Watch::new(&machine.root(), &[80], &listeners);
        assert_eq!(watch.sample(Nanos::ZERO, &[]).unwrap().process.processes, 3);
        // A worker created later is found, but not at once.
        process(&machine, 33, 30, "/usr/bin/node", &[], "");
        machine.write("proc/30/task/30/children", "31 33");
        assert_eq!(watch.sample(Nanos::from_secs(1), &[]).unwrap().process.processes, 3);
        assert_eq!(watch.sample(Nanos::from_secs(10), &[]).unwrap().process.processes, 4);
    }

    #[test]
    fn many_are_reported_of_together_and_some_by_themselves() {
        let machine = Machine::with(&[]);
        let children: String = (31..131).map(|pid| format!("{pid} ")).collect();
        process(&machine, 30, 1, NGINX, &["socket:[70]"], &children);
        (31..131).for_each(|pid| process(&machine, pid, 30, NGINX, &[], ""));
        let mut watch = Watch::new(&machine.root(), &[80], &[listener(80, 70, 0, 511)]);
        let seen = watch.sample(Nanos::ZERO, &[]).unwrap();
        assert_eq!((seen.process.processes, seen.processes.len()), (101, TargetSample::MAX_PROCESSES));
        assert_eq!((seen.processes[0].pid, seen.processes[63].pid), (30, 93));
    }

    #[test]
    fn a_target_that_ended_has_no_process_left() {
        let machine = Machine::with(&[]);
        process(&machine, 20, 1, NGINX, &["socket:[70]"], "");
        let mut watch = Watch::new(&machine.root(), &[80], &[listener(80, 70, 0, 1)]);
        assert!(watch.is_alive() && watch.usage_sample().unwrap().processes == 1);
        std::fs::remove_dir_all(machine.root().path("proc/20")).unwrap();
        let seen = watch.sample(Nanos::from_secs(1), &[]).unwrap();
        assert_eq!((seen.process.processes, seen.open_files, seen.processes.len()), (0, None, 0));
        assert!(!watch.is_alive());
    }

    #[test]
    fn without_a_listener_there_is_no_target() {
        let mut watch = Watch::new(&Machine::with(&[]).root(), &[80], &[listener(81, 70, 0, 1)]);
        assert_eq!((watch.sample(Nanos::ZERO, &[]), watch.usage_sample()), (None, None));
    }

    #[test]
    fn tables_of_threads_are_held_against_the_limit_one_by_one() {
        let machine = Machine::with(&[]);
        process(&machine, 40, 1, "/usr/bin/throng", &["/dev/null"], "");
        for (tid, sockets) in [(41, 3), (42, 5)] {
            for fd in 0..sockets {
                machine.link(&format!("proc/40/task/{tid}/fd/{fd}"), "socket:[70]");
            }
        }
        let mut watch = Watch::new(&machine.root(), &[80], &[listener(80, 70, 0, 1)]);
        assert_eq!(watch.sample(Nanos::ZERO, &[]).unwrap().open_files, Some(5));
    }
}
