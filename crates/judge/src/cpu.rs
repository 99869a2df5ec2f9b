//! Whether the target had CPU left when responses failed or were slow.

use crate::{case::Case, evidence::TargetSeen, tolerances::NEARLY_ALL};

/// The share that was used, and whether it is of its busiest thread.
pub(crate) fn used_up(case: &Case) -> Option<(f64, bool)> {
    let is_it = |target: &TargetSeen| case.is_waiting() && !target.serves_others;
    let TargetSeen { cpu_thread, cpu_share, .. } = case.evidence.target.filter(is_it)?;
    let of_thread = cpu_thread.filter(|share| *share >= NEARLY_ALL).map(|share| (share, true));
    of_thread.or_else(|| Some((cpu_share, false)).filter(|(share, _)| *share >= NEARLY_ALL))
}

/// The connections whose pauses ask for as many responses as it has CPU for (Little's law, with the time of a response neglected): fewer than
/// are wanted, or else it was something else that used it up.
pub(crate) fn uses_it_up(case: &Case) -> Option<u64> {
    let pause = case.evidence.subject.mean_pause?;
    let from = (case.requests().per_s * pause.secs_f64()).round() as u64;
    (1..case.summary.connections.wanted).contains(&from).then_some(from)
}
