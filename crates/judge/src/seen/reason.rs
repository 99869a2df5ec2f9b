//! A fault as a reason for the verdict: how many failed, where, and how.

use samples::{Detail, FaultCount, Kind, Side, Stage};
use units::Count;

use super::{
    lost::{UNANNOUNCED, announced, closed},
    waiting::waits,
    wrong::{self, wrong_how},
};
use crate::{
    case::Case,
    closes::how as ended,
    say::{after, some},
    tls,
    trouble::is_response,
};

/// The sentence for a fault: a specific one for its kind, or a generic one.
pub(crate) fn reason(fault: &FaultCount, case: &Case) -> String {
    in_words(fault, case).unwrap_or_else(|| sentence(fault))
}

fn in_words(fault: &FaultCount, case: &Case) -> Option<String> {
    let (count, s, e) = (fault.count, case.summary, case.evidence);
    if is_response(fault) {
        return wrong::wrong_response(fault, case);
    }
    if fault.side == Side::Target && fault.detail == Detail::ANNOUNCED {
        let (when, _) = announced(fault.stage);
        let count = if e.subject.is_http2 { count.min(s.connections.dropped) } else { count };
        return Some(closed(count, ended(fault.kind), when));
    }
    if fault.side != Side::Target || !fault.detail.is_none() {
        return None;
    }
    Some(match (fault.kind, fault.stage) {
        (Kind::Refused, Stage::Dial) => format!("{} refused", Count(count).were("dial")),
        (Kind::Timeout, stage) => format!("{} timed out{}", some(count, waits(stage).0), after(e.timeout)),
        // In HTTP/2 each stream has a fault, but their connection is one.
        (Kind::Closed | Kind::Reset, Stage::Exchange | Stage::Hold) if !e.subject.is_http2 => {
            closed(count, ended(fault.kind), UNANNOUNCED)
        }
        _ => return None,
    })
}

/// `2 connections were lost: closed by the peer (ENHANCE_YOUR_CALM)`.
fn sentence(fault: &FaultCount) -> String {
    let all = Count(fault.count);
    let what = match fault.stage {
        Stage::Dial => format!("{} failed", all.of("dial")),
        Stage::Tls => format!("{} failed", all.of("TLS handshake")),
        Stage::Handshake => format!("{} failed", all.of("handshake")),
        Stage::Exchange => format!("{} failed", all.of("request")),
        Stage::Hold => format!("{} lost", all.were("connection")),
        Stage::Close => format!("{} lost while being closed", all.were("connection")),
    };
    let place = match fault.side {
        Side::Host => " on this machine",
        Side::Path => " on the path",
        Side::Target | Side::Unknown => "",
    };
    format!("{what}{place}: {}{}", how(fault), fault.detail.suffix())
}

fn how(fault: &FaultCount) -> &'static str {
    match (fault.kind, fault.stage) {
        (Kind::Refused, Stage::Dial) => "refused",
        (Kind::Refused, _) => "refused by the target (REFUSED_STREAM)",
        (Kind::Reset, _) => "reset by the peer",
        (Kind::Closed, _) => "closed by the peer",
        (Kind::Timeout, _) => "no response in time",
        (Kind::Unreachable, _) => "the target is unreachable",
        (Kind::TlsExpected, _) => "the target expects TLS",
        (Kind::NoProtocol, _) => "the target does not offer the protocol (ALPN)",
        (Kind::NothingInCommon, stage) if stage != Stage::Tls => "the target does not offer the protocol",
        (Kind::AddressInUse, _) => "no free local address and port",
        (Kind::NoMemory, _) => "no memory for a socket",
        (Kind::OpenFiles, _) => "no file descriptor",
        (Kind::Denied, _) => "not permitted",
        (Kind::Other, _) => "an error of the operating system",
        (Kind::BadAnswer, stage) if stage != Stage::Tls => "the target sent what the protocol does not allow",
        (kind, _) => tls::wrong(kind).map_or_else(|| wrong_how(kind), |(what, _)| what),
    }
}
