//! Connections that the target ends: whether it said why, and what those that it ended had in common.

use samples::{Kind, Stage};
use units::Nanos;

use crate::{case::Case, say::tenths, statuses, trouble::Trouble};

/// Whether connections ended, and the target did not say why: neither so, nor by the status of its responses.
pub(crate) fn is_unannounced(case: &Case) -> bool {
    case.trouble == Trouble::Lost && case.detail.is_none() && statuses::explaining(case).is_none()
}

/// Whether they were neither idle nor new: a limit on connections ends idle ones, or new ones.
pub(crate) fn is_in_use(case: &Case) -> bool {
    case.stage == Some(Stage::Exchange) && case.evidence.losses.had_responses
}

/// The same while a response was due. Of HTTP/2 each stream counts.
pub(crate) fn is_instead(case: &Case) -> bool {
    is_in_use(case) && !case.evidence.subject.is_http2
}

pub(crate) const fn how(kind: Kind) -> &'static str {
    if matches!(kind, Kind::Reset) { "reset" } else { "closed" }
}

/// How connections outlast an idle timeout: it has to be above the longest pause between two requests, which may be far longer than the
/// silence after which they were closed, where that is known.
pub(crate) fn outlast(case: &Case, silence: Nanos) -> String {
    let (pause, flag) = (case.evidence.subject.longest_pause, case.evidence.subject.pause_flag.as_deref());
    if pause.max(silence) == Nanos::ZERO {
        return "raise its idle timeout, or send more often".to_owned();
    }
    let above = tenths(pause.max(silence));
    match flag.filter(|_| pause > silence) {
        Some(flag) => format!(
            "raise its idle timeout above {above}, or send more often ({flag} {})",
            well_below(silence)
        ),
        None => format!("raise its idle timeout above {above}, or send more often"),
    }
}

/// A pause that is clearly shorter.
fn well_below(silence: Nanos) -> String {
    match silence.0 / Nanos::from_secs(1).0 {
        0 | 1 => "100ms".to_owned(),
        seconds => format!("{}s", (seconds / 5).max(1)),
    }
}

/// What raises a limit on connections.
pub(crate) const RAISE: &str = "raise its limit on connections (worker_connections, maxconn, --max-open)";
