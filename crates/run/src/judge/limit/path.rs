//! Causes on the way: a network that goes dark, and who rejects what comes along.

use samples::{
    Certainty::{Inferred, Seen},
    Kind, Limit, Side, Stage,
};
use units::{Count, Nanos};

use super::{Case, Trouble};

/// Fewer connections that TCP knows of are chance.
const FEW: u64 = 3;
/// An acknowledgement is there at once; nothing for so long, on no connection, is no slow one.
const QUIET: f64 = 1.0;

/// What was sent is not acknowledged, or no SYN was ever answered: that is neither the target's process nor its queue.
pub(super) fn dark(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::Waiting {
        return None;
    }
    rejected_in_part(case).or_else(|| unacknowledged(case)).or_else(|| never_opened(case))
}

/// A few messages of ICMP, and silence for the rest: routers send only so many in a second, and those that come while a dial
/// is being made are not reported for it; the kernel counts them all the same.
fn rejected_in_part(case: &Case) -> Option<Limit> {
    let seen = &case.evidence.segments;
    let messages = case.evidence.here.net.icmp_unreachable.max(case.faults_of(Side::Path, Kind::Unreachable));
    let is_silent = seen.unanswered <= seen.unacknowledged + seen.syns;
    if messages == 0 || !is_silent || case.stage != Some(Stage::Dial) {
        return None;
    }
    let detail = format!(
        "{} dials got no SYN-ACK, and {} messages of ICMP came (unreachable, or prohibited){}",
        case.faults(),
        Count(messages),
        since(case),
    );
    case.answer(Inferred, (Side::Path, "unreachable"), case.summary.connections.peak, detail, FIREWALLS)
}

/// `: the 1,001st and all after it`, where that is so.
pub(super) fn since(case: &Case) -> String {
    let opened = case.summary.connections.opened;
    match opened > 0 && opened == case.evidence.losses.opened_by_then {
        true => format!(": the {} and all after it", nth(opened + 1)),
        false => String::new(),
    }
}

fn unacknowledged(case: &Case) -> Option<Limit> {
    let seen = &case.evidence.segments;
    let waiting = seen.unacknowledged + seen.unanswered;
    let quiet_s = seen.quiet?.as_secs_f64();
    let few = FEW.min(seen.connections);
    if seen.unacknowledged < few.max(1) || seen.unacknowledged * 10 < waiting * 9 || quiet_s < QUIET {
        return None;
    }
    let detail = format!(
        "what was sent on {} of {} connections was never acknowledged, and nothing came on any of them for {quiet_s:.1} s: the way is cut, or the target's host is gone",
        Count(seen.unacknowledged),
        Count(seen.connections),
    );
    case.answer(Inferred, (Side::Path, "unacknowledged"), case.summary.connections.peak, detail, WAY)
}

fn never_opened(case: &Case) -> Option<Limit> {
    // A listener's host answers each SYN, unless its queue is full; that is seen where both ends are here.
    let is_elsewhere = case.evidence.there.is_none() || case.evidence.accept_queue.is_none();
    if case.summary.connections.opened > 0 || case.stage != Some(Stage::Dial) || !is_elsewhere {
        return None;
    }
    let again = match case.evidence.here.net.syn_retrans {
        0 => String::new(),
        n => format!(" ({} SYNs were sent again)", Count(n)),
    };
    let detail = format!(
        "{} dials got no SYN-ACK, no reset and no ICMP{again}: something drops what is sent there, or no host has that address",
        case.faults()
    );
    case.answer(Inferred, (Side::Path, "no-syn-ack"), 0, detail, WAY)
}

const WAY: &str =
    "look whether the target's host responds (ping, mtr), then at the routers and firewalls on the way";
const FIREWALLS: &str =
    "look at the routes and the firewalls on the way (ip route get, a limit on connections or their rate)";

/// The way there, or who guards it.
pub(super) fn path(case: &Case) -> Option<Limit> {
    let (n, c) = (case.faults(), &case.summary.connections);
    match (case.trouble, case.kind?) {
        (Trouble::Path, Kind::Denied) => {
            let detail = format!("{n} operations were not permitted");
            let cure = "look at this host's firewall";
            case.answer(Seen, (Side::Host, "denied"), c.peak, detail, cure)
        }
        (Trouble::Path, _) => {
            let since = since(case);
            let detail = format!("{n} dials were rejected with ICMP (unreachable, or prohibited){since}");
            let cure = if c.opened == 0 {
                "check the route (ip route get), and the firewalls on the way"
            } else {
                FIREWALLS
            };
            case.answer(Seen, (Side::Path, "unreachable"), c.peak, detail, cure)
        }
        _ => None,
    }
}

/// `1,001st`
pub(super) fn nth(n: u64) -> String {
    let ending = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{}{ending}", Count(n))
}

/// To a tenth of a second, for it is not known better.
pub(super) fn tenths(time: Nanos) -> String {
    let tenths = (time.0 + 50_000_000) / 100_000_000;
    if tenths.is_multiple_of(10) {
        format!("{} s", tenths / 10)
    } else {
        format!("{}.{} s", tenths / 10, tenths % 10)
    }
}
