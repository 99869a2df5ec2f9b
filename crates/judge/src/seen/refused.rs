//! Dials that were refused: nothing listens, or no longer.

use samples::{Cause as Name, Certainty, Side};
use units::{Count, Nanos};

use super::Seen;
use crate::{case::Case, closes::By, say::tenths};

pub(super) fn refused(case: &Case) -> Seen {
    let losses = &case.evidence.losses;
    if let Some(until) = losses.refused_at_first {
        return started_late(case, until, "before the target had accepted any, and none afterwards");
    }
    if let Some(until) = losses.refused_unheard.filter(|_| case.opened() == 0) {
        return started_late(case, until, "before anything listened there");
    }
    if case.opened() > 0 {
        return stopped_listening(case);
    }
    let (were, by) = (case.n().were("dial"), By::of(case));
    let seen = |of, certainty, words| Seen { of, ..Seen::target(certainty, Name::Refused, 0, words) };
    if let Some((how, fix)) = by.elsewhere() {
        let words = [format!("{were} refused by {by}"), format!("{were} refused; {how}"), fix.to_owned()];
        return seen((by.side(), Name::Refused), Certainty::Seen, words);
    }
    let there = match case.evidence.subject.address.as_str() {
        "" => "the target's addresses",
        address => address,
    };
    // A listener is visible only on the target's host: resets look the same either way.
    let is_seen = case.evidence.there.is_some();
    if is_seen && case.evidence.accept_queue.is_some() {
        let words = [
            format!("connection refused, although a process listens on {there}"),
            format!("{were} refused although there was a listener: perhaps a firewall sent the resets"),
            "check that host's firewall (nft list ruleset)".to_owned(),
        ];
        // Nothing else is on a loopback path.
        let side = if case.evidence.subject.is_loopback { Side::Host } else { Side::Target };
        return seen((side, Name::Refused), Certainty::Inferred, words);
    }
    let is_known = is_seen || case.evidence.resets_by.is_some();
    let or = if is_known { "" } else { ", or a firewall on the path sent the resets" };
    let words = [
        format!("connection refused: nothing listens on {there}"),
        format!("{were} refused: nothing is listening there{or}"),
        "start the server, or check the address and port".to_owned(),
    ];
    seen((Side::Target, Name::Refused), Certainty::Seen, words)
}

fn stopped_listening(case: &Case) -> Seen {
    let (c, since, by) = (&case.summary.connections, case.since(), By::of(case));
    let accepted = Count(case.opened() + c.redialled);
    // In a step of a search, all earlier connections may be lost, and no new one opened.
    let at = if c.opened + c.held > 0 { case.left() } else { 0 };
    let (certainty, whom, how) = match (by.elsewhere(), by) {
        (Some((how, _)), _) => (Certainty::Seen, format!(", by {by}"), format!("; {how}")),
        (None, By::TargetOrPath) => {
            (Certainty::Inferred, ", by it or by something on the path".to_owned(), String::new())
        }
        _ => (Certainty::Seen, String::new(), String::new()),
    };
    let were = case.n().were("dial");
    // A server that restarts loses its connections.
    let is_part = since.is_empty() && c.dropped + c.redialled == 0 && c.opened > 0;
    let (sentence, detail, fix) = match is_part {
        true => (
            format!(
                "{} of {} refused{whom}, while others were accepted",
                case.n(),
                Count(case.count + accepted.0).were("dial")
            ),
            format!("{were} refused, and {accepted} accepted before and after{how}"),
            "check each of its backends, of which one may not listen, and limits on the rate of new connections",
        ),
        false => (
            format!("connection refused after the target had accepted {}{whom}", accepted.of("connection")),
            format!("{were} refused after {accepted} had been accepted{since}{how}"),
            match since.is_empty() && c.redialled > 0 {
                true => "it accepts connections again: check whether it was restarted, and its log",
                false => {
                    "check whether it stopped listening, and its log; a firewall that sends resets looks the same"
                }
            },
        ),
    };
    let fix = by.elsewhere().map_or(fix, |(_, fix)| fix);
    let words = [sentence, detail, fix.to_owned()];
    Seen { of: (by.side(), Name::Refused), ..Seen::target(certainty, Name::Refused, at, words) }
}

/// The target started to listen only at `until`.
fn started_late(case: &Case, until: Nanos, when: &str) -> Seen {
    let (were, first) = (case.n().were("dial"), tenths(until));
    let words = [
        format!("{were} refused in the first {first}, and none afterwards: the target was not listening yet"),
        format!("{were} refused in the first {first}, {when}"),
        "wait until its port accepts connections before the run begins".to_owned(),
    ];
    Seen::target(Certainty::Inferred, Name::Refused, case.left(), words)
}
