//! Received bytes that could not be reported yet, because they arrived out of order or while the connection was on hold.

use crate::packet::{MOST_SACKS, Sacks};
use crate::seq::{after, before};

/// Maximum number of ranges of data out of order. Data that would need one more is dropped.
const MOST_RANGES: usize = 256;

/// A buffer in stream order: first the bytes that are ready to be read, then, from the next expected sequence number on, bytes that
/// arrived out of order, with gaps between them.
#[derive(Default)]
pub(crate) struct Inbound {
    bytes: Vec<u8>,
    /// Bytes at the front that have been read.
    head: usize,
    /// Bytes after `head` that are in order.
    ready: usize,
    /// Ranges of data out of order: first number, and the number after the last. Sorted and separate.
    ranges: Vec<(u32, u32)>,
    /// First numbers of the ranges that grew last, most recent first; entries whose range no longer exists match nothing.
    recent: [u32; MOST_SACKS],
    /// The sequence number of a FIN that arrived out of order.
    pub(crate) fin: Option<u32>,
}

impl Inbound {
    /// Number of bytes that can be read.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ready == 0 && self.ranges.is_empty() && self.fin.is_none()
    }

    /// Whether anything arrived out of order.
    pub(crate) fn has_gap(&self) -> bool {
        !self.ranges.is_empty() || self.fin.is_some()
    }

    /// Keeps bytes of the stream from `seq` on; `next` is the next expected number, and `seq` is not before it. Returns whether they were
    /// kept.
    pub(crate) fn keep(&mut self, seq: u32, bytes: &[u8], next: u32) -> bool {
        let end = seq.wrapping_add(bytes.len() as u32);
        // Ranges that the bytes overlap or touch are merged with them.
        let first = self.ranges.partition_point(|range| before(range.1, seq));
        let last = self.ranges.partition_point(|range| !after(range.0, end));
        if first == last && self.ranges.len() == MOST_RANGES && seq != next {
            return false;
        }
        let from = self.head + self.ready + seq.wrapping_sub(next) as usize;
        let to = from + bytes.len();
        if self.bytes.len() < to {
            self.make_room(to);
        }
        let from = self.head + self.ready + seq.wrapping_sub(next) as usize;
        self.bytes[from..from + bytes.len()].copy_from_slice(bytes);
        let mut merged = (seq, end);
        for range in &self.ranges[first..last] {
            if before(range.0, merged.0) {
                merged.0 = range.0;
            }
            if after(range.1, merged.1) {
                merged.1 = range.1;
            }
        }
        self.ranges.splice(first..last, [merged]);
        self.note_recent(merged);
        true
    }

    fn note_recent(&mut self, range: (u32, u32)) {
        // Ranges that were merged into this one make room.
        let is_other = |from: &u32| before(*from, range.0) || !before(*from, range.1);
        let others = self.recent.into_iter().filter(is_other).chain(self.recent);
        let mut recent = std::iter::once(range.0).chain(others);
        self.recent = std::array::from_fn(|_| recent.next().expect("once more than there is room for"));
    }

    /// The blocks to acknowledge selectively: first the range with the most recent bytes, then those that grew before it (RFC 2018, section
    /// 4).
    pub(crate) fn sacks(&self) -> Sacks {
        let mut sacks = Sacks::default();
        let range_from = |from: u32| {
            let at = self.ranges.partition_point(|range| before(range.0, from));
            self.ranges.get(at).filter(|range| range.0 == from)
        };
        let recent = self.recent.into_iter().filter_map(range_from);
        for &(from, to) in recent.chain(self.ranges.iter().take(MOST_SACKS)) {
            // A FIN takes one sequence number.
            sacks.add((from, to.wrapping_add(u32::from(self.fin == Some(to)))));
        }
        sacks
    }

    fn make_room(&mut self, to: usize) {
        // Moves the bytes only if at least half were read, so that the cost of moving is amortised.
        if self.head > self.bytes.len() / 2 && to > self.bytes.capacity() {
            self.bytes.drain(..self.head);
            self.bytes.resize(to - self.head, 0);
            self.head = 0;
        } else {
            self.bytes.resize(to, 0);
        }
    }

    /// Skips `n` bytes from the next expected number on, which were reported without being kept. Nothing may be ready.
    pub(crate) fn skip(&mut self, n: u32, next: u32) {
        let behind = next.wrapping_add(n);
        self.head = (self.head + n as usize).min(self.bytes.len());
        self.ranges.retain_mut(|range| {
            range.0 = crate::seq::later(range.0, behind);
            before(range.0, range.1)
        });
    }

    /// Makes ready what is in order now. Returns the next expected number.
    pub(crate) fn advance(&mut self, next: u32) -> u32 {
        match self.ranges.first() {
            Some(&(from, to)) if from == next => {
                self.ranges.remove(0);
                self.ready += to.wrapping_sub(from) as usize;
                to
            }
            _ => {
                if self.is_drained() {
                    self.bytes.clear();
                    self.head = 0;
                }
                next
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.ready == 0 && self.ranges.is_empty()
    }

    /// Copies ready bytes to the front of `buffer`; returns their number.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let n = self.ready.min(buffer.len());
        buffer[..n].copy_from_slice(&self.bytes[self.head..self.head + n]);
        self.head += n;
        self.ready -= n;
        if self.is_drained() {
            self.bytes.clear();
            self.head = 0;
        }
        n
    }

    /// The size of its memory, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Empties the buffer; with `release`, frees its memory too.
    pub(crate) fn reset(&mut self, release: bool) {
        self.bytes.clear();
        self.ranges.clear();
        (self.head, self.ready, self.fin) = (0, 0, None);
        if release {
            *self = Inbound::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Act {
        /// Bytes arrive, from this offset after the next expected one; kept, or with `direct` reported at once if possible.
        Come {
            offset: u32,
            len: u32,
            direct: bool,
        },
        Read(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            4 => (0u32..60, 1u32..30, any::<bool>())
                .prop_map(|(offset, len, direct)| Act::Come { offset: offset / 2 * (offset % 2), len, direct }),
            1 => (1usize..40).prop_map(Act::Read),
        ]
    }

    fn byte(position: u32) -> u8 {
        (position ^ position >> 8) as u8
    }

    proptest! {
        /// Compares with the set of positions that have arrived: what is read is the stream, complete and in order.
        #[test]
        fn is_the_stream(first: u32, acts in prop::collection::vec(act(), 0..60)) {
            let mut inbound = Inbound::default();
            let mut came = std::collections::BTreeSet::new();
            // Positions count from `first`, which may be just before the wrap.
            let (mut next, mut read) = (0u32, 0u32);
            for act in acts {
                let mut latest = None;
                match act {
                    Act::Come { offset, len, direct } => {
                        latest = (offset > 0).then_some(next + offset);
                        let from = next + offset;
                        let bytes: Vec<u8> = (from..from + len).map(byte).collect();
                        came.extend(from..from + len);
                        let at = |position: u32| first.wrapping_add(position);
                        if offset == 0 && direct && inbound.ready() == 0 {
                            inbound.skip(len, at(next));
                            let now = inbound.advance(at(next + len)).wrapping_sub(first);
                            read += len;
                            next = now;
                        } else {
                            prop_assert!(inbound.keep(at(from), &bytes, at(next)));
                            next = inbound.advance(at(next)).wrapping_sub(first);
                        }
                    }
                    Act::Read(n) => {
                        let mut buffer = vec![0; n];
                        let got = inbound.read(&mut buffer);
                        let expected: Vec<u8> = (read..read + got as u32).map(byte).collect();
                        prop_assert_eq!(&buffer[..got], &expected[..]);
                        read += got as u32;
                    }
                }
                let sacks = inbound.sacks();
                for &(from, to) in sacks.get() {
                    let (from, to) = (from.wrapping_sub(first), to.wrapping_sub(first));
                    prop_assert!(next < from && from < to && (from..to).all(|position| came.contains(&position)));
                    prop_assert!(!came.contains(&(from - 1)) && !came.contains(&to), "whole ranges");
                }
                prop_assert_eq!(sacks.get().is_empty(), !inbound.has_gap());
                if let (Some(latest), Some((from, to))) = (latest, sacks.get().first()) {
                    let latest = first.wrapping_add(latest);
                    prop_assert!(!before(latest, *from) && before(latest, *to), "the latest first");
                }
                let expected = (0..).find(|position| !came.contains(position)).unwrap();
                prop_assert_eq!(next, expected);
                prop_assert_eq!(inbound.ready() as u32, next - read);
                prop_assert_eq!(inbound.has_gap(), came.last().is_some_and(|last| *last >= next));
            }
        }
    }

    #[test]
    fn the_latest_four_are_said() {
        let mut inbound = Inbound::default();
        let mut keep = |seq: u32, bytes: &[u8]| {
            assert!(inbound.keep(seq, bytes, 0));
            inbound.sacks().get().to_vec()
        };
        assert_eq!(keep(10, b"ab"), [(10, 12)]);
        assert_eq!(keep(20, b"ab"), [(20, 22), (10, 12)]);
        assert_eq!(keep(12, b"c"), [(10, 13), (20, 22)]);
        (3..6).for_each(|nth| drop(keep(10 * nth, b"x")));
        assert_eq!(keep(60, b"x"), [(60, 61), (50, 51), (40, 41), (30, 31)]);
        assert_eq!(keep(41, b"123456789"), [(40, 51), (60, 61), (30, 31), (10, 13)]);
        inbound.fin = Some(61);
        assert_eq!(inbound.sacks().get(), [(40, 51), (60, 62), (30, 31), (10, 13)]);
    }

    #[test]
    fn gaps_have_a_limit_and_what_is_next_is_always_taken() {
        let mut inbound = Inbound::default();
        for nth in 0..MOST_RANGES as u32 {
            assert!(inbound.keep(10 + 2 * nth, b"x", 0));
        }
        assert!(!inbound.keep(10_000, b"x", 0), "one more");
        assert!(inbound.keep(11, b"x", 0), "it joins two");
        assert!(inbound.keep(10_000, b"x", 0), "so there is room for another");
        assert!(inbound.keep(0, b"x", 0));
        assert_eq!((inbound.advance(0), inbound.ready()), (1, 1));
    }
}
