//! What happens to a connection, as its program sees it.

/// What happened at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The place that [`connect`](crate::Tcp::connect) gave the connection.
    pub place: u32,
    /// What happened there.
    pub what: What,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The connection is established.
    Opened,
    /// The next bytes of the stream lie in the packet that was handed over, from byte `at` on. Only [`receive`](crate::Tcp::receive)
    /// returns it.
    Bytes {
        /// Offset of the first byte in the packet.
        at: u32,
        /// Bytes.
        len: u32,
    },
    /// The next bytes of the stream were kept, because they had come before others or while the connection was on hold, and lie in the
    /// buffer that was passed now. Only [`next_event`](crate::Tcp::next_event) returns it.
    Kept {
        /// Bytes at the start of the buffer.
        len: u32,
    },
    /// What a send had left over has been sent.
    Drained,
    /// The peer closed its side (FIN), and all that it sent before has been reported. The connection stays until it is closed.
    Ended,
    /// The connection is no more, or never came to be. The place is free.
    Gone(Why),
}

/// Why a connection is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The peer reset it.
    Reset,
    /// The peer refused it: a reset, or ICMP port unreachable, in response to the SYN.
    Refused,
    /// A router or the host said so by ICMP: EHOSTUNREACH or ENETUNREACH, or another errno where the kernel has one for the message.
    Unreachable(i32),
    /// No response to as many retransmissions as the kernel sends.
    TimedOut,
}
