//! The interface between the loop and its transport: completion-based, so that io_uring, epoll and the simulator look the
//! same to a program. Generic, not dynamic: the loop is compiled once per implementation.

use std::{io, net::SocketAddr};

use units::Nanos;

use crate::slab::Key;

pub mod epoll;
pub mod sim;
pub(crate) mod socket;
pub mod tun;
pub mod uring;

/// Which of the kernel's interfaces a shard drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// io_uring: [`uring`].
    Uring,
    /// epoll: [`epoll`].
    Epoll,
    /// TCP of our own over a TUN device: [`tun`].
    Tun,
}

impl Backend {
    /// As flags and summaries spell it.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Uring => "uring",
            Backend::Epoll => "epoll",
            Backend::Tun => "tun",
        }
    }
}

/// Bytes read at once from one connection. Large enough for the largest response of the reference server, so that a
/// response is one receive.
pub const REGION: usize = 16 * 1024;
/// Connections read in one turn of the loop. At 10,000 connections in closed loop 512 cost an eighth less CPU a
/// request than 128; more costs more again.
pub const REGIONS: usize = 512;
/// Regions that one receive may fill, for a connection that has filled one before: a bulk transfer. With 16, one over TLS costs a fifth
/// less CPU a byte than with 4.
const MOST_REGIONS: usize = 16;
/// The same where the program answers: what it leaves over while a peer does not read may pass its limit by as much.
const MOST_TO_ANSWER: usize = 8;
/// Regions that the bulk transfers of a turn share: a megabyte stays in a processor's cache until it is read.
const BULK_REGIONS: usize = 64;

/// One turn's output; a send is never larger, but for bytes that live as long as the program.
pub const OUT_BYTES: usize = 1024 * 1024;

/// Where one turn's input lands: [`REGIONS`] regions of [`REGION`] bytes, shared by all connections of the shard,
/// so that an idle connection owns no buffer.
pub struct Scratch {
    bytes: Box<[u8]>,
    /// Regions that one receive may fill.
    most: usize,
}

impl Scratch {
    /// Reserved here, touched as far as input comes. `answers`: the program waits for peers that do not read.
    pub fn new(answers: bool) -> Scratch {
        let most = if answers { MOST_TO_ANSWER } else { MOST_REGIONS };
        Scratch { bytes: vec![0; REGION * REGIONS].into_boxed_slice(), most }
    }

    /// How many regions a receive of a bulk transfer may fill in a turn with this many readable connections.
    pub(crate) fn bulk_regions(&self, readable: usize) -> u16 {
        (BULK_REGIONS / readable.max(1)).clamp(1, self.most) as u16
    }

    /// The bytes of a [`What::Bytes`] of this turn.
    pub fn bytes(&mut self, at: u32, len: u32) -> &mut [u8] {
        &mut self.bytes[at as usize..][..len as usize]
    }

    /// All of it from there on.
    pub(crate) fn from(&mut self, at: usize) -> &mut [u8] {
        &mut self.bytes[at..]
    }

    /// This many regions, from `region` on.
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

/// Why a connection is not there (any more), or did not come to be; with the errno where several mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gone {
    /// The peer closed its side (FIN).
    Ended,
    /// The peer reset it (ECONNRESET, EPIPE).
    Reset,
    /// Nothing is listening there (ECONNREFUSED).
    Refused,
    /// No way to the host or the network (EHOSTUNREACH, ENETUNREACH).
    Unreachable(i32),
    /// The kernel gave up waiting (ETIMEDOUT).
    TimedOut,
    /// The local address and port are in use or in TIME_WAIT (EADDRINUSE, EADDRNOTAVAIL): take the next.
    AddressInUse(i32),
    /// This machine has no memory for another socket (ENOMEM, ENOBUFS).
    NoMemory(i32),
    /// This machine allows no more open files (EMFILE, ENFILE).
    OpenFiles(i32),
    /// This machine does not permit it (EACCES, EPERM).
    Denied(i32),
    /// Another errno.
    Other(i32),
}

impl Gone {
    /// From a positive errno.
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

    /// From the error of a system call.
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
    /// Input lies in the scratch.
    Bytes {
        /// Where in the scratch it begins.
        at: u32,
        /// How many bytes.
        len: u32,
    },
    /// What a send had left over because the peer was slow has gone out now.
    Drained,
    /// It ended, or it never came to be.
    Gone(Gone),
}

impl What {
    /// `len` bytes of input, from the beginning of a region on.
    pub(crate) fn bytes_in(region: u16, len: usize) -> What {
        What::Bytes { at: u32::from(region) * REGION as u32, len: len as u32 }
    }

    /// It ended by this error, or never came to be.
    pub(crate) fn failed(e: &io::Error) -> What {
        What::Gone(Gone::from_error(e))
    }
}

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which connection. May be stale: the loop drops those.
    pub key: Key,
    /// What happened.
    pub what: What,
}

/// What carries the bytes of one shard.
///
/// A send is accepted as a whole: what the socket does not take immediately is buffered here, off the hot path, and
/// [`What::Drained`] reports when it has been sent. What is sent until then is queued after it, in order: the program must
/// ensure that this does not grow while a peer does not read ([`Io::is_write_blocked`]).
pub trait Io {
    /// Dials `to` from `from`; a zero address or port leaves that choice to the kernel. A local address may be used for
    /// several destinations. Completes with `Dialled` or `Gone`.
    fn dial(&mut self, k: Key, from: SocketAddr, to: SocketAddr);
    /// Listens; returns the address in use (port 0 is replaced). One listener a shard.
    ///
    /// # Errors
    /// The error of `socket`, `bind` or `listen`.
    fn listen(&mut self, at: SocketAddr) -> io::Result<SocketAddr>;
    /// Accepts one peer into the free slot of `k`. Completes with `Accepted` or `Gone`.
    fn accept(&mut self, k: Key);
    /// Stops listening; each pending accept completes with `Gone`.
    fn unlisten(&mut self);
    /// From now on report input and the end of this connection.
    fn park(&mut self, k: Key);
    /// A program is called: from here on it sends at most once on each connection, until it is called again.
    fn begin_call(&mut self) {}
    /// A piece of this turn's output buffer, for the send that follows immediately. Its first `kept` bytes are those of the
    /// last piece, which was not sent; `room` bytes follow.
    fn out(&mut self, kept: usize, room: usize) -> &mut [u8];
    /// Sends the first `len` bytes of the last [`Io::out`].
    fn send_out(&mut self, k: Key, len: usize);
    /// Sends bytes that live as long as the program does.
    fn send_static(&mut self, k: Key, bytes: &'static [u8]);
    /// What was queued is handed to the kernel now, not at the end of the turn.
    fn hand_over(&mut self) {}
    /// Whether an earlier send on this connection has not gone out yet.
    fn is_write_blocked(&self, k: Key) -> bool;
    /// How many connections are.
    fn blocked(&self) -> usize;
    /// Leaves the input of a connection where it is, so that the peer feels it.
    fn hold(&mut self, k: Key);
    /// Reads it again.
    fn resume(&mut self, k: Key);
    /// Ends the connection, or the attempt at it; the place is free at once.
    fn close(&mut self, k: Key, how: Close);
    /// In closed loop a wake-up may be put off by this much to gather a larger batch (at most 50 µs).
    fn coalesce(&mut self, by: Nanos);
    /// Hands over what was queued, sleeps until something happens or `until`, gathers one batch. Returns now.
    fn wait(&mut self, until: Nanos, scratch: &mut Scratch) -> Nanos;
    /// The next completion of this batch.
    fn next(&mut self) -> Option<Done>;
    /// The clock, for what happens outside a turn.
    fn now(&self) -> Nanos;
}
