//! A fault in a sentence, where its kind has none of its own: how many of what failed, where, and how.

use samples::{FaultCount, Kind, Side, Stage};
use units::Count;

use crate::limit::{secured, wrong::wrong_how};

/// `2 connections were lost: closed by the peer (ENHANCE_YOUR_CALM)`.
pub(super) fn sentence(fault: &FaultCount) -> String {
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
        (kind, _) => secured::wrong(kind).map_or_else(|| wrong_how(kind), |(what, _)| what),
    }
}
