//! The programs of both ends of a connection.

use std::net::SocketAddr;

use tcp::Why;
use units::Random;

/// How a connection is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The client closes when it has sent and received everything; then the server.
    ClientCloses,
    /// The server closes when it has sent everything; then the client, when it has too.
    ServerCloses,
    /// Each end closes when it has sent and received everything.
    BothClose,
    /// The client resets at some time.
    ClientResets,
    /// The server resets at some time.
    ServerResets,
    /// The server refuses.
    Refuses,
    /// The server is silent from some time on, or from the start.
    FallsSilent,
}

/// A connection's script, and what its client has seen.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) number: usize,
    pub(crate) plan: Plan,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// Number of bytes from the client, and to it.
    pub(crate) up: usize,
    pub(crate) down: usize,
    /// When it was dialled.
    pub(crate) began: u64,
    /// When the end that resets or falls silent does so.
    pub(crate) until: u64,
    pub(crate) sent: usize,
    pub(crate) received: usize,
    pub(crate) is_open: bool,
    pub(crate) is_held: bool,
    pub(crate) is_blocked: bool,
    pub(crate) ended: bool,
    pub(crate) gone: Option<Why>,
    pub(crate) is_closed: bool,
    /// When its client acts next.
    pub(crate) acts_at: u64,
}

/// Byte `at` of a stream.
pub(crate) fn byte(number: usize, is_up: bool, at: usize) -> u8 {
    let mixed = (at ^ number << 4 ^ usize::from(is_up) << 13).wrapping_mul(0x9e37_79b1);
    (mixed >> 16) as u8
}

/// Static bytes that clients send, the same for every connection.
pub(crate) static STATIC: [u8; 3000] = {
    let mut bytes = [0; 3000];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at * 31 / 7) as u8;
        at += 1;
    }
    bytes
};

impl Program {
    pub(crate) fn new(number: usize, is_v6: bool, now: u64, random: &mut Random) -> Program {
        let plan = match random.below(20) {
            0..6 => Plan::ClientCloses,
            6..11 => Plan::ServerCloses,
            11..14 => Plan::BothClose,
            14 | 15 => Plan::ClientResets,
            16 | 17 => Plan::ServerResets,
            18 => Plan::Refuses,
            _ => Plan::FallsSilent,
        };
        let mut size = || match random.below(8) {
            0 => 0,
            1 => random.between(1, 60_000),
            _ => random.between(1, 6_000),
        };
        let (up, down) = (size() as usize, size() as usize);
        let port = 2000 + number as u16;
        let to = 80 + random.below(2) as u16;
        let [from, to] = match is_v6 {
            false => [format!("198.18.0.{}:{port}", 1 + number % 3), format!("10.0.0.1:{to}")],
            true => [format!("[2001:2::{}]:{port}", 1 + number % 3), format!("[fd00::1]:{to}")],
        };
        Program {
            number,
            plan,
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            up,
            down,
            began: now,
            until: now + if random.below(4) == 0 { 0 } else { random.below(1500) },
            sent: 0,
            received: 0,
            is_open: false,
            is_held: false,
            is_blocked: false,
            ended: false,
            gone: None,
            is_closed: false,
            acts_at: now,
        }
    }

    /// Checks that received bytes are the next of the stream.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        assert!(!self.ended && !bytes.is_empty(), "bytes behind the end, or none");
        assert!(self.received + bytes.len() <= self.down, "more than was sent");
        for (nth, found) in bytes.iter().enumerate() {
            let at = self.received + nth;
            assert_eq!(*found, byte(self.number, false, at), "byte {at}");
        }
        self.received += bytes.len();
    }
}
