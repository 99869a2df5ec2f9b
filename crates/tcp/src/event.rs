//! Events of a connection, as its program sees them.

/// An event of the connection at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The place that was passed to [`connect`](crate::Tcp::connect).
    pub place: u32,
    /// What happened.
    pub what: What,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The connection is established.
    Opened,
    /// The next bytes of the stream are in the packet that was passed in, from offset `at` on. Only [`receive`](crate::Tcp::receive)
    /// returns it.
    Bytes {
        /// Offset of the first byte in the packet.
        at: u32,
        /// Length in bytes.
        len: u32,
    },
    /// The next bytes of the stream, which had been kept because they arrived out of order or while the connection was on hold. They are in
    /// the buffer that was passed in. Only [`next_event`](crate::Tcp::next_event) returns it.
    Kept {
        /// Number of bytes at the start of the buffer.
        len: u32,
    },
    /// All output that had been blocked was sent.
    Drained,
    /// The peer closed its side (FIN), and all its data has been reported. The connection stays until the program closes it.
    Ended,
    /// The connection ended, or could not be opened. The place is free.
    Gone(Why),
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The peer reset it.
    Reset,
    /// The peer refused it: a reset, or ICMP port unreachable, in response to the SYN.
    Refused,
    /// A router or the host reported by ICMP: EHOSTUNREACH or ENETUNREACH, or another errno that the kernel has for the message.
    Unreachable(i32),
    /// No response to as many retransmissions as Linux sends.
    TimedOut,
}
