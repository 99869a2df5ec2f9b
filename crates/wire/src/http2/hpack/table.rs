//! The dynamic table (RFC 7541, section 2.3.2), in memory of a fixed size.

use super::FIELD_OVERHEAD;

/// Maximum size, measured as in section 4.1: what a peer may use before it has the SETTINGS of this end (RFC 9113, section 6.5.2).
const LARGEST: usize = 4096;
/// Maximum number of entries: each counts at least its overhead.
const MOST_ENTRIES: usize = LARGEST / FIELD_OVERHEAD;

/// The dynamic table of a peer that does not have the SETTINGS of this end yet, or does not follow them.
#[derive(Clone, Debug)]
pub struct Table {
    /// The text of the entries, oldest first, from `start` to `end`.
    text: [u8; LARGEST],
    start: usize,
    end: usize,
    /// A ring of the lengths of name and value, the oldest at `oldest`.
    entries: [(u16, u16); MOST_ENTRIES],
    oldest: usize,
    count: usize,
    largest: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// An empty table of 4,096 bytes.
    pub const fn new() -> Self {
        Self {
            text: [0; LARGEST],
            start: 0,
            end: 0,
            entries: [(0, 0); MOST_ENTRIES],
            oldest: 0,
            count: 0,
            largest: LARGEST,
        }
    }

    /// The entry before which `nth` newer ones were inserted; 0 is the newest.
    pub(super) fn get(&self, nth: usize) -> Option<(&[u8], &[u8])> {
        let before = self.count.checked_sub(nth + 1)?;
        // Counts back from the newest, because recent entries are used most.
        let newer: usize = (0..nth).map(|nth| self.text_len(self.count - 1 - nth)).sum();
        let (name, value) = self.entry(before);
        let end = self.end - newer;
        let (text, name) = (&self.text[..end], usize::from(name));
        let text = &text[end - name - usize::from(value)..];
        Some(text.split_at(name))
    }

    /// Inserts a field, and evicts old ones to make room. A field larger than the table empties it (section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let len = name.len() + value.len();
        while self.count > 0 && self.size() + len + FIELD_OVERHEAD > self.largest {
            self.evict();
        }
        if len + FIELD_OVERHEAD > self.largest {
            return;
        }
        if self.end + len > LARGEST {
            self.text.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        self.text[self.end..][..name.len()].copy_from_slice(name);
        self.text[self.end + name.len()..][..value.len()].copy_from_slice(value);
        self.end += len;
        self.entries[(self.oldest + self.count) % MOST_ENTRIES] = (name.len() as u16, value.len() as u16);
        self.count += 1;
    }

    /// Changes the maximum size; `None` if it exceeds the limit.
    pub(super) fn resize(&mut self, largest: usize) -> Option<()> {
        if largest > LARGEST {
            return None;
        }
        self.largest = largest;
        while self.size() > largest {
            self.evict();
        }
        Some(())
    }

    pub(super) fn size(&self) -> usize {
        self.end - self.start + self.count * FIELD_OVERHEAD
    }

    fn evict(&mut self) {
        self.start += self.text_len(0);
        self.oldest = (self.oldest + 1) % MOST_ENTRIES;
        self.count -= 1;
    }

    /// The lengths of name and value of the entry with `before` older ones.
    fn entry(&self, before: usize) -> (u16, u16) {
        self.entries[(self.oldest + before) % MOST_ENTRIES]
    }

    fn text_len(&self, before: usize) -> usize {
        let (name, value) = self.entry(before);
        usize::from(name) + usize::from(value)
    }
}
