//! Output that connections have yet to send. Bodies go out in pieces, so that a peer that reads slowly costs the memory of one piece,
//! not of a whole body.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
};

/// Maximum bytes of a body that are sent before the next piece waits for them to leave. A turn of the loop costs a few microseconds;
/// sending a piece of this size costs ten times as much.
pub const PIECE: usize = 128 * 1024;

/// Bytes to send, in order, by connection index.
#[derive(Default)]
pub(super) struct Backlog(HashMap<u32, VecDeque<Cow<'static, [u8]>>>);

impl Backlog {
    /// Whether the connection has bytes to send.
    pub(super) fn has(&self, index: u32) -> bool {
        !self.0.is_empty() && self.0.contains_key(&index)
    }

    /// Appends bytes to the connection's backlog.
    pub(super) fn push(&mut self, index: u32, bytes: Cow<'static, [u8]>) {
        self.0.entry(index).or_default().push_back(bytes);
    }

    /// Takes the next part of the connection's backlog; a static part is split at [`PIECE`] bytes.
    pub(super) fn pop(&mut self, index: u32) -> Option<Cow<'static, [u8]>> {
        let parts = self.0.get_mut(&index)?;
        if let Some(Cow::Borrowed(bytes)) = parts.front_mut()
            && let Some((piece, rest)) = bytes.split_at_checked(PIECE)
            && !rest.is_empty()
        {
            *bytes = rest;
            return Some(Cow::Borrowed(piece));
        }
        let part = parts.pop_front();
        if parts.is_empty() {
            self.0.remove(&index);
        }
        part
    }

    /// Drops the backlog of a connection that is gone.
    pub(super) fn remove(&mut self, index: u32) {
        if !self.0.is_empty() {
            self.0.remove(&index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static BODY: [u8; 2 * PIECE + 1] = [b'b'; 2 * PIECE + 1];

    #[test]
    fn a_body_comes_in_pieces_and_what_follows_it_as_it_is() {
        let mut backlog = Backlog::default();
        backlog.push(3, Cow::Borrowed(&BODY));
        backlog.push(3, Cow::Owned(b"head".to_vec()));
        backlog.push(3, Cow::Borrowed(&BODY[..PIECE]));
        backlog.push(4, Cow::Owned(b"other".to_vec()));
        let lengths: Vec<usize> = std::iter::from_fn(|| backlog.pop(3)).map(|bytes| bytes.len()).collect();
        assert_eq!(lengths, [PIECE, PIECE, 1, 4, PIECE]);
        assert!(!backlog.has(3) && backlog.has(4));
        backlog.remove(4);
        assert!(!backlog.has(4) && backlog.pop(4).is_none());
    }
}
