//! Limits on open files, and other information of the kernel about descriptors.

use crate::Root;
use std::fs;

/// The limits on open files, innermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// `RLIMIT_NOFILE`, soft; a process may raise it to `hard`. `u64::MAX`: unlimited.
    pub soft: u64,
    /// The maximum that this process may set. It applies to each descriptor table, and to each ring's table of direct descriptors, but
    /// not to their sum.
    pub hard: u64,
    /// The maximum that an administrator may set `hard` to (`fs.nr_open`).
    pub nr_open: u64,
    /// Maximum number of open files of the whole machine, including direct descriptors (`fs.file-max`). Does not bind a process with
    /// `CAP_SYS_ADMIN`.
    pub file_max: u64,
    /// Number of open files of the whole machine (`fs.file-nr`).
    pub file_used: u64,
}

impl OpenFiles {
    /// Number of files that the machine may still open.
    pub fn free(&self) -> u64 {
        self.file_max.saturating_sub(self.file_used)
    }
}

/// Reads `/proc/self/limits` and `/proc/sys/fs` (kernel document `admin-guide/sysctl/fs`).
/// `None`: a file cannot be read, or has no number where one should be.
pub fn open_files(root: &Root) -> Option<OpenFiles> {
    let (soft, hard) = limits(root, "self")?;
    Some(OpenFiles {
        soft,
        hard,
        nr_open: root.number("proc/sys/fs/nr_open")?,
        file_max: root.number("proc/sys/fs/file-max")?,
        file_used: root.number("proc/sys/fs/file-nr")?,
    })
}

/// The limits on open files of a process, soft and hard.
pub(crate) fn limits(root: &Root, process: &str) -> Option<(u64, u64)> {
    limits_of(root, process, "Max open files")
}

/// The limits of a process in this row of `/proc/PID/limits`, soft and hard; `u64::MAX`: unlimited.
pub(crate) fn limits_of(root: &Root, process: &str, row: &str) -> Option<(u64, u64)> {
    let row: String = root.field(format!("proc/{process}/limits"), row)?;
    let mut fields = row.split_whitespace().map(|field| match field {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((fields.next()??, fields.next()??))
}

/// `kernel.io_uring_disabled`: 0 all users may use io_uring, 1 only a group and root, 2 no user. `None`: a kernel before
/// 6.6, which has no such setting.
pub(crate) fn io_uring_disabled(root: &Root) -> Option<u8> {
    root.number("proc/sys/kernel/io_uring_disabled")
}

/// Number of open descriptors in a process's main table, without direct descriptors of io_uring and without tables that threads have
/// unshared. `None`: not readable, such as for another user's process.
pub(crate) fn open_descriptors(root: &Root, process: &str) -> Option<u64> {
    table_size(root, process).or_else(|| table_count(root, process, usize::MAX))
}

/// The number of descriptors by the size of `/proc/PID/fd`, which is 0 before Linux 6.2. `table`: `PID` or `PID/task/TID`.
pub(crate) fn table_size(root: &Root, table: &str) -> Option<u64> {
    let size = fs::metadata(root.path(format!("proc/{table}/fd"))).ok()?.len();
    (root.is_real() && size > 0).then_some(size)
}

/// Counts descriptors one by one, up to `most`.
pub(crate) fn table_count(root: &Root, table: &str, most: usize) -> Option<u64> {
    Some(fs::read_dir(root.path(format!("proc/{table}/fd"))).ok()?.take(most).count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Machine;

    const SYS: [(&str, &str); 3] = [
        ("proc/sys/fs/nr_open", "1048576\n"),
        ("proc/sys/fs/file-max", "2466190\n"),
        ("proc/sys/fs/file-nr", "410\t0\t2466190\n"),
    ];

    fn check(limits: &str, expected: Option<(u64, u64)>) {
        let machine = Machine::with(&SYS);
        machine.write("proc/self/limits", limits);
        let all =
            |(soft, hard)| OpenFiles { soft, hard, nr_open: 1_048_576, file_max: 2_466_190, file_used: 410 };
        assert_eq!(open_files(&machine.root()), expected.map(all), "{limits}");
    }

    #[test]
    fn limits_have_a_soft_and_a_hard_side() {
        let head = "Limit                     Soft Limit           Hard Limit           Units     \n";
        check(
            &format!(
                "{head}Max open files            1024                 20000                files     \n"
            ),
            Some((1024, 20000)),
        );
        check(
            &format!(
                "{head}Max open files            1024                 unlimited            files     \n"
            ),
            Some((1024, u64::MAX)),
        );
        check(
            &format!(
                "{head}Max open files            many                 20000                files     \n"
            ),
            None,
        );
        check(head, None);
    }

    #[test]
    fn without_a_setting_nothing_is_known() {
        let machine = Machine::with(&[("proc/self/limits", "Max open files 5 6 files\n"), SYS[0], SYS[1]]);
        assert_eq!(open_files(&machine.root()), None);
    }

    #[test]
    fn descriptors_are_counted() {
        let machine = Machine::with(&[]);
        machine.link("proc/42/fd/0", "/dev/null");
        machine.link("proc/42/fd/3", "socket:[9]");
        assert_eq!(open_descriptors(&machine.root(), "42"), Some(2));
        assert_eq!(open_descriptors(&machine.root(), "7"), None);
        let file = fs::File::open("/proc/self/stat").unwrap();
        // Other tests in this process open and close files meanwhile, so that only a lower bound holds.
        assert!(open_descriptors(&Root::real(), "self").unwrap() >= 4);
        drop(file);
    }

    #[test]
    fn the_switch_of_io_uring_may_be_missing() {
        for (text, expected) in [("0\n", Some(0)), ("2\n", Some(2)), ("", None)] {
            let machine = Machine::with(&[("proc/sys/kernel/io_uring_disabled", text)]);
            assert_eq!(io_uring_disabled(&machine.root()), expected);
        }
        assert_eq!(io_uring_disabled(&Machine::with(&[]).root()), None);
    }

    #[test]
    fn this_machine_has_limits() {
        let found = open_files(&Root::real()).unwrap();
        assert!(0 < found.soft && found.soft <= found.hard && 0 < found.file_used, "{found:?}");
    }
}
