//! Connections that were ended: by whom, whether a reason was given, and how to avoid it.

use std::fmt;

use samples::{Kind, Side, Stage};
use units::Nanos;

use crate::{
    case::Case,
    say::{FIREWALLS, OWN_FIREWALL, tenths},
    statuses,
    trouble::Trouble,
};
use record::hops::Sender;

/// Who ended the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Target,
    Path,
    /// A firewall of this machine.
    Here,
    /// The sender of resets is unknown, unless their distance was seen.
    TargetOrPath,
}

impl By {
    pub(crate) fn of(case: &Case) -> By {
        let c = &case.summary.connections;
        // Routers and firewalls do not close connections, nor do they end open connections when they refuse others.
        let may_be_of_the_path = match case.kind {
            Some(Kind::Reset) => case.faults_of(Side::Target, Kind::Closed) == 0,
            Some(Kind::Refused) => c.held > 0 && c.dropped == 0,
            _ => return By::Target,
        };
        match case.evidence.resets_by {
            _ if !case.is_far() => By::Target,
            Some(Sender::Path) => By::Path,
            Some(Sender::Here) => By::Here,
            None if may_be_of_the_path => By::TargetOrPath,
            None | Some(Sender::Target) => By::Target,
        }
    }

    pub(crate) const fn side(self) -> Side {
        match self {
            By::Target => Side::Target,
            By::Path => Side::Path,
            By::Here => Side::Host,
            By::TargetOrPath => Side::Unknown,
        }
    }
}

impl By {
    /// The evidence that it is not the target, and the fix; `None` if it may be the target.
    pub(crate) const fn elsewhere(self) -> Option<(&'static str, &'static str)> {
        match self {
            By::Path => {
                Some(("the resets came with another TTL than all else from the target's address", FIREWALLS))
            }
            By::Here => Some(("the resets came over this machine's loopback device", OWN_FIREWALL)),
            By::Target | By::TargetOrPath => None,
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            By::Target => "the target",
            By::Path => "something on the path",
            By::Here => "this machine's firewall",
            By::TargetOrPath => "the target, or something on the path,",
        })
    }
}

/// Whether connections were ended without a reason given, by a code or by the status of responses.
pub(crate) fn is_unannounced(case: &Case) -> bool {
    case.trouble == Trouble::Lost && case.detail.is_none() && statuses::explaining(case).is_none()
}

/// Whether they were in use, neither idle nor new: a limit on connections ends idle or new ones.
pub(crate) fn is_in_use(case: &Case) -> bool {
    case.stage == Some(Stage::Exchange) && case.evidence.losses.had_responses
}

/// Whether a response was due on them. Not for HTTP/2, where each stream counts as one.
pub(crate) fn is_instead(case: &Case) -> bool {
    is_in_use(case) && !case.evidence.subject.is_http2
}

pub(crate) const fn how(kind: Kind) -> &'static str {
    if matches!(kind, Kind::Reset) { "reset" } else { "closed" }
}

/// The fix that lets connections outlast an idle timeout: it must exceed the longest pause between two requests, which may be much longer
/// than the `silence` after which connections were closed (zero if unknown).
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

/// A pause that is clearly shorter, as a flag's value.
fn well_below(silence: Nanos) -> String {
    match silence.0 / Nanos::from_secs(1).0 {
        0 | 1 => "100ms".to_owned(),
        seconds => format!("{}s", (seconds / 5).max(1)),
    }
}

/// Raises a limit on connections.
pub(crate) const RAISE: &str = "raise its limit on connections (worker_connections, maxconn, --max-open)";
