//! The send queue: the bytes from the first unacknowledged one to the last that the program has sent.

use std::collections::VecDeque;

/// A piece of the queue.
enum Piece {
    /// This many bytes, copied to the queue's buffer.
    Own(usize),
    Static(&'static [u8]),
}

/// Bytes that are not acknowledged or not sent yet. Static bytes are referenced, others are copied.
#[derive(Default)]
pub(crate) struct SendQueue {
    /// The copied bytes; those before `head` were acknowledged.
    own: Vec<u8>,
    head: usize,
    pieces: VecDeque<Piece>,
    len: usize,
}

impl SendQueue {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        // Reuses the front before allocating, if it is at least half of the buffer, so that the cost of moving is amortised.
        if self.head > self.own.len() / 2 && self.own.len() + bytes.len() > self.own.capacity() {
            self.own.drain(..self.head);
            self.head = 0;
        }
        self.own.extend_from_slice(bytes);
        self.len += bytes.len();
        match self.pieces.back_mut() {
            Some(Piece::Own(len)) => *len += bytes.len(),
            _ => self.pieces.push_back(Piece::Own(bytes.len())),
        }
    }

    pub(crate) fn push_static(&mut self, bytes: &'static [u8]) {
        if !bytes.is_empty() {
            self.len += bytes.len();
            self.pieces.push_back(Piece::Static(bytes));
        }
    }

    /// Up to `len` bytes from `offset` on, as far as they are contiguous in memory.
    pub(crate) fn at(&self, mut offset: usize, len: usize) -> &[u8] {
        let mut own = &self.own[self.head..];
        for piece in &self.pieces {
            let bytes = match *piece {
                Piece::Own(len) => {
                    let (bytes, rest) = own.split_at(len);
                    own = rest;
                    bytes
                }
                Piece::Static(bytes) => bytes,
            };
            if offset < bytes.len() {
                return &bytes[offset..bytes.len().min(offset + len)];
            }
            offset -= bytes.len();
        }
        &[]
    }

    /// Removes the first `n` bytes, which were acknowledged.
    pub(crate) fn consume(&mut self, mut n: usize) {
        self.len -= n;
        while let Some(piece) = self.pieces.front_mut().filter(|_| n > 0) {
            let (len, all) = match piece {
                Piece::Own(len) => {
                    let taken = n.min(*len);
                    self.head += taken;
                    *len -= taken;
                    (taken, *len == 0)
                }
                Piece::Static(bytes) => {
                    let taken = n.min(bytes.len());
                    *bytes = &bytes[taken..];
                    (taken, bytes.is_empty())
                }
            };
            n -= len;
            if all {
                self.pieces.pop_front();
            }
        }
        if self.pieces.is_empty() {
            self.own.clear();
            self.head = 0;
        }
    }

    /// The size of its memory, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.own.capacity()
    }

    /// Empties the queue; with `release`, frees its memory too.
    pub(crate) fn reset(&mut self, release: bool) {
        self.pieces.clear();
        self.own.clear();
        (self.head, self.len) = (0, 0);
        if release {
            *self = SendQueue::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    static TEXT: [u8; 64] = [b's'; 64];

    #[derive(Clone, Debug)]
    enum Act {
        Push(Vec<u8>),
        Static(usize),
        Consume(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..50).prop_map(Act::Push),
            (0..=TEXT.len()).prop_map(Act::Static),
            (0usize..120).prop_map(Act::Consume),
        ]
    }

    proptest! {
        #[test]
        fn is_a_queue_of_bytes(acts in prop::collection::vec(act(), 0..40)) {
            let (mut queue, mut model) = (SendQueue::default(), Vec::<u8>::new());
            for act in acts {
                match act {
                    Act::Push(bytes) => {
                        queue.push(&bytes);
                        model.extend(bytes);
                    }
                    Act::Static(n) => {
                        queue.push_static(&TEXT[..n]);
                        model.extend(&TEXT[..n]);
                    }
                    Act::Consume(n) => {
                        let n = n.min(model.len());
                        queue.consume(n);
                        model.drain(..n);
                    }
                }
                prop_assert_eq!(queue.len(), model.len());
                let mut read: Vec<u8> = Vec::new();
                while read.len() < model.len() {
                    let bytes = queue.at(read.len(), 7);
                    prop_assert!(!bytes.is_empty() && bytes.len() <= 7);
                    read.extend(bytes);
                }
                prop_assert_eq!(&read, &model);
            }
        }
    }
}
