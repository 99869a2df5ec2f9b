//! Writes frames into the caller's buffer (RFC 6455, section 5.2).

use super::{Header, MAX_CONTROL, MAX_HEADER, Opcode, mask};

/// Writes a frame header into `out`: returns the number of bytes (2 to [`MAX_HEADER`]), `None` if it does not fit. The payload must follow,
/// masked if the header has a mask.
///
/// # Panics
/// If the length has 64 bits, or a control frame is fragmented or longer than [`MAX_CONTROL`].
pub fn write_header(out: &mut [u8], header: &Header) -> Option<usize> {
    let Header { opcode, ends, len, .. } = *header;
    assert!(len >> 63 == 0, "write_header: {len} bytes");
    let is_control_frame = ends && len <= MAX_CONTROL as u64;
    assert!(
        !opcode.is_control() || is_control_frame,
        "write_header: {opcode:?} of {len} bytes, ends: {ends}"
    );
    let masked = if header.mask.is_some() { 0x80 } else { 0 };
    let mut bytes = [0; MAX_HEADER];
    bytes[0] = opcode as u8 | if ends { 0x80 } else { 0 };
    let mut at = match len {
        0..126 => {
            bytes[1] = masked | len as u8;
            2
        }
        126..0x1_0000 => {
            bytes[1] = masked | 126;
            bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            4
        }
        _ => {
            bytes[1] = masked | 127;
            bytes[2..10].copy_from_slice(&len.to_be_bytes());
            10
        }
    };
    if let Some(mask) = header.mask {
        bytes[at..at + mask.len()].copy_from_slice(&mask);
        at += mask.len();
    }
    out.get_mut(..at)?.copy_from_slice(&bytes[..at]);
    Some(at)
}

/// Writes a complete frame into `out`: returns the number of bytes, `None` if it does not fit. `payload` is not masked yet; it is masked
/// here if there is a mask.
///
/// # Panics
/// If a control frame is fragmented or longer than [`MAX_CONTROL`].
pub fn write_frame(
    out: &mut [u8],
    opcode: Opcode,
    ends: bool,
    mask_with: Option<[u8; 4]>,
    payload: &[u8],
) -> Option<usize> {
    let header = Header { opcode, ends, len: payload.len() as u64, mask: mask_with };
    let at = write_header(out, &header)?;
    let room = out[at..].get_mut(..payload.len())?;
    room.copy_from_slice(payload);
    mask(room, mask_with.unwrap_or_default());
    Some(at + payload.len())
}

/// Writes a close without a reason into `out`: returns the number of bytes (2 to 8), `None` if it does not fit. Without a code it is empty,
/// as the reply to a close without a code.
pub fn write_close(out: &mut [u8], code: Option<u16>, mask: Option<[u8; 4]>) -> Option<usize> {
    let code = code.map(u16::to_be_bytes);
    write_frame(out, Opcode::Close, true, mask, code.as_ref().map_or(&[], |code| code))
}
