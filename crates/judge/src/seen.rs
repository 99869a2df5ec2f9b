//! Describes what was observed when no cause was found: the most frequent trouble, its number and its circumstances. Its certainty says how
//! much the observation alone proves.

use samples::{Cause as Name, Certainty, Kind, Limit, Side};
use units::Count;

use crate::{case::Case, say::FIREWALLS, tls, trouble::Trouble};

pub(crate) use reason::reason;

mod against;
mod load;
mod lost;
mod reason;
mod refused;
mod slow;
mod waiting;
mod whose;
mod wrong;

/// An observation in words: certainty, side and name, sentence, detail, and where to look.
pub(crate) struct Seen {
    certainty: Certainty,
    of: (Side, Name),
    at: u64,
    sentence: String,
    detail: String,
    fix: String,
}

impl Seen {
    /// An observation on the target's side.
    fn target(certainty: Certainty, cause: Name, at: u64, words: [String; 3]) -> Seen {
        let [sentence, detail, fix] = words;
        Seen { certainty, of: (Side::Target, cause), at, sentence, detail, fix }
    }
}

/// The most specific observation that applies.
pub(crate) fn seen(case: &Case) -> Limit {
    let failed = match case.trouble {
        Trouble::Refused => Some(refused::refused(case)),
        Trouble::Waiting => slow::took_longer(case).or_else(|| waiting::waiting(case)),
        Trouble::Lost => without_tls(case).or_else(|| lost::lost(case)),
        Trouble::WrongAnswer => wrong::wrong(case),
        Trouble::Path => Some(not_let_through(case)),
        Trouble::None | Trouble::Ours | Trouble::Other => None,
    };
    let first_seen_s = failed.as_ref().and_then(|_| case.failing()).map(|(begins, _)| begins);
    let seen = failed.or_else(|| load::too_little(case)).unwrap_or_else(|| slow::unknown(case));
    let Seen { certainty, of: (side, cause), at, sentence, mut detail, fix } = seen;
    if let Some(time) = case.evidence.answers.alone() {
        detail += &format!("; after the load one user alone had responses in {}", time.brief());
    }
    Limit { side, cause, at_connections: at, certainty, first_seen_s, sentence, detail, fix }
}

/// TLS handshakes failed, and no connection was opened.
fn without_tls(case: &Case) -> Option<Seen> {
    let (what, fix) = tls::failed(case).filter(|_| case.opened() == 0)?;
    let sentence = format!("{} failed: {what}{}", case.n().of("TLS handshake"), case.detail.suffix());
    let fix = tls::in_place_of(fix, &case.summary.target);
    Some(Seen::target(Certainty::Seen, Name::Tls, case.left(), [sentence.clone(), sentence, fix]))
}

/// Dials rejected by ICMP messages of an unknown sender, or by a firewall of this machine.
fn not_let_through(case: &Case) -> Seen {
    let (n, at) = (case.n(), case.peak());
    if case.kind == Some(Kind::Denied) {
        return Seen {
            certainty: Certainty::Seen,
            of: (Side::Host, Name::Denied),
            at,
            sentence: format!("this machine did not permit {}", n.of("operation")),
            detail: format!("{} not permitted", n.were("operation")),
            fix: "check this host's firewall".to_owned(),
        };
    }
    // Loopback has no other host on the path.
    if case.evidence.subject.is_loopback {
        let since = case.since();
        return Seen {
            certainty: Certainty::Seen,
            of: (Side::Host, Name::Denied),
            at,
            sentence: format!("this machine's firewall rejected {}", n.of("dial")),
            detail: format!("{} rejected with ICMP by this machine itself{since}", n.were("dial")),
            fix: "check this host's firewall (nft list ruleset, iptables -L -v)".to_owned(),
        };
    }
    let fix = match case.opened() {
        0 => "check the route (ip route get) and the firewalls on the path",
        _ => FIREWALLS,
    };
    let (were, since) = (n.were("dial"), case.since());
    Seen {
        certainty: Certainty::Seen,
        of: (Side::Path, Name::Unreachable),
        at,
        sentence: format!("{were} rejected on the path"),
        detail: format!("{were} rejected with ICMP (unreachable or prohibited){since}"),
        fix: fix.to_owned(),
    }
}

/// `, N of them`: how many of all failures have this kind; empty if all have.
fn of_them(case: &Case, kind: Kind, all: Count) -> String {
    let same: u64 = case.faults.iter().filter(|f| f.kind == kind).map(|f| f.count).sum();
    if same < all.0 { format!(", {} of them", Count(same)) } else { String::new() }
}

/// Completes an observation about the target with the part of the run that it concerns, and with unexpected statuses.
fn finish(case: &Case, certainty: Certainty, cause: Name, words: [String; 3]) -> Seen {
    let [sentence, detail, fix] = words;
    let words = against::beside(case, [whose::name(case, sentence), detail, fix]);
    Seen::target(certainty, cause, case.peak(), words)
}
