//! Causes on the path: silent packet loss, and rejections.

use samples::{
    Cause,
    Certainty::{Inferred, Seen},
    Kind, Limit, Side, Stage,
};
use units::{Count, Nanos};

use super::{Case, Sentence, Trouble, syn_loss::SENT_AGAIN_US};
use crate::rejection::Rejection;

/// Fewer connections may be chance.
const FEW: u64 = 3;
/// Acknowledgements are immediate; none for this long on any connection is not a slow one.
const QUIET: f64 = 1.0;

/// Data is not acknowledged, or no SYN ever got a reply: that is neither the target's process nor its queue.
pub(super) fn dark(case: &Case) -> Option<Limit> {
    if case.trouble != Trouble::Waiting {
        return None;
    }
    rejected_in_part(case)
        .or_else(|| unacknowledged(case))
        .or_else(|| never_opened(case))
        .or_else(|| cut_off(case))
}

/// A few ICMP messages, and silence for the rest: routers limit their rate, and those that arrive while a dial is being
/// made are not reported for it; the kernel counts them nevertheless.
fn rejected_in_part(case: &Case) -> Option<Limit> {
    let seen = &case.evidence.segments;
    let messages = case.evidence.here.net.icmp_unreachable.max(case.faults_of(Side::Path, Kind::Unreachable));
    let is_silent = seen.unanswered <= seen.unacknowledged + seen.syns;
    if messages == 0 || !is_silent || case.stage != Some(Stage::Dial) {
        return None;
    }
    let (dials, messages) = (case.faults().of("dial"), Count(messages).of("ICMP message"));
    let since = since(case);
    let detail = format!("{dials} got no SYN-ACK, and {messages} arrived (unreachable or prohibited){since}");
    let rejected = case.faults_of(Side::Path, Kind::Unreachable);
    let sentence = Sentence::RejectedOrSilent { dials: case.count + rejected };
    case.limit(Inferred, (Side::Path, Cause::Unreachable), case.peak(), sentence, detail, FIREWALLS)
}

/// A message of ICMP rejects dials, and its sender is known.
pub(super) fn rejected(case: &Case) -> Option<Limit> {
    let icmp = case.evidence.rejection?;
    let Rejection { at, is_ours, .. } = icmp;
    let fits = match case.trouble {
        Trouble::Path | Trouble::Waiting => true,
        // Nothing else of ICMP becomes ECONNREFUSED.
        Trouble::Refused => icmp.is_port_unreachable(),
        _ => false,
    };
    if !fits || case.stage != Some(Stage::Dial) {
        return None;
    }
    // A router sends a message now and then, and is silent otherwise.
    let silent = case.faults_of(Side::Target, Kind::Timeout);
    let rejected =
        case.faults_of(Side::Path, Kind::Unreachable) + case.faults_of(Side::Target, Kind::Refused);
    let (meaning, since, dials) = (icmp.meaning(), since(case), rejected + silent);
    let n = Count(dials);
    let what = match (rejected, silent) {
        (_, 0) => format!("{} rejected", n.were("dial")),
        (0, _) => format!("{} got no SYN-ACK", n.of("dial")),
        _ => format!("{} rejected or got no SYN-ACK", n.were("dial")),
    };
    let (side, cause, sentence, how, fix) = match icmp.by {
        // Of its own accord a host sends only this message to itself.
        Some(_) if is_ours && at.ip() != icmp.by? && !is_decided(&icmp) => (
            Side::Path,
            Cause::Unreachable,
            Sentence::NoHost { dials },
            format!("no host responds at that address, or at that of the next router ({meaning})"),
            format!("check the address, and that the host is up (ip neigh, ping {})", at.ip()),
        ),
        Some(_) if is_ours => (
            Side::Host,
            Cause::Denied,
            Sentence::RejectedHere { dials },
            format!("this machine rejects them itself with ICMP {meaning}"),
            "check this host's firewall (nft list ruleset, iptables -L -v)".to_owned(),
        ),
        by => {
            let who = by.map_or("a host on the path".to_owned(), |by| by.to_string());
            let its = if by == Some(at.ip()) { "the target's host" } else { who.as_str() };
            let fix = if is_decided(&icmp) {
                format!("check the firewall of {its}: {}", perhaps(&since))
            } else {
                format!(
                    "check {its}: its routes, and that it can reach the target's host (ip route get, ip \
                    neigh)"
                )
            };
            let sentence = Sentence::Rejected { dials, by: by.map(|by| by.to_string()) };
            (Side::Path, Cause::Unreachable, sentence, format!("{who} rejects with ICMP {meaning}"), fix)
        }
    };
    case.limit(Seen, (side, cause), case.peak(), sentence, format!("{what}: {how}{since}"), fix)
}

/// Whether it is a policy, and not a missing route.
fn is_decided(icmp: &Rejection) -> bool {
    icmp.is_prohibition() || icmp.is_port_unreachable()
}

/// What a firewall may block: dials from some number on, or all.
fn perhaps(since: &str) -> &'static str {
    if since.is_empty() {
        "a rule against this port or this source, or a limit on connections or their rate"
    } else {
        "perhaps a limit on connections (ct count, connlimit) or on their rate (limit rate)"
    }
}

/// `: the 1,001st and all after it`, if that is so.
pub(super) fn since(case: &Case) -> String {
    let opened = case.opened() + case.summary.connections.redialled;
    match opened > 0 && opened == case.evidence.losses.opened_by_then {
        true => format!(": the {} and all after it", nth(opened + 1)),
        false => String::new(),
    }
}

fn unacknowledged(case: &Case) -> Option<Limit> {
    let seen = &case.evidence.segments;
    let waiting = seen.unacknowledged + seen.unanswered;
    let quiet_s = seen.quiet?.secs_f64();
    // Nothing is between the two: the peer has no such connection, or does not take what is sent.
    if case.evidence.subject.is_loopback {
        return None;
    }
    let few = FEW.min(seen.connections);
    if seen.unacknowledged < few.max(1) || seen.unacknowledged * 10 < waiting * 9 || quiet_s < QUIET {
        return None;
    }
    let (n, all) = (Count(seen.unacknowledged), Count(seen.connections).of("connection"));
    let detail = format!(
        "data sent on {n} of {all} was never acknowledged, and nothing was received on any of \
        them for {quiet_s:.1} s: the path is interrupted, or the target's host is gone"
    );
    let sentence = Sentence::Unacknowledged { connections: seen.unacknowledged, of: seen.connections };
    // Handshakes, like pings, are small.
    let fix = match case.summary.requests.answered {
        0 => format!(
            "{WAY}; or full-size packets are dropped (path MTU, ICMP blocked): ping -M do -s 1472 HOST"
        ),
        _ => WAY.to_owned(),
    };
    case.limit(Inferred, (Side::Path, Cause::Unacknowledged), case.peak(), sentence, detail, fix)
}

fn never_opened(case: &Case) -> Option<Limit> {
    // A listener's host replies to each SYN, unless its queue is full; that is visible if both ends are here.
    let is_elsewhere = case.evidence.there.is_none() || case.evidence.accept_queue.is_none();
    if case.opened() > 0 || case.stage != Some(Stage::Dial) || !is_elsewhere {
        return None;
    }
    let net = case.evidence.here.net;
    let again = match net.syn_retrans {
        _ if net.retrans_fails > 0 => return kept_in(case, net.retrans_fails),
        0 => String::new(),
        n => format!(" ({})", Count(n).of("SYN retransmission")),
    };
    let (dials, n) = (case.count, case.faults().of("dial"));
    let mut detail = format!(
        "{n} got no SYN-ACK, no reset and no ICMP{again}: packets are dropped on the path, or no host has \
        that address"
    );
    // Over a device dials come from other addresses than this machine's, from which a ping goes.
    let (sentence, fix) = if case.summary.io == "tun" {
        detail += ", or they do not come back to the network of the sources";
        (Sentence::NoSynAckToSources { dials }, WAY_BACK)
    } else {
        (Sentence::NoSynAck { dials }, WAY)
    };
    case.limit(Inferred, (Side::Path, Cause::NoSynAck), 0, sentence, detail, fix)
}

/// Where one in ten of those that were opened was opened that much later, it is none by chance.
const AGAIN: f64 = 0.1;

/// From some number on no SYN gets a reply, while all open connections are served. A listener whose queue is full leaves
/// some unserved: those in the queue.
fn cut_off(case: &Case) -> Option<Limit> {
    let (c, r) = (&case.summary.connections, &case.summary.requests);
    let since = since(case);
    let is_served = r.sent > 0 && r.unanswered == 0 && r.answered >= c.opened && c.dropped == 0;
    // A limit on their number lets none pass later; one on their rate, or loss, does: it is opened by a SYN that was sent again.
    let pass_later = case.summary.connect_us.mean >= AGAIN * SENT_AGAIN_US;
    if since.is_empty() || case.stage != Some(Stage::Dial) || !is_served || pass_later {
        return None;
    }
    let (dials, open) = (case.faults().of("dial"), Count(c.held).of("open connection"));
    let are = Count(c.held).one_or("is", "are");
    let detail = format!("{dials} got no SYN-ACK, no reset and no ICMP{since}; the {open} {are} served");
    let fix = "check the firewalls on the path for a limit on connections (ct count, connlimit), and \
    their conntrack tables (nf_conntrack_count and nf_conntrack_max there)";
    let sentence = Sentence::NoSynAckSince { opened: case.opened() };
    case.limit(Inferred, (Side::Path, Cause::NoSynAck), c.peak, sentence, detail, fix)
}

/// What is to be sent again does not leave this machine.
fn kept_in(case: &Case, segments: u64) -> Option<Limit> {
    let detail = format!(
        "{} got no SYN-ACK: this machine blocked {} (TCPRetransFail)",
        case.faults().of("dial"),
        Count(segments).of("outgoing segment")
    );
    let fix = "check this host's firewall (nft list ruleset, iptables -L OUTPUT -v)";
    let sentence = Sentence::BlockedHere { dials: case.count };
    case.limit(Inferred, (Side::Host, Cause::Denied), 0, sentence, detail, fix)
}

const WAY: &str =
    "check that the target's host responds (ping, mtr), then the routers and firewalls on the path";
const WAY_BACK: &str = "check forwarding and the route back to the sources (throng doctor TARGET --io tun), \
    or compare with --io uring";
const FIREWALLS: &str =
    "check the routes and the firewalls on the path (ip route get, a limit on connections or their rate)";

/// The path, or a firewall on it.
pub(super) fn path(case: &Case) -> Option<Limit> {
    let (n, c) = (case.faults(), &case.summary.connections);
    match (case.trouble, case.kind?) {
        (Trouble::Path, Kind::Denied) => {
            let detail = format!("{} not permitted", n.were("operation"));
            let fix = "check this host's firewall";
            let sentence = Sentence::NotPermitted { operations: case.count };
            case.limit(Seen, (Side::Host, Cause::Denied), c.peak, sentence, detail, fix)
        }
        (Trouble::Path, _) => {
            let (were, since) = (n.were("dial"), since(case));
            let detail = format!("{were} rejected with ICMP (unreachable or prohibited){since}");
            let fix = if case.opened() == 0 {
                "check the route (ip route get) and the firewalls on the path"
            } else {
                FIREWALLS
            };
            let sentence = Sentence::Rejected { dials: case.count, by: None };
            case.limit(Seen, (Side::Path, Cause::Unreachable), c.peak, sentence, detail, fix)
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
