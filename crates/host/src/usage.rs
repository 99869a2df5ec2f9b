//! What a process takes of the machine: ourselves, or the target when it runs here.

use crate::Root;
use crate::memory::kib_field;
use crate::root::unexpected;
use std::{fs, io};

/// One sample of a process. Cheap (two small files and a directory's size), so it can be taken several times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfUsage {
    /// Resident memory in bytes (`VmRSS`). The kernel counts it per processor and adds up in batches, so
    /// it may be off by some 64 pages for each.
    pub rss_bytes: u64,
    /// The part of it that is no file and not shared (`RssAnon`), in bytes: what connections make grow.
    pub anon_bytes: u64,
    /// CPU time since the process began, user and system, all threads, in nanoseconds. The kernel gives it
    /// in clock ticks, of 10 ms as a rule.
    pub cpu_ns: u64,
    /// The system's part of it.
    pub system_ns: u64,
    /// Threads alive.
    pub threads: u64,
    /// Open descriptors of the main thread's table, without direct descriptors of io_uring and tables that other threads
    /// unshared. `None`: another user's process, not readable.
    pub open_files: Option<u64>,
}

/// Samples process `pid`, or this one (`None`), from `/proc/PID/{status,stat,fd}` (proc(5)).
///
/// # Errors
/// There is no such process (any more), or its files are not as proc(5) describes them.
pub fn usage(root: &Root, pid: Option<u32>) -> io::Result<SelfUsage> {
    let process = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let status_file = format!("proc/{process}/status");
    let stat_file = format!("proc/{process}/stat");
    let status = root.read(&status_file)?;
    let stat = root.read(&stat_file)?;
    let (user_ns, system_ns) = cpu_ns(&stat).ok_or_else(|| unexpected(&stat_file, "utime, stime"))?;
    Ok(SelfUsage {
        // A process that is ending has no memory, and the kernel then leaves these lines out.
        rss_bytes: kib_field(&status, "VmRSS").unwrap_or(0),
        anon_bytes: kib_field(&status, "RssAnon").unwrap_or(0),
        cpu_ns: user_ns.saturating_add(system_ns),
        system_ns,
        threads: thread_count(&status).ok_or_else(|| unexpected(&status_file, "Threads"))?,
        open_files: open_files(root, &process),
    })
}

fn thread_count(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
}

/// Whether this process has the capability with this number in effect (capabilities(7)).
pub(crate) fn has_capability(root: &Root, number: u32) -> bool {
    let status = root.read("proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    bits >> number & 1 == 1
}

/// User and system time: fields 14 and 15 of proc_pid_stat(5). The second, the command's name, may contain blanks and
/// brackets, so count from the last `)`, after which field 3 begins.
fn cpu_ns(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(14 - 3);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
    Some((user.checked_mul(tick_ns)?, system.checked_mul(tick_ns)?))
}

fn open_files(root: &Root, process: &str) -> Option<u64> {
    table_size(root, process).or_else(|| table_count(root, process, usize::MAX))
}

/// Since Linux 6.2 the size of `/proc/PID/fd` is the number of descriptors; before, it is zero. `table`: `PID` or
/// `PID/task/TID`.
pub(crate) fn table_size(root: &Root, table: &str) -> Option<u64> {
    let size = fs::metadata(root.path(format!("proc/{table}/fd"))).ok()?.len();
    (root.is_real() && size > 0).then_some(size)
}

/// Counts them one by one, up to `most`.
pub(crate) fn table_count(root: &Root, table: &str, most: usize) -> Option<u64> {
    Some(fs::read_dir(root.path(format!("proc/{table}/fd"))).ok()?.take(most).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const STATUS: &str = "Name:\tx\nVmPeak:\t 9 kB\nVmRSS:\t  1712 kB\nRssAnon:\t   112 kB\nThreads:\t3\n";
    const STAT: &str = "42 (a) b (c) S 1 1 1 0 -1 4194304 100 0 0 0 150 50 7 8 20 0 3 0 147029 3133440 394\n";

    fn check(files: &[(&str, &str)], pid: Option<u32>, expected: Result<SelfUsage, io::ErrorKind>) {
        let machine = Machine::with(files);
        machine.link("proc/42/fd/0", "/dev/null");
        machine.link("proc/42/fd/3", "socket:[9]");
        assert_eq!(usage(&machine.root(), pid).map_err(|e| e.kind()), expected, "{files:?}");
    }

    #[test]
    fn a_process_is_read_from_its_files() {
        let expected = SelfUsage {
            rss_bytes: 1712 * 1024,
            anon_bytes: 112 * 1024,
            cpu_ns: 200 * (1_000_000_000 / rustix::param::clock_ticks_per_second()),
            system_ns: 50 * (1_000_000_000 / rustix::param::clock_ticks_per_second()),
            threads: 3,
            open_files: Some(2),
        };
        check(&[("proc/42/status", STATUS), ("proc/42/stat", STAT)], Some(42), Ok(expected));
        // Descriptors cannot be read; the rest still counts.
        let hidden = SelfUsage { open_files: None, ..expected };
        check(&[("proc/self/status", STATUS), ("proc/self/stat", STAT)], None, Ok(hidden));
        // The process is ending: no memory lines.
        let ending = SelfUsage { rss_bytes: 0, anon_bytes: 0, threads: 1, ..expected };
        check(&[("proc/42/status", "Threads:\t1\n"), ("proc/42/stat", STAT)], Some(42), Ok(ending));
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        check(&[], Some(7), Err(io::ErrorKind::NotFound));
        check(&[("proc/42/status", STATUS)], Some(42), Err(io::ErrorKind::NotFound));
        check(
            &[("proc/42/status", STATUS), ("proc/42/stat", "42 (x")],
            Some(42),
            Err(io::ErrorKind::InvalidData),
        );
        check(
            &[("proc/42/status", "Name: x\n"), ("proc/42/stat", STAT)],
            Some(42),
            Err(io::ErrorKind::InvalidData),
        );
    }

    #[test]
    fn our_own_usage_grows_with_what_we_do() {
        let before = usage(&Root::real(), None).unwrap();
        let memory = std::hint::black_box(vec![1u8; 64 << 20]);
        let file = fs::File::open("/proc/self/stat").unwrap();
        let after = usage(&Root::real(), Some(std::process::id())).unwrap();
        assert!(after.anon_bytes > before.anon_bytes + (60 << 20), "{before:?} {after:?}");
        assert!(after.rss_bytes >= after.anon_bytes && after.threads >= 1, "{after:?}");
        assert!(after.cpu_ns >= before.cpu_ns);
        // The other tests of this process open and close files meanwhile: only a lower bound holds.
        assert!(after.open_files.unwrap() >= 4, "{after:?}");
        drop((memory, file));
    }
}
