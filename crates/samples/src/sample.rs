//! Samples: the state of a host and its processes at one point in time. Counters have arbitrary origins, so only the difference of two
//! samples is meaningful.

use serde::{Deserialize, Serialize};

use crate::encode::json;

/// A sample of the target's host: the response of `throng observe`, or taken by the run itself if the target is on this
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Sample {
    /// The target, if a process that listens on its port was found.
    pub target: Option<TargetSample>,
    /// Its host.
    pub host: HostSample,
}

json! {
    Sample => Sample,
}

/// The target's processes: those that hold its listener, and their children that run the same program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct TargetSample {
    /// The process that listens; with a master and workers, the first worker.
    pub pid: u32,
    /// Its command, as the kernel has it: 15 letters at most.
    pub command: String,
    /// All of them together.
    pub process: ProcessSample,
    /// Each individually, `pid` first, then by number; at most 64 ([`TargetSample::MAX_PROCESSES`]). Not stored per second.
    pub processes: Vec<ProcessMemory>,
    /// Open descriptors in their fullest file table, without direct descriptors of io_uring. `None`: not readable, or too
    /// expensive to read.
    pub open_files: Option<u64>,
    /// The limit of that table (soft RLIMIT_NOFILE).
    pub open_files_limit: Option<u64>,
    /// Connections in the fullest accept queue of the target's listeners. `None`: netlink is not permitted.
    pub accept_queue: Option<u64>,
    /// The backlog of that queue.
    pub accept_backlog: Option<u64>,
    /// Bytes left in its control group, if that differs from the observer's and the machine's.
    pub memory_available: Option<u64>,
    /// Processes in its control group killed by the OOM killer.
    pub group_oom_kills: u64,
    /// The smallest CPU quota of its control groups, where one has a quota.
    pub cpu_quota: Option<CpuQuota>,
    /// Counters of its Java virtual machines, summed, if there are any.
    pub jvm: Option<JvmSample>,
    /// Names of threads that ran at the first sample and have ended since, in a process that still runs: each name once,
    /// and only if no thread of that name is left; at most 8 ([`TargetSample::MAX_THREADS_GONE`]). Not stored per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<String>>", optional))]
    pub threads_gone: Vec<String>,
    /// Errors it has logged since the first sample, the first line of each kind. Only read by a run on the same machine;
    /// not stored per second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(as = "Option<Vec<LogLine>>", optional))]
    pub log: Vec<LogLine>,
}

impl TargetSample {
    /// Maximum number of individual processes, to bound the response.
    pub const MAX_PROCESSES: usize = 64;
    /// Maximum number of ended threads that are named.
    pub const MAX_THREADS_GONE: usize = 8;
}

/// What a control group leaves of the processors (kernel document `scheduler/sched-bwc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct CpuQuota {
    /// How many: 0.2 is a fifth of one.
    pub cores: f64,
    /// Periods since the group was created in which it had something to run (`nr_periods`).
    pub periods: u64,
    /// Those of them in which it used up its quota, and waited (`nr_throttled`).
    pub throttled: u64,
}

/// A line of a target's log that names an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct LogLine {
    /// Which error.
    pub kind: LogKind,
    /// The file, as its process names it.
    pub file: String,
    /// The line, cut off, with control characters escaped.
    pub line: String,
}

/// The event that a line of a log reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// A managed heap is full (`OutOfMemoryError`).
    Heap,
    /// The system gave no memory (`Cannot allocate memory`).
    Memory,
    /// No descriptor is free (`Too many open files`).
    OpenFiles,
    /// No thread could be started.
    Threads,
    /// No local port was free for a connection to another server (`Cannot assign requested address`).
    Ports,
    /// Its own limit on connections was reached (`worker_connections are not enough`).
    Connections,
    /// Any other error that ends a thread or a process (a panic, an uncaught exception).
    #[default]
    Error,
}

/// The memory of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProcessMemory {
    /// Process.
    pub pid: u32,
    /// Resident memory, bytes: what it shares with others is in it.
    pub rss_bytes: u64,
}

/// Java virtual machines, by their own counters; those of G1 are as of its last pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct JvmSample {
    /// Of the heap, in use.
    pub heap_used_bytes: u64,
    /// Of the heap, taken from the system.
    pub heap_committed_bytes: u64,
    /// The most that the heap may grow to (`-Xmx`); 0 where that is not known.
    pub heap_max_bytes: u64,
    /// Garbage collections since it was started.
    pub gc_count: u64,
    /// Time in them since it was started, nanoseconds.
    pub gc_pause_ns: u64,
}

impl JvmSample {
    /// The sum of two samples.
    pub fn plus(&self, other: &JvmSample) -> JvmSample {
        JvmSample {
            heap_used_bytes: self.heap_used_bytes + other.heap_used_bytes,
            heap_committed_bytes: self.heap_committed_bytes + other.heap_committed_bytes,
            heap_max_bytes: self.heap_max_bytes + other.heap_max_bytes,
            gc_count: self.gc_count + other.gc_count,
            gc_pause_ns: self.gc_pause_ns + other.gc_pause_ns,
        }
    }
}

/// Some processes, taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProcessSample {
    /// Alive.
    pub processes: u64,
    /// Their threads.
    pub threads: u64,
    /// Resident memory in bytes, summed: what they share counts for each.
    pub rss_bytes: u64,
    /// CPU time in user space, nanoseconds, in steps of a clock tick (10 ms as a rule).
    pub cpu_user_ns: u64,
    /// CPU time in the kernel, the same.
    pub cpu_system_ns: u64,
    /// Processors used since the previous sample: 1.5 is one and a half.
    pub cores_used: f64,
    /// Processors that the first of them may use, by affinity and control group.
    pub cores: Option<u64>,
    /// Share of a processor that the busiest of their threads (the first 64) used since the previous sample.
    pub busiest_thread: f64,
    /// The same with the time for which it was ready to run and had none: 1 is a thread that could not have done more.
    pub busiest_wanted: f64,
    /// Threads among those that used or waited for a processor 95 % of the time or more.
    pub threads_full: u64,
    /// Time for which those threads were ready to run and had no processor, nanoseconds.
    pub run_queue_wait_ns: u64,
    /// Times that a thread was put off its processor before it was done; counted for throng itself only.
    pub involuntary_switches: u64,
    /// Processes that a signal or a debugger has stopped (state `T` or `t`).
    pub stopped: u64,
    /// Threads (of the first 64) in a wait that no signal ends (state `D`): a disk, as a rule.
    pub blocked: u64,
    /// Processors that the first of them may run on, as `Cpus_allowed_list` has them; empty where that is not known.
    pub cpus: String,
}

impl ProcessSample {
    /// CPU time in seconds.
    pub fn cpu_s(&self) -> f64 {
        (self.cpu_user_ns + self.cpu_system_ns) as f64 / 1e9
    }
}

/// A host, as far as connections feel it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct HostSample {
    /// TCP sockets of the network namespace.
    pub sockets: SockStat,
    /// Events of TCP in the network namespace.
    pub tcp: NetCounters,
    /// Pages of socket memory from which on the kernel is under pressure (`tcp_mem`, second number), whole machine.
    pub tcp_mem_pressure_pages: Option<u64>,
    /// Connections that the firewall tracks.
    pub conntrack: Option<u64>,
    /// The most that it can.
    pub conntrack_max: Option<u64>,
    /// Packets that it dropped because it could track no further connection.
    pub conntrack_drops: Option<u64>,
    /// Memory that may still be taken, bytes; the control group's where that is less.
    pub memory_available: u64,
    /// Memory that the kernel holds for itself, bytes, page cache not counted.
    pub kernel_bytes: u64,
    /// The part of it that the kernel calls reclaimable, and counts as available: the inodes of sockets are there too.
    pub slab_reclaimable_bytes: u64,
    /// Processes killed by the OOM killer, whole machine.
    pub oom_kills: u64,
}

/// TCP sockets of a network namespace now, from `/proc/net/sockstat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct SockStat {
    /// Sockets in use; a connection within the namespace has two.
    pub tcp_inuse: u64,
    /// Closed by their program, but not yet by the peer.
    pub tcp_orphans: u64,
    /// Connections in TIME_WAIT.
    pub tcp_tw: u64,
    /// Memory that socket buffers of the whole machine hold, in pages; the limit is `tcp_mem`.
    pub tcp_mem_pages: u64,
}

/// Declares the struct of counters, and the functions that must cover all of its fields.
macro_rules! counters {
    ($(#[$of_all:meta])* $name:ident { $($(#[$meta:meta])* $field:ident,)+ }) => {
        $(#[$of_all])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[serde(default)]
        pub struct $name { $($(#[$meta])* pub $field: u64,)+ }

        impl $name {
            /// Events from `earlier` to `self`; zero if a counter went backwards.
            pub fn since(&self, earlier: &$name) -> $name {
                $name { $($field: self.$field.saturating_sub(earlier.$field),)+ }
            }

            /// Each counter with its name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),+].into_iter()
            }

            /// The sum of both.
            pub fn plus(&self, other: &$name) -> $name {
                $name { $($field: self.$field.saturating_add(other.$field),)+ }
            }
        }
    };
}

counters! {
    /// TCP events since the network namespace was created; a counter that the kernel does not have is zero (kernel document
    /// `networking/snmp_counter`). [`NetCounters::since`] is the difference of two samples.
    NetCounters {
        /// Dials that failed: refused, or reset while opening (`AttemptFails`, RFC 4022).
        attempt_fails,
        /// Open connections that were reset (`EstabResets`).
        estab_resets,
        /// Resets sent (`OutRsts`).
        out_resets,
        /// Segments sent again (`RetransSegs`).
        retrans_segs,
        /// Retransmitted SYNs and SYN-ACKs (`TCPSynRetrans`).
        syn_retrans,
        /// Retransmission timers that fired (`TCPTimeouts`).
        tcp_timeouts,
        /// Connections that found a listener's accept queue full (`ListenOverflows`).
        listen_overflows,
        /// Connections that a listener dropped for any reason (`ListenDrops`).
        listen_drops,
        /// SYNs dropped because the queue of half-open connections was full (`TCPReqQFullDrop`).
        syn_queue_drops,
        /// SYNs to which a SYN cookie was sent for the same reason (`TCPReqQFullDoCookies`).
        syn_cookies,
        /// Connections ended because socket memory ran out (`TCPAbortOnMemory`).
        abort_on_memory,
        /// Times that socket memory came under pressure (`TCPMemoryPressures`).
        memory_pressures,
        /// Receive queues cut down because a socket had too much memory (`PruneCalled`).
        pruned,
        /// Connections that skipped TIME_WAIT because `tcp_max_tw_buckets` was reached (`TCPTimeWaitOverflow`).
        time_wait_overflow,
        /// ICMP and ICMPv6 messages *unreachable* or *prohibited* (`InDestUnreachs`, `Icmp6InDestUnreachs`).
        icmp_unreachable,
        /// Segments that this machine itself did not let out when they were sent again (`TCPRetransFail`).
        retrans_fails,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_survives_the_wire() {
        let processes = vec![ProcessMemory { pid: 7, rss_bytes: 4096 }];
        let target = TargetSample { pid: 7, open_files: Some(9), processes, ..TargetSample::default() };
        let mut look = Sample { target: Some(target), ..Sample::default() };
        look.host.tcp.listen_overflows = 5;
        look.host.conntrack = Some(3);
        assert_eq!(Sample::from_json(&look.to_json()), Ok(look));
        // An older `throng observe` does not report individual processes.
        let older = Sample::from_json(r#"{"target":{"pid":7},"host":{}}"#);
        let target = Some(TargetSample { pid: 7, ..TargetSample::default() });
        assert_eq!(older, Ok(Sample { target, ..Sample::default() }));
        assert!(Sample::from_json("{}").is_err());
        assert!(Sample::from_json("x").is_err());
    }

    #[test]
    fn counters_are_subtracted_and_added() {
        let earlier = NetCounters { attempt_fails: 5, pruned: 9, ..NetCounters::default() };
        let later = NetCounters { attempt_fails: 7, pruned: 2, syn_cookies: 1, ..NetCounters::default() };
        let grown = later.since(&earlier);
        assert_eq!((grown.attempt_fails, grown.pruned, grown.syn_cookies), (2, 0, 1));
        let named: Vec<_> = grown.named().filter(|(_, n)| *n > 0).collect();
        assert_eq!(named, [("attempt_fails", 2), ("syn_cookies", 1)]);
        assert_eq!(
            grown.plus(&earlier),
            NetCounters { attempt_fails: 7, pruned: 9, syn_cookies: 1, ..grown }
        );
    }
}
