//! Selects the one cause that is reported from all findings. A finding that is the consequence of another finding is dropped; among the
//! rest the most certain wins, then the earliest, then the first in the table.

use samples::{Cause as Name, Certainty, Limit};

use crate::{
    case::Case,
    cause::{Began, Finding},
};
use record::signs::Sign;

/// Maximum number of consequences named in the report.
const MAX_NAMED: usize = 3;

/// A finding and when it began: the second of the run, and whether it was present when things began to fail.
struct Dated {
    finding: Finding,
    began: Option<(f64, bool)>,
    how: How,
}

/// The finding to report, as a limit; `None` without findings.
pub(crate) fn first(case: &Case, found: Vec<Finding>) -> Option<Limit> {
    let all: Vec<Dated> = found.into_iter().map(|finding| Dated::new(case, finding)).collect();
    let causes = all.iter().filter(|one| !all.iter().any(|other| other.explains(one)));
    let Dated { finding, began, .. } = causes.min_by_key(|one| one.rank())?;
    let mut limit = finding.limit.clone();
    if let Some((at_s, _)) = began {
        limit.first_seen_s = Some(*at_s);
        limit.detail += &consequences(&all, limit.cause, *at_s);
    }
    Some(limit)
}

/// `; first seen in second 3, followed by: accept queue (second 5)`; empty if nothing followed.
fn consequences(all: &[Dated], cause: Name, at_s: f64) -> String {
    let dated = all.iter().filter_map(|one| Some((second(one.began?.0), one.finding.limit.cause)));
    let mut after: Vec<(u64, Name)> =
        dated.filter(|(later, other)| *later > second(at_s) && *other != cause).collect();
    after.sort_by_key(|(at, _)| *at);
    after.dedup_by_key(|(_, cause)| *cause);
    let describe = |(at, cause): &(u64, Name)| format!("{} (second {at})", cause.name().replace('-', " "));
    let after: Vec<String> = after.iter().take(MAX_NAMED).map(describe).collect();
    match after.is_empty() {
        true => String::new(),
        false => format!("; first seen in second {}, followed by: {}", second(at_s), after.join(", ")),
    }
}

/// The second of the run. Samples are a second apart, so findings in the same second began at the same time, as far as is known.
fn second(at_s: f64) -> u64 {
    at_s.max(0.0).ceil() as u64
}

/// How well a finding explains the failures, the best explanation first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// The target ended while all was well: nothing else can have done harm.
    Ended,
    /// Present when things began to fail.
    WasThere,
    /// Its beginning is unknown.
    Perhaps,
    /// Present before the load, perhaps left over from the run before.
    LeftOver,
    /// Seen only at other times.
    Later,
}

impl Dated {
    fn new(case: &Case, finding: Finding) -> Dated {
        let failing = case.failing();
        let overlaps = |(from, until): (f64, f64)| {
            (from, failing.is_none_or(|(begins, ends)| from <= ends && until >= begins))
        };
        let began = match finding.began {
            Began::Unknown => None,
            Began::Seen(sign) => case.evidence.timeline.first(sign, failing),
            Began::Silence => case.evidence.stall.map(|stall| overlaps((stall.from_s, stall.until_s))),
            Began::Stop => case.evidence.stopped.map(overlaps),
            Began::Failing => failing.map(|(begins, _)| (begins, true)),
        };
        let was_well_until = |at_s| failing.is_none_or(|(begins, _)| second(at_s) <= second(begins) + 1);
        let how = match (began, finding.began) {
            (None, _) => How::Perhaps,
            (Some((at_s, _)), Began::Seen(Sign::Ended)) if was_well_until(at_s) => How::Ended,
            (Some((at_s, true)), Began::Seen(Sign::Queue)) if at_s <= 0.0 => How::LeftOver,
            (Some((_, true)), _) => How::WasThere,
            (Some((_, false)), _) => How::Later,
        };
        Dated { finding, began, how }
    }

    /// Whether the other finding is a consequence of this one. A cause cannot begin after its consequence.
    fn explains(&self, other: &Dated) -> bool {
        let is_before = match (self.began, other.began) {
            (Some(_), Some(_)) => self.order() <= other.order(),
            _ => true,
        };
        is_before && other.finding.yields_to.split(' ').any(|id| id == self.finding.id)
    }

    fn order(&self) -> (How, u64) {
        (self.how, self.began.map_or(0, |(at_s, _)| second(at_s)))
    }

    /// Sort key: the most certain first, then the best explanation, then the earliest.
    fn rank(&self) -> (u8, (How, u64)) {
        let uncertainty = match self.finding.limit.certainty {
            Certainty::Seen => 0,
            Certainty::Inferred => 1,
            Certainty::Guess => 2,
        };
        (uncertainty, self.order())
    }
}
