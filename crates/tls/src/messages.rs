//! Handshake messages that arrive after the handshake (RFC 8446, section 4.6).

use crate::error::Error;

/// Maximum length of a message that spans several records. A ticket fits in one record.
const MAX_MESSAGE: usize = 32 * 1024;
/// Length of a message header: type, and a length of three bytes.
const HEADER: usize = 4;

/// Messages of TLS 1.2 that request a renegotiation.
pub(crate) const HELLO_REQUEST: u8 = 0;
pub(crate) const CLIENT_HELLO: u8 = 1;

const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;

/// A message that is allowed after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A new session ticket; its body.
    Ticket(&'a [u8]),
    /// The sender's next records use its next key. `asks`: the receiver must update its key, too.
    KeyUpdate { asks: bool },
}

/// The first message and its length; `None` if it is incomplete.
///
/// # Errors
/// The message is too long, cannot be parsed, or is not allowed.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<(usize, Message<'_>)>, Error> {
    let Some(&[kind, a, b, c]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    if HEADER + length > MAX_MESSAGE {
        return Err(Error::TooLong);
    }
    let is_known = matches!(kind, NEW_SESSION_TICKET | KEY_UPDATE);
    if !is_known {
        return Err(Error::Unexpected);
    }
    let Some(body) = bytes.get(HEADER..HEADER + length) else { return Ok(None) };
    let message = match (kind, body) {
        (KEY_UPDATE, [asks @ (0 | 1)]) => Message::KeyUpdate { asks: *asks == 1 },
        // Other values are illegal (RFC 8446, section 4.6.3).
        (KEY_UPDATE, [_]) => return Err(Error::Illegal),
        (KEY_UPDATE, _) => return Err(Error::Malformed),
        _ => Message::Ticket(body),
    };
    Ok(Some((HEADER + length, message)))
}

/// A KeyUpdate that does not request one in return.
pub(crate) const KEY_UPDATED: [u8; 5] = [KEY_UPDATE, 0, 0, 1, 0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_after_the_handshake_are_read_one_by_one() {
        for (bytes, expected) in [
            (&[24, 0, 0, 1, 0][..], Ok(Some((5, Message::KeyUpdate { asks: false })))),
            (&[24, 0, 0, 1, 1, 4], Ok(Some((5, Message::KeyUpdate { asks: true })))),
            (&[24, 0, 0, 1, 2], Err(Error::Illegal)),
            (&[24, 0, 0, 2, 0, 0], Err(Error::Malformed)),
            (&[4, 0, 0, 2, 7, 8, 9], Ok(Some((6, Message::Ticket(&[7, 8]))))),
            (&[4, 0, 0, 2, 7], Ok(None)),
            (&[4, 0, 0], Ok(None)),
            // Post-handshake authentication was not offered, and a handshake does not begin again.
            (&[13, 0, 0, 0], Err(Error::Unexpected)),
            (&[1, 0, 0, 9], Err(Error::Unexpected)),
            (&[4, 1, 0, 0], Err(Error::TooLong)),
        ] {
            assert_eq!(read(bytes), expected, "{bytes:?}");
        }
        assert_eq!(read(&KEY_UPDATED), Ok(Some((5, Message::KeyUpdate { asks: false }))));
    }
}
