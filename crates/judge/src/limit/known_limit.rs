//! Known limits: numbers at which systems commonly stop, independent of other evidence.

use samples::Stage;

use super::{Case, Trouble};

const FILES: &str =
    "on the target's host, compare ls /proc/PID/fd | wc -l with its limit (prlimit --pid PID --nofile)";
const TRACKED: &str =
    "on each host and router on the path, compare net.netfilter.nf_conntrack_count with nf_conntrack_max";
const PORTS: &str = "repeat the run with more --sources: a limit of this kind rises with them";
const WORKERS: &str =
    "search for that number in the target's configuration (worker_connections, maxconn) and log";

/// Numbers, the usual cause of each, and how to find out whether it is that. Because of a process's other files, listeners and
/// logs, the numbers reached are a little below these.
const KNOWN_LIMITS: &[(u64, &str, &str)] = &[
    (512, "nginx's worker_connections of 512", WORKERS),
    (768, "Debian's worker_connections of 768", WORKERS),
    (1_024, "1,024 open files, the usual limit of a process", FILES),
    (4_096, "4,096 open files, a usual hard limit", FILES),
    (10_000, "10,000 connections, a usual setting", WORKERS),
    (28_232, "the 28,232 ports from one address to one destination", PORTS),
    (64_512, "the 64,512 ports above 1023 from one address to one destination", PORTS),
    (65_536, "65,536 tracked connections, or as many open files", TRACKED),
    (262_144, "262,144 tracked connections", TRACKED),
    (524_288, "524,288 open files, systemd's hard limit", FILES),
    (1_048_576, "1,048,576 open files, fs.nr_open", FILES),
];

/// How far below a limit still counts: a process has other files open, and tables are full a little early.
fn reaches_down_to(at: u64) -> u64 {
    at - (at / 40).clamp(8, 300)
}

/// The known limit near the number of connections left, and how to find out: a hint, never a cause.
pub(super) fn hint(case: &Case) -> Option<(&'static str, &'static str)> {
    if !matches!(case.trouble, Trouble::Waiting | Trouble::Lost) {
        return None;
    }
    let c = &case.summary.connections;
    // A run that reached its load, or nothing, has met no known limit.
    let n = Some(c.held).filter(|held| *held > 0 && *held < c.wanted)?;
    let (at, what, fix) =
        *KNOWN_LIMITS.iter().find(|(at, ..)| (reaches_down_to(*at)..=at + 1).contains(&n))?;
    // A process without files still has a kernel that opens its connections.
    if fix == FILES && case.stage == Some(Stage::Dial) && case.summary.requests.answered >= n {
        return None;
    }
    // Near a number of the user's own plan it stopped for that.
    let is_planned = c.wanted.abs_diff(at) <= at / 20;
    (!is_planned).then_some((what, fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_limits_ascend_and_do_not_overlap() {
        for pair in KNOWN_LIMITS.windows(2) {
            let (one, next) = (pair[0].0, pair[1].0);
            assert!(one + 1 < reaches_down_to(next), "{one} and {next}");
        }
    }
}
