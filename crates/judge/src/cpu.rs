//! Whether the target had spare CPU when responses failed or were slow.

use crate::{case::Case, evidence::TargetSeen};
use record::tolerances::NEARLY_ALL;

/// The resource that the target used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The one processor that its busiest thread can use.
    Thread,
    /// All processors that it may use.
    All,
    /// One processor, by all of its threads together.
    One,
}

/// The share that was used, and the resource; `None` if there was spare CPU.
pub(crate) fn used_up(case: &Case) -> Option<(f64, Of)> {
    let is_it = |target: &TargetSeen| case.is_waiting() && !target.serves_others;
    let TargetSeen { cpu_thread, cpu_share, one_processor, .. } = case.evidence.target.filter(is_it)?;
    let all = [(cpu_thread, Of::Thread), (Some(cpu_share), Of::All), (one_processor, Of::One)];
    let mut all = all.into_iter().filter_map(|(share, of)| Some((share?, of)));
    all.find(|(share, _)| *share >= NEARLY_ALL)
}

/// Number of connections whose pauses yield as many responses as the target has CPU for (Little's law, neglecting response times). `None`
/// unless it is below the number wanted: otherwise something else used the CPU.
pub(crate) fn uses_it_up(case: &Case) -> Option<u64> {
    let pause = case.evidence.subject.mean_pause?;
    let from = (case.requests().per_s * pause.secs_f64()).round() as u64;
    (1..case.summary.connections.wanted).contains(&from).then_some(from)
}
