//! Unexpected statuses of responses.

use samples::{FaultCount, Kind, Stage};
use units::{Count, Status};

use crate::case::Case;

/// Maximum number of statuses that are named.
const MAX_STATUSES: usize = 3;

/// `404 × 208,232, 503 × 12`
pub(crate) fn counted(statuses: &[(u16, u64)]) -> String {
    let shown =
        statuses.iter().take(MAX_STATUSES).map(|(status, n)| format!("{} × {}", Status(*status), Count(*n)));
    let others = statuses.len().saturating_sub(MAX_STATUSES);
    let more = if others > 0 { format!(" and {}", Count(others as u64).of("other")) } else { String::new() };
    shown.collect::<Vec<_>>().join(", ") + &more
}

/// Unexpected statuses with their counts, the most frequent first. `is_upgrade`: statuses of refused upgrades, all of them if only upgrades
/// were counted; otherwise without the statuses that requests expect.
pub(crate) fn unexpected(case: &Case, is_upgrade: bool) -> Vec<(u16, u64)> {
    let refused = |f: &&FaultCount| (f.stage, f.kind) == (Stage::Handshake, Kind::WrongStatus);
    let refused: u64 = case.faults.iter().filter(refused).map(|f| f.count).sum();
    let has_only_upgrades = is_upgrade && case.statuses().map(|(_, n)| n).sum::<u64>() <= refused;
    let is_one = |(status, _): &(u16, u64)| has_only_upgrades || case.evidence.subject.is_unexpected(*status);
    let mut statuses: Vec<(u16, u64)> = case.statuses().filter(is_one).collect();
    statuses.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    statuses
}

/// Whether more than a tenth of responses had an expected status. In a step of a search, possibly only new connections sent anything.
pub(crate) fn is_part(case: &Case, unexpected: &[(u16, u64)]) -> bool {
    let all: u64 = case.statuses().map(|(_, n)| n).sum();
    let wrong: u64 = unexpected.iter().map(|(_, n)| n).sum();
    case.evidence.has_passed || wrong * 10 < all * 9
}

/// Unexpected statuses, if at least half as many responses have them as failures were counted: then they explain the ends of connections.
pub(crate) fn explaining(case: &Case) -> Option<Vec<(u16, u64)>> {
    let statuses = unexpected(case, false);
    let count = total(&statuses);
    (count > 0 && count >= case.count / 2).then_some(statuses)
}

pub(crate) fn total(statuses: &[(u16, u64)]) -> u64 {
    statuses.iter().map(|(_, n)| n).sum()
}
