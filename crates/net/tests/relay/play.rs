//! The script of a connection, known to both ends: the bytes in each direction, and how it ends.

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

/// Number of bytes from the near end, after two that give the number of the connection and its end.
pub(crate) const FROM_NEAR: usize = 768 * 1024;
/// Number of bytes from the far end; the last is sent once all bytes of the near end have arrived.
pub(crate) const FROM_FAR: usize = 1280 * 1024;
/// The byte by which the near end reports that all bytes have arrived; [`End::FarResets`] waits for it.
pub(crate) const RECEIPT: u8 = 0xa5;

/// The byte at a position of the stream of one end. The streams differ by connection and by end.
pub(crate) fn octet(number: u8, is_near: bool, position: usize) -> u8 {
    let salt = usize::from(number) * 2 + usize::from(is_near);
    let mixed = (position as u32).wrapping_add((salt as u32) << 24).wrapping_mul(0x9e37_79b1);
    (mixed >> 24) as u8 ^ (mixed >> 11) as u8
}

/// The stream that one end sends.
pub(crate) fn stream(number: u8, is_near: bool, len: usize) -> Vec<u8> {
    (0..len).map(|position| octet(number, is_near, position)).collect()
}

/// Panics at the first byte that is wrong for its position.
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

/// One connection for each way to end it, over each IP version.
pub(crate) fn plays(listening: &[SocketAddr]) -> Vec<Play> {
    let all = listening.iter().flat_map(|to| ENDS.map(|end| (*to, end)));
    (0..).zip(all).map(|(number, (to, end))| Play { number, end, to }).collect()
}

/// The addresses of the far end.
pub(crate) fn far_addresses() -> [IpAddr; 2] {
    [IpAddr::from([10, 99, 0, 2]), IpAddr::from([0xfd99, 0, 0, 0, 0, 0, 0, 2])]
}
