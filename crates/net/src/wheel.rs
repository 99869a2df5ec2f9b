//! Timers: a hashed timing wheel with two levels (Varghese and Lauck 1987, scheme 7). 65,536 near slots of 1 ms hold the timers that are
//! due within 65.5 s; 4,096 far slots of 256 ms hold the others.
//!
//! Every 256 ms the timers of the next far slot move to near slots, so a timer moves at most once, and a move never covers more than one
//! far slot. Timers that are due a full turn of the far slots (17.5 min) or more later stay in their far slot and are checked again one
//! turn later. Each connection has one timer: 12 bytes, and no allocation after its first use.

use units::Nanos;

/// Number of near slots, of 1 ms each.
const SLOTS: u32 = 1 << 16;
/// Number of far slots, of `FAR` milliseconds each. Their list heads follow those of the near slots.
const FAR_SLOTS: u32 = 1 << 12;
const FAR: u64 = 256;
/// List head of the timers that have expired and were not taken yet.
const EXPIRED: u32 = SLOTS + FAR_SLOTS;
/// The list heads come first in the node table; connection `i` is node `FIRST + i`.
const FIRST: u32 = EXPIRED + 1;
const NONE: u32 = u32::MAX;

/// A member of a circular, doubly linked list; `next == NONE` means that no timer is set.
#[derive(Clone, Copy)]
struct Node {
    next: u32,
    prev: u32,
    /// Due time in milliseconds, rounded up (wraps after 49 days; compared by difference).
    at: u32,
}

/// The timers of one shard.
pub(crate) struct Wheel {
    nodes: Vec<Node>,
    /// One bit per near slot: set if the slot may hold a timer.
    filled: Box<[u64; (SLOTS / 64) as usize]>,
    /// One bit per word of `filled`: set if the word is not zero.
    summary: [u64; (SLOTS / 64 / 64) as usize],
    /// Every timer due before this millisecond was handed out or is in the expired list.
    cursor: u64,
    /// Timers due before this millisecond are in near slots, later ones in far slots. At most one turn of the near slots after the cursor.
    far: u64,
    /// Number of timers that are set.
    set: u32,
}

impl Wheel {
    /// Creates a wheel for connections with an index below `limit`. Memory is touched only when an index is first used.
    pub(crate) fn new(limit: u32) -> Wheel {
        let mut nodes = Vec::with_capacity((FIRST + limit) as usize);
        nodes.extend((0..FIRST).map(|i| Node { next: i, prev: i, at: 0 }));
        Wheel {
            nodes,
            filled: Box::new([0; (SLOTS / 64) as usize]),
            summary: [0; (SLOTS / 64 / 64) as usize],
            cursor: 0,
            far: u64::from(SLOTS),
            set: 0,
        }
    }

    /// Sets or moves the timer of connection `index` to the first whole millisecond at or after `at`.
    pub(crate) fn set(&mut self, index: u32, at: Nanos) {
        let node = FIRST + index;
        if node as usize >= self.nodes.len() {
            self.nodes.resize(node as usize + 1, Node { next: NONE, prev: NONE, at: 0 });
        }
        self.clear(index);
        let at = at.0.div_ceil(1_000_000).max(self.cursor);
        self.nodes[node as usize].at = at as u32;
        if at < self.far {
            self.link_near(node, at as u32);
        } else {
            self.link(node, far_slot(at));
        }
        self.set += 1;
    }

    /// Clears the timer of connection `index`, if it is set.
    pub(crate) fn clear(&mut self, index: u32) {
        let node = FIRST + index;
        if self.nodes.get(node as usize).is_some_and(|n| n.next != NONE) {
            self.unlink(node);
            self.set -= 1;
        }
    }

    /// The time for which the timer of connection `index` was last set; correct within 24 days of now.
    pub(crate) fn at(&self, index: u32) -> Nanos {
        let ago = (self.cursor as u32).wrapping_sub(self.nodes[(FIRST + index) as usize].at) as i32;
        Nanos::from_millis((self.cursor as i64 - i64::from(ago)) as u64)
    }

    /// Takes one timer that is due at `now`, in the order of their milliseconds.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<u32> {
        if self.nodes[EXPIRED as usize].next == EXPIRED {
            self.advance(now.millis());
        }
        let node = self.nodes[EXPIRED as usize].next;
        (node != EXPIRED).then(|| {
            self.unlink(node);
            self.set -= 1;
            node - FIRST
        })
    }

    /// When to check again: no timer is due earlier. [`Nanos::NEVER`] if no timer is set.
    pub(crate) fn next(&self) -> Nanos {
        if self.set == 0 {
            return Nanos::NEVER;
        }
        if self.nodes[EXPIRED as usize].next != EXPIRED {
            return Nanos::from_millis(self.cursor.saturating_sub(1));
        }
        let due = self.next_filled(self.cursor).unwrap_or(u64::MAX);
        Nanos::from_millis(due.min(self.next_move()))
    }

    /// Visits the filled slots up to `now_ms`, until one yields expired timers.
    fn advance(&mut self, now_ms: u64) {
        while self.cursor <= now_ms {
            let until = now_ms.min(self.next_move() - 1);
            while let Some(at) = self.next_filled(self.cursor).filter(|&at| at <= until) {
                self.cursor = at + 1;
                self.expire((at % u64::from(SLOTS)) as u32);
                if self.nodes[EXPIRED as usize].next != EXPIRED {
                    return;
                }
            }
            self.cursor = until + 1;
            if self.cursor == self.next_move() {
                self.move_near();
            }
        }
    }

    /// The first millisecond at which the near slots have room for the timers of the next far slot.
    fn next_move(&self) -> u64 {
        self.far + FAR - u64::from(SLOTS)
    }

    /// Moves the timers of the first far slot to near slots, except those that are due a turn of the far slots or more later.
    fn move_near(&mut self) {
        let (slot, from) = (far_slot(self.far), self.far as u32);
        self.far += FAR;
        let mut node = self.nodes[slot as usize].next;
        while node != slot {
            let Node { next, at, .. } = self.nodes[node as usize];
            if u64::from(at.wrapping_sub(from)) < FAR {
                self.unlink(node);
                self.link_near(node, at);
            }
            node = next;
        }
    }

    /// Moves all timers of a near slot to the end of the expired list.
    fn expire(&mut self, slot: u32) {
        let word = (slot / 64) as usize;
        self.filled[word] &= !(1 << (slot % 64));
        if self.filled[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        let Node { next: first, prev: last, .. } = self.nodes[slot as usize];
        if first == slot {
            return;
        }
        let end = self.nodes[EXPIRED as usize].prev;
        (self.nodes[end as usize].next, self.nodes[first as usize].prev) = (first, end);
        (self.nodes[last as usize].next, self.nodes[EXPIRED as usize].prev) = (EXPIRED, last);
        (self.nodes[slot as usize].next, self.nodes[slot as usize].prev) = (slot, slot);
    }

    /// Links `node` into the near slot of millisecond `at`.
    fn link_near(&mut self, node: u32, at: u32) {
        let slot = at % SLOTS;
        self.link(node, slot);
        self.mark(slot);
    }

    fn mark(&mut self, slot: u32) {
        self.filled[(slot / 64) as usize] |= 1 << (slot % 64);
        self.summary[(slot / 4096) as usize] |= 1 << (slot / 64 % 64);
    }

    /// The first millisecond at or after `from` whose near slot may hold a timer.
    fn next_filled(&self, from: u64) -> Option<u64> {
        let start = (from % u64::from(SLOTS)) as u32;
        let found = self.filled_from(start).or_else(|| self.filled_from(0))?;
        Some(from + u64::from(found.wrapping_sub(start) % SLOTS))
    }

    /// The first filled near slot at or after `slot`.
    fn filled_from(&self, slot: u32) -> Option<u32> {
        let word = (slot / 64) as usize;
        let here = self.filled[word] & (u64::MAX << (slot % 64));
        if here != 0 {
            return Some(word as u32 * 64 + here.trailing_zeros());
        }
        let next = word + 1;
        let mut group = next / 64;
        let mut mask = u64::MAX.checked_shl((next % 64) as u32).unwrap_or(0);
        while group < self.summary.len() {
            let words = self.summary[group] & mask;
            if words != 0 {
                let word = group * 64 + words.trailing_zeros() as usize;
                return Some(word as u32 * 64 + self.filled[word].trailing_zeros());
            }
            (group, mask) = (group + 1, u64::MAX);
        }
        None
    }

    /// Appends `node` to the list with this head.
    fn link(&mut self, node: u32, head: u32) {
        let last = self.nodes[head as usize].prev;
        self.nodes[node as usize].next = head;
        self.nodes[node as usize].prev = last;
        self.nodes[last as usize].next = node;
        self.nodes[head as usize].prev = node;
    }

    fn unlink(&mut self, node: u32) {
        let Node { next, prev, .. } = self.nodes[node as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        self.nodes[node as usize].next = NONE;
    }
}

/// The far slot for a timer that is due at millisecond `at`.
fn far_slot(at: u64) -> u32 {
    SLOTS + (at / FAR % u64::from(FAR_SLOTS)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares the wheel with a map: every timer fires in the millisecond in which it is due.
        #[test]
        fn agrees_with_a_sorted_list(steps in proptest::collection::vec((0u8..5, 0u32..40, 0u64..200_000), 1..400)) {
            let mut wheel = Wheel::new(40);
            let mut list: BTreeMap<u32, u64> = BTreeMap::new();
            // `unseen`: the first millisecond that the wheel has not handed out yet. A timer set for an earlier one fires then.
            let (mut now, mut unseen) = (0u64, 0u64);
            for (what, index, ms) in steps {
                match what {
                    0 => { wheel.clear(index); list.remove(&index); }
                    1 => {
                        now += ms;
                        unseen = now + 1;
                        let mut fired = vec![];
                        while let Some(i) = wheel.pop(Nanos::from_millis(now)) { fired.push(i); }
                        let order: Vec<u64> = fired.iter().map(|i| list[i]).collect();
                        prop_assert!(order.is_sorted(), "{order:?}");
                        fired.sort_unstable();
                        let due: Vec<u32> = list.iter().filter(|(_, at)| **at <= now).map(|(i, _)| *i).collect();
                        prop_assert_eq!(&fired, &due);
                        list.retain(|_, at| *at > now);
                    }
                    _ => {
                        // Some timers are up to four turns of the far slots away.
                        let at = now + if what == 2 { 20 * ms } else { ms };
                        wheel.set(index, Nanos::from_millis(at));
                        list.insert(index, at.max(unseen));
                    }
                }
                prop_assert_eq!(wheel.set as usize, list.len());
                let earliest = list.values().min().copied();
                match earliest {
                    None => prop_assert_eq!(wheel.next(), Nanos::NEVER),
                    Some(at) => prop_assert!(wheel.next() <= Nanos::from_millis(at)),
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_millisecond_rounds_up() {
        let mut wheel = Wheel::new(1);
        wheel.set(0, Nanos(1_000_001));
        assert_eq!(wheel.pop(Nanos(1_999_999)), None);
        assert_eq!(wheel.pop(Nanos(2_000_000)), Some(0));
        assert_eq!(wheel.set, 0);
    }

    #[test]
    fn a_far_timer_wakes_four_times_a_second_and_fires_on_time() {
        let mut wheel = Wheel::new(1);
        wheel.set(0, Nanos::from_secs(3600));
        let (mut now, mut looks) = (Nanos::ZERO, 0);
        while wheel.pop(now).is_none() {
            now = wheel.next();
            looks += 1;
        }
        assert_eq!(now, Nanos::from_secs(3600));
        assert!((14_000..14_200).contains(&looks), "3600 s of 256 ms each, and the end: {looks}");
    }

    #[test]
    fn timers_of_one_far_slot_fire_in_their_own_milliseconds_and_turns() {
        let mut wheel = Wheel::new(1_000);
        let turn = FAR * u64::from(FAR_SLOTS);
        // All in one far slot, in reverse order; the first ones are three turns away.
        let at = |i: u32| 2_000_000 / FAR * FAR + 255 - u64::from(i % 256) + turn * (3 - u64::from(i / 256));
        (0..1_000).for_each(|i| wheel.set(i, Nanos::from_millis(at(i))));
        let mut fired = Vec::new();
        while fired.len() < 1_000 {
            let now = wheel.next();
            fired.extend(std::iter::from_fn(|| wheel.pop(now)).map(|i| (now.millis(), i)));
        }
        assert!(fired.iter().all(|(ms, i)| *ms == at(*i)));
        assert_eq!(wheel.next(), Nanos::NEVER);
    }

    #[test]
    fn after_a_long_stall_everything_due_comes_at_once() {
        let mut wheel = Wheel::new(100);
        (0..100).for_each(|i| wheel.set(i, Nanos::from_secs(u64::from(i) * 10)));
        let fired = std::iter::from_fn(|| wheel.pop(Nanos::from_secs(500))).count();
        assert_eq!(fired, 51);
    }
}
