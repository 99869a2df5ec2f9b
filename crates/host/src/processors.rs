//! The processors of this machine, and how many of them a process may use.

use crate::Root;
use crate::groups::{Version, groups};
use samples::CpuQuota;
use std::path::{Path, PathBuf};
use units::{Nanos, cpu_list};

/// The number of processors that this process may use: by its affinity, or by the lowest CPU quota of its control groups, rounded down,
/// at least one. `None` if the affinity cannot be read.
///
/// Reads `Cpus_allowed_list` (proc_pid_status(5)), `cpu.max` (kernel document `admin-guide/cgroup-v2`) and `cpu.cfs_quota_us`
/// (`scheduler/sched-bwc`).
pub(crate) fn processors(root: &Root) -> Option<u64> {
    processors_of(root, "self")
}

/// The number of processors that another process may use.
pub(crate) fn processors_of(root: &Root, process: &str) -> Option<u64> {
    let quota = quotas(root, process).into_iter().map(|(cores, _)| cores).fold(f64::INFINITY, f64::min);
    // Rounded down to whole processors.
    Some(count(&allowed(root, process)?)?.min((quota as u64).max(1)))
}

/// The processors that a process may run on, in the kernel's format: `0-3,8`.
pub(crate) fn allowed(root: &Root, process: &str) -> Option<String> {
    root.field(format!("proc/{process}/status"), "Cpus_allowed_list:")
}

/// The number of processors in a list: five for `0-3,8`.
fn count(list: &str) -> Option<u64> {
    cpu_list(list).map(|spans| spans.iter().map(|(first, last)| last - first + 1).sum())
}

/// Number of processors of the machine that are online.
pub fn processors_online(root: &Root) -> Option<u64> {
    count(root.read("sys/devices/system/cpu/online").ok()?.trim())
}

/// CPU time of all processors of the machine since boot, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    busy: u64,
    all: u64,
}

impl CpuTime {
    /// The busy fraction of the time since `then`, from 0 to 1; `None` if no time has passed.
    pub fn share_since(self, then: CpuTime) -> Option<f64> {
        let all = self.all.checked_sub(then.all).filter(|all| *all > 0)?;
        Some((self.busy.saturating_sub(then.busy) as f64 / all as f64).min(1.0))
    }
}

/// CPU time used by this process, with all its threads.
pub fn own_cpu_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Reads the first line of `/proc/stat` (proc_stat(5)). All but `idle` and `iowait` is busy; `guest` is already included in `user`.
pub fn cpu_time(root: &Root) -> Option<CpuTime> {
    let line: String = root.field("proc/stat", "cpu ")?;
    let times: Vec<u64> = line.split_whitespace().map_while(|time| time.parse().ok()).take(8).collect();
    let idle = times.get(3)? + times.get(4).unwrap_or(&0);
    let all = times.iter().sum::<u64>();
    Some(CpuTime { busy: all - idle, all })
}

/// The lowest quota of a process's groups, with the periods of that group (`cpu.stat`).
pub(crate) fn cpu_quota(root: &Root, process: &str) -> Option<CpuQuota> {
    let smallest = quotas(root, process).into_iter().min_by(|(one, _), (other, _)| one.total_cmp(other));
    let (cores, folder) = smallest?;
    let count = |field: &str| root.field(folder.join("cpu.stat"), field).unwrap_or(0);
    Some(CpuQuota { cores, periods: count("nr_periods "), throttled: count("nr_throttled ") })
}

/// The quota of each group of a process, in processors, with the group's folder.
fn quotas(root: &Root, process: &str) -> Vec<(f64, PathBuf)> {
    let mut quotas = Vec::new();
    for (version, group) in groups(root, process, "cpu") {
        quotas.extend(group.ancestors().filter_map(|above| match version {
            Version::One => version_1(root, Path::new("sys/fs/cgroup/cpu").join(above)),
            Version::Two => version_2(root, Path::new("sys/fs/cgroup").join(above)),
        }));
    }
    quotas
}

/// Quota and period in µs: `200000 100000`; `max 100000` is no limit.
fn version_2(root: &Root, folder: PathBuf) -> Option<(f64, PathBuf)> {
    let text = root.read(folder.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    of_period(quota.parse().ok()?, period.parse().ok()?).map(|cores| (cores, folder))
}

/// Quota and period in two files; a quota of -1 is no limit.
fn version_1(root: &Root, folder: PathBuf) -> Option<(f64, PathBuf)> {
    let quota: u64 = root.number(folder.join("cpu.cfs_quota_us"))?;
    of_period(quota, root.number(folder.join("cpu.cfs_period_us"))?).map(|cores| (cores, folder))
}

fn of_period(quota: u64, period: u64) -> Option<f64> {
    (period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    fn check(list: &str, files: &[(&str, &str)], expected: Option<u64>) {
        let machine = Machine::with(files);
        machine.write("proc/self/status", &format!("Name:\tx\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(processors(&machine.root()), expected, "{list} {files:?}");
    }

    #[test]
    fn affinity_is_counted() {
        check("0", &[], Some(1));
        check("0-3,8", &[], Some(5));
        check("x", &[], None);
        check("3-1", &[], None);
        assert_eq!(processors(&Machine::with(&[]).root()), None);
    }

    #[test]
    fn a_list_names_its_processors() {
        let machine = Machine::with(&[("sys/devices/system/cpu/online", "0-1,4\n")]);
        assert_eq!(processors_online(&machine.root()), Some(3));
        assert_eq!(processors_online(&Machine::with(&[]).root()), None);
    }

    #[test]
    fn a_control_group_may_leave_less() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let at = |text| ("sys/fs/cgroup/a/cpu.max", text);
        check("0-63", &[group, at("250000 100000\n")], Some(2));
        check("0-63", &[group, at("20000 100000\n")], Some(1));
        check("0-1", &[group, at("400000 100000\n")], Some(2));
        check("0-63", &[group, at("max 100000\n")], Some(64));
        check("0-63", &[group, at("5 0\n")], Some(64));
        check(
            "0-63",
            &[group, at("400000 100000\n"), ("sys/fs/cgroup/a/b/cpu.max", "300000 100000\n")],
            Some(3),
        );

        let old = ("proc/self/cgroup", "3:cpu,cpuacct:/job\n");
        let period = ("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "50000\n");
        let quota = |text| ("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", text);
        check("0-63", &[old, period, quota("150000\n")], Some(3));
        check("0-63", &[old, period, quota("-1\n")], Some(64));
    }

    #[test]
    fn the_smallest_quota_has_its_periods() {
        let files = [
            ("proc/7/cgroup", "4:cpu,cpuacct:/a/b\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 50\nnr_throttled 40\nthrottled_time 9\n"),
            ("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "90000\n"),
        ];
        let found = cpu_quota(&Machine::with(&files).root(), "7");
        assert_eq!(found, Some(CpuQuota { cores: 0.2, periods: 50, throttled: 40 }));
        assert_eq!(cpu_quota(&Machine::with(&files[..1]).root(), "7"), None);
    }

    #[test]
    fn this_machine_has_as_many_processors_as_std_reports() {
        let expected = std::thread::available_parallelism().unwrap().get() as u64;
        assert_eq!(processors(&Root::real()), Some(expected));
    }

    #[test]
    fn time_is_busy_or_idle() {
        let at = |line: &str| cpu_time(&Machine::with(&[("proc/stat", line)]).root());
        let then = at("cpu  100 0 50 800 50 0 0 0 100 0\ncpu0 1 1 1 1\n").unwrap();
        let now = at("cpu  130 10 60 840 60 0 0 0 130 0\n").unwrap();
        assert_eq!(now.share_since(then), Some(0.5));
        assert_eq!((then.share_since(then), then.share_since(now)), (None, None));
        assert_eq!((at("cpu  1 2 3\n"), at("")), (None, None));
        assert!(cpu_time(&Root::real()).is_some_and(|time| time.busy > 0));
    }
}
