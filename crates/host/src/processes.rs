//! Memory, CPU time and threads of a group of processes. Each sample is compared with the previous one.

use std::collections::HashMap;

use samples::{ProcessMemory, ProcessSample};
use units::Nanos;

use crate::{
    Root,
    listener::numbers,
    processors::{allowed, processors_of},
};

/// Maximum number of threads to sample individually; bounds the cost of a sample.
const MAX_THREADS: usize = 64;
/// A thread that ran or was runnable for this fraction of the time counts as saturated.
const FULL: f64 = 0.95;
/// Minimum time for shares: CPU time comes in clock ticks of 10 ms, so that shorter periods would be noise.
const MIN_PERIOD: Nanos = Nanos::from_millis(500);

/// Processes that serve one purpose, with their usage at the last sample. The sums include processes that have ended.
#[derive(Debug)]
pub struct Processes {
    root: Root,
    alive: Vec<Member>,
    ended: Member,
    /// Thread times at the last sample, and when shares were last computed.
    threads: Threads,
    threads_shared: Threads,
    counts_switches: bool,
    cores: Option<u64>,
    cpus: String,
    /// When shares were last computed, and the CPU time at that time.
    sampled: Option<(Nanos, u64)>,
    latest: ProcessSample,
}

/// Times by process and thread.
type Threads = HashMap<(u32, u32), Times>;

/// A process with its memory and CPU time.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    pid: u32,
    rss_bytes: u64,
    user_ns: u64,
    system_ns: u64,
    is_stopped: bool,
}

/// CPU time of a thread, and the time it waited for a processor, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    cpu_ns: u64,
    wait_ns: u64,
    switches: u64,
}

impl Times {
    /// The difference to `before`; a new thread counts in full.
    fn since(self, before: Option<&Times>) -> Times {
        let before = before.copied().unwrap_or_default();
        Times {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// The values that change with every connection. They need only two small files per process, so that they can be sampled several times a
/// second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageSample {
    /// Number of processes that exist.
    pub processes: u64,
    /// Number of their threads.
    pub threads: u64,
    /// Resident memory in bytes, summed.
    pub rss_bytes: u64,
    /// CPU time in user space, nanoseconds.
    pub cpu_user_ns: u64,
    /// CPU time in the kernel, nanoseconds.
    pub cpu_system_ns: u64,
}

impl UsageSample {
    /// CPU time, nanoseconds.
    pub const fn cpu_ns(&self) -> u64 {
        self.cpu_user_ns + self.cpu_system_ns
    }
}

impl Processes {
    /// Samples these processes. The limits of the first one apply to all.
    pub fn new(root: &Root, pids: &[u32]) -> Processes {
        let first = pids.first().map(ToString::to_string);
        Processes {
            root: root.clone(),
            alive: pids.iter().map(|pid| Member { pid: *pid, ..Member::default() }).collect(),
            ended: Member::default(),
            threads: Threads::new(),
            threads_shared: Threads::new(),
            counts_switches: false,
            cores: first.as_ref().and_then(|process| processors_of(root, process)),
            cpus: first.and_then(|process| allowed(root, &process)).unwrap_or_default(),
            sampled: None,
            latest: ProcessSample::default(),
        }
    }

    /// Samples this process. Also counts involuntary context switches of its threads.
    pub fn own(root: &Root) -> Processes {
        Processes { counts_switches: true, ..Processes::new(root, &[std::process::id()]) }
    }

    /// The processes that existed at the last sample.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.alive.iter().map(|member| member.pid)
    }

    /// The memory of each of these processes.
    pub(crate) fn memory(&self) -> impl Iterator<Item = ProcessMemory> + '_ {
        self.alive.iter().map(|member| ProcessMemory { pid: member.pid, rss_bytes: member.rss_bytes })
    }

    /// Adds a process, if it is not included yet.
    pub(crate) fn add(&mut self, pid: u32) {
        if !self.pids().any(|known| known == pid) {
            self.alive.push(Member { pid, ..Member::default() });
        }
    }

    /// Memory and CPU time now.
    pub fn usage_sample(&mut self) -> UsageSample {
        let mut sum = UsageSample::default();
        let Processes { root, alive, ended, .. } = self;
        alive.retain_mut(|member| {
            let Some(stat) = Stat::read(root, member.pid) else {
                ended.user_ns += member.user_ns;
                ended.system_ns += member.system_ns;
                return false;
            };
            (member.user_ns, member.system_ns) = (stat.user_ns, stat.system_ns);
            member.is_stopped = stat.is_stopped;
            member.rss_bytes = resident(root, member.pid);
            sum.processes += 1;
            sum.threads += stat.threads;
            sum.rss_bytes += member.rss_bytes;
            sum.cpu_user_ns += stat.user_ns;
            sum.cpu_system_ns += stat.system_ns;
            true
        });
        sum.cpu_user_ns += ended.user_ns;
        sum.cpu_system_ns += ended.system_ns;
        sum
    }

    /// Takes a complete sample. Shares refer to the time since they were last computed, if that is long enough.
    pub fn sample(&mut self, now: Nanos) -> ProcessSample {
        let usage_sample = self.usage_sample();
        let threads = self.thread_times();
        for (thread, time) in &threads {
            let time = time.since(self.threads.get(thread));
            self.latest.run_queue_wait_ns += time.wait_ns;
            self.latest.involuntary_switches += time.switches;
        }
        let elapsed = self.sampled.map(|(at, _)| now.since(at));
        if elapsed.is_none_or(|elapsed| elapsed >= MIN_PERIOD) {
            self.share(elapsed, &threads);
            self.threads_shared.clone_from(&threads);
            if let (Some(elapsed), Some((_, cpu_ns))) = (elapsed, self.sampled) {
                self.latest.cores_used =
                    usage_sample.cpu_ns().saturating_sub(cpu_ns) as f64 / elapsed.0 as f64;
            }
            self.sampled = Some((now, usage_sample.cpu_ns()));
        }
        self.threads = threads;
        self.latest = ProcessSample {
            processes: usage_sample.processes,
            threads: usage_sample.threads,
            rss_bytes: usage_sample.rss_bytes,
            cpu_user_ns: usage_sample.cpu_user_ns,
            cpu_system_ns: usage_sample.cpu_system_ns,
            cores: self.cores,
            stopped: self.alive.iter().filter(|member| member.is_stopped).count() as u64,
            blocked: self.blocked(),
            cpus: self.cpus.clone(),
            ..self.latest.clone()
        };
        self.latest.clone()
    }

    fn thread_times(&self) -> Threads {
        let mut times = Threads::new();
        for pid in self.alive.iter().map(|member| member.pid) {
            for tid in numbers(&self.root, &format!("proc/{pid}/task")) {
                if times.len() < MAX_THREADS
                    && let Some(time) = self.times(pid, tid)
                {
                    times.insert((pid, tid), time);
                }
            }
        }
        times
    }

    /// Number of threads in uninterruptible sleep (for example, waiting for a disk) at the last sample.
    fn blocked(&self) -> u64 {
        // Not needed for throng itself, whose lag shows it.
        if self.counts_switches {
            return 0;
        }
        let stat = |(pid, tid): &(u32, u32)| self.root.read(format!("proc/{pid}/task/{tid}/stat")).ok();
        let blocked = |text: &String| text.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" D"));
        self.threads.keys().filter_map(stat).filter(blocked).count() as u64
    }

    /// Computes what each thread used and wanted since shares were last computed.
    fn share(&mut self, elapsed: Option<Nanos>, threads: &Threads) {
        let (mut busiest_ns, mut wanted_ns, mut full) = (0, 0, 0);
        for (thread, time) in threads {
            let time = time.since(self.threads_shared.get(thread));
            let wanted = time.cpu_ns + time.wait_ns;
            (busiest_ns, wanted_ns) = (time.cpu_ns.max(busiest_ns), wanted.max(wanted_ns));
            let is_full = elapsed.is_some_and(|elapsed| wanted as f64 >= FULL * elapsed.0 as f64);
            full += u64::from(is_full);
        }
        let share = |ns: u64| elapsed.map_or(0.0, |elapsed| ns as f64 / elapsed.0 as f64);
        self.latest.threads_full = full;
        self.latest.busiest_thread = share(busiest_ns);
        self.latest.busiest_wanted = share(wanted_ns);
    }

    /// Reads `/proc/PID/task/TID/schedstat`, in nanoseconds; without it, `stat`, in clock ticks.
    fn times(&self, pid: u32, tid: u32) -> Option<Times> {
        let task = format!("proc/{pid}/task/{tid}");
        let switches = || self.root.field(format!("{task}/status"), "nonvoluntary_ctxt_switches:");
        let switches = self.counts_switches.then(switches).flatten().unwrap_or(0);
        let Ok(text) = self.root.read(format!("{task}/schedstat")) else {
            let stat = Stat::parse(&self.root.read(format!("{task}/stat")).ok()?)?;
            return Some(Times { cpu_ns: stat.user_ns + stat.system_ns, wait_ns: 0, switches });
        };
        let mut fields = text.split_whitespace().map(|field| field.parse().ok());
        Some(Times { cpu_ns: fields.next()??, wait_ns: fields.next()??, switches })
    }
}

/// Flag in proc_pid_stat(5) of a process that is exiting (`PF_EXITING` in the kernel's `sched.h`). Its memory and sockets are freed
/// before it becomes a zombie, which takes time if there are many.
const EXITING: u64 = 0x4;

/// Fields of proc_pid_stat(5).
struct Stat {
    user_ns: u64,
    system_ns: u64,
    threads: u64,
    is_stopped: bool,
}

impl Stat {
    /// `None`: no such process, a zombie, or a process that is exiting.
    fn read(root: &Root, pid: u32) -> Option<Stat> {
        Stat::parse(&root.read(format!("proc/{pid}/stat")).ok()?)
    }

    /// Parses the file. The second field, the command's name, may contain blanks and parentheses, so fields are counted from the last
    /// `)`, after which field 3 begins.
    fn parse(text: &str) -> Option<Stat> {
        const BEFORE: usize = 3;
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().take(20).collect();
        let number = |field: usize| fields.get(field - BEFORE)?.parse::<u64>().ok();
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let state = *fields.first()?;
        let ended = matches!(state, "Z" | "X" | "x") || number(9)? & EXITING != 0;
        let stat = Stat {
            user_ns: number(14)? * tick_ns,
            system_ns: number(15)? * tick_ns,
            threads: number(20)?,
            is_stopped: matches!(state, "T" | "t"),
        };
        (!ended).then_some(stat)
    }
}

/// Resident memory in bytes, the second field of `/proc/PID/statm` (proc_pid_statm(5)). It is exact since Linux 6.16.
fn resident(root: &Root, pid: u32) -> u64 {
    let text = root.read(format!("proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const TICK: u64 = 10_000_000;
    const SECOND: u64 = 1_000_000_000;

    fn stat(machine: &Machine, pid: u32, state: char, user: u64, system: u64) {
        let text =
            format!("{pid} (a) b) {state} 1 1 1 0 -1 4194304 1 0 0 0 {user} {system} 7 8 20 0 3 0 147 3 9\n");
        machine.write(&format!("proc/{pid}/stat"), &text);
    }

    fn thread(machine: &Machine, pid: u32, tid: u32, cpu_ns: u64, wait_ns: u64) {
        machine.write(&format!("proc/{pid}/task/{tid}/schedstat"), &format!("{cpu_ns} {wait_ns} 9\n"));
    }

    fn two() -> Machine {
        let machine = Machine::with(&[
            ("proc/5/statm", "100 30 2 1 0 1 0\n"),
            ("proc/6/statm", "100 12 2 1 0 1 0\n"),
            ("proc/5/status", "Cpus_allowed_list:\t0-2\n"),
        ]);
        stat(&machine, 5, 'S', 100, 10);
        stat(&machine, 6, 'R', 7, 3);
        thread(&machine, 5, 5, 1_100_000_000, 50);
        thread(&machine, 6, 6, 100_000_000, 0);
        machine
    }

    #[test]
    fn processes_are_summed_and_ended_ones_are_not_forgotten() {
        let machine = two();
        let mut processes = Processes::new(&machine.root(), &[5, 6]);
        let page = rustix::param::page_size() as u64;
        let both = processes.usage_sample();
        let expected = UsageSample {
            processes: 2,
            threads: 6,
            rss_bytes: 42 * page,
            cpu_user_ns: 107 * TICK,
            cpu_system_ns: 13 * TICK,
        };
        assert_eq!(both, expected);
        let memory: Vec<(u32, u64)> = processes.memory().map(|own| (own.pid, own.rss_bytes)).collect();
        assert_eq!(memory, [(5, 30 * page), (6, 12 * page)]);
        stat(&machine, 5, 'S', 120, 10);
        stat(&machine, 6, 'Z', 9, 3);
        let expected =
            UsageSample { processes: 1, threads: 3, rss_bytes: 30 * page, cpu_user_ns: 127 * TICK, ..both };
        assert_eq!((processes.usage_sample(), processes.usage_sample()), (expected, expected));
        processes.add(5);
        assert_eq!(processes.pids().collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn a_process_that_is_exiting_has_ended() {
        let machine = two();
        let mut processes = Processes::new(&machine.root(), &[5, 6]);
        assert_eq!(processes.usage_sample().processes, 2);
        // PF_EXITING together with other flags, in any state.
        for (flags, expected) in [(4_194_304, 2), (4_194_304 + 8, 2), (4_194_304 + 4, 1)] {
            let text = format!("6 (a) b) R 1 1 1 0 -1 {flags} 1 0 0 0 9 3 7 8 20 0 3 0 147 3 9\n");
            machine.write("proc/6/stat", &text);
            assert_eq!(processes.usage_sample().processes, expected, "{flags}");
        }
    }

    #[test]
    fn shares_are_those_since_the_last_sample() {
        let machine = two();
        let mut processes = Processes::new(&machine.root(), &[5, 6]);
        let first = processes.sample(Nanos(SECOND));
        assert_eq!(
            (first.cores_used, first.busiest_thread, first.threads_full, first.cores),
            (0.0, 0.0, 0, Some(3))
        );
        stat(&machine, 5, 'S', 200, 60);
        thread(&machine, 5, 5, 1_700_000_000, 50 + 380_000_000);
        thread(&machine, 6, 8, 400_000_000, 1_000);
        let second = processes.sample(Nanos(2 * SECOND));
        assert!((second.cores_used - 1.5).abs() < 1e-9, "{second:?}");
        // It ran for 0.6 of the second, and was runnable for another 0.38.
        assert!((second.busiest_thread - 0.6).abs() < 1e-9, "{second:?}");
        assert!((second.busiest_wanted - 0.98).abs() < 1e-9, "{second:?}");
        let waited_ns = second.run_queue_wait_ns - first.run_queue_wait_ns;
        assert_eq!((second.threads_full, waited_ns), (1, 380_001_000));
        // Too soon for new shares: the previous ones are kept, other values are updated.
        stat(&machine, 6, 'S', 17, 3);
        thread(&machine, 5, 5, 1_700_000_001, 57 + 380_000_000);
        let soon = processes.sample(Nanos(2 * SECOND + SECOND / 10));
        assert_eq!((soon.cores_used, soon.busiest_thread), (second.cores_used, second.busiest_thread));
        assert_eq!(soon.cpu_user_ns, second.cpu_user_ns + 10 * TICK);
        assert_eq!(soon.run_queue_wait_ns, second.run_queue_wait_ns + 7);
        // A second and a half after the last sample with shares.
        let later = processes.sample(Nanos(3 * SECOND));
        assert!((later.cores_used - 0.1).abs() < 1e-9 && later.busiest_thread < 1e-6, "{later:?}");
    }

    #[test]
    fn a_stopped_or_blocked_process_is_reported() {
        let machine = two();
        let mut processes = Processes::new(&machine.root(), &[5, 6]);
        let first = processes.sample(Nanos(SECOND));
        assert_eq!((first.stopped, first.blocked, first.cpus.as_str()), (0, 0, "0-2"));
        stat(&machine, 6, 'T', 7, 3);
        machine.write("proc/5/task/5/stat", "5 (a) b) D 1 1 1 0 -1 0 1 0 0 0 30 15 7 8 20 0 3 0 147 3 9\n");
        let later = processes.sample(Nanos(2 * SECOND));
        assert_eq!((later.stopped, later.blocked, later.processes), (1, 1, 2));
    }

    #[test]
    fn clock_ticks_do_where_the_kernel_has_nothing_finer() {
        let machine = two();
        std::fs::remove_file(machine.root().path("proc/5/task/5/schedstat")).unwrap();
        machine.write("proc/5/task/5/stat", "5 (a) R 1 1 1 0 -1 0 1 0 0 0 10 5 7 8 20 0 3 0 147 3 9\n");
        let mut processes = Processes::new(&machine.root(), &[5]);
        processes.sample(Nanos::ZERO);
        machine.write("proc/5/task/5/stat", "5 (a) R 1 1 1 0 -1 0 1 0 0 0 30 15 7 8 20 0 3 0 147 3 9\n");
        assert!((processes.sample(Nanos(SECOND)).busiest_thread - 0.3).abs() < 1e-9);
    }

    #[test]
    fn we_are_seen_by_ourselves() {
        let mut own = Processes::own(&Root::real());
        let before = own.sample(Nanos::ZERO);
        let memory = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = own.sample(Nanos(SECOND));
        assert!(after.rss_bytes > before.rss_bytes + (60 << 20), "{before:?} {after:?}");
        assert!(
            after.threads >= 2 && after.processes == 1 && after.cores.is_some_and(|n| n >= 1),
            "{after:?}"
        );
        drop(memory);
    }
}
