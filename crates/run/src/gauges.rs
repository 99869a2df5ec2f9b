//! What this host shows while a run goes on: a look a second, in memory that does not grow.

use host::{Fill, NetCounters, Root, SelfUsage};
use samples::Phase;
use units::Nanos;

use crate::{
    judge::{Evidence, OwnSeen, TargetSeen},
    slope::slope,
};

/// Two looks are so far apart at least: CPU is told in steps of 10 ms.
const APART: Nanos = Nanos::from_millis(200);
/// CPU over less than this says nothing.
const CPU_OVER: Nanos = Nanos::from_millis(500);
/// Looks at the accept queue that are kept; a minute of them is enough for a rate.
const MOST_ACCEPTS: usize = 300;

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    target: Option<u32>,
    ports: Vec<u16>,
    processors: u64,
    last_look: Option<Nanos>,
    before: NetCounters,
    oom_kills_before: u64,
    cpu: Cpu,
    own: [Option<Own>; 2],
    /// Times and numbers of connections accepted so far, while others waited.
    accepts: Vec<(f64, f64)>,
    is_queueing: bool,
    seen: Evidence,
}

/// The target's CPU time at one look; of a single thread with the time that it waited for a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    at: Nanos,
    cpu_ns: u64,
    waited_ns: u64,
}

/// Our own times at one look.
#[derive(Clone, Copy, Debug)]
struct Own {
    at: Nanos,
    cpu_ns: u64,
    waited_ns: u64,
}

impl Gauges {
    /// Begins to watch; `target` listens at `ports` of this host.
    pub(crate) fn start(root: &Root, target: Option<u32>, ports: Vec<u16>, both_ends_here: bool) -> Gauges {
        let pid = target.unwrap_or(0);
        Gauges {
            target,
            ports: if both_ends_here { ports } else { Vec::new() },
            processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u64),
            before: host::net_counters(root).unwrap_or_default(),
            oom_kills_before: host::oom_kills(root).unwrap_or(0),
            seen: Evidence {
                both_ends_here,
                target: target.map(|_| TargetSeen { pid, ..TargetSeen::default() }),
                ..Evidence::default()
            },
            ..Gauges::default()
        }
    }

    /// Looks, if the last look is long enough ago. `opened`: connections opened so far.
    pub(crate) fn look(&mut self, root: &Root, now: Nanos, phase: Phase, opened: u64) {
        if self.last_look.is_some_and(|last| now.since(last) < APART) {
            return;
        }
        self.last_look = Some(now);
        if let Some(now) = host::conntrack(root) {
            keep_most(&mut self.seen.conntrack, now);
        }
        if phase == Phase::Hold {
            self.look_at_ourselves(root, now);
        }
        self.look_at_target(root, now);
        self.look_at_queue(now, opened);
    }

    /// Whether the target has let somebody wait when last looked at: then it is worth looking more often.
    pub(crate) fn is_queueing(&self) -> bool {
        self.is_queueing
    }

    /// Full load has begun: our own CPU counts from here.
    pub(crate) fn begin_hold(&mut self, root: &Root, now: Nanos) {
        if self.own[0].is_none() {
            self.look_at_ourselves(root, now);
        }
    }

    /// At full load: the first look is kept, and the last one.
    pub(crate) fn look_at_ourselves(&mut self, root: &Root, at: Nanos) {
        let Ok(SelfUsage { cpu_ns, .. }) = host::usage(root, None) else { return };
        let own = Own { at, cpu_ns, waited_ns: host::waited_ns(root, None).unwrap_or(0) };
        self.own[usize::from(self.own[0].is_some())] = Some(own);
    }

    fn look_at_target(&mut self, root: &Root, at: Nanos) {
        let (Some(pid), Some(seen)) = (self.target, &mut self.seen.target) else { return };
        let Ok(usage) = host::usage(root, Some(pid)) else { return };
        if let (Some(used), Some(limit)) = (usage.open_files, host::open_files_limit(root, pid)) {
            keep_most(&mut seen.open_files, Fill { used, limit });
        }
        let over = at.since(self.cpu.at);
        if over >= CPU_OVER {
            // Only of a single thread it tells something, and only there it costs nothing.
            let waited = if usage.threads == 1 { host::waited_ns(root, Some(pid)) } else { None };
            let waited_ns = waited.unwrap_or(0);
            if self.cpu.cpu_ns > 0 {
                let of_one = |ns: u64, before: u64| ns.saturating_sub(before) as f64 / over.0 as f64;
                let ran = of_one(usage.cpu_ns, self.cpu.cpu_ns);
                seen.cpu_share = seen.cpu_share.max(ran / self.processors as f64);
                if usage.threads == 1 {
                    let wanted = ran + of_one(waited_ns, self.cpu.waited_ns);
                    seen.cpu_thread = Some(seen.cpu_thread.unwrap_or(0.0).max(wanted.min(1.0)));
                }
            }
            self.cpu = Cpu { at, cpu_ns: usage.cpu_ns, waited_ns };
        }
    }

    fn look_at_queue(&mut self, now: Nanos, opened: u64) {
        if self.ports.is_empty() {
            return;
        }
        let Ok(listening) = net::listening() else { return };
        let ours = listening.iter().filter(|l| self.ports.contains(&l.address.port()));
        let (used, limit) =
            ours.fold((0, 0), |(used, limit), l| (used + u64::from(l.waiting), limit + u64::from(l.backlog)));
        keep_most(&mut self.seen.accept_queue, Fill { used, limit });
        self.is_queueing = used > 0;
        if used > 0 && self.accepts.len() < MOST_ACCEPTS {
            self.accepts.push((now.secs_f64(), opened.saturating_sub(used) as f64));
        }
    }

    /// All that was seen, once the run is over.
    pub(crate) fn evidence(&self, root: &Root, threads: u32) -> Evidence {
        let net = host::net_counters(root).map(|after| after.since(&self.before));
        // Until its parent has taken note, a process that has ended is still listed, without memory.
        let gone = |target: TargetSeen| {
            host::usage(root, Some(target.pid)).map_or(true, |usage| usage.rss_bytes == 0)
        };
        let target = self.seen.target.map(|target| TargetSeen { ended: gone(target), ..target });
        let oom_kills = host::oom_kills(root).map(|n| n.saturating_sub(self.oom_kills_before));
        Evidence {
            net: net.unwrap_or_default(),
            target,
            oom_kills: oom_kills.unwrap_or(0),
            accepts_per_s: self.accepts_per_s(),
            own: self.own_seen(threads),
            ..self.seen.clone()
        }
    }

    /// Steady is what a line explains: a queue that nothing is taken from has no rate.
    fn accepts_per_s(&self) -> Option<f64> {
        let line = slope(&self.accepts).filter(|_| self.accepts.len() >= 5)?;
        (line.r2 > 0.98 && line.slope >= 1.0).then_some(line.slope)
    }

    fn own_seen(&self, threads: u32) -> Option<OwnSeen> {
        let [Some(first), Some(last)] = self.own else { return None };
        let over = last.at.since(first.at);
        let threads = u64::from(threads.max(1));
        let share = |ns: u64, threads: u64| ns as f64 / (over.0 * threads) as f64;
        let cpu_ns = last.cpu_ns.saturating_sub(first.cpu_ns);
        let waited_ns = last.waited_ns.saturating_sub(first.waited_ns);
        (over >= CPU_OVER).then(|| OwnSeen {
            cpu_share: share(cpu_ns, threads.min(self.processors)).min(1.0),
            demand: share(cpu_ns + waited_ns, threads).min(1.0),
        })
    }
}

/// Keeps the fuller one.
fn keep_most(most: &mut Option<Fill>, now: Fill) {
    if most.is_none_or(|most| now.used >= most.used) {
        *most = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(at_ms: u64, cpu_ms: u64, waited_ms: u64) -> Option<Own> {
        Some(Own {
            at: Nanos::from_millis(at_ms),
            cpu_ns: cpu_ms * 1_000_000,
            waited_ns: waited_ms * 1_000_000,
        })
    }

    #[test]
    fn our_share_is_of_what_our_threads_could_have() {
        let check = |own: [Option<Own>; 2], threads: u32, expected: Option<(f64, f64)>| {
            let gauges = Gauges { own, processors: 2, ..Gauges::default() };
            let seen = gauges.own_seen(threads).map(|seen| (seen.cpu_share, seen.demand));
            assert_eq!(seen, expected, "{own:?}, {threads} threads");
        };
        check([own(1_000, 500, 0), own(3_000, 2_500, 0)], 1, Some((1.0, 1.0)));
        check([own(1_000, 500, 0), own(3_000, 2_500, 0)], 2, Some((0.5, 0.5)));
        // Starved: half of the time it waited for its turn.
        check([own(1_000, 0, 10), own(3_000, 1_000, 1_010)], 1, Some((0.5, 1.0)));
        // Eight threads have two processors.
        check([own(0, 0, 0), own(1_000, 2_000, 6_000)], 8, Some((1.0, 1.0)));
        check([own(0, 0, 0), own(400, 400, 0)], 1, None);
        check([own(0, 0, 0), None], 1, None);
    }

    #[test]
    fn only_a_steady_rate_is_one() {
        let check = |accepts: &[(f64, f64)], expected: Option<f64>| {
            let gauges = Gauges { accepts: accepts.to_vec(), ..Gauges::default() };
            assert_eq!(gauges.accepts_per_s(), expected, "{accepts:?}");
        };
        check(&[(0.0, 0.0), (1.0, 50.0), (2.0, 100.0), (3.0, 150.0), (4.0, 200.0)], Some(50.0));
        check(&[(0.0, 0.0), (1.0, 50.0), (2.0, 100.0), (3.0, 150.0)], None);
        check(&[(0.0, 195.0), (1.0, 195.0), (2.0, 195.0), (3.0, 195.0), (4.0, 195.0)], None);
        check(&[(0.0, 0.0), (1.0, 500.0), (2.0, 500.0), (3.0, 510.0), (4.0, 1_000.0)], None);
        check(&[], None);
    }
}
