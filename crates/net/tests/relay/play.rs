//! What both ends of a connection know of it: which bytes go each way, and how it ends.

use std::net::{IpAddr, SocketAddr};

/// How a connection ends, once all bytes have arrived at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    NearCloses,
    FarCloses,
    NearResets,
    FarResets,
}

pub(crate) const ENDS: [End; 4] = [End::NearCloses, End::FarCloses, End::NearResets, End::FarResets];

/// Bytes from the near end, after two that say the number and the end of the connection.
pub(crate) const FROM_NEAR: usize = 768 * 1024;
/// Bytes from the far end; the last of them is sent when all of the near end's have come.
pub(crate) const FROM_FAR: usize = 1280 * 1024;
/// The near end reports with this byte that all have come: [`End::FarResets`] waits for it.
pub(crate) const RECEIPT: u8 = 0xa5;

/// The byte at a position of what one end sends; the streams of connections, and of the two ends, differ.
pub(crate) fn octet(number: u8, is_near: bool, position: usize) -> u8 {
    let salt = usize::from(number) * 2 + usize::from(is_near);
    let mixed = (position as u32).wrapping_add((salt as u32) << 24).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as u8 ^ (mixed >> 11) as u8
}

/// What one end sends.
pub(crate) fn stream(number: u8, is_near: bool, len: usize) -> Vec<u8> {
    (0..len).map(|position| octet(number, is_near, position)).collect()
}

/// Panics at the first byte that is not the one of its position.
pub(crate) fn check(number: u8, is_near: bool, position: usize, bytes: &[u8]) {
    let end = if is_near { "near" } else { "far" };
    for (nth, byte) in bytes.iter().enumerate() {
        let (at, expected) = (position + nth, octet(number, is_near, position + nth));
        assert_eq!(*byte, expected, "connection {number}: byte {at} from the {end} end");
    }
}

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Play {
    pub(crate) number: u8,
    pub(crate) end: End,
    pub(crate) to: SocketAddr,
}

/// Each end over either version of IP.
pub(crate) fn plays(listening: &[SocketAddr]) -> Vec<Play> {
    let all = listening.iter().flat_map(|to| ENDS.map(|end| (*to, end)));
    (0..).zip(all).map(|(number, (to, end))| Play { number, end, to }).collect()
}

/// The addresses of the far end.
pub(crate) fn far_addresses() -> [IpAddr; 2] {
    [IpAddr::from([10, 99, 0, 2]), IpAddr::from([0xfd99, 0, 0, 0, 0, 0, 0, 2])]
}
