//! The interface between the loop and its transport: [`Io`]. It is based on completions, so that io_uring, epoll, the TUN device and the
//! simulator look the same to a program. It is generic, not dynamic: the loop is compiled once per implementation.

use std::{io, net::SocketAddr};

use units::Nanos;

use crate::slab::Key;

pub mod epoll;
pub mod sim;
pub(crate) mod socket;
pub mod tun;
pub mod uring;

/// The implementation of [`Io`] that a shard uses for real connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// io_uring: [`uring`].
    Uring,
    /// epoll: [`epoll`].
    Epoll,
    /// throng's TCP over a TUN device: [`tun`].
    Tun,
}

impl Backend {
    /// The name used in flags and summaries.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Uring => "uring",
            Backend::Epoll => "epoll",
            Backend::Tun => "tun",
        }
    }
}

/// Maximum bytes read at once from one connection. Large enough for the largest response of the reference server, so that a response is
/// one receive.
pub const REGION: usize = 16 * 1024;
/// Maximum connections read in one turn of the loop. Measured with 10,000 connections in closed loop: 512 costs an eighth less CPU per
/// request than 128; larger values cost more again.
pub const REGIONS: usize = 512;
/// Maximum regions that one receive may fill, for a connection that has filled one before (a bulk transfer). With 16, a bulk transfer
/// over TLS costs a fifth less CPU per byte than with 4.
const MOST_REGIONS: usize = 16;
/// [`MOST_REGIONS`] for a server: the input that it leaves over while a peer does not read may exceed its limit by this much.
const MOST_TO_ANSWER: usize = 8;
/// Regions shared by all bulk transfers of a turn: 1 MiB stays in the processor's cache until it is read.
const BULK_REGIONS: usize = 64;

/// Size of the output buffer of one turn, in bytes. No send is larger, except of static bytes.
pub const OUT_BYTES: usize = 1024 * 1024;

/// The memory for one turn's input: [`REGIONS`] regions of [`REGION`] bytes, shared by all connections of the shard, so that an idle
/// connection has no buffer.
pub struct Scratch {
    bytes: Box<[u8]>,
    /// Maximum regions that one receive may fill.
    most: usize,
}

impl Scratch {
    /// Reserves the memory; pages are touched only as input arrives. `answers`: the program is a server ([`crate::Program::ANSWERS`]).
    pub fn new(answers: bool) -> Scratch {
        let most = if answers { MOST_TO_ANSWER } else { MOST_REGIONS };
        Scratch { bytes: vec![0; REGION * REGIONS].into_boxed_slice(), most }
    }

    /// How many regions a receive of a bulk transfer may fill, in a turn with this many readable connections.
    pub(crate) fn bulk_regions(&self, readable: usize) -> u16 {
        (BULK_REGIONS / readable.max(1)).clamp(1, self.most) as u16
    }

    /// The bytes of a [`What::Bytes`] of the current turn.
    pub fn bytes(&mut self, at: u32, len: u32) -> &mut [u8] {
        &mut self.bytes[at as usize..][..len as usize]
    }

    /// All bytes from offset `at` on.
    pub(crate) fn from(&mut self, at: usize) -> &mut [u8] {
        &mut self.bytes[at..]
    }

    /// `count` regions, starting at `region`.
    pub(crate) fn regions(&mut self, region: u16, count: u16) -> &mut [u8] {
        &mut self.bytes[usize::from(region) * REGION..][..usize::from(count) * REGION]
    }
}

/// How to end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// FIN after what was sent.
    Graceful,
    /// Immediate RST; leaves no TIME_WAIT.
    Reset,
}

/// Why a connection ended or could not be opened; with the errno where several errnos share a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gone {
    /// The peer closed its side (FIN).
    Ended,
    /// The peer reset it (ECONNRESET, EPIPE).
    Reset,
    /// Nothing is listening there (ECONNREFUSED).
    Refused,
    /// No route to the host or the network (EHOSTUNREACH, ENETUNREACH).
    Unreachable(i32),
    /// The kernel gave up waiting (ETIMEDOUT).
    TimedOut,
    /// The local address and port are in use or in TIME_WAIT (EADDRINUSE, EADDRNOTAVAIL): use the next one.
    AddressInUse(i32),
    /// This machine has no memory for another socket (ENOMEM, ENOBUFS).
    NoMemory(i32),
    /// This machine allows no more open files (EMFILE, ENFILE).
    OpenFiles(i32),
    /// This machine does not permit the connection (EACCES, EPERM).
    Denied(i32),
    /// Another errno.
    Other(i32),
}

impl Gone {
    /// The reason for a positive errno.
    pub fn from_errno(errno: i32) -> Gone {
        match errno {
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Gone::Reset,
            libc::ECONNREFUSED => Gone::Refused,
            libc::EHOSTUNREACH | libc::ENETUNREACH => Gone::Unreachable(errno),
            libc::ETIMEDOUT => Gone::TimedOut,
            libc::EADDRINUSE | libc::EADDRNOTAVAIL => Gone::AddressInUse(errno),
            libc::ENOMEM | libc::ENOBUFS => Gone::NoMemory(errno),
            libc::EMFILE | libc::ENFILE => Gone::OpenFiles(errno),
            libc::EACCES | libc::EPERM => Gone::Denied(errno),
            other => Gone::Other(other),
        }
    }

    /// The reason for the error of a system call.
    pub(crate) fn from_error(e: &io::Error) -> Gone {
        Gone::from_errno(e.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The dial succeeded.
    Dialled,
    /// A peer was accepted into this key.
    Accepted,
    /// Input was read into the scratch memory.
    Bytes {
        /// Offset in the scratch memory.
        at: u32,
        /// Length in bytes.
        len: u32,
    },
    /// All output that was blocked by a slow peer has been sent.
    Drained,
    /// The connection ended, or could not be opened.
    Gone(Gone),
}

impl What {
    /// `len` bytes of input, at the beginning of `region`.
    pub(crate) fn bytes_in(region: u16, len: usize) -> What {
        What::Bytes { at: u32::from(region) * REGION as u32, len: len as u32 }
    }

    /// [`What::Gone`] for the error of a system call.
    pub(crate) fn failed(e: &io::Error) -> What {
        What::Gone(Gone::from_error(e))
    }
}

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The connection. May be stale: the loop drops such completions.
    pub key: Key,
    /// What happened.
    pub what: What,
}

/// The transport of one shard.
///
/// A send is accepted as a whole: bytes that the socket does not take immediately are buffered by the transport, off the hot path, and
/// [`What::Drained`] reports when they have been sent. Until then further sends are queued after them, in order. The program must
/// ensure that this queue does not grow while a peer does not read ([`Io::is_write_blocked`]).
pub trait Io {
    /// Dials `to` from `from`; a zero address or port leaves the choice to the kernel. A local address and port may be used for several
    /// destinations. Completes with `Dialled` or `Gone`.
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr);
    /// Listens at `at`; returns the actual address (with the chosen port for port 0). A shard has at most one listener.
    ///
    /// # Errors
    /// The error of `socket`, `bind` or `listen`.
    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr>;
    /// Accepts one peer into the free slot of `k`. Completes with `Accepted` or `Gone`.
    fn accept(&mut self, k: Key);
    /// Stops listening; each pending accept completes with `Gone`.
    fn unlisten(&mut self);
    /// Starts reporting input and the end of this connection.
    fn park(&mut self, k: Key);
    /// A call of the program begins: during a call, each connection is sent on at most once.
    fn begin_call(&mut self) {}
    /// A part of this turn's output buffer, for the send that follows immediately. Its first `kept` bytes are those of the previous part,
    /// which was not sent; `room` bytes follow.
    fn out(&mut self, kept: usize, room: usize) -> &mut [u8];
    /// Sends the first `len` bytes of the part that the last [`Io::out`] returned.
    fn send_out(&mut self, k: Key, len: usize);
    /// Sends bytes that live as long as the program, without a copy.
    fn send_static(&mut self, k: Key, bytes: &'static [u8]);
    /// Hands the queued operations to the kernel now, not at the end of the turn.
    fn hand_over(&mut self) {}
    /// Whether an earlier send on this connection has not left completely.
    fn is_write_blocked(&self, k: Key) -> bool;
    /// Number of write-blocked connections.
    fn blocked(&self) -> usize;
    /// Stops reading from a connection, so that TCP flow control slows the peer down.
    fn hold(&mut self, k: Key);
    /// Reads from a held connection again.
    fn resume(&mut self, k: Key);
    /// Closes the connection or cancels the attempt to open it; the slot is free at once.
    fn close(&mut self, k: Key, how: Close);
    /// Sets how long a wake-up may be delayed to gather a larger batch (at most 50 µs); for closed loop.
    fn coalesce(&mut self, by: Nanos);
    /// Submits queued operations, sleeps until something happens or until `until`, and gathers one batch of completions. Returns the time.
    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos;
    /// The next completion of this batch.
    fn next(&mut self) -> Option<Done>;
    /// The current time, for use outside a turn.
    fn now(&self) -> Nanos;
}
