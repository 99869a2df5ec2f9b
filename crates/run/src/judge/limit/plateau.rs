//! Numbers at which things are known to stop, whatever else was or was not seen.

use samples::{Limit, Side};
use units::Count;

use super::{Case, Trouble};

/// A number and what is known to stop there.
struct Plateau {
    at: u64,
    side: Side,
    cause: &'static str,
    what: &'static str,
    cure: &'static str,
}

const FILES: &str = "raise its limit on open files (ulimit -n, LimitNOFILE= of its unit)";
const TRACKED: &str = "raise net.netfilter.nf_conntrack_max, on each host and router on the way";
const PORTS: &str = "give more --sources or destinations";
const WORKERS: &str = "raise its worker_connections, or its limit on connections";

/// From one process's own few files, listeners and logs, the numbers reached lie a little below these.
const PLATEAUS: &[Plateau] = &[
    Plateau {
        at: 512,
        side: Side::Target,
        cause: "connection-limit",
        what: "nginx's worker_connections of 512",
        cure: WORKERS,
    },
    Plateau {
        at: 768,
        side: Side::Target,
        cause: "connection-limit",
        what: "Debian's worker_connections of 768",
        cure: WORKERS,
    },
    Plateau {
        at: 1_024,
        side: Side::Target,
        cause: "open-files",
        what: "1,024 open files, the usual limit of a process",
        cure: FILES,
    },
    Plateau {
        at: 4_096,
        side: Side::Target,
        cause: "open-files",
        what: "4,096 open files, a usual hard limit",
        cure: FILES,
    },
    Plateau {
        at: 10_000,
        side: Side::Target,
        cause: "connection-limit",
        what: "10,000 connections, a usual setting",
        cure: WORKERS,
    },
    Plateau {
        at: 28_232,
        side: Side::Path,
        cause: "ports",
        what: "the 28,232 ports of one address to one destination",
        cure: PORTS,
    },
    Plateau {
        at: 64_512,
        side: Side::Path,
        cause: "ports",
        what: "the 64,512 ports from 1024 on of one address to one destination",
        cure: PORTS,
    },
    Plateau {
        at: 65_536,
        side: Side::Path,
        cause: "conntrack",
        what: "65,536 tracked connections, or as many open files",
        cure: TRACKED,
    },
    Plateau {
        at: 262_144,
        side: Side::Path,
        cause: "conntrack",
        what: "262,144 tracked connections",
        cure: TRACKED,
    },
    Plateau {
        at: 524_288,
        side: Side::Target,
        cause: "open-files",
        what: "524,288 open files, systemd's hard limit",
        cure: FILES,
    },
    Plateau {
        at: 1_048_576,
        side: Side::Target,
        cause: "open-files",
        what: "1,048,576 open files, fs.nr_open",
        cure: FILES,
    },
];

impl Plateau {
    /// How far below it still counts: a process has some files open besides, and tables are full a little before their
    /// end.
    fn reaches_down_to(&self) -> u64 {
        self.at - (self.at / 40).clamp(8, 300)
    }
}

/// Of those that are near the number of connections left.
pub(super) fn plateau(case: &Case) -> Option<Limit> {
    if !matches!(case.trouble, Trouble::Waiting | Trouble::Lost) {
        return None;
    }
    let c = &case.summary.connections;
    // Who got all that was asked for, or nothing, has met no plateau.
    let n = Some(c.held).filter(|held| *held > 0 && *held < c.wanted)?;
    let plateau = PLATEAUS.iter().find(|p| (p.reaches_down_to()..=p.at + 1).contains(&n))?;
    let detail = format!("it stopped at {}, as it does at {}", Count(n), plateau.what);
    case.answer(plateau.side, plateau.cause, n, detail, plateau.cure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plateaus_ascend_and_do_not_overlap() {
        for pair in PLATEAUS.windows(2) {
            assert!(pair[0].at + 1 < pair[1].reaches_down_to(), "{} and {}", pair[0].at, pair[1].at);
        }
    }
}
