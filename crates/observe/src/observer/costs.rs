//! The cost of a connection, a request and a handshake, in memory and CPU time. Each cost is the slope of a line fitted to samples of
//! usage against load. Only sums are kept, so that memory use does not depend on the length of the run.

use samples::{Cost, Discarded, Fit, Phase};
use units::Nanos;

use super::{
    Load,
    heap::{Points, Unmeasured},
};
use stats::{Moments, Octaves, slope};

/// Samples of a ramp count once this fraction (1/n) of its connections is open: earlier growth is that of the program's own tables and
/// first buffer pages.
const RAMP_FROM: u64 = 8;
/// Minimum number of connections. Below it, a slope of memory is noise, since a page is 4 KiB, and CPU time during the ramp is mostly
/// that of concurrent requests or of the program itself.
const MIN_CONNECTIONS: u64 = 10_000;
/// The kernel counts CPU time in ticks of 10 ms.
const TICK_US: f64 = 10_000.0;
/// Minimum CPU time, in µs; below it, the granularity of the clock dominates.
const MIN_CPU_US: f64 = 10.0 * TICK_US;
/// Maximum relative standard error of a slope for a ceiling to be reported.
const MAX_ERROR: f64 = Fit::MAX_ERROR;
/// Fraction of the initially available memory that is reserved: the kernel reclaims pages and refuses allocations before all of it is
/// used.
const RESERVE: f64 = 0.05;
/// Minimum number of connections: below it, the difference between two heap sizes is unrelated garbage.
const MIN_LIVE: u64 = 1_000;
/// Maximum interval between requests on a connection, in seconds, before it counts as idle.
const IDLE_EVERY_S: f64 = 20.0;

/// A sample of a program's memory and CPU time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) rss_bytes: u64,
    pub(super) cpu_ns: u64,
}

/// Memory and CPU time of a program in relation to the load.
#[derive(Clone, Debug, Default)]
struct Spent {
    bytes: Octaves,
    us_by_opened: Moments,
    us_by_handshake: Moments,
    us_by_answered: Moments,
    us_by_second: Moments,
}

impl Spent {
    fn add(&mut self, phase: Phase, load: Load, open_s: f64, usage: Usage) {
        let us = usage.cpu_ns as f64 / 1e3;
        match phase {
            Phase::Ramp => {
                self.bytes.add(load.open, usage.rss_bytes as f64);
                self.us_by_opened.add(load.opened as f64, us);
                load.handshakes.iter().for_each(|n| self.us_by_handshake.add(*n as f64, us));
            }
            Phase::Hold => {
                self.us_by_answered.add(load.answered as f64, us);
                self.us_by_second.add(open_s, us);
            }
            Phase::Pause | Phase::Drain => {}
        }
    }
}

/// The sums from which costs are computed.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    own: Spent,
    target: Spent,
    kernel: Octaves,
    kernel_there: Octaves,
    peak: u64,
    /// Dials that succeeded in the ramp, including redials.
    opened: u64,
    /// Connection-seconds since the hold began (`open_s`), and its last sample (`held`).
    open_s: f64,
    held: Option<(Nanos, Load)>,
    answered_in_hold: u64,
    /// The first memory sample of the target's host, and the last one under load, with the number of open connections.
    room: Option<(Room, u64, Room)>,
    /// Open connections and live bytes in the target's managed heap, without connections, with some, and with all of them; or why they
    /// are unknown.
    pub(super) live: Option<Result<Points, Unmeasured>>,
    /// The target's managed runtime, if one was detected.
    pub(super) runtime: Option<&'static str>,
}

/// Memory of the target's host, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    /// Available memory as the kernel reports it, bytes.
    pub(super) available: u64,
    /// Reclaimable slabs in `available`. Slabs that grow with connections are their sockets' inodes, which cannot be reclaimed.
    pub(super) slabs: u64,
}

impl Costs {
    /// Adds a sample of throng's usage and of this machine's kernel memory.
    pub(super) fn here(&mut self, now: Nanos, phase: Phase, load: Load, own: Usage, kernel: Option<u64>) {
        self.peak = self.peak.max(load.open);
        if phase == Phase::Ramp {
            self.opened = self.opened.max(load.opened);
        }
        if phase == Phase::Hold {
            if let Some((before, earlier)) = self.held {
                self.open_s += now.since(before).secs_f64() * (earlier.open + load.open) as f64 / 2.0;
                self.answered_in_hold += load.answered.saturating_sub(earlier.answered);
            }
            self.held = Some((now, load));
        } else {
            self.held = None;
        }
        self.own.add(phase, load, self.open_s, own);
        if let Some(kernel) = kernel.filter(|_| phase == Phase::Ramp) {
            self.kernel.add(load.open, kernel as f64);
        }
    }

    /// Adds a sample of the target's usage.
    pub(super) fn target(&mut self, phase: Phase, load: Load, usage: Usage) {
        self.target.add(phase, load, self.open_s, usage);
    }

    /// Adds a sample of kernel memory on the target's host, if that is another machine.
    pub(super) fn kernel_there(&mut self, phase: Phase, load: Load, kernel: u64) {
        if phase == Phase::Ramp {
            self.kernel_there.add(load.open, kernel as f64);
        }
    }

    /// Adds a sample of the memory left on the target's host.
    pub(super) fn room(&mut self, phase: Phase, load: Load, room: Room) {
        if phase != Phase::Drain && phase != Phase::Pause {
            let first = self.room.map_or(room, |(first, _, _)| first);
            self.room = Some((first, load.open, room));
        }
    }

    /// Discards the target's samples: they were of another program.
    pub(super) fn lose_target(&mut self) {
        (self.target, self.room, self.runtime, self.live) = (Spent::default(), None, None, None);
    }

    /// Computes the costs. `both_here`: throng uses the memory of the target's machine.
    pub(super) fn finish(&self, both_here: bool) -> Cost {
        let memory = self.memory();
        let [target_bytes, generator_bytes, kernel_bytes, target_kernel_bytes] =
            memory.map(|(_, fit)| fit.filter(Fit::is_carried));
        let is_idle = self.answered_in_hold as f64 * IDLE_EVERY_S < self.open_s;
        let idle = |of: &Spent| us(&of.us_by_second).filter(|_| is_idle);
        let per_open = |of: &Spent| us(&of.us_by_opened).filter(|_| self.opened >= MIN_CONNECTIONS);
        let per_request = |of: &Spent| us(&of.us_by_answered).filter(|_| self.answered_in_hold > 0);
        let mut cost = Cost {
            target_bytes,
            generator_bytes,
            kernel_bytes,
            target_kernel_bytes,
            target_cpu_us_per_open: per_open(&self.target),
            generator_cpu_us_per_open: per_open(&self.own),
            target_cpu_us_per_handshake: us(&self.target.us_by_handshake),
            generator_cpu_us_per_handshake: us(&self.own.us_by_handshake),
            target_cpu_us_per_request: per_request(&self.target),
            generator_cpu_us_per_request: per_request(&self.own),
            target_cpu_us_per_idle_second: idle(&self.target),
            generator_cpu_us_per_idle_second: idle(&self.own),
            target_runtime: self.runtime.map(str::to_owned),
            discarded: discarded(&memory),
            ..Cost::default()
        };
        self.report_live(&mut cost);
        cost.ceiling_connections = self.ceiling(&cost, &memory, both_here);
        cost
    }

    /// The fitted slopes of memory, with the names of their figures.
    fn memory(&self) -> Memory {
        let from = self.peak / RAMP_FROM;
        let fit = |of: &Octaves| of.from(from).line().filter(|_| self.peak >= MIN_CONNECTIONS);
        [
            ("target_bytes", fit(&self.target.bytes)),
            ("generator_bytes", fit(&self.own.bytes)),
            ("kernel_bytes", fit(&self.kernel)),
            ("target_kernel_bytes", fit(&self.kernel_there)),
        ]
    }

    /// Sets the slope of live heap bytes, or the reason why it is unknown.
    fn report_live(&self, cost: &mut Cost) {
        let points = match &self.live {
            None => return,
            Some(Err(why)) => return cost.target_live_failure = Some(why.0.clone()),
            Some(Ok(points)) => points,
        };
        let most = points.iter().map(|(open, _)| *open).max().unwrap_or(0);
        let line = slope(&points.iter().map(|(open, live)| (*open as f64, *live as f64)).collect::<Vec<_>>());
        let fit = line.filter(|_| most >= MIN_LIVE);
        cost.target_live_points.clone_from(points);
        cost.target_live_fit = fit.filter(Fit::is_carried);
        cost.target_live_bytes = cost.target_live_fit.map(|fit| fit.value);
        cost.target_live_failure = match fit {
            Some(fit) if fit.is_carried() => None,
            Some(fit) => Some(format!(
                "the collections do not fit a line (slope {:.0} ± {:.0}, R² {:.2})",
                fit.value, fit.error, fit.r2
            )),
            None if most < MIN_LIVE => Some(format!("fewer than {MIN_LIVE} connections were open")),
            None => Some(format!(
                "only {} collections ended in time; use a slower --ramp or a longer -d",
                points.len()
            )),
        };
    }

    fn ceiling(&self, cost: &Cost, memory: &Memory, both_here: bool) -> Option<u64> {
        let (first, open, last) = self.room?;
        let [(_, target), (_, own), ..] = *memory;
        // Resident memory of a managed runtime shows its allowance, not the need of connections.
        let target = if self.runtime.is_some() { cost.target_live_fit? } else { target? };
        let kernel = if both_here { cost.kernel_bytes? } else { cost.target_kernel_bytes? };
        let own = if both_here { Some(own?) } else { None };
        // A slope that is not significant is small, and counts with its upper bound.
        let most = |fit: Fit| if fit.is_carried() { fit.value } else { fit.value.max(0.0) + 2.0 * fit.error };
        let parts = [Some(target), Some(kernel), own];
        let each: f64 = parts.into_iter().flatten().map(most).sum();
        // The total is accepted if its combined error is small: the largest part dominates.
        let error = parts.into_iter().flatten().map(|fit| fit.error.powi(2)).sum::<f64>().sqrt();
        let taken = last.slabs.saturating_sub(first.slabs) as f64 + RESERVE * first.available as f64;
        let left = (last.available as f64 - taken).max(0.0);
        (each > 0.0 && error < MAX_ERROR * each).then(|| open + (left / each) as u64)
    }
}

/// Slopes of the target, of throng, of this machine's kernel and of the kernel of the target's host, with the names of their figures.
type Memory = [(&'static str, Option<Fit>); 4];

/// The slopes that are not significant.
fn discarded(memory: &Memory) -> Vec<Discarded> {
    let not = |(name, fit): &(&'static str, Option<Fit>)| {
        let fit = fit.filter(|fit| !fit.is_carried())?;
        Some(Discarded { figure: (*name).to_owned(), fit })
    };
    memory.iter().filter_map(not).collect()
}

fn us(of: &Moments) -> Option<Fit> {
    of.line_in_steps(TICK_US).filter(|_| of.span_y() >= MIN_CPU_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// A ramp to `n` connections in 20 steps: 300 bytes each in throng, 1,000 in the target, 2,500 in the kernel, 50 µs of the target's
    /// CPU time each; then five seconds with 8,000 responses each, 25 µs each.
    fn seen(n: u64, wobble: impl Fn(u64) -> f64) -> Costs {
        let mut costs = Costs::default();
        for i in 0..=20 {
            let open = i * n / 20;
            let load = Load { open, opened: open, answered: open, ..Load::default() };
            let own = Usage { rss_bytes: 5_000_000 + open * 300, cpu_ns: 0 };
            costs.here(Nanos(i * SECOND.0), Phase::Ramp, load, own, Some(1_000_000_000 + open * 2_500));
            let rss_bytes = 9_000_000 + (open as f64 * 1_000.0 + wobble(i)) as u64;
            costs.target(Phase::Ramp, load, Usage { rss_bytes, cpu_ns: open * 50_000 });
        }
        let (mut load, from) = (Load { open: n, opened: n, answered: n, ..Load::default() }, 30);
        for i in 0..=5 {
            load.answered = n + i * 8_000;
            costs.here(Nanos((from + i) * SECOND.0), Phase::Hold, load, Usage::default(), Some(0));
            let cpu_ns = n * 50_000 + i * 8_000 * 25_000;
            costs.target(Phase::Hold, load, Usage { rss_bytes: 0, cpu_ns });
            costs.room(Phase::Hold, load, room(3_800_000));
        }
        // Usage after the end is not a cost of a connection.
        costs.here(
            Nanos(40 * SECOND.0),
            Phase::Drain,
            Load::default(),
            Usage { rss_bytes: 1, cpu_ns: 1 },
            Some(1),
        );
        costs.target(Phase::Drain, Load::default(), Usage { rss_bytes: 1, cpu_ns: 1 });
        costs.room(Phase::Drain, Load::default(), room(1));
        costs
    }

    /// A room with this much memory available, and no first sample to reserve a part of.
    fn room(available: u64) -> Room {
        Room { available, slabs: 0 }
    }

    fn is(fit: Option<Fit>, value: f64) {
        let fit = fit.expect("a fit");
        assert!((fit.value - value).abs() < 1e-6 * value && fit.r2 > 0.999_999, "{fit:?}, {value} expected");
    }

    #[test]
    fn known_costs_are_found() {
        let cost = seen(40_000, |_| 0.0).finish(true);
        is(cost.target_bytes, 1_000.0);
        is(cost.generator_bytes, 300.0);
        is(cost.kernel_bytes, 2_500.0);
        is(cost.target_cpu_us_per_open, 50.0);
        is(cost.target_cpu_us_per_request, 25.0);
        assert_eq!((cost.target_kernel_bytes, cost.generator_cpu_us_per_open), (None, None));
        // 3.8 MB left minus a reserve of 5 %, at 3,800 bytes per connection.
        assert_eq!(cost.ceiling_connections, Some(40_950));
        assert_eq!((&cost.discarded[..], cost.target_runtime), (&[][..], None));
        // Each connection sends a request every five seconds, so it is not idle.
        assert_eq!(cost.target_cpu_us_per_idle_second, None);
    }

    /// In the first case every third connection is refused after its handshake, in the second not all have a handshake.
    #[test]
    fn handshakes_are_counted_apart_from_connections() {
        let check = |handshakes: fn(u64) -> Option<u64>, expected: [Option<f64>; 2]| {
            let mut costs = Costs::default();
            for i in 0..=20u64 {
                let load =
                    Load { open: i * 1_000, opened: i * 1_000, handshakes: handshakes(i), ..Load::default() };
                let own = Usage { rss_bytes: 0, cpu_ns: i * 150 * 200_000 };
                costs.here(Nanos(i * SECOND.0), Phase::Ramp, load, own, None);
                costs.target(
                    Phase::Ramp,
                    load,
                    Usage { rss_bytes: 0, cpu_ns: i * 150 * 400_000 + 7_000_000 },
                );
            }
            // CPU time at full load belongs to another figure.
            costs.here(Nanos(30 * SECOND.0), Phase::Hold, Load::default(), Usage::default(), None);
            costs.target(Phase::Hold, Load::default(), Usage::default());
            let cost = costs.finish(true);
            let found = [cost.target_cpu_us_per_handshake, cost.generator_cpu_us_per_handshake];
            for (found, expected) in found.into_iter().zip(expected) {
                match expected {
                    Some(us) => is(found, us),
                    None => assert_eq!(found, None),
                }
            }
            is(cost.target_cpu_us_per_open, 60.0);
        };
        check(|i| Some(i * 150), [Some(400.0), Some(200.0)]);
        check(|_| None, [None, None]);
    }

    #[test]
    fn a_scatter_shows_in_the_error() {
        let cost = seen(40_000, |i| if i % 2 == 0 { 400_000.0 } else { -400_000.0 }).finish(true);
        let fit = cost.target_bytes.unwrap();
        assert!((fit.value - 1_000.0).abs() < 3.0 * fit.error, "{fit:?}");
        assert!(fit.error > 1.0 && fit.r2 < 0.9999 && fit.r2 > 0.99, "{fit:?}");
        let wild = seen(40_000, |i| if i % 2 == 0 { 60e6 } else { 0.0 }).finish(true);
        let [Discarded { figure, fit }] = &wild.discarded[..] else { panic!("{wild:?}") };
        assert!(figure == "target_bytes" && fit.error > 400.0 && fit.r2 < 0.5, "{wild:?}");
        assert_eq!((wild.target_bytes, wild.ceiling_connections), (None, None), "a guess");
    }

    /// The kernel counts sockets' inodes as available: 2,000,000 connections of 8,146 bytes, 2,200 of them for inodes, on a machine with
    /// 24 GB.
    #[test]
    fn a_ceiling_is_where_memory_ends() {
        let (total, each, inodes) = (24e9, 8_146.0, 2_200.0);
        let mut costs = Costs::default();
        for i in 0..=20u64 {
            let load = Load { open: i * 100_000, ..Load::default() };
            let kernel = load.open as f64 * each;
            let usage = Usage { rss_bytes: load.open * 60, cpu_ns: 0 };
            costs.here(Nanos(i * SECOND.0), Phase::Ramp, load, usage, Some(kernel as u64));
            costs.target(Phase::Ramp, load, usage);
            let slabs = load.open as f64 * inodes;
            let available = total - kernel - load.open as f64 * 120.0 + slabs;
            costs.room(Phase::Ramp, load, Room { available: available as u64, slabs: slabs as u64 });
        }
        let ends = total * (1.0 - RESERVE) / (each + 120.0);
        let ceiling = costs.finish(true).ceiling_connections.unwrap() as f64;
        assert!((ceiling / ends - 1.0).abs() < 0.001, "{ceiling}, it ends at {ends}");
    }

    #[test]
    fn memory_of_a_managed_runtime_is_not_the_cost_of_connections() {
        let mut costs = seen(40_000, |_| 0.0);
        costs.runtime = Some("JVM");
        let cost = costs.finish(true);
        is(cost.target_bytes, 1_000.0);
        assert_eq!((cost.target_runtime.as_deref(), cost.ceiling_connections), (Some("JVM"), None));
        // 200 live bytes each: 3,000 including the kernel's and throng's.
        let points = [0, 10_000, 20_000, 30_000, 40_000, 40_000].map(|open| (open, 3_000_000 + 200 * open));
        costs.live = Some(Ok(points.to_vec()));
        let cost = costs.finish(true);
        assert_eq!(
            (cost.target_live_bytes, cost.ceiling_connections),
            (Some(200.0), Some(40_000 + 3_610_000 / 3_000))
        );
        assert_eq!((cost.target_live_failure.as_deref(), &cost.target_live_points[..]), (None, &points[..]));
        costs.live = Some(Err(Unmeasured("jcmd: not found".to_owned())));
        let cost = costs.finish(true);
        assert_eq!(
            (cost.target_live_bytes, cost.target_live_failure.as_deref()),
            (None, Some("jcmd: not found"))
        );
    }

    #[test]
    fn a_live_heap_needs_points_that_carry_a_line() {
        let check = |points: &[(u64, u64)], failure: &str| {
            let mut costs = seen(40_000, |_| 0.0);
            costs.live = Some(Ok(points.to_vec()));
            let cost = costs.finish(true);
            assert_eq!((cost.target_live_bytes, cost.target_live_fit), (None, None), "{points:?}");
            let why = cost.target_live_failure.expect("why not");
            assert!(why.contains(failure), "{why}");
        };
        // Unrelated garbage outweighs that of the connections.
        check(
            &[(0, 9_000), (10_000, 80_000), (20_000, 7_000), (40_000, 90_000)],
            "do not fit a line (slope ",
        );
        check(&[(0, 3_000_000), (40_000, 11_000_000)], "2 collections");
        check(&[(0, 3_000), (400, 90_000), (800, 170_000)], "fewer than 1000 connections");
    }

    #[test]
    fn too_few_samples_give_no_cost() {
        let cost = seen(9_980, |_| 0.0).finish(true);
        assert_eq!((cost.target_bytes, cost.kernel_bytes, cost.ceiling_connections), (None, None, None));
        assert_eq!(cost.target_cpu_us_per_open, None);
        is(cost.target_cpu_us_per_request, 25.0);
        is(seen(10_000, |_| 0.0).finish(true).target_cpu_us_per_open, 50.0);
        assert_eq!(Costs::default().finish(true), Cost::default());
    }

    #[test]
    fn a_far_targets_ceiling_is_its_own_hosts() {
        let mut costs = seen(40_000, |_| 0.0);
        assert_eq!(costs.finish(false).ceiling_connections, None);
        for i in 0..=20 {
            let load = Load { open: i * 2_000, ..Load::default() };
            costs.kernel_there(Phase::Ramp, load, 7_000_000 + load.open * 900);
        }
        let cost = costs.finish(false);
        is(cost.target_kernel_bytes, 900.0);
        assert_eq!(cost.ceiling_connections, Some(40_000 + 3_610_000 / 1_900));
    }

    #[test]
    fn idle_connections_cost_by_the_second() {
        let mut costs = Costs::default();
        for i in 0..=10u64 {
            // 0.02 cores for 10,000 connections: 2 µs per second each.
            let load = Load { open: 10_000, opened: 10_000, answered: 5 + i * 100, ..Load::default() };
            let own = Usage { rss_bytes: 0, cpu_ns: i * 20_000_000 };
            costs.here(Nanos(i * SECOND.0), Phase::Hold, load, own, None);
        }
        let cost = costs.finish(true);
        is(cost.generator_cpu_us_per_idle_second, 2.0);
        is(cost.generator_cpu_us_per_request, 200.0);
        assert_eq!(cost.target_cpu_us_per_idle_second, None);
        // Eleven points, 100 responses apart, and a tick of 10 ms: 10,000 µs / √1,100,000.
        let error = cost.generator_cpu_us_per_request.map(|fit| (fit.error * 1e3).round() / 1e3);
        assert_eq!(error, Some(9.535));
    }
}
