//! Whether the target had CPU left when responses failed or were slow.

use crate::{case::Case, evidence::TargetSeen};
use record::tolerances::NEARLY_ALL;

/// Of what the target used up that share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The processor that its busiest thread can have.
    Thread,
    /// All processors that it may use.
    All,
    /// One, with all of its threads.
    One,
}

/// The share that was used, and of what.
pub(crate) fn used_up(case: &Case) -> Option<(f64, Of)> {
    let is_it = |target: &TargetSeen| case.is_waiting() && !target.serves_others;
    let TargetSeen { cpu_thread, cpu_share, one_processor, .. } = case.evidence.target.filter(is_it)?;
    let all = [(cpu_thread, Of::Thread), (Some(cpu_share), Of::All), (one_processor, Of::One)];
    let mut all = all.into_iter().filter_map(|(share, of)| Some((share?, of)));
    all.find(|(share, _)| *share >= NEARLY_ALL)
}

/// The connections whose pauses ask for as many responses as it has CPU for (Little's law, with the time of a response neglected): fewer than
/// are wanted, or else it was something else that used it up.
pub(crate) fn uses_it_up(case: &Case) -> Option<u64> {
    let pause = case.evidence.subject.mean_pause?;
    let from = (case.requests().per_s * pause.secs_f64()).round() as u64;
    (1..case.summary.connections.wanted).contains(&from).then_some(from)
}
