//! The queue of connections that can take a request, the longest free first: all of them are used, as with many users, and none
//! is idle for longer than the rate requires.

const NONE: u32 = u32::MAX;

/// The neighbours of a member; an index that is not queued has itself for both.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

/// A queue of connection indices with removal from any position: a doubly linked list, 8 bytes each.
#[derive(Debug)]
pub(super) struct Rotation {
    links: Vec<Links>,
    first: u32,
    last: u32,
}

impl Rotation {
    /// An empty queue with room for indices below `limit`; memory is touched only when used.
    pub(super) fn new(limit: u32) -> Rotation {
        Rotation { links: Vec::with_capacity(limit as usize), first: NONE, last: NONE }
    }

    /// Appends an index that is not queued.
    pub(super) fn push(&mut self, index: u32) {
        for outside in self.links.len() as u32..=index {
            self.links.push(Links { before: outside, after: outside });
        }
        assert!(!self.has(index), "a connection that is free twice: {index}");
        self.links[index as usize] = Links { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = index,
            last => self.links[last as usize].after = index,
        }
        self.last = index;
    }

    /// Removes the first.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let first = (self.first != NONE).then_some(self.first)?;
        self.remove(first);
        Some(first)
    }

    /// Removes an index, if it is queued.
    pub(super) fn remove(&mut self, index: u32) {
        if !self.has(index) {
            return;
        }
        let Links { before, after } = self.links[index as usize];
        match before {
            NONE => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.links[after as usize].before = before,
        }
        self.links[index as usize] = Links { before: index, after: index };
    }

    /// Whether an index is queued.
    pub(super) fn has(&self, index: u32) -> bool {
        self.links.get(index as usize).is_some_and(|links| links.before != index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn agrees_with_a_queue(steps in proptest::collection::vec((0u8..3, 0u32..12), 0..200)) {
            let (mut rotation, mut queue) = (Rotation::new(12), VecDeque::new());
            for (what, index) in steps {
                match what {
                    0 if !queue.contains(&index) => {
                        rotation.push(index);
                        queue.push_back(index);
                    }
                    1 => {
                        rotation.remove(index);
                        queue.retain(|other| *other != index);
                    }
                    2 => prop_assert_eq!(rotation.pop(), queue.pop_front()),
                    _ => {}
                }
            }
            let rest: Vec<u32> = std::iter::from_fn(|| rotation.pop()).collect();
            prop_assert_eq!(rest, Vec::from(queue));
        }
    }
}
