//! The frame header (RFC 6455, section 5.2).

use super::MAX_CONTROL;
use crate::Breach;

/// The role of the end that reads: a server accepts only masked frames, a client only unmasked ones (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end that requested the upgrade.
    Client,
    /// The end that accepted it.
    Server,
}

/// The type of a frame, by its number (section 11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation = 0x0,
    /// A text message, or its first fragment.
    Text = 0x1,
    /// A binary message, or its first fragment.
    Binary = 0x2,
    /// The end of the peer's data.
    Close = 0x8,
    /// A ping; the reply is a pong with the same payload.
    Ping = 0x9,
    /// The reply to a ping, or a keep-alive.
    Pong = 0xA,
}

impl Opcode {
    pub(super) fn from_number(number: u8) -> Option<Self> {
        match number {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xA => Some(Self::Pong),
            _ => None,
        }
    }

    /// Whether it is a control frame: unfragmented, short, and allowed between the fragments of a message (section 5.5).
    pub fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// A parsed frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the frame.
    pub opcode: Opcode,
    /// Whether the message (or the control frame) ends with this frame: the FIN bit.
    pub ends: bool,
    /// Length of the payload in bytes, less than 2^63.
    pub len: u64,
    /// The mask of the payload, for frames from client to server.
    pub mask: Option<[u8; 4]>,
}

/// Reads the header at the start of `input`: its own length in bytes, and the header; `None` while it is incomplete. `open`: a message is
/// incomplete.
///
/// The checks follow the order of the bytes, so that the same stream violates the same rule however it is split.
pub(super) fn read(input: &[u8], role: Role, open: bool) -> Result<Option<(usize, Header)>, Breach> {
    let Some(&first) = input.first() else { return Ok(None) };
    let ends = first & 0x80 != 0;
    let opcode = Opcode::from_number(first & 0x0F).ok_or(Breach::BadFrame)?;
    let is_placed = match opcode {
        Opcode::Continuation => open,
        Opcode::Text | Opcode::Binary => !open,
        Opcode::Close | Opcode::Ping | Opcode::Pong => ends,
    };
    // Reserved bits have no meaning, because no extension is negotiated.
    if first & 0x70 != 0 || !is_placed {
        return Err(Breach::BadFrame);
    }
    let Some(&second) = input.get(1) else { return Ok(None) };
    let short = second & 0x7F;
    let masked = second & 0x80 != 0;
    if masked != (role == Role::Server) || (opcode.is_control() && usize::from(short) > MAX_CONTROL) {
        return Err(Breach::BadFrame);
    }
    let Some((at, len)) = length(short, &input[2..])? else { return Ok(None) };
    let at = 2 + at;
    if !masked {
        return Ok(Some((at, Header { opcode, ends, len, mask: None })));
    }
    let Some(&mask) = input[at..].first_chunk() else { return Ok(None) };
    Ok(Some((at + mask.len(), Header { opcode, ends, len, mask: Some(mask) })))
}

/// The length of the payload, and how many bytes of `behind` encode it. `short`: the 7-bit length. It must have the shortest encoding.
fn length(short: u8, behind: &[u8]) -> Result<Option<(usize, u64)>, Breach> {
    let (bytes, len, least) = match short {
        126 => match behind.first_chunk() {
            Some(long) => (long.len(), u64::from(u16::from_be_bytes(*long)), 126),
            None => return Ok(None),
        },
        127 => match behind.first_chunk() {
            Some(long) => (long.len(), u64::from_be_bytes(*long), 1 << 16),
            None => return Ok(None),
        },
        _ => (0, u64::from(short), 0),
    };
    if len < least || len >> 63 != 0 { Err(Breach::BadFrame) } else { Ok(Some((bytes, len))) }
}
