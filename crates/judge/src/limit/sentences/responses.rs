//! Of responses, and of their absence.

use samples::SlowPart;
use units::{Count, Status, percent};

use super::{after, connections, dials_and_requests, own, serves, some, within};
use crate::{
    limit::{Sentence, path::tenths, sentence::HowMany},
    starved::Starved,
};

/// More statuses are not named.
const MAX_STATUSES: usize = 3;

/// What is said of them.
pub(super) fn responses(sentence: &Sentence) -> Option<String> {
    use Sentence as S;
    Some(match sentence {
        S::UnexpectedStatus { statuses } => format!("unexpected status: {}", counted(statuses)),
        S::WithOthers { sentence, others } => {
            let others: Vec<String> =
                others.iter().map(|(what, n)| format!("{what} × {}", Count(*n))).collect();
            format!("{sentence}, and {}", others.join(", "))
        }
        S::Whose { sentence, place, how_many } => match how_many {
            HowMany::One => format!("{sentence}, in {place}"),
            HowMany::All => format!("{sentence}, all in {place}"),
            HowMany::NearlyAll => format!("{sentence}, nearly all in {place}"),
        },
        // Without a colon, after which it would be said to be probable.
        S::BesideStatus { sentence, statuses } => {
            let count: u64 = statuses.iter().map(|(_, n)| n).sum();
            let responses = some(count, "response");
            format!("{sentence}, and {responses} had an unexpected status ({})", counted(statuses))
        }
        S::UpgradeRefused { statuses, reason } => {
            format!("WebSocket upgrade refused with status {}: {reason}", counted(statuses))
        }
        S::UnexpectedResponse { what, rule, count } => {
            let rule = if rule.is_empty() { String::new() } else { format!(" ({rule})") };
            format!("{what}{rule} × {}", Count(*count))
        }
        S::DialsTimedOut { count, timeout } => {
            format!("{} timed out{}", dials_and_requests(*count), after(*timeout))
        }
        S::TimedOut { what, count, timeout } => {
            format!("{} timed out{}", some(*count, what), after(*timeout))
        }
        S::WindowClosed { count, timeout } => format!(
            "{} timed out{}: the target's HTTP/2 flow-control window blocked their bodies",
            some(*count, "request"),
            after(*timeout)
        ),
        S::TookLonger { count, timeout } => {
            format!("{} took longer than the timeout of {}", some(*count, "request"), tenths(*timeout))
        }
        S::Starved { most, has_probe } => starved(most, *has_probe),
        S::StarvedProbe { new, served } => format!(
            "{} got no correct response, the kept ones got {}: the target serves a limited number of connections at a time, \
            including the probe's",
            some(*new, "new probe connection"),
            Count(*served)
        ),
        S::Unended { count, timeout } => {
            format!("{} began and did not end{}", Count(*count).of("response"), within(*timeout))
        }
        S::SlowPart(part) => slow_part(part),
        S::SlowWhileCollecting(part) => {
            format!("{}, while the target collected garbage", slow_part(part))
        }
        S::NoHttp2 { what, connections: None } => format!("the target {what}"),
        S::NoHttp2 { what, connections: Some(n) } => format!("the target {what} on {}", connections(*n)),
        S::Acknowledged { what, count, timeout } => {
            let (what, them) = (some(*count, what), Count(*count).one_or("it", "them"));
            let within = within(*timeout);
            format!(
                "{what} timed out: the target's host received {them}, its process did not respond{within}"
            )
        }
        _ => return None,
    })
}

fn slow_part(part: &SlowPart) -> String {
    let (slow, usual) = (part.slow.brief(), part.usual.brief());
    format!("{} of responses took {slow}, the others {usual}", percent(part.share))
}

/// As many as it serves at a time; or of several backends or workers those of one, if they may be.
fn starved(most: &Starved, has_probe: bool) -> String {
    let beside = if has_probe { ", plus the probe's" } else { "" };
    if most.may_be_of_one() {
        let own = own(most);
        let at_most = if most.in_turns { "at most " } else { "" };
        return format!(
            "{} of {}{own} had no response by the end of the load: the target serves {at_most}{} at a time{beside}, or one of several \
            backends or workers does not respond",
            Count(most.count),
            connections(most.count + most.served),
            Count(most.served),
        );
    }
    let others = Count(most.count).of("other");
    format!("{}{beside}: {others} had no response by the end of the load", serves(most))
}

/// `404 × 208,232, 503 × 12`
pub(in crate::limit) fn counted(statuses: &[(u16, u64)]) -> String {
    let shown =
        statuses.iter().take(MAX_STATUSES).map(|(status, n)| format!("{} × {}", Status(*status), Count(*n)));
    let others = statuses.len().saturating_sub(MAX_STATUSES);
    let more = if others > 0 { format!(" and {}", Count(others as u64).of("other")) } else { String::new() };
    shown.collect::<Vec<_>>().join(", ") + &more
}
