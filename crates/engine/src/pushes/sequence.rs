//! Sequence numbers of the messages of a WebSocket: detects missing, duplicate and late ones.

/// The highest number so far, and which of the 64 numbers up to it have arrived.
///
/// Like the anti-replay window of IPsec (RFC 4303 section 3.4.3), for another purpose. A number below the window is a duplicate,
/// unless its successor follows: then the sequence restarts, unless it later continues where it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    /// The first number of the sequence.
    first: u64,
    highest: u64,
    /// Bit n: `highest - n` has arrived. 0: nothing has.
    seen: u64,
    /// If below `highest`: the last number, too low for the window and not decided yet. If above: the highest number before a
    /// restart.
    other: u64,
    /// Numbers below this may be history: sent to others before this connection opened.
    from: u64,
}

/// The classification of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Higher than all before; this many numbers were left out.
    Next(u64),
    /// Left out before, now late.
    Late,
    /// Lower than the first one that arrived: it was not missing.
    Before,
    /// A duplicate.
    Duplicate,
    /// A new sequence: a number below the window whose successor followed, or one too far ahead for all numbers between to be
    /// missing.
    Restart,
}

const WINDOW: u64 = u64::BITS as u64;
/// Maximum number of messages missing at once: with more left out, the sequence restarts. No server loses 2³² messages between
/// two, and sums of such numbers do not overflow.
const MAX_LEFT_OUT: u64 = 1 << 32;
/// Value of `other` for no number.
const NONE: u64 = u64::MAX;
/// Values of `from`, for a connection opened in this tick, and in the previous one.
const FRESH: u64 = u64::MAX;
const SETTLING: u64 = FRESH - 1;
impl Sequence {
    /// The sequence of a connection that has opened. If it is fresh, its messages may be history until it has
    /// [settled](Sequence::settle).
    pub(crate) fn new(is_fresh: bool) -> Sequence {
        Sequence { first: 0, highest: 0, seen: 0, other: NONE, from: if is_fresh { FRESH } else { 0 } }
    }

    /// Whether it has not settled.
    pub(crate) fn is_fresh(&self) -> bool {
        self.from >= SETTLING
    }

    /// The highest number so far, if any has arrived.
    pub(crate) fn highest(&self) -> Option<u64> {
        (self.seen != 0).then_some(self.highest)
    }

    /// A tick ends. After the second one, what has arrived was history, and what arrives later is sent to all. Returns whether
    /// the sequence has settled.
    pub(crate) fn settle(&mut self) -> bool {
        self.from = match self.from {
            FRESH => SETTLING,
            SETTLING if self.seen == 0 => 0,
            SETTLING => self.highest.saturating_add(1),
            from => from,
        };
        !self.is_fresh()
    }

    /// Takes the number of the next message: calls `known` for each number that is now decided, with its arrival and whether
    /// other connections received it at the same time. Numbers sent before the connection opened are not missing.
    pub(crate) fn take(&mut self, number: u64, mut known: impl FnMut(u64, Arrival, bool)) {
        if self.seen == 0 {
            self.begin(number);
            return known(number, Arrival::Next(0), number >= self.from);
        }
        let is_below = |it: u64| self.highest.checked_sub(it).is_some_and(|behind| behind >= WINDOW);
        if self.other < self.highest {
            let (old, before) = (self.other, self.highest);
            self.other = NONE;
            if is_below(number) && number == old + 1 {
                self.begin(old);
                self.other = before;
                self.from = if self.is_fresh() { self.from } else { 0 };
                known(old, Arrival::Restart, old >= self.from);
            } else {
                known(old, Arrival::Duplicate, false);
            }
        }
        if self.other != NONE && (1..WINDOW).contains(&number.wrapping_sub(self.other)) {
            // The lower numbers were repetitions, and the sequence continues.
            self.begin(self.other);
        }
        let Some(arrival) = self.of(number) else {
            self.other = number;
            return;
        };
        if self.other <= self.highest {
            self.other = NONE;
        }
        known(number, arrival, number >= self.from);
    }

    fn begin(&mut self, number: u64) {
        (self.first, self.highest, self.seen) = (number, number, 1);
    }

    /// Classifies a number; `None` if it is below the window.
    fn of(&mut self, number: u64) -> Option<Arrival> {
        if number > self.highest {
            let ahead = number - self.highest;
            if ahead > MAX_LEFT_OUT {
                self.begin(number);
                return Some(Arrival::Restart);
            }
            self.seen = if ahead < WINDOW { self.seen << ahead | 1 } else { 1 };
            self.highest = number;
            return Some(Arrival::Next(ahead - 1));
        }
        let behind = self.highest - number;
        if behind >= WINDOW {
            return None;
        }
        if number < self.first {
            return Some(Arrival::Before);
        }
        let bit = 1 << behind;
        if self.seen & bit != 0 {
            return Some(Arrival::Duplicate);
        }
        self.seen |= bit;
        Some(Arrival::Late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Arrival::{Before, Duplicate, Late, Next, Restart};

    fn check(numbers: &[u64], expected: &[(u64, Arrival)]) {
        let mut sequence = Sequence::new(false);
        let mut got = Vec::new();
        numbers.iter().for_each(|number| sequence.take(*number, |number, it, _| got.push((number, it))));
        assert_eq!(got, expected, "{numbers:?}");
    }

    #[test]
    fn numbers_are_next_late_or_twice() {
        check(&[5, 6, 7], &[(5, Next(0)), (6, Next(0)), (7, Next(0))]);
        check(
            &[0, 3, 2, 2, 1, 3, 4],
            &[(0, Next(0)), (3, Next(2)), (2, Late), (2, Duplicate), (1, Late), (3, Duplicate), (4, Next(0))],
        );
        // What came before the first is unknown.
        check(&[7, 6, 8], &[(7, Next(0)), (6, Before), (8, Next(0))]);
    }

    #[test]
    fn a_number_far_below_is_repeated_or_begins_a_new_sequence() {
        // Decided only by the next number.
        check(&[100, 200, 100], &[(100, Next(0)), (200, Next(99))]);
        check(&[100, 200, 100, 201], &[(100, Next(0)), (200, Next(99)), (100, Duplicate), (201, Next(0))]);
        check(
            &[100, 200, 100, 130, 201],
            &[(100, Next(0)), (200, Next(99)), (100, Duplicate), (130, Duplicate), (201, Next(0))],
        );
        check(&[500, 1, 2, 4, 3], &[(500, Next(0)), (1, Restart), (2, Next(0)), (4, Next(1)), (3, Late)]);
        // Several are repeated, then the sequence continues.
        check(
            &[500, 100, 101, 102, 502, 503],
            &[(500, Next(0)), (100, Restart), (101, Next(0)), (102, Next(0)), (502, Next(1)), (503, Next(0))],
        );
        // A new sequence that grows beyond the previous one.
        let mut sequence = Sequence::new(false);
        let mut restarts = 0;
        for number in (0..100).chain(0..300) {
            sequence.take(number, |number, it, _| match it {
                Next(0) => {}
                Restart => restarts += 1,
                // Within the window it cannot be distinguished from duplicates.
                other => panic!("{number}: {other:?}"),
            });
        }
        assert_eq!(restarts, 1);
    }

    /// Numbers too far ahead do not count as missing: sums over all messages do not overflow.
    #[test]
    fn a_number_far_ahead_begins_a_new_sequence() {
        let far = MAX_LEFT_OUT + 10;
        check(&[10, far, far + 2], &[(10, Next(0)), (far, Next(MAX_LEFT_OUT - 1)), (far + 2, Next(1))]);
        check(&[10, far + 1, far + 3], &[(10, Next(0)), (far + 1, Restart), (far + 3, Next(1))]);
        check(&[0, u64::MAX, 1, 2], &[(0, Next(0)), (u64::MAX, Restart), (1, Restart), (2, Next(0))]);
        let mut skipped = 0u64;
        let mut sequence = Sequence::new(false);
        for number in [0, 1 << 63, u64::MAX - 1, 1, 2, u64::MAX - 2, 3, 4].into_iter().cycle().take(800) {
            sequence.take(number, |_, it, _| {
                if let Next(left_out) = it {
                    skipped = skipped.checked_add(left_out).expect("it does not overflow");
                }
            });
        }
    }

    #[test]
    fn what_comes_right_after_a_connection_was_opened_may_be_history() {
        let mut sequence = Sequence::new(true);
        let mut got = Vec::new();
        let mut take = |sequence: &mut Sequence, number| {
            sequence.take(number, |number, _, was_there| got.push((number, was_there)));
        };
        [7, 8, 9].into_iter().for_each(|number| take(&mut sequence, number));
        assert!(!sequence.settle() && sequence.settle(), "with the second tick");
        // The last one again, then new ones; then a sequence that restarts.
        [9, 10, 200, 1, 2].into_iter().for_each(|number| take(&mut sequence, number));
        let history = [(7, false), (8, false), (9, false), (9, false)];
        let live = [(10, true), (200, true), (1, true), (2, true)];
        assert_eq!(got, [history, live].concat());
        let mut quiet = Sequence::new(true);
        assert!(!quiet.settle() && quiet.settle());
        quiet.take(3, |_, _, was_there| assert!(was_there));
    }

    /// What is missing at the end is what never came, whatever else came late.
    #[test]
    fn what_is_left_out_and_not_late_is_lost() {
        let mut sequence = Sequence::new(false);
        // Every fifth is left out; every other one of these comes three later.
        let (mut skipped, mut late) = (0, 0);
        for n in 1..=1_000u64 {
            let mut take = |number| {
                sequence.take(number, |number, it, _| match it {
                    Next(left_out) => skipped += left_out,
                    Late => late += 1,
                    other => panic!("{number}: {other:?}"),
                });
            };
            if n % 5 != 0 {
                take(n);
            }
            if n % 10 == 3 && n > 3 {
                take(n - 3);
            }
        }
        // Number 1,000 is above the last that arrived.
        assert_eq!((skipped, late), (199, 99));
    }
}
