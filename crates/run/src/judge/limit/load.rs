//! Causes in the load itself.

use samples::{Cause, Certainty::Inferred, Figures, Limit, Side};
use units::Count;

use super::{Case, Sentence, Trouble, away};
use crate::by::By;

/// Requests were due while all connections waited for a response, and nothing else went wrong: their number limits the rate.
pub(super) fn too_few_connections(case: &Case) -> Option<Limit> {
    let s = case.summary;
    // Of several populations, others have no part in it.
    let several = Some(&s.populations).filter(|all| all.len() > 1);
    let named = several.and_then(|all| all.iter().max_by_key(|(_, own)| own.requests.missed));
    let own: &Figures = named.map_or(&s.figures, |(_, own)| &own.figures);
    let (held, sent, missed) = (own.connections.held, own.requests.sent, own.requests.missed);
    if case.trouble != Trouble::None || missed == 0 || sent == 0 || held == 0 || own.duration_s <= 0.0 {
        return None;
    }
    // The connections of an agent that was not there carried nothing, and what was due on them was missed.
    if s.agents.iter().any(away::was_missing) {
        return None;
    }
    let due = sent + missed;
    // Each carries as much as it did: as many as the rate asks for at this response time (Little's law). Those that the target
    // had closed with an announcement took their part.
    let all = held.max(own.connections.wanted);
    let needed = Count((all as f64 * due as f64 / sent as f64).ceil() as u64);
    let per_s = |n: u64| n as f64 / own.duration_s;
    let sentence = Sentence::TooFewConnections { held, carried: per_s(sent), due: per_s(due) };
    let all =
        if held == 1 { "the connection".to_owned() } else { format!("all {} connections", Count(held)) };
    let detail = format!(
        "{all} waited for a response when {} of {} were due",
        Count(missed),
        Count(due).of("request")
    );
    let more = match (case.evidence.search, named) {
        // It tries fewer connections still.
        (Some(By::Connections | By::Burst), _) => {
            format!("lower the rate, which needs {needed} connections at this response time")
        }
        (_, Some((name, _))) => {
            format!(
                "give {name} {needed} connections or more, which is what its rate needs at this response time"
            )
        }
        _ => format!("use -c {} or more, which is what the rate needs at this response time", needed.0),
    };
    let fix = format!("{more}, or find out what delays the responses");
    case.limit(Inferred, (Side::Host, Cause::TooFewConnections), held, sentence, detail, fix)
}
