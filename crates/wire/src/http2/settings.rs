//! SETTINGS of the peer (RFC 9113 section 6.5).

use super::preface::INITIAL_WINDOW;
use super::{Code, INITIAL_STREAMS, MAX_FRAME, Role};

pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 section 3.
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;

/// The length of a setting in bytes.
pub(super) const ENTRY: usize = 6;

/// Largest window (section 6.9.1).
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// The table of our encoder as its peer has it without SETTINGS.
const INITIAL_TABLE: u32 = 4096;

/// What the peer's SETTINGS say of what it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Of a stream.
    pub(super) initial_window: u32,
    pub(super) max_frame: u32,
    pub(super) max_streams: u32,
    /// It takes an extended CONNECT.
    pub(super) takes_connect: bool,
    /// The next block that we send must begin with the change of the table's size (RFC 7541 section 4.2): the peer has made
    /// the table smaller than it was.
    pub(super) must_resize: bool,
}

impl Peer {
    /// Before its SETTINGS.
    pub(super) const fn new() -> Self {
        Self {
            initial_window: INITIAL_WINDOW,
            max_frame: MAX_FRAME as u32,
            max_streams: INITIAL_STREAMS,
            takes_connect: false,
            must_resize: false,
        }
    }

    /// Reads the payload of SETTINGS, whose length was checked. `role`: ours.
    pub(super) fn read(&mut self, payload: &[u8], role: Role, is_first: bool) -> Result<(), Code> {
        if is_first {
            // No limit is set where it says nothing.
            self.max_streams = u32::MAX;
        }
        for entry in payload.chunks_exact(ENTRY) {
            let [i, d, a, b, c, e] = *entry.first_chunk().expect("a chunk has this length");
            let value = u32::from_be_bytes([a, b, c, e]);
            match u16::from_be_bytes([i, d]) {
                HEADER_TABLE_SIZE => self.must_resize |= value < INITIAL_TABLE,
                ENABLE_PUSH if value > 1 || (value == 1 && role == Role::Client) => {
                    return Err(Code::PROTOCOL_ERROR);
                }
                MAX_CONCURRENT_STREAMS => self.max_streams = value,
                INITIAL_WINDOW_SIZE if value > MAX_WINDOW => return Err(Code::FLOW_CONTROL_ERROR),
                INITIAL_WINDOW_SIZE => self.initial_window = value,
                MAX_FRAME_SIZE if !(MAX_FRAME as u32..1 << 24).contains(&value) => {
                    return Err(Code::PROTOCOL_ERROR);
                }
                MAX_FRAME_SIZE => self.max_frame = value,
                // RFC 8441 section 3: not withdrawn once it is given.
                ENABLE_CONNECT_PROTOCOL if value > 1 || (value == 0 && self.takes_connect) => {
                    return Err(Code::PROTOCOL_ERROR);
                }
                ENABLE_CONNECT_PROTOCOL => self.takes_connect = value == 1,
                // Unknown ones, and the limit on a list of fields, which is advice: a request of ours is small.
                _ => {}
            }
        }
        Ok(())
    }
}
