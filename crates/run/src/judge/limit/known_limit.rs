//! Known limits: numbers at which systems commonly stop, independent of other evidence.

use samples::Stage;

use super::{Case, Trouble};

/// A number and its usual cause.
struct KnownLimit {
    at: u64,
    what: &'static str,
    /// How to find out whether it is that.
    fix: &'static str,
}

const FILES: &str =
    "on the target's host, compare ls /proc/PID/fd | wc -l with its limit (prlimit --pid PID --nofile)";
const TRACKED: &str =
    "on each host and router on the path, compare net.netfilter.nf_conntrack_count with nf_conntrack_max";
const PORTS: &str = "repeat the run with more --sources: a limit of this kind rises with them";
const WORKERS: &str =
    "search for that number in the target's configuration (worker_connections, maxconn) and log";

/// Because of a process's other files, listeners and logs, the numbers reached are a little below these.
const KNOWN_LIMITS: &[KnownLimit] = &[
    KnownLimit { at: 512, what: "nginx's worker_connections of 512", fix: WORKERS },
    KnownLimit { at: 768, what: "Debian's worker_connections of 768", fix: WORKERS },
    KnownLimit { at: 1_024, what: "1,024 open files, the usual limit of a process", fix: FILES },
    KnownLimit { at: 4_096, what: "4,096 open files, a usual hard limit", fix: FILES },
    KnownLimit { at: 10_000, what: "10,000 connections, a usual setting", fix: WORKERS },
    KnownLimit { at: 28_232, what: "the 28,232 ports from one address to one destination", fix: PORTS },
    KnownLimit {
        at: 64_512,
        what: "the 64,512 ports above 1023 from one address to one destination",
        fix: PORTS,
    },
    KnownLimit { at: 65_536, what: "65,536 tracked connections, or as many open files", fix: TRACKED },
    KnownLimit { at: 262_144, what: "262,144 tracked connections", fix: TRACKED },
    KnownLimit { at: 524_288, what: "524,288 open files, systemd's hard limit", fix: FILES },
    KnownLimit { at: 1_048_576, what: "1,048,576 open files, fs.nr_open", fix: FILES },
];

impl KnownLimit {
    /// How far below it still counts: a process has other files open, and tables are full a little early.
    fn reaches_down_to(&self) -> u64 {
        self.at - (self.at / 40).clamp(8, 300)
    }
}

/// The known limit near the number of connections left, and how to find out: a hint, never a cause.
pub(super) fn hint(case: &Case) -> Option<(&'static str, &'static str)> {
    if !matches!(case.trouble, Trouble::Waiting | Trouble::Lost) {
        return None;
    }
    let c = &case.summary.connections;
    // A run that reached its load, or nothing, has met no known limit.
    let n = Some(c.held).filter(|held| *held > 0 && *held < c.wanted)?;
    let known_limit = KNOWN_LIMITS.iter().find(|p| (p.reaches_down_to()..=p.at + 1).contains(&n))?;
    // A process without files still has a kernel that opens its connections.
    if known_limit.fix == FILES && case.stage == Some(Stage::Dial) && case.summary.requests.answered >= n {
        return None;
    }
    // Near a number of the user's own plan it stopped for that.
    let is_planned = c.wanted.abs_diff(known_limit.at) <= known_limit.at / 20;
    (!is_planned).then_some((known_limit.what, known_limit.fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_limits_ascend_and_do_not_overlap() {
        for pair in KNOWN_LIMITS.windows(2) {
            assert!(pair[0].at + 1 < pair[1].reaches_down_to(), "{} and {}", pair[0].at, pair[1].at);
        }
    }
}
