//! The samples of target, hosts and throng over a whole run, aggregated into values of constant size.

use serde::{Deserialize, Serialize};

use crate::{
    gauge::{Gauge, Growth},
    sample::{HostSample, LogLine, NetCounters, ProcessMemory, ProcessSample, Sample, TargetSample},
    threshold::ThresholdResult,
    tick::Phase,
};

/// All that was seen, from before the first dial to the end of the hold, about once a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Observation {
    /// The target's processes, where they could be seen: on this machine, or through `throng observe`.
    pub target: Option<TargetSeen>,
    /// The host that throng runs on, and its network namespace. The target's too where `target_host` is `None` and the
    /// target is here.
    pub host: Option<HostSeen>,
    /// The target's host, if `throng observe` reported it.
    pub target_host: Option<HostSeen>,
    /// throng itself.
    pub own: Option<ProcessSeen>,
    /// How `throng observe` responded, if it was used.
    pub observer: Option<ObserverSeen>,
    /// The message of ICMP that dials were rejected with, where one was seen.
    pub rejection: Option<RejectionSeen>,
}

impl Observation {
    /// Adds a sample of this machine and of throng.
    pub fn see_here(&mut self, phase: Phase, host: &HostSample, own: &ProcessSample) {
        see(&mut self.host, phase, host, HostSeen::new, HostSeen::see);
        see(&mut self.own, phase, own, ProcessSeen::new, ProcessSeen::see);
    }

    /// The last sample of each. `both_here`: both ends of the connections are on throng's host. `is_tun`: throng's ends are no kernel
    /// sockets.
    pub fn latest(&self, both_here: bool, is_tun: bool) -> Samples {
        let side = if both_here { &self.host } else { &self.target_host };
        let sockets_each = if both_here && !is_tun { 2 } else { 1 };
        let more = side.as_ref().map(|host| host.tcp_sockets.last.saturating_sub(host.tcp_sockets.first));
        Samples {
            connections: more.map(|sockets| sockets / sockets_each),
            // The summary lists the individual processes once.
            target: self.target.as_ref().map(|seen| TargetSample {
                processes: Vec::new(),
                threads_gone: Vec::new(),
                log: Vec::new(),
                ..seen.latest.clone()
            }),
            host: self.host.as_ref().map(|seen| seen.latest.clone()),
            target_host: self.target_host.as_ref().map(|seen| seen.latest.clone()),
            own: self.own.as_ref().map(|seen| seen.latest.clone()),
            thresholds: Vec::new(),
        }
    }

    /// Sets the last samples of an observation that was read from the store, which contains only sums and extremes.
    pub fn set_latest(&mut self, latest: Samples) {
        let Samples { target, host, target_host, own, .. } = latest;
        let both = |seen: &mut Option<HostSeen>, latest: Option<HostSample>| {
            seen.iter_mut().zip(latest).for_each(|(seen, latest)| seen.latest = latest);
        };
        both(&mut self.host, host);
        both(&mut self.target_host, target_host);
        self.target.iter_mut().zip(target).for_each(|(seen, latest)| seen.latest = latest);
        self.own.iter_mut().zip(own).for_each(|(seen, latest)| seen.latest = latest);
    }

    /// Adds a sample of a target on this machine.
    pub fn see_target(&mut self, phase: Phase, target: &TargetSample) {
        see(&mut self.target, phase, target, TargetSeen::new, TargetSeen::see);
    }

    /// Adds a sample of `throng observe`.
    pub fn see_there(&mut self, phase: Phase, look: &Sample) {
        see(&mut self.target_host, phase, &look.host, HostSeen::new, HostSeen::see);
        if let Some(target) = &look.target {
            self.see_target(phase, target);
        }
    }
}

/// What was seen last, named as in [`Observation`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Samples {
    /// The target's processes.
    pub target: Option<TargetSample>,
    /// The host that throng runs on.
    pub host: Option<HostSample>,
    /// The target's host, if `throng observe` reports it.
    pub target_host: Option<HostSample>,
    /// throng itself.
    pub own: Option<ProcessSample>,
    /// Connections on the target's side: TCP sockets that its kernel counts in the network namespace beyond those before
    /// the first dial, half of them if both ends are there. `None`: that side is not observed.
    pub connections: Option<u64>,
    /// Thresholds, judged by all that was measured so far; without those on what only the end of a run has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdResult>,
}

fn see<S, L>(seen: &mut Option<S>, phase: Phase, look: &L, new: fn(&L) -> S, again: fn(&mut S, Phase, &L)) {
    match seen {
        Some(seen) => again(seen, phase, look),
        None => *seen = Some(new(look)),
    }
}

/// The processes that serve the target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct TargetSeen {
    /// The process that listens; with a master and workers, the first worker.
    pub pid: u32,
    /// All of them together. `processes.min` of 0: they ended.
    pub process: ProcessSeen,
    /// Open descriptors in the fullest table of theirs; see [`TargetSample::open_files`].
    pub open_files: Option<Gauge<u64>>,
    /// What that table may hold (soft RLIMIT_NOFILE).
    pub open_files_limit: Option<u64>,
    /// Connections waiting in the fullest accept queue.
    pub accept_queue: Option<Gauge<u64>>,
    /// How many may wait there.
    pub accept_backlog: Option<u64>,
    /// Samples at which that queue was full.
    pub accept_queue_full: u64,
    /// Bytes that its control group left it; `None`: it has none of its own.
    pub memory_available: Option<Gauge<u64>>,
    /// Processes of its control group that the kernel killed for lack of memory.
    pub group_oom_kills: Growth,
    /// The CPU quota of its control group, cores; `None`: it has none.
    pub cpu_quota: Option<f64>,
    /// Periods of that quota in which it had something to run.
    pub quota_periods: Growth,
    /// Those of them in which it used up its quota, and waited for the next.
    pub quota_throttled: Growth,
    /// Its Java virtual machines' heap, bytes in use; the most it may grow to is `jvm_heap_max_bytes`.
    pub jvm_heap_used_bytes: Option<Gauge<u64>>,
    /// The most that heap may grow to, bytes.
    pub jvm_heap_max_bytes: Option<u64>,
    /// Threads that have ended; see [`TargetSample::threads_gone`].
    pub threads_gone: Vec<String>,
    /// Lines of its logs that name an error; see [`TargetSample::log`].
    pub log: Vec<LogLine>,
    /// Those that had ended before this run: the observer may have started earlier.
    #[serde(skip)]
    gone_before: Vec<String>,
    /// When and what [`TargetSeen::processes`] has.
    #[serde(skip)]
    processes: (Phase, Vec<ProcessMemory>),
    #[serde(skip)]
    latest: TargetSample,
}

impl TargetSeen {
    /// The last sample.
    pub const fn latest(&self) -> &TargetSample {
        &self.latest
    }

    /// Whether it is `throng serve`, which reports the counts of all its connections at `/stats`.
    pub fn is_ours(&self) -> bool {
        self.latest.command == "throng" && self.latest.process.processes == 1
    }

    /// The managed runtime of the target, recognised by its counters or its program's name; `None` if there is none.
    pub fn runtime(&self) -> Option<&'static str> {
        const NAMES: [(&str, &str); 8] = [
            ("java", "JVM"),
            ("node", "Node.js"),
            ("sbcl", "SBCL"),
            ("beam.smp", "BEAM"),
            ("dotnet", ".NET"),
            ("python", "Python"),
            ("ruby", "Ruby"),
            ("php", "PHP"),
        ];
        let of =
            |(name, runtime): (&str, &'static str)| self.latest.command.starts_with(name).then_some(runtime);
        self.latest.jvm.map(|_| "JVM").or_else(|| NAMES.into_iter().find_map(of))
    }

    /// Each process individually, at the last sample at full load, or the last one before.
    pub fn processes(&self) -> &[ProcessMemory] {
        &self.processes.1
    }

    fn new(look: &TargetSample) -> TargetSeen {
        let mut seen = TargetSeen {
            pid: look.pid,
            process: ProcessSeen::new(&look.process),
            gone_before: look.threads_gone.clone(),
            ..TargetSeen::default()
        };
        seen.see_state(Phase::Ramp, look);
        seen
    }

    fn see(&mut self, phase: Phase, look: &TargetSample) {
        self.process.see(phase, &look.process);
        // The kernel calls a queue full when one more waits than its backlog, and then drops.
        let full = look.accept_queue.zip(look.accept_backlog).is_some_and(|(waiting, most)| waiting >= most);
        self.accept_queue_full += u64::from(full && look.accept_queue != Some(0));
        self.group_oom_kills.grow(phase.or_hold(), self.latest.group_oom_kills, look.group_oom_kills);
        if let (Some(before), Some(now)) = (self.latest.cpu_quota, look.cpu_quota) {
            self.quota_periods.grow(phase.or_hold(), before.periods, now.periods);
            self.quota_throttled.grow(phase.or_hold(), before.throttled, now.throttled);
        }
        self.see_state(phase, look);
    }

    /// Takes the values that need no earlier sample.
    fn see_state(&mut self, phase: Phase, look: &TargetSample) {
        Gauge::see_some(&mut self.open_files, look.open_files);
        Gauge::see_some(&mut self.accept_queue, look.accept_queue);
        Gauge::see_some(&mut self.memory_available, look.memory_available);
        self.open_files_limit = look.open_files_limit.or(self.open_files_limit);
        self.cpu_quota = look.cpu_quota.map(|quota| quota.cores).or(self.cpu_quota);
        self.accept_backlog = look.accept_backlog.or(self.accept_backlog);
        Gauge::see_some(&mut self.jvm_heap_used_bytes, look.jvm.map(|jvm| jvm.heap_used_bytes));
        let most = look.jvm.map(|jvm| jvm.heap_max_bytes).filter(|most| *most > 0);
        self.jvm_heap_max_bytes = most.or(self.jvm_heap_max_bytes);
        let gone = look.threads_gone.iter().filter(|name| !self.gone_before.contains(name));
        self.threads_gone = gone.cloned().collect();
        self.log.clone_from(&look.log);
        if phase == Phase::Hold || self.processes.0 != Phase::Hold {
            self.processes = (phase, look.processes.clone());
        }
        self.latest = look.clone();
    }
}

/// Some processes, taken together; see [`ProcessSample`] for what each means.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ProcessSeen {
    /// Alive.
    pub processes: Gauge<u64>,
    /// Their threads.
    pub threads: Gauge<u64>,
    /// Resident memory, bytes.
    pub rss_bytes: Gauge<u64>,
    /// CPU time in user space, nanoseconds.
    pub cpu_user_ns: Growth,
    /// CPU time in the kernel, nanoseconds.
    pub cpu_system_ns: Growth,
    /// Processors used between two samples; from the second one on.
    pub cores_used: Option<Gauge<f64>>,
    /// The same at full load only; `None`: the hold was too short for two samples.
    pub cores_used_hold: Option<Gauge<f64>>,
    /// Processors that they may use.
    pub cores: Option<u64>,
    /// Share of a processor that the busiest thread used between two samples.
    pub busiest_thread: Option<Gauge<f64>>,
    /// The same at full load only.
    pub busiest_thread_hold: Option<Gauge<f64>>,
    /// The most that a thread used or waited for a processor at full load: 1 is one that could not have done more.
    pub busiest_wanted_hold: Option<Gauge<f64>>,
    /// Threads that used or waited for one 95 % of the time or more.
    pub threads_full: Gauge<u64>,
    /// Time ready to run, without a processor, nanoseconds, all threads.
    pub run_queue_wait_ns: Growth,
    /// Times put off the processor; throng itself only.
    pub involuntary_switches: Growth,
    #[serde(skip)]
    latest: ProcessSample,
    #[serde(skip)]
    latest_phase: Phase,
}

impl ProcessSeen {
    /// CPU time in nanoseconds.
    pub const fn cpu_ns(&self) -> u64 {
        self.cpu_user_ns.total() + self.cpu_system_ns.total()
    }

    fn new(look: &ProcessSample) -> ProcessSeen {
        ProcessSeen {
            processes: Gauge::new(look.processes),
            threads: Gauge::new(look.threads),
            rss_bytes: Gauge::new(look.rss_bytes),
            cores: look.cores,
            threads_full: Gauge::new(look.threads_full),
            latest: look.clone(),
            ..ProcessSeen::default()
        }
    }

    fn see(&mut self, phase: Phase, look: &ProcessSample) {
        let before = &self.latest;
        self.processes.see(look.processes);
        self.threads.see(look.threads);
        self.rss_bytes.see(look.rss_bytes);
        self.cpu_user_ns.grow(phase, before.cpu_user_ns, look.cpu_user_ns);
        self.cpu_system_ns.grow(phase, before.cpu_system_ns, look.cpu_system_ns);
        self.run_queue_wait_ns.grow(phase, before.run_queue_wait_ns, look.run_queue_wait_ns);
        self.involuntary_switches.grow(phase, before.involuntary_switches, look.involuntary_switches);
        Gauge::see_some(&mut self.cores_used, Some(look.cores_used));
        Gauge::see_some(&mut self.busiest_thread, Some(look.busiest_thread));
        self.threads_full.see(look.threads_full);
        // An interval between two samples belongs to the hold only if both samples do.
        if phase == Phase::Hold && self.latest_phase == Phase::Hold {
            Gauge::see_some(&mut self.cores_used_hold, Some(look.cores_used));
            Gauge::see_some(&mut self.busiest_thread_hold, Some(look.busiest_thread));
            Gauge::see_some(&mut self.busiest_wanted_hold, Some(look.busiest_wanted));
        }
        self.cores = look.cores.or(self.cores);
        self.latest = look.clone();
        self.latest_phase = phase;
    }
}

/// Figures of a host that affect connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct HostSeen {
    /// TCP sockets of the network namespace in use.
    pub tcp_sockets: Gauge<u64>,
    /// Closed by their program, not by the peer.
    pub tcp_orphans: Gauge<u64>,
    /// In TIME_WAIT.
    pub tcp_time_wait: Gauge<u64>,
    /// Pages of socket memory, whole machine.
    pub tcp_mem_pages: Gauge<u64>,
    /// Pages from which on the kernel is under memory pressure.
    pub tcp_mem_pressure_pages: Option<u64>,
    /// Events of TCP during the ramp.
    pub tcp_ramp: NetCounters,
    /// Events of TCP at full load.
    pub tcp_hold: NetCounters,
    /// Connections that the firewall tracks.
    pub conntrack: Option<Gauge<u64>>,
    /// The most that it can.
    pub conntrack_max: Option<u64>,
    /// Packets that it dropped because it could track no further connection; `None`: the kernel does not count them.
    pub conntrack_drops: Option<Growth>,
    /// Memory that may still be taken, bytes.
    pub memory_available: Gauge<u64>,
    /// Processes killed by the OOM killer, whole machine.
    pub oom_kills: Growth,
    #[serde(skip)]
    latest: HostSample,
}

impl HostSeen {
    /// TCP events of the whole run.
    pub fn tcp(&self) -> NetCounters {
        self.tcp_ramp.plus(&self.tcp_hold)
    }

    fn new(look: &HostSample) -> HostSeen {
        HostSeen {
            tcp_sockets: Gauge::new(look.sockets.tcp_inuse),
            tcp_orphans: Gauge::new(look.sockets.tcp_orphans),
            tcp_time_wait: Gauge::new(look.sockets.tcp_tw),
            tcp_mem_pages: Gauge::new(look.sockets.tcp_mem_pages),
            tcp_mem_pressure_pages: look.tcp_mem_pressure_pages,
            conntrack: look.conntrack.map(Gauge::new),
            conntrack_max: look.conntrack_max,
            conntrack_drops: look.conntrack_drops.map(|_| Growth::default()),
            memory_available: Gauge::new(look.memory_available),
            latest: look.clone(),
            ..HostSeen::default()
        }
    }

    fn see(&mut self, phase: Phase, look: &HostSample) {
        self.tcp_sockets.see(look.sockets.tcp_inuse);
        self.tcp_orphans.see(look.sockets.tcp_orphans);
        self.tcp_time_wait.see(look.sockets.tcp_tw);
        self.tcp_mem_pages.see(look.sockets.tcp_mem_pages);
        self.memory_available.see(look.memory_available);
        Gauge::see_some(&mut self.conntrack, look.conntrack);
        self.conntrack_max = look.conntrack_max.or(self.conntrack_max);
        if let Some(now) = look.conntrack_drops {
            let before = self.latest.conntrack_drops.unwrap_or(now);
            self.conntrack_drops.get_or_insert_default().grow(phase.or_hold(), before, now);
        }
        let events = match phase {
            Phase::Ramp => &mut self.tcp_ramp,
            Phase::Pause | Phase::Hold | Phase::Drain => &mut self.tcp_hold,
        };
        *events = events.plus(&look.tcp.since(&self.latest.tcp));
        self.oom_kills.grow(phase.or_hold(), self.latest.oom_kills, look.oom_kills);
        self.latest = look.clone();
    }
}

/// An ICMP message to a dial made to find out what rejects them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct RejectionSeen {
    /// What was dialled.
    pub at: String,
    /// The sender of the message, if the kernel reports it.
    pub by: Option<String>,
    /// Whether that is an address of throng's own host.
    pub own: bool,
    /// Its meaning, as `administratively prohibited`.
    pub message: String,
    /// Its type and its code (RFC 792, RFC 1812), or those of ICMPv6 (RFC 4443).
    pub icmp_type: u8,
    /// As above.
    pub icmp_code: u8,
    /// It is of ICMPv6.
    pub icmp6: bool,
}

/// How `throng observe` responded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct ObserverSeen {
    /// Its address.
    pub address: String,
    /// Its responses.
    pub answers: u64,
    /// Failed or invalid responses.
    pub failures: u64,
    /// The last of those.
    pub last_failure: Option<String>,
}

#[cfg(test)]
mod tests;
