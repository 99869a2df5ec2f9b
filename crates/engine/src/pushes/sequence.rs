//! The numbers of the messages of one WebSocket: which are missing, which come twice, and which too late.

/// The highest number so far, and which of the 64 up to it have come.
///
/// As the window against replays of IPsec (RFC 4303 section 3.4.3), with another purpose: a number below it cannot be told from one
/// that has come before, and is a sequence that begins anew.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sequence {
    /// Where it begins.
    first: u64,
    highest: u64,
    /// The highest at bit 0; none where nothing has come.
    seen: u64,
}

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Higher than all before it, with this many left out.
    Next(u64),
    /// Left out before.
    Late,
    /// Lower than the first that came: it was not missing.
    Before,
    /// It came before.
    Duplicate,
    /// Too low for either.
    Restart,
}

const WINDOW: u64 = u64::BITS as u64;

impl Sequence {
    /// The next message has this number. What a connection did not hear, because it was not open then, is not missing.
    pub(crate) fn take(&mut self, number: u64) -> Arrival {
        if self.seen == 0 {
            *self = Sequence { first: number, highest: number, seen: 1 };
            return Arrival::Next(0);
        }
        if number > self.highest {
            let ahead = number - self.highest;
            self.seen = if ahead < WINDOW { self.seen << ahead | 1 } else { 1 };
            self.highest = number;
            return Arrival::Next(ahead - 1);
        }
        let behind = self.highest - number;
        if behind >= WINDOW {
            *self = Sequence { first: number, highest: number, seen: 1 };
            return Arrival::Restart;
        }
        if number < self.first {
            return Arrival::Before;
        }
        let bit = 1 << behind;
        if self.seen & bit != 0 {
            return Arrival::Duplicate;
        }
        self.seen |= bit;
        Arrival::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Arrival::{Before, Duplicate, Late, Next, Restart};

    fn check(numbers: &[u64], expected: &[Arrival]) {
        let mut sequence = Sequence::default();
        let got: Vec<Arrival> = numbers.iter().map(|number| sequence.take(*number)).collect();
        assert_eq!(got, expected, "{numbers:?}");
    }

    #[test]
    fn numbers_are_next_late_or_twice() {
        check(&[5, 6, 7], &[Next(0), Next(0), Next(0)]);
        check(&[0, 3, 2, 2, 1, 3, 4], &[Next(0), Next(2), Late, Duplicate, Late, Duplicate, Next(0)]);
        check(&[100, 163, 101, 164, 100, 101], &[Next(0), Next(62), Late, Next(0), Restart, Next(0)]);
        check(&[1, 1_000, 1_000, 999, 1, 2], &[Next(0), Next(998), Duplicate, Late, Restart, Next(0)]);
        // What came before the first is unknown.
        check(&[7, 6, 8], &[Next(0), Before, Next(0)]);
    }

    /// Whatever is left out and comes late: what is missing at the end is what never came.
    #[test]
    fn what_is_left_out_and_not_late_is_lost() {
        let mut sequence = Sequence::default();
        // Every fifth is left out, every other one of those comes three later.
        let (mut skipped, mut late) = (0, 0);
        for n in 1..=1_000u64 {
            let mut take = |number| match sequence.take(number) {
                Next(left_out) => skipped += left_out,
                Late => late += 1,
                other => panic!("{number}: {other:?}"),
            };
            if n % 5 != 0 {
                take(n);
            }
            if n % 10 == 3 && n > 3 {
                take(n - 3);
            }
        }
        // The thousandth is above the last that came.
        assert_eq!((skipped, late), (199, 99));
    }
}
