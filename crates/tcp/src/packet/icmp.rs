//! ICMP errors about segments that were sent (RFC 792, 1191, 4443), with the errno that Linux derives from each.

use super::{Ip, PROTOCOL_TCP, Tuple};

const ENETUNREACH: i32 = 101;
const EHOSTUNREACH: i32 = 113;
const EACCES: i32 = 13;
const ENONET: i32 = 64;
const EPROTO: i32 = 71;
const ENOPROTOOPT: i32 = 92;
const EOPNOTSUPP: i32 = 95;
const EHOSTDOWN: i32 = 112;

/// The meaning of an ICMP error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// Nothing listens at the destination.
    Refused,
    /// Any other error, with the errno that Linux has for it.
    Unreachable(i32),
    /// The MTU is this many bytes; 0 from a router that does not report it.
    TooBig(u32),
}

/// An ICMP error, and the start of the sent segment that it quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) error: Error,
    pub(crate) tuple: Tuple,
    pub(crate) seq: u32,
}

/// Reads the body of an ICMP message.
pub(super) fn read_v4(body: &[u8]) -> Option<Quote> {
    let [kind, code, _, _, _, _, mtu_high, mtu_low, quoted @ ..] = body else { return None };
    let error = match (kind, code) {
        (3, 0 | 6 | 9 | 11) => Error::Unreachable(ENETUNREACH),
        (3, 1 | 10 | 12..=15) => Error::Unreachable(EHOSTUNREACH),
        (3, 2) => Error::Unreachable(ENOPROTOOPT),
        (3, 3) => Error::Refused,
        (3, 4) => Error::TooBig(u32::from(u16::from_be_bytes([*mtu_high, *mtu_low]))),
        (3, 5) => Error::Unreachable(EOPNOTSUPP),
        (3, 7) => Error::Unreachable(EHOSTDOWN),
        (3, 8) => Error::Unreachable(ENONET),
        // Time exceeded.
        (11, _) => Error::Unreachable(EHOSTUNREACH),
        (12, _) => Error::Unreachable(EPROTO),
        _ => return None,
    };
    let (ip, _) = Ip::read_v4(quoted)?;
    quote(error, &ip, quoted)
}

/// Reads the body of an ICMPv6 message.
pub(super) fn read_v6(body: &[u8]) -> Option<Quote> {
    let [kind, code, _, _, m0, m1, m2, m3, quoted @ ..] = body else { return None };
    let error = match (kind, code) {
        (1, 0) => Error::Unreachable(ENETUNREACH),
        (1, 1 | 5 | 6) => Error::Unreachable(EACCES),
        (1, 4) => Error::Refused,
        (1, _) => Error::Unreachable(EHOSTUNREACH),
        (2, _) => Error::TooBig(u32::from_be_bytes([*m0, *m1, *m2, *m3])),
        (3, _) => Error::Unreachable(EHOSTUNREACH),
        (4, _) => Error::Unreachable(EPROTO),
        _ => return None,
    };
    quote(error, &Ip::read_v6(quoted)?, quoted)
}

/// Reads the quoted segment, which was sent from here, so its source is the local end. At least its first eight bytes are quoted (RFC 792).
fn quote(error: Error, ip: &Ip, quoted: &[u8]) -> Option<Quote> {
    let head: &[u8; 8] = quoted.get(ip.at..)?.first_chunk()?;
    let [s0, s1, d0, d1, seq @ ..] = *head;
    let tuple = Tuple {
        local: ip.source,
        remote: ip.destination,
        local_port: u16::from_be_bytes([s0, s1]),
        remote_port: u16::from_be_bytes([d0, d1]),
    };
    (ip.protocol == PROTOCOL_TCP).then_some(Quote { error, tuple, seq: u32::from_be_bytes(seq) })
}
