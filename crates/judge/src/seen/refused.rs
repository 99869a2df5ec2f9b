//! Dials that were refused: nothing is listening, or no longer.

use samples::{Cause as Name, Certainty, Side};
use units::{Count, Nanos};

use super::Seen;
use crate::{
    case::Case,
    closes::{By, OTHER_TTL, OWN_RESETS},
    say::{FIREWALLS, OWN_FIREWALL, tenths},
};

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
    let were = case.n().were("dial");
    if By::of(case) == By::Here {
        let words = [
            format!("{were} refused by this machine's firewall"),
            format!("{were} refused; {OWN_RESETS}"),
            OWN_FIREWALL.to_owned(),
        ];
        return Seen {
            of: (Side::Host, Name::Refused),
            ..Seen::target(Certainty::Seen, Name::Refused, 0, words)
        };
    }
    let there = match case.evidence.subject.address.as_str() {
        "" => "the target's addresses",
        address => address,
    };
    // Whether there is a listener can only be seen on the target's host: resets look the same.
    let is_seen = case.evidence.there.is_some();
    if is_seen && case.evidence.accept_queue.is_some() {
        let words = [
            format!("connection refused, although a process listens on {there}"),
            format!("{were} refused although there was a listener: perhaps a firewall sent the resets"),
            "check that host's firewall (nft list ruleset)".to_owned(),
        ];
        // Nothing is between the two.
        let side = if case.evidence.subject.is_loopback { Side::Host } else { Side::Target };
        return Seen {
            of: (side, Name::Refused),
            ..Seen::target(Certainty::Inferred, Name::Refused, 0, words)
        };
    }
    let or = if is_seen { "" } else { ", or a firewall on the path sent the resets" };
    let words = [
        format!("connection refused: nothing listens on {there}"),
        format!("{were} refused: nothing is listening there{or}"),
        "start the server, or check the address and port".to_owned(),
    ];
    Seen::target(Certainty::Seen, Name::Refused, 0, words)
}

fn stopped_listening(case: &Case) -> Seen {
    let (c, since) = (&case.summary.connections, case.since());
    let by = By::of(case);
    let fix = match by {
        By::Path => FIREWALLS,
        By::Here => OWN_FIREWALL,
        _ if since.is_empty() && c.redialled > 0 => {
            "it accepts connections again: check whether it was restarted, and its log"
        }
        _ => "check whether it stopped listening, and its log; a firewall that sends resets looks the same",
    };
    let accepted = case.opened() + c.redialled;
    // In a step of a search those before it may all be lost, and none have come since.
    let at = if c.opened + c.held > 0 { case.left() } else { 0 };
    let (certainty, whom, seen) = match by {
        By::TargetOrPath => (Certainty::Inferred, ", by it or by something on the path", String::new()),
        By::Path => (Certainty::Seen, ", by something on the path", format!("; {OTHER_TTL}")),
        By::Here => (Certainty::Seen, ", by this machine's firewall", format!("; {OWN_RESETS}")),
        By::Target => (Certainty::Seen, "", String::new()),
    };
    let (were, accepted) = (case.n().were("dial"), Count(accepted));
    // A server that is restarted loses its connections.
    let is_part = since.is_empty() && c.dropped + c.redialled == 0 && c.opened > 0;
    if is_part {
        let all = Count(case.count + accepted.0);
        let fix = match by {
            By::Path | By::Here => fix,
            By::Target | By::TargetOrPath => {
                "check each of its backends, of which one may not listen, and limits on the rate of new connections"
            }
        };
        let words = [
            format!(
                "{} of {} refused{whom}, while others were accepted",
                Count(case.count),
                all.were("dial")
            ),
            format!("{were} refused, and {accepted} accepted before and after{seen}"),
            fix.to_owned(),
        ];
        return Seen { of: (by.side(), Name::Refused), ..Seen::target(certainty, Name::Refused, at, words) };
    }
    let words = [
        format!("connection refused after the target had accepted {}{whom}", accepted.of("connection")),
        format!("{were} refused after {accepted} had been accepted{since}{seen}"),
        fix.to_owned(),
    ];
    Seen { of: (by.side(), Name::Refused), ..Seen::target(certainty, Name::Refused, at, words) }
}

/// Nothing was listening until then.
fn started_late(case: &Case, until: Nanos, when: &str) -> Seen {
    let (were, first) = (case.n().were("dial"), tenths(until));
    let words = [
        format!("{were} refused in the first {first}, and none afterwards: the target was not listening yet"),
        format!("{were} refused in the first {first}, {when}"),
        "wait until its port accepts connections before the run begins".to_owned(),
    ];
    Seen::target(Certainty::Inferred, Name::Refused, case.left(), words)
}
