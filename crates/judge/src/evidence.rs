//! Evidence for the limiting factor, apart from counts: plain values, so that tests can construct any case. `gather` fills it from the
//! record; the causes read it.

use std::net::SocketAddr;

use plan::{Plan, Threshold};
use samples::{HostSeen, LogLine, NetCounters, Observation, ProcessSeen, SlowPart};
use units::Nanos;

use super::{starved::Starved, subject::Subject, words::Words};
use record::{
    PopulationRecord, answers::Answers, ends::BothSides, fill::Fill, hops::Sender, observed::Observed,
    rejection::Rejection, signs::FullHeap, tolerances::CPU_OVER,
};

mod pattern;
mod timeline;
pub(super) mod times;

pub(crate) use pattern::Pattern;
pub(crate) use timeline::Timeline;

/// The quantity that a search increases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Connections held.
    Connections,
    /// Connections that arrive per second.
    Arrival,
    /// Connections dialled at the same time.
    Burst,
    /// Requests per second.
    Rate,
    /// Another number of the scenario.
    Number,
}

/// Evidence from the hosts, and from what faults, losses and times have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// What the plan does to the target.
    pub(crate) subject: Subject,
    /// The plan's conditions, in the order of the summary's results.
    pub(crate) thresholds: Vec<Threshold>,
    /// The quantity that the search increases, if this is a step of a search.
    pub(crate) search: Option<By>,
    /// Whether a smaller load passed in that search.
    pub(crate) has_passed: bool,
    /// This host.
    pub(crate) here: Host,
    /// The target's host: the same as `here` if both ends are on it; `None` if it is not observed.
    pub(crate) there: Option<Host>,
    /// Maximum length of the target's fullest accept queue, and its limit.
    pub(crate) accept_queue: Option<Fill>,
    /// The longest accept queue that the kernel allows (`net.core.somaxconn`), if the target is on this host.
    pub(crate) somaxconn: Option<u64>,
    /// Command name of the target's process; empty if it is not seen.
    pub(crate) program: String,
    /// Arrivals that were waiting when the load ended, if their number had grown from the beginning on.
    pub(crate) backlog: Option<u64>,
    /// As `backlog`, also counting requests that had timed out earlier, if the others were served later and later.
    pub(crate) outpaced: Option<u64>,
    /// How responses delay each other, for a request rate of which some requests were due and never sent.
    pub(crate) queueing: Queueing,
    /// As `backlog`, for requests at a rate, including those that were waiting for a connection.
    pub(crate) rate_backlog: Option<u64>,
    /// Only in a step of a search by rate whose connections carry one request at a time.
    pub(crate) paced: Option<Paced>,
    /// One sentence for each population whose connections were all closed as announced and never opened again.
    pub(crate) stranded: Vec<String>,
    /// For each population: connections that had no response while others had many.
    pub(crate) starved: Vec<Starved>,
    /// Connections in the target's accept queues at the end of the load; `None` if unknown.
    pub(crate) queued_at_end: Option<u64>,
    /// The part of `queued_at_end` that throng had already given up.
    pub(crate) given_up_at_end: u64,
    /// SYNs and handshakes that the target's listeners dropped in this run because their queue was full; 0 if unknown.
    pub(crate) queue_drops: u64,
    /// Connections that the target accepted per second while others waited, if that rate was steady.
    pub(crate) accepts_per_s: Option<f64>,
    /// Whether the target's accept queue was empty most of the time in between.
    pub(crate) queue_empties: bool,
    /// Connections that arrive per second, if the load consists of arrivals at a constant rate.
    pub(crate) arrivals_per_s: Option<f64>,
    /// The target's processes, if observed: on this host, or through `throng observe`.
    pub(crate) target: Option<TargetSeen>,
    /// throng's process at full load, if full load was long enough.
    pub(crate) own: Option<OwnSeen>,
    /// Connections open at the end of the hold, counted at both ends.
    pub(crate) both_sides: Option<BothSides>,
    /// What the lost connections have in common.
    pub(crate) losses: Pattern,
    /// Connections that were opened after the first dial that timed out had begun.
    pub(crate) opened_beside: u64,
    /// The silence of a connection from which on requests failed, while requests on other connections did not.
    pub(crate) failing_silence: Option<Nanos>,
    /// How often slow responses came on all connections at once.
    pub(crate) pauses: Option<u64>,
    /// Results of the experiments after the load.
    pub(crate) answers: Answers,
    /// How long a dial or request may wait for a response.
    pub(crate) timeout: Nanos,
    /// Unanswered requests have not waited for the whole timeout, because the run ended before.
    pub(crate) is_cut_short: bool,
    /// Responses at full load that took far longer than the others.
    pub(crate) slow_part: Option<SlowPart>,
    /// As `slow_part`, by population, and by step where a population has several.
    pub(crate) slow_parts: Vec<((String, Option<String>), SlowPart)>,
    /// The longest time in which no connection received a response.
    pub(crate) stall: Option<Stall>,
    /// The population with that stall, if there are several populations.
    pub(crate) stall_of: Option<String>,
    /// The seconds of the run in which the slow responses came, if they are concentrated in a few.
    pub(crate) slow_seconds: Vec<u64>,
    /// How long a garbage collection stopped the target when responses were slowest; 0 if it did not, or if unknown.
    pub(crate) pause: Nanos,
    /// When a process of the target was stopped while something failed: from and until, in seconds of the run.
    pub(crate) stopped: Option<(f64, f64)>,
    /// Connections that only the kernel had accepted at the end, not the target's process.
    pub(crate) unaccepted: u64,
    /// The part of `unaccepted` whose population is unknown.
    pub(crate) unattributed: u64,
    /// Connections that existed only at throng's end; `None` if unknown.
    pub(crate) missing: Option<u64>,
    /// Connections that never had a response, including lost ones.
    pub(crate) unserved: u64,
    /// Connections that stood in the target's accept queue for a large part of a second or longer.
    pub(crate) stood: u64,
    /// TCP state of the connections that were waiting.
    pub(crate) segments: record::segments::Segments,
    /// The target never sent a byte, and closed connections in reply to data.
    pub(crate) is_mute: bool,
    /// Responses of HTTP/1.1 and TCP that began and were not completed.
    pub(crate) unended: u64,
    /// Texts that the target sent, by kind of fault.
    pub(crate) words: Vec<Words>,
    /// Whether all of the wrong texts were messages.
    pub(crate) wrong_messages: bool,
    /// Whether the target accepts TLS; `None` if that was not tested.
    pub(crate) speaks_tls: Option<bool>,
    /// The ICMP message that rejects dials, and its sender.
    pub(crate) rejection: Option<Rejection>,
    /// The host that sent the resets, if known.
    pub(crate) resets_by: Option<Sender>,
    /// Processors that both ends are confined to.
    pub(crate) shared: Option<Shared>,
    /// The target's managed heap, if it was full.
    pub(crate) heap: Option<FullHeap>,
    /// The first of several destinations that had a listener and lost it.
    pub(crate) deserted: Option<SocketAddr>,
    /// Threads of the target that ended during the run.
    pub(crate) threads_gone: Vec<String>,
    /// Errors in the target's log.
    pub(crate) log: Vec<LogLine>,
    /// Start (in seconds of the run) and number of responses of each second; of a few seconds each in a long run.
    pub(crate) answered: Vec<(f64, u64)>,
    /// Responses per second in the slowest third of full load.
    pub(crate) least_per_s: Option<f64>,
    /// When signs and faults began.
    pub(crate) timeline: Timeline,
}

/// What the verdict depends on, besides the summary.
pub(crate) struct Facts<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) evidence: &'a Evidence,
    /// In the order of the plan's populations.
    pub(crate) populations: &'a [PopulationRecord],
    pub(crate) interrupted: Option<&'a str>,
}

/// How much a request rate demands of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Paced {
    /// Requests due per second, without the probe's.
    pub(crate) due_per_s: f64,
    /// Response time without queueing: the lowest median of the loads that passed before, or the minimum of this load if none did.
    pub(crate) response: Nanos,
}

/// How response times depend on the requests that are outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Queueing {
    /// They do not: the first responses took as long as the later ones, or it is unknown.
    #[default]
    None,
    /// The first responses were fast, and later ones that came together took equally long: a FIFO queue.
    InLine,
    /// Some were fast, but times vary: the queue has another order, or there is none.
    Unclear,
}

/// A time in which no connection of a population received a response, though throng was on time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stall {
    /// Start, in seconds of the run.
    pub(crate) from_s: f64,
    pub(crate) until_s: f64,
    /// How often this happened.
    pub(crate) count: u64,
    /// Responses came again after it.
    pub(crate) is_over: bool,
    /// Median latency from its beginning on, in microseconds.
    pub(crate) usual_us: f64,
    pub(crate) state: State,
    /// Index of the population in the plan.
    pub(crate) population: u16,
}

/// The state of the target's process during a stall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Not observed.
    #[default]
    Unseen,
    Stopped,
    Blocked,
    Collecting,
    Cpu,
    /// It was waiting for something.
    Idle,
    /// None of these, or not observed, and many segments of the run were retransmitted: perhaps they never arrived.
    Unreached,
}

/// The processors that throng and the target share, if neither may use others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Shared {
    /// In the kernel's list format: `0-3`.
    pub(crate) list: String,
    /// Share of these processors that throng used at full load.
    pub(crate) own: f64,
    pub(crate) target: f64,
    /// Demand of both ends: time running and time ready to run.
    pub(crate) wanted: f64,
}

/// Counters of a host that affect connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    /// TCP events of its network namespace during the run.
    pub(crate) net: NetCounters,
    /// Processes killed by the OOM killer during the run.
    pub(crate) oom_kills: u64,
    /// Maximum number of connections that its firewall tracked at once, and the size of the table.
    pub(crate) conntrack: Option<Fill>,
    /// Packets dropped because that table was full; `None` if not counted.
    pub(crate) conntrack_drops: Option<u64>,
}

/// The target's processes, as observed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TargetSeen {
    pub(crate) pid: u32,
    /// It ended before the run did.
    pub(crate) ended: bool,
    /// Processes of its cgroup killed by the OOM killer.
    pub(crate) oom_kills: u64,
    /// Maximum number of open files, and its limit.
    pub(crate) open_files: Option<Fill>,
    /// Time that its busiest thread ran or was ready to run, as a share of a second: the median over the seconds in which responses failed
    /// or were slow; `None` if unknown.
    pub(crate) cpu_thread: Option<f64>,
    /// Processors used by all of its threads together: the median over the same seconds.
    pub(crate) cores_used: f64,
    /// As `cores_used`, if that was one processor second after second although the process may use more.
    pub(crate) one_processor: Option<f64>,
    /// `cores_used` as a share of the processors that it may use.
    pub(crate) cpu_share: f64,
    /// Whether its cgroup has a memory limit.
    pub(crate) has_memory_limit: bool,
    /// The CPU quota of its cgroup in cores, and the share of periods at full load in which it was exhausted.
    pub(crate) quota: Option<(f64, f64)>,
    /// Requests timed out while nearly all others were answered in a small part of the timeout: those did not wait for a processor.
    pub(crate) serves_others: bool,
}

/// throng's process at full load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OwnSeen {
    /// CPU time as a share of what the shards' threads could have had.
    pub(crate) cpu_share: f64,
    /// As `cpu_share`, including the time that the threads waited for a processor: what they would have used.
    pub(crate) demand: f64,
}

impl Evidence {
    /// Whether connections are known to exist only at throng's end.
    pub(super) fn has_missing(&self) -> bool {
        self.missing.is_some_and(|missing| missing > 0)
    }

    /// The evidence from the samples of a run with `threads` shards.
    pub(super) fn seen(observed: &Observed, threads: u32) -> Evidence {
        let Observation { target, host, target_host, own, .. } = &observed.seen;
        let (mut here, accepts) = (host.as_ref().map(Host::seen).unwrap_or_default(), &observed.accepts);
        here.net.syn_retrans += observed.own_counts.syns_again;
        here.net.icmp_unreachable += observed.own_counts.icmp;
        let queue =
            target.as_ref().and_then(|t| Fill::of(t.accept_queue.map(|queue| queue.max), t.accept_backlog));
        Evidence {
            here,
            there: target_host.as_ref().map(Host::seen).or(observed.both_here.then_some(here)),
            accept_queue: [queue, accepts.fullest].into_iter().flatten().max_by_key(|queue| queue.used),
            somaxconn: observed.somaxconn.filter(|_| observed.both_here),
            program: target.as_ref().map_or(String::new(), |target| target.latest().command.clone()),
            queued_at_end: observed.queued_at_end,
            given_up_at_end: observed.given_up_at_end,
            queue_drops: accepts.drops(),
            accepts_per_s: accepts.per_s(),
            queue_empties: accepts.empties(),
            target: target.as_ref().map(TargetSeen::seen),
            own: own.as_ref().and_then(|own| OwnSeen::seen(own, observed.held_for, threads)),
            stood: accepts.stood,
            segments: observed.segments,
            shared: Shared::seen(observed),
            heap: observed.signs.heap,
            deserted: observed.deserted,
            threads_gone: target.as_ref().map_or(Vec::new(), |target| target.threads_gone.clone()),
            log: target.as_ref().map_or(Vec::new(), |target| target.log.clone()),
            ..Evidence::default()
        }
    }
}

impl Host {
    fn seen(host: &HostSeen) -> Host {
        Host {
            net: host.tcp(),
            oom_kills: host.oom_kills.total(),
            conntrack: Fill::of(host.conntrack.map(|tracked| tracked.max), host.conntrack_max),
            conntrack_drops: host.conntrack_drops.map(|drops| drops.total()),
        }
    }
}

impl TargetSeen {
    fn seen(target: &samples::TargetSeen) -> TargetSeen {
        let process = &target.process;
        let cores_used = process.cores_used_hold.map_or(0.0, |used| used.max);
        TargetSeen {
            pid: target.pid,
            ended: process.processes.last == 0,
            oom_kills: target.group_oom_kills.total(),
            open_files: Fill::of(target.open_files.map(|files| files.max), target.open_files_limit),
            // A wait is reported when it is over, so it may belong to the previous second.
            cpu_thread: process.busiest_wanted_hold.map(|wanted| wanted.max.min(1.0)),
            cpu_share: process.cores.map_or(0.0, |cores| cores_used / cores.max(1) as f64),
            has_memory_limit: target.memory_available.is_some(),
            quota: target
                .cpu_quota
                .filter(|_| target.quota_periods.hold > 0)
                .map(|cores| (cores, target.quota_throttled.hold as f64 / target.quota_periods.hold as f64)),
            // `add_times` replaces these by the values of the seconds in which something failed.
            cores_used,
            one_processor: None,
            serves_others: false,
        }
    }
}

impl OwnSeen {
    /// `over`: duration of full load; `None` if that was too short.
    fn seen(own: &ProcessSeen, over: Nanos, threads: u32) -> Option<OwnSeen> {
        let threads = u64::from(threads.max(1));
        let share = |ns: u64, threads: u64| (ns as f64 / (over.0 * threads) as f64).min(1.0);
        let cpu_ns = own.cpu_user_ns.hold + own.cpu_system_ns.hold;
        (over >= CPU_OVER).then(|| OwnSeen {
            cpu_share: share(cpu_ns, threads.min(own.cores.unwrap_or(threads).max(1))),
            demand: share(cpu_ns + own.run_queue_wait_ns.hold, threads),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{HostSample, Phase, ProcessSample, Sample, TargetSample};

    fn own(cpu_ms: u64, waited_ms: u64) -> ProcessSample {
        let (user, system) = (cpu_ms * 3 / 4 * 1_000_000, cpu_ms.div_ceil(4) * 1_000_000);
        ProcessSample {
            cpu_user_ns: user,
            cpu_system_ns: system,
            run_queue_wait_ns: waited_ms * 1_000_000,
            cores: Some(2),
            ..ProcessSample::default()
        }
    }

    #[test]
    fn our_share_is_of_what_our_threads_could_have() {
        // Time of a sample in milliseconds, with CPU time and wait time up to it.
        type At = (u64, u64, u64);
        let check = |first: At, last: At, threads: u32, expected: Option<(f64, f64)>| {
            let mut observed =
                Observed { held_for: Nanos::from_millis(last.0 - first.0), ..Observed::default() };
            // The ramp does not count.
            observed.seen.see_here(Phase::Ramp, &HostSample::default(), &own(0, 0));
            observed.seen.see_here(Phase::Ramp, &HostSample::default(), &own(first.1, first.2));
            observed.seen.see_here(Phase::Hold, &HostSample::default(), &own(last.1, last.2));
            let seen = Evidence::seen(&observed, threads).own.map(|seen| (seen.cpu_share, seen.demand));
            assert_eq!(seen, expected, "{first:?}, {last:?}, {threads} threads");
        };
        check((1_000, 500, 0), (3_000, 2_500, 0), 1, Some((1.0, 1.0)));
        check((1_000, 500, 0), (3_000, 2_500, 0), 2, Some((0.5, 0.5)));
        // Starved: half of the time it waited for its turn.
        check((1_000, 0, 10), (3_000, 1_000, 1_010), 1, Some((0.5, 1.0)));
        // Eight threads have two processors.
        check((0, 0, 0), (1_000, 2_000, 6_000), 8, Some((1.0, 1.0)));
        check((0, 0, 0), (400, 400, 0), 1, None);
    }

    /// A sample of a target and its host, in the middle of a run that strains it.
    fn strained() -> Sample {
        let mut sample =
            Sample { target: Some(TargetSample { pid: 7, ..TargetSample::default() }), ..Sample::default() };
        let target = sample.target.as_mut().unwrap();
        (target.open_files, target.open_files_limit) = (Some(1_000), Some(1_024));
        (target.accept_queue, target.accept_backlog) = (Some(9), Some(8));
        (target.group_oom_kills, target.command) = (2, "nginx".to_owned());
        let process = &mut target.process;
        (process.processes, process.cores, process.cores_used, process.busiest_wanted) =
            (1, Some(4), 3.0, 1.25);
        sample.host.tcp.listen_overflows = 5;
        (sample.host.conntrack, sample.host.conntrack_max) = (Some(70), Some(90));
        sample.host.oom_kills = 3;
        sample
    }

    #[test]
    fn a_target_elsewhere_is_seen_through_its_observer() {
        let mut observed = Observed { somaxconn: Some(4_096), ..Observed::default() };
        assert_eq!(Evidence::seen(&observed, 1).there, None);
        let gone =
            Sample { target: Some(TargetSample { pid: 7, ..TargetSample::default() }), ..Sample::default() };
        for sample in [gone.clone(), strained(), strained()] {
            observed.seen.see_there(Phase::Hold, &sample);
        }
        observed.seen.see_here(Phase::Hold, &HostSample::default(), &ProcessSample::default());
        let evidence = Evidence::seen(&observed, 1);
        let there = evidence.there.unwrap();
        let table = Some(Fill { used: 70, limit: 90 });
        assert_eq!((there.net.listen_overflows, there.oom_kills, there.conntrack), (5, 3, table));
        assert_eq!(
            (evidence.here, evidence.accept_queue, evidence.somaxconn),
            (Host::default(), Some(Fill { used: 9, limit: 8 }), None)
        );
        let expected = TargetSeen {
            pid: 7,
            ended: false,
            oom_kills: 2,
            open_files: Some(Fill { used: 1_000, limit: 1_024 }),
            cpu_thread: Some(1.0),
            cpu_share: 0.75,
            quota: None,
            has_memory_limit: false,
            cores_used: 3.0,
            one_processor: None,
            serves_others: false,
        };
        assert_eq!(evidence.target, Some(expected));
        observed.seen.see_there(Phase::Hold, &gone);
        assert!(Evidence::seen(&observed, 1).target.unwrap().ended, "no process was left at the last look");
    }

    #[test]
    fn where_both_ends_are_here_this_host_is_the_targets_too() {
        let mut observed = Observed { both_here: true, somaxconn: Some(4_096), ..Observed::default() };
        observed.accepts.fullest = Some(Fill { used: 12, limit: 11 });
        let (own, sample) = (ProcessSample::default(), strained());
        observed.seen.see_here(Phase::Ramp, &HostSample::default(), &own);
        observed.seen.see_here(Phase::Hold, &sample.host, &own);
        observed.seen.see_target(Phase::Hold, &sample.target.unwrap());
        let evidence = Evidence::seen(&observed, 1);
        assert_eq!((evidence.there, evidence.here.oom_kills), (Some(evidence.here), 3));
        assert_eq!(evidence.accept_queue, observed.accepts.fullest, "the fuller of both");
        assert_eq!((evidence.somaxconn, evidence.program.as_str()), (Some(4_096), "nginx"));
    }
}
