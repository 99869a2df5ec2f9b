//! The peer's SETTINGS (RFC 9113, section 6.5).

use super::{Code, INITIAL_STREAMS, MAX_FRAME, Role};

pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 section 3.
pub(super) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;

/// Length of a setting, in bytes.
pub(super) const ENTRY: usize = 6;

/// The largest window (section 6.9.1).
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// The window of a connection before any WINDOW_UPDATE, and of a stream without SETTINGS (section 6.9.2).
pub(super) const INITIAL_WINDOW: u32 = 65_535;

/// The initial limit of this end's dynamic table, without SETTINGS of the peer.
const INITIAL_TABLE: u32 = 4096;

/// The limits and abilities of the peer, from its SETTINGS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// Initial window of each stream, in bytes.
    pub(super) initial_window: u32,
    pub(super) max_frame: u32,
    pub(super) max_streams: u32,
    /// Whether it supports extended CONNECT.
    pub(super) takes_connect: bool,
    /// Whether the next block must begin with a change of the table's size, because the peer has lowered the limit (RFC 7541, section 4.2).
    pub(super) must_resize: bool,
}

impl Peer {
    /// The state before its SETTINGS arrive.
    pub(super) const fn new() -> Self {
        Self {
            initial_window: INITIAL_WINDOW,
            max_frame: MAX_FRAME as u32,
            max_streams: INITIAL_STREAMS,
            takes_connect: false,
            must_resize: false,
        }
    }

    /// Reads the payload of SETTINGS, whose length was checked. `role`: that of this end.
    pub(super) fn read(&mut self, payload: &[u8], role: Role, is_first: bool) -> Result<(), Code> {
        if is_first {
            // Without this setting there is no limit.
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
                // It must not be withdrawn (RFC 8441, section 3).
                ENABLE_CONNECT_PROTOCOL if value > 1 || (value == 0 && self.takes_connect) => {
                    return Err(Code::PROTOCOL_ERROR);
                }
                ENABLE_CONNECT_PROTOCOL => self.takes_connect = value == 1,
                // Ignores unknown settings, and the limit on field lists, which is advisory: requests of throng are small.
                _ => {}
            }
        }
        Ok(())
    }
}
