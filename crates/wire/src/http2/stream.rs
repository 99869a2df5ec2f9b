//! The state of a stream, kept by the caller.

/// A request and its response. The caller keeps it as long as the stream is open, and passes it with the input for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Bytes that the peer's `Content-Length` still allows; `u64::MAX` without one.
    pub(super) left: u64,
    pub(super) id: u32,
    /// The peer's window relative to the initial window: increased by WINDOW_UPDATEs, decreased by sent bytes. The initial window is stored
    /// in the connection, because SETTINGS change it for all streams.
    pub(super) window: i32,
    /// Bytes received since the last WINDOW_UPDATE was due.
    pub(super) received: u32,
    pub(super) flags: u8,
}

const _: () = assert!(size_of::<Stream>() <= 24, "each request under way has one");

/// Flag: this end has ended the stream.
pub(super) const LOCAL_ENDED: u8 = 1;
/// Flag: the peer has ended the stream.
pub(super) const REMOTE_ENDED: u8 = 2;
/// Flag: the head of the final response, or of the request, has arrived.
pub(super) const HAS_HEAD: u8 = 4;
/// Flag: the method is HEAD, so the response has no body.
pub(super) const IS_HEAD: u8 = 8;
/// Flag: the method is CONNECT, so a 2xx response has no length.
pub(super) const IS_TUNNEL: u8 = 16;

impl Stream {
    pub(super) fn new(id: u32, flags: u8) -> Self {
        Self { left: u64::MAX, id, window: 0, received: 0, flags }
    }

    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The stream number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether both ends have ended the stream, or one has reset it: nothing more may be sent or will arrive.
    pub fn is_closed(&self) -> bool {
        self.is(LOCAL_ENDED) && self.is(REMOTE_ENDED)
    }

    /// Whether this end has ended the stream.
    pub fn is_sent(&self) -> bool {
        self.is(LOCAL_ENDED)
    }
}
