//! Of several findings that are equally sure, the one that came first: the limit of a run is its first cause, and what came
//! after it are its consequences.

use samples::{Cause, Limit};

use super::Case;
use crate::signs::Sign;

/// Maximum of consequences that are named.
const MAX_NAMED: usize = 3;

/// When a finding began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Unknown: its place in the table decides.
    Unknown,
    /// When this was seen.
    Seen(Sign),
    /// With the silence, or the stop, that it is.
    Stall,
    Stopped,
    /// When things began to fail: it is what has causes, and never the first of them.
    Failing,
}

/// A finding and when it began.
struct Found {
    limit: Limit,
    /// Second of the run, and whether it was so when things began to fail.
    began: Option<(f64, bool)>,
    is_symptom: bool,
    /// All was well until the process ended: whatever else there was did no harm.
    ended_it: bool,
    /// An accept queue that was full before the load began, as the run before may have left it.
    is_left_over: bool,
}

/// What stopped it of all that was found, in the order of the table: its first one, or one as sure that was there before it.
pub(super) fn first(case: &Case, found: Vec<(Limit, When)>) -> Option<Limit> {
    let mut found: Vec<Found> =
        found.into_iter().map(|(limit, when)| Found::new(case, limit, when)).collect();
    let table = found.first()?;
    let certainty = table.limit.certainty;
    let may_give_way = table.began.is_some() && !table.is_symptom && !table.ended_it;
    found.retain(|one| one.limit.certainty == certainty);
    let rank = |one: &Found| {
        let (at_s, explains) = one.began.unwrap_or_default();
        (!explains, one.is_left_over, second(at_s))
    };
    // Of equals the first in the table.
    let dated = found.iter().enumerate().filter(|(_, one)| one.began.is_some() && !one.is_symptom);
    let earliest = dated.min_by_key(|(_, one)| rank(one)).map(|(place, _)| place);
    let Found { mut limit, began, .. } = found.remove(earliest.filter(|_| may_give_way).unwrap_or(0));
    let Some((at_s, _)) = began else { return Some(limit) };
    limit.first_seen_s = Some(at_s);
    let mut after: Vec<(u64, Cause)> = found
        .iter()
        .filter_map(|one| Some((second(one.began?.0), one.limit.cause)))
        .filter(|(later, cause)| *later > second(at_s) && *cause != limit.cause)
        .collect();
    after.sort_by_key(|(at, _)| *at);
    after.dedup_by_key(|(_, cause)| *cause);
    let describe = |(at, cause): &(u64, Cause)| format!("{} (second {at})", cause.name().replace('-', " "));
    let after: Vec<String> = after.iter().take(MAX_NAMED).map(describe).collect();
    if !after.is_empty() {
        limit.detail +=
            &format!("; first seen in second {}, followed by: {}", second(at_s), after.join(", "));
    }
    Some(limit)
}

/// Samples are a second apart: what was seen in the same one began at the same time, as far as is known.
fn second(at_s: f64) -> u64 {
    at_s.max(0.0).ceil() as u64
}

impl Found {
    fn new(case: &Case, limit: Limit, when: When) -> Found {
        let failing = case.failing();
        let overlaps = |(from, until): (f64, f64)| {
            (from, failing.is_none_or(|(begins, ends)| from <= ends && until >= begins))
        };
        let began = match when {
            When::Unknown => None,
            When::Seen(sign) => case.evidence.timeline.first(sign, failing),
            When::Stall => case.evidence.stall.map(|stall| overlaps((stall.from_s, stall.until_s))),
            When::Stopped => case.evidence.stopped.map(overlaps),
            When::Failing => failing.map(|(begins, _)| (begins, true)),
        };
        let was_well =
            began.zip(failing).is_none_or(|((at_s, _), (begins, _))| second(at_s) <= second(begins) + 1);
        let ended_it = when == When::Seen(Sign::Ended) && was_well;
        let is_left_over = when == When::Seen(Sign::Queue) && began.is_some_and(|(at_s, _)| at_s <= 0.0);
        Found { limit, began, is_symptom: when == When::Failing, ended_it, is_left_over }
    }
}
