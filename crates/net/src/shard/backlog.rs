//! What connections have yet to send: bodies go out a piece at a time, so that a peer that reads slowly costs a piece, not a body.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
};

/// Most bytes of a body that a connection sends before it is known that they have left. A turn of the loop costs some microseconds, and
/// sending a piece of this size ten times that.
pub const PIECE: usize = 128 * 1024;

/// Bytes to send, in order, by the index of the connection.
#[derive(Default)]
pub(super) struct Backlog(HashMap<u32, VecDeque<Cow<'static, [u8]>>>);

impl Backlog {
    /// Whether the connection has anything to send.
    pub(super) fn has(&self, index: u32) -> bool {
        !self.0.is_empty() && self.0.contains_key(&index)
    }

    /// Adds these bytes after what the connection has.
    pub(super) fn push(&mut self, index: u32, bytes: Cow<'static, [u8]>) {
        self.0.entry(index).or_default().push_back(bytes);
    }

    /// Takes the next bytes of the connection, at most a piece of what lives as long as the program.
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

    /// The connection is no more.
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
