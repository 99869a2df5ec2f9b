//! What stopped it: on whose side, at how many connections, and what to do. A table of causes over the evidence, from
//! the most specific to the least; where nothing fits, the answer is that it is unknown, and what was seen.
//!
//! | order | cause | evidence |
//! |---|---|---|
//! | 1 | ended | the target's process is gone |
//! | 2 | memory | the target was killed for want of it; the memory of all sockets ran out |
//! | 3 | open-files | the target's files are near its limit |
//! | 4 | conntrack | the table of tracked connections is full |
//! | 5 | ports, memory, open-files | what our own calls were answered |
//! | 6 | refused | nobody listens, or no longer |
//! | 6 | tls-expected | it answered with an alert of TLS, or with its page for requests without |
//! | 7 | idle-cut, reset-after | those lost had all been silent, or open, for the same time |
//! | 8 | connection-limit | from some number on whoever came was turned away |
//! | 9 | accept-queue | it overflowed, or is as full as its backlog allows |
//! | 10 | cpu | throng itself was too slow: a silence may be its own |
//! | 11 | cpu | the target had none left |
//! | 12 | slow-accept | a steady rate of accepts while others waited |
//! | 13 | the plateau's | it stopped at a number that is well known |
//! | 14 | wrong-answer, timeout, closed, unreachable, denied | the most frequent kind of fault |
//! | 15 | unknown | nothing of this |

use samples::{Errno, FaultCount, Kind, Limit, Side, Stage, Summary, Verdict};
use units::Count;

use super::{evidence::Evidence, honesty};

pub(crate) mod ours;
mod plateau;
mod target;

/// What went wrong most of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing did, and yet the run is not as it should be.
    None,
    /// Dials that this machine could not make.
    Ours,
    Refused,
    /// Dials and requests without an answer.
    Waiting,
    /// Connections closed or reset by the peer.
    Lost,
    WrongAnswer,
    /// No way, or not let through.
    Path,
    Other,
}

/// A run that something stopped.
pub(super) struct Case<'a> {
    pub(super) summary: &'a Summary,
    pub(super) evidence: &'a Evidence,
    pub(super) trouble: Trouble,
    /// Faults of that kind.
    pub(super) count: u64,
    /// The most frequent of them.
    pub(super) kind: Option<Kind>,
    pub(super) stage: Option<Stage>,
    /// The kernel's error with it.
    pub(super) errno: Errno,
}

/// One row: an answer, where its evidence is there.
type Row = fn(&Case) -> Option<Limit>;

const ROWS: &[Row] = &[
    target::ended,
    target::memory,
    target::open_files,
    ours::conntrack,
    ours::errors,
    target::refused,
    target::tls_expected,
    target::constant_time,
    target::connection_limit,
    target::accept_queue,
    ours::generator,
    target::cpu,
    target::slow_accept,
    plateau::plateau,
    ours::path,
    target::fault,
    unknown,
];

/// What stopped a run whose verdict stands; none where nothing went wrong.
pub(crate) fn limit(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    let is_bad = matches!(summary.verdict, Verdict::Fail | Verdict::Invalid);
    let case = Case::of(summary, evidence);
    if case.trouble == Trouble::None && !is_bad {
        return None;
    }
    case.told()
}

/// What would have stopped a run that passes, and is found wanting all the same by who asks for more than its verdict
/// does; none where nobody can tell.
pub(crate) fn suspect(summary: &Summary, evidence: &Evidence) -> Option<Limit> {
    let case = Case::of(summary, evidence);
    let ours = honesty::saturated(evidence).and_then(|why| ours::too_slow(&case, why));
    ours.or_else(|| case.told()).filter(|limit| limit.cause != "unknown")
}

/// How much a limit explains; of several runs against a target, the one that explains most is what stopped them. Most, that
/// the target is gone; least, that nothing is known. What follows from the kind of fault alone, and what a busy moment of
/// this machine may do, gives way to what was seen.
pub(crate) fn weight(limit: &Limit) -> u8 {
    match (limit.side, limit.cause) {
        (_, "ended") | ("target", "memory") => 3,
        (_, "unknown") => 0,
        (_, "refused" | "wrong-answer" | "timeout" | "closed" | "unreachable" | "denied")
        | ("host", "cpu") => 1,
        _ => 2,
    }
}

/// Whether nobody listens: after another run was served, the target is gone.
pub(crate) fn is_nobody(limit: &Limit) -> bool {
    (limit.cause, limit.at_connections) == ("refused", 0)
}

impl<'a> Case<'a> {
    fn told(&self) -> Option<Limit> {
        ROWS.iter().find_map(|row| row(self))
    }

    fn of(summary: &'a Summary, evidence: &'a Evidence) -> Case<'a> {
        // The first of equals: our own doing before others', what is refused before what is only slow.
        const ORDER: [Trouble; 7] = [
            Trouble::Ours,
            Trouble::Refused,
            Trouble::Waiting,
            Trouble::Lost,
            Trouble::WrongAnswer,
            Trouble::Path,
            Trouble::Other,
        ];
        let of = |trouble: Trouble| summary.faults.iter().filter(move |f| trouble_of(f) == trouble);
        let count = |trouble: Trouble| of(trouble).map(|f| f.count).sum::<u64>();
        let most = ORDER.map(count).into_iter().max().unwrap_or(0);
        let trouble = ORDER.into_iter().find(|t| most > 0 && count(*t) == most).unwrap_or(Trouble::None);
        let worst = of(trouble).max_by_key(|f| f.count);
        Case {
            summary,
            evidence,
            trouble,
            count: most,
            kind: worst.map(|f| f.kind),
            stage: worst.map(|f| f.stage),
            errno: worst.map_or(Errno::NONE, |f| f.detail),
        }
    }

    /// Whether connections that were wanted are not there, by the target's doing or the way's.
    fn is_short(&self) -> bool {
        matches!(self.trouble, Trouble::Waiting | Trouble::Lost | Trouble::Refused)
    }

    fn faults(&self) -> Count {
        Count(self.count)
    }

    /// Connections that were left; where none was, the most that ever were.
    fn left(&self) -> u64 {
        let c = &self.summary.connections;
        if c.held > 0 { c.held.min(c.peak) } else { c.peak }
    }

    fn answer(
        &self,
        side: Side,
        cause: &'static str,
        at_connections: u64,
        detail: String,
        cure: impl Into<String>,
    ) -> Option<Limit> {
        Some(Limit { side: side.name(), cause, at_connections, detail, cure: cure.into() })
    }
}

fn trouble_of(fault: &FaultCount) -> Trouble {
    match (fault.side, fault.kind) {
        (_, Kind::AddressInUse | Kind::NoMemory | Kind::OpenFiles) => Trouble::Ours,
        (_, Kind::Unreachable | Kind::Denied) => Trouble::Path,
        (Side::Host, _) => Trouble::Ours,
        (_, Kind::Refused) => Trouble::Refused,
        (_, Kind::Timeout) => Trouble::Waiting,
        (_, Kind::Reset | Kind::Closed) => Trouble::Lost,
        (_, Kind::Other) => Trouble::Other,
        _ => Trouble::WrongAnswer,
    }
}

/// Nothing fits: what was seen, so that somebody else may find it.
fn unknown(case: &Case) -> Option<Limit> {
    let (s, e) = (case.summary, case.evidence);
    let mut seen: Vec<String> =
        s.faults.iter().map(|f| format!("{} {}", Count(f.count), f.fault().name())).collect();
    let (here, there) = (e.here.net, e.there.unwrap_or(e.here).net);
    let counters = [
        ("listen overflows", there.listen_overflows),
        ("listen drops", there.listen_drops),
        ("SYNs sent again", here.syn_retrans),
        ("segments sent again", here.retrans_segs),
    ];
    let counted = counters.iter().filter(|(_, n)| *n > 0);
    seen.extend(counted.map(|(name, n)| format!("{} {name} in the whole network namespace", Count(*n))));
    if let Some(t) = &e.target {
        seen.push(format!("target's CPU {:.0} %", t.cpu_share * 100.0));
    }
    let seen = if seen.is_empty() { "nothing unusual".to_owned() } else { seen.join(", ") };
    let cure = "look at the target's log, or run strace on it";
    case.answer(Side::Unknown, "unknown", case.left(), format!("unknown; seen: {seen}"), cure)
}

#[cfg(test)]
mod tests;
