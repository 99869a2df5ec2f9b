//! What is kept of a stream, by the caller.

/// One request and its response. The caller keeps it for as long as the stream is open, and passes it with the input that is
/// for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Bytes of the peer's body that its `Content-Length` still allows; `u64::MAX` where it does not say.
    pub(super) left: u64,
    pub(super) id: u32,
    /// What the peer's WINDOW_UPDATEs have added to the initial window, without what was sent. The initial one belongs to
    /// the connection, because a SETTINGS changes it for all streams.
    pub(super) window: i32,
    /// Bytes that came since the last WINDOW_UPDATE of ours.
    pub(super) received: u32,
    pub(super) flags: u8,
}

const _: () = assert!(size_of::<Stream>() <= 24, "each request under way has one");

/// We have sent the end.
pub(super) const LOCAL_ENDED: u8 = 1;
/// The peer has sent the end.
pub(super) const REMOTE_ENDED: u8 = 2;
/// The head of the final response, or of the request, has come.
pub(super) const HAS_HEAD: u8 = 4;
/// The method is HEAD: the response has no body.
pub(super) const IS_HEAD: u8 = 8;
/// The method is CONNECT: a response of 2xx has no length.
pub(super) const IS_TUNNEL: u8 = 16;

impl Stream {
    pub(super) fn new(id: u32, flags: u8) -> Self {
        Self { left: u64::MAX, id, window: 0, received: 0, flags }
    }

    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Its number on the wire.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Both sides have ended it, or one has reset it: nothing more may be sent or will come.
    pub fn is_closed(&self) -> bool {
        self.is(LOCAL_ENDED) && self.is(REMOTE_ENDED)
    }

    /// Our side has ended it.
    pub fn is_sent(&self) -> bool {
        self.is(LOCAL_ENDED)
    }
}
