//! Signs of possible causes, with the times at which each was present: only a sign that was present when things began to fail explains the
//! failure. In bounded memory.

use samples::{HostSeen, LogKind, Observation, TargetSeen};
use serde::{Deserialize, Deserializer, Serialize};
use units::Nanos;

use crate::fill::Fill;
use crate::tolerances::{HALF, NINE_TENTHS};

/// Maximum number of intervals stored per sign; later ones are merged into the last.
const MAX_TIMES: usize = 32;
/// Sightings at most this far apart belong to one interval.
const NEXT_LOOK: Nanos = Nanos::from_millis(2_500);
/// Minimum time over which a share of time is computed.
const MIN_TIME: Nanos = Nanos::from_millis(150);

/// A possible explanation of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sign {
    /// The target's processes have ended.
    Ended,
    /// One of several destinations lost its listener.
    Deserted,
    /// The kernel aborted connections for lack of memory.
    SocketMemory,
    /// Open files near their limit, or a log line about it.
    OpenFiles,
    /// A firewall's connection table was full.
    Conntrack,
    /// The accept queue was full, or overflowed.
    Queue,
    /// The managed heap is full.
    Heap,
    /// A thread of the target has ended.
    Thread,
    /// A log line: out of memory.
    NoMemory,
    /// A log line: no further thread.
    NoThread,
    /// A log line: no further connection.
    Connections,
    /// A log line with another error.
    Error,
    /// One of the target's processes has ended, and others have not.
    Worker,
    /// A log line: no local port for a connection to another server.
    Ports,
}

impl From<LogKind> for Sign {
    /// The sign that corresponds to a log line.
    fn from(kind: LogKind) -> Sign {
        match kind {
            LogKind::Heap => Sign::Heap,
            LogKind::Memory => Sign::NoMemory,
            LogKind::OpenFiles => Sign::OpenFiles,
            LogKind::Threads => Sign::NoThread,
            LogKind::Ports => Sign::Ports,
            LogKind::Connections => Sign::Connections,
            LogKind::Error => Sign::Error,
        }
    }
}

const SIGNS: usize = Sign::Ports as usize + 1;

/// A managed heap without free space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FullHeap {
    /// Bytes in use.
    pub used: u64,
    /// Maximum size in bytes.
    pub limit: u64,
    /// Share of the time spent in collections.
    pub collecting: f64,
}

/// Intervals (from, until), in order.
type Times = Vec<(Nanos, Nanos)>;

/// All signs of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Signs {
    #[serde(deserialize_with = "by_place")]
    times: [Times; SIGNS],
    /// Number of the target's processes at the last sample.
    processes: u64,
    /// Counters at the last sample: packets dropped by conntrack, connections aborted for lack of memory, queue overflows.
    totals: [u64; 3],
    /// An earlier sample: its time, and the nanoseconds spent in collections by then.
    collected: Option<(Nanos, u64)>,
    /// The JVM's heap at the sample with the most time in collections, if it was full.
    pub heap: Option<FullHeap>,
}

/// Records of earlier versions have fewer signs: new ones are added at the end.
fn by_place<'de, D: Deserializer<'de>>(from: D) -> Result<[Times; SIGNS], D::Error> {
    let mut stored = Vec::<Times>::deserialize(from)?.into_iter();
    Ok(std::array::from_fn(|_| stored.next().unwrap_or_default()))
}

impl Signs {
    /// Takes the aggregated samples up to `now`; `fullest`: the target's fullest accept queue.
    pub fn see(&mut self, now: Nanos, seen: &Observation, both_here: bool, fullest: Option<Fill>) {
        let there = seen.target_host.as_ref().or(seen.host.as_ref().filter(|_| both_here));
        let hosts = [seen.host.as_ref(), there];
        let is_full = hosts.iter().flatten().any(is_tracking_full);
        let of = |count: fn(&HostSeen) -> u64| hosts.into_iter().flatten().map(count).max().unwrap_or(0);
        let totals = [
            of(|host| host.conntrack_drops.map_or(0, |drops| drops.total())),
            of(|host| host.tcp().abort_on_memory),
            there.map_or(0, |host| host.tcp().listen_overflows),
        ];
        let grown = [0, 1, 2].map(|which: usize| totals[which] > self.totals[which]);
        self.totals = totals;
        self.note(Sign::Conntrack, now, grown[0] || is_full);
        self.note(Sign::SocketMemory, now, grown[1]);
        if let Some(target) = &seen.target {
            self.see_target(now, target);
        }
        self.see_queue(now, fullest, grown[2]);
    }

    /// Takes the target's fullest queue now, and whether any queue has overflowed since the last sample.
    pub fn see_queue(&mut self, now: Nanos, fullest: Option<Fill>, has_overflown: bool) {
        self.note(Sign::Queue, now, fullest.is_some_and(Fill::is_full) || has_overflown);
    }

    /// Takes whether one of several destinations has lost its listener.
    pub fn see_listeners(&mut self, now: Nanos, is_deserted: bool) {
        self.note(Sign::Deserted, now, is_deserted);
    }

    fn see_target(&mut self, now: Nanos, target: &TargetSeen) {
        let sample = target.latest();
        let files = Fill::of(sample.open_files, sample.open_files_limit);
        let is_out = files.is_some_and(Fill::is_out_of_files);
        let before = std::mem::replace(&mut self.processes, target.process.processes.last);
        self.note(Sign::Worker, now, (1..before).contains(&self.processes));
        self.note(Sign::Ended, now, self.processes == 0);
        self.note(Sign::OpenFiles, now, is_out);
        self.note(Sign::Thread, now, !target.threads_gone.is_empty());
        let is_full = self.see_heap(now, target);
        self.note(Sign::Heap, now, is_full);
        target.log.iter().for_each(|line| self.note(line.kind.into(), now, true));
    }

    /// Whether the heap is nearly full, and most of the time since an earlier sample was spent in collections.
    fn see_heap(&mut self, now: Nanos, target: &TargetSeen) -> bool {
        let Some(jvm) = target.latest().jvm.filter(|jvm| jvm.heap_max_bytes > 0) else { return false };
        let (at, collected) = *self.collected.get_or_insert((now, jvm.gc_pause_ns));
        let time = now.since(at);
        if time < MIN_TIME {
            return false;
        }
        self.collected = Some((now, jvm.gc_pause_ns));
        let share = jvm.gc_pause_ns.saturating_sub(collected) as f64 / time.0 as f64;
        let heap =
            FullHeap { used: jvm.heap_used_bytes, limit: jvm.heap_max_bytes, collecting: share.min(1.0) };
        let is_full = heap.used as f64 >= NINE_TENTHS * heap.limit as f64 && heap.collecting >= HALF;
        if is_full && self.heap.is_none_or(|worst| heap.collecting > worst.collecting) {
            self.heap = Some(heap);
        }
        is_full
    }

    /// Records whether a sign is present now.
    pub fn note(&mut self, sign: Sign, now: Nanos, is_there: bool) {
        let times = &mut self.times[sign as usize];
        let is_full = times.len() >= MAX_TIMES;
        match times.last_mut() {
            _ if !is_there => {}
            Some((_, until)) if is_full || now.since(*until) <= NEXT_LOOK => *until = now,
            _ => times.push((now, now)),
        }
    }

    /// The intervals of a sign, in order.
    pub fn times(&self, sign: Sign) -> &[(Nanos, Nanos)] {
        &self.times[sign as usize]
    }
}

/// Whether the connection-tracking table is full now, for kernels that do not count the resulting drops.
fn is_tracking_full(host: &&HostSeen) -> bool {
    let table = host.conntrack.zip(host.conntrack_max).filter(|_| host.conntrack_drops.is_none());
    table.is_some_and(|(tracked, most)| most > 0 && tracked.last >= most - most / 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::{HostSample, JvmSample, LogLine, Phase, ProcessSample, TargetSample};

    fn target(collected_ms: u64, used: u64) -> TargetSample {
        let jvm = JvmSample {
            heap_used_bytes: used,
            heap_max_bytes: 1_000,
            gc_pause_ns: collected_ms * 1_000_000,
            ..JvmSample::default()
        };
        let process = ProcessSample { processes: 1, ..ProcessSample::default() };
        TargetSample { process, jvm: Some(jvm), ..TargetSample::default() }
    }

    fn at(s: u64) -> Nanos {
        Nanos::from_secs(s)
    }

    #[test]
    fn a_process_that_ends_beside_others_is_a_sign() {
        let mut signs = Signs::default();
        let mut see = |second: u64, processes: u64| {
            let mut seen = Observation::default();
            let process = ProcessSample { processes, ..ProcessSample::default() };
            seen.see_target(Phase::Hold, &TargetSample { process, ..TargetSample::default() });
            signs.see(Nanos::from_secs(second), &seen, true, None);
            signs.times(Sign::Worker).len()
        };
        assert_eq!([see(1, 2), see(2, 3), see(3, 3)], [0, 0, 0]);
        assert_eq!([see(4, 2), see(5, 2)], [1, 1]);
        assert_eq!(see(9, 0), 1, "all of them: that is its end");
    }

    #[test]
    fn records_of_earlier_versions_have_fewer_signs() {
        let mut signs = Signs::default();
        signs.note(Sign::Queue, Nanos::from_secs(2), true);
        let mut stored = serde_json::to_value(&signs).unwrap();
        stored["times"].as_array_mut().unwrap().truncate(Sign::Heap as usize);
        let read: Signs = serde_json::from_value(stored).unwrap();
        assert_eq!(read.times(Sign::Queue), signs.times(Sign::Queue));
        assert!(read.times(Sign::Worker).is_empty());
    }

    #[test]
    fn each_sign_has_the_times_at_which_it_was_there() {
        let (mut signs, mut all) = (Signs::default(), Observation::default());
        for s in 0..10 {
            let mut sample = target(0, 0);
            sample.open_files_limit = Some(1_000);
            sample.open_files = Some(if (3..6).contains(&s) || s == 9 { 990 } else { 500 });
            if s >= 7 {
                sample.threads_gone = vec!["acceptor".to_owned()];
            }
            let mut host = HostSample::default();
            host.tcp.listen_overflows = if s < 5 { 7 } else { 9 };
            all.see_here(Phase::Hold, &host, &ProcessSample::default());
            all.see_target(Phase::Hold, &sample);
            signs.see(at(s), &all, true, None);
        }
        assert_eq!(signs.times(Sign::OpenFiles), [(at(3), at(5)), (at(9), at(9))]);
        assert_eq!(signs.times(Sign::Thread), [(at(7), at(9))]);
        assert_eq!(signs.times(Sign::Queue), [(at(5), at(5))], "what was counted before is no sign");
        assert_eq!((signs.times(Sign::Ended), signs.times(Sign::Heap)), (&[][..], &[][..]));
    }

    #[test]
    fn a_heap_is_full_where_collections_take_the_time() {
        let check = |samples: &[(u64, u64)], expected: Option<(u64, f64)>| {
            let (mut signs, mut all) = (Signs::default(), Observation::default());
            for (s, (collected_ms, used)) in (0..).zip(samples) {
                all.see_target(Phase::Hold, &target(*collected_ms, *used));
                signs.see(at(s), &all, true, None);
            }
            assert_eq!(signs.heap.map(|heap| (heap.used, heap.collecting)), expected, "{samples:?}");
            assert_eq!(signs.times(Sign::Heap).is_empty(), expected.is_none());
        };
        check(&[(0, 950), (600, 960), (1_500, 990)], Some((990, 0.9)));
        // Full, but hardly collected; collected, but with free space; before the run.
        check(&[(0, 950), (60, 960), (150, 990)], None);
        check(&[(0, 500), (600, 600), (1_500, 700)], None);
        check(&[(9_000, 950), (9_001, 960)], None);
    }

    #[test]
    fn log_lines_are_signs() {
        let (mut signs, mut all) = (Signs::default(), Observation::default());
        let mut sample = target(0, 0);
        all.see_target(Phase::Hold, &sample);
        signs.see(at(1), &all, true, None);
        sample.log = vec![LogLine { kind: LogKind::Heap, ..LogLine::default() }];
        all.see_target(Phase::Hold, &sample);
        signs.see(at(2), &all, true, None);
        assert_eq!((signs.times(Sign::Heap), signs.heap), (&[(at(2), at(2))][..], None));
    }

    #[test]
    fn memory_has_a_bound() {
        let mut signs = Signs::default();
        (0..1_000).for_each(|n| signs.see_queue(at(5 * n), Some(Fill { used: 9, limit: 8 }), false));
        let times = signs.times(Sign::Queue);
        assert_eq!((times.len(), times[0].0, times[MAX_TIMES - 1].1), (MAX_TIMES, at(0), at(4_995)));
    }
}
