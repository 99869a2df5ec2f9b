//! A pool of temporary records, found by index.

/// The index of no record.
pub(crate) const NOTHING: u32 = u32::MAX;

/// Capacity is reserved at the start; memory is touched only when used.
pub(crate) struct Pool<T> {
    all: Vec<T>,
    free: Vec<u32>,
}

impl<T> Pool<T> {
    pub(crate) fn new(most: u32) -> Pool<T> {
        Pool { all: Vec::with_capacity(most as usize), free: Vec::with_capacity(most as usize) }
    }

    /// Stores a record; returns its index, valid until it ends.
    pub(crate) fn begin(&mut self, record: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.all[at as usize] = record;
                at
            }
            None => {
                self.all.push(record);
                (self.all.len() - 1) as u32
            }
        }
    }

    pub(crate) fn at(&mut self, at: u32) -> &mut T {
        &mut self.all[at as usize]
    }

    /// The same, shared.
    pub(crate) fn seen(&self, at: u32) -> &T {
        &self.all[at as usize]
    }

    pub(crate) fn end(&mut self, at: u32) {
        self.free.push(at);
    }

    /// Number of records in use.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn agrees_with_a_map(steps in proptest::collection::vec((any::<bool>(), any::<u8>()), 0..200)) {
            let (mut pool, mut map) = (Pool::new(4), HashMap::new());
            for (begins, n) in steps {
                if begins {
                    let at = pool.begin(n);
                    prop_assert_eq!(map.insert(at, n), None, "an index that is in use");
                } else if let Some(at) = map.keys().copied().min() {
                    map.remove(&at);
                    pool.end(at);
                }
                prop_assert_eq!(pool.len(), map.len());
                for (at, n) in &map {
                    prop_assert_eq!((*pool.seen(*at), *pool.at(*at)), (*n, *n));
                }
            }
        }
    }
}
