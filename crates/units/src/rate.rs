//! Rates: `20k/s`, `600/m`.

use crate::{Nanos, ParseError, count::scaled, span};
use std::fmt;

/// One per second, in thousandths per minute.
const ONE_PER_S: u64 = 60_000;
/// A thousandth per second, in thousandths per minute: the resolution of rates printed per second.
const FINEST_PER_S: u64 = ONE_PER_S / 1_000;
/// One event: the product of a rate in thousandths per minute and a time in nanoseconds.
const ONE: u128 = 60_000 * 1_000_000_000;

/// Events per time, exact for whole numbers per second and per minute: stored in thousandths per minute.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Rate {
    milli_per_min: u64,
}

impl Rate {
    /// `n` per second.
    pub const fn per_s(n: u32) -> Rate {
        Rate { milli_per_min: n as u64 * ONE_PER_S }
    }

    /// `n` per second, rounded to a thousandth per minute; zero if `n` is negative or NaN.
    pub fn from_per_s_f64(n: f64) -> Rate {
        Rate { milli_per_min: (n * ONE_PER_S as f64).round() as u64 }
    }

    /// Events per second, with fraction.
    pub fn per_s_f64(self) -> f64 {
        self.milli_per_min as f64 / ONE_PER_S as f64
    }

    /// Rounded down to a rate that is printed per second; rates below 1/s are unchanged.
    pub fn down_to_per_s(self) -> Rate {
        let beyond = if self < Rate::per_s(1) { 0 } else { self.milli_per_min % FINEST_PER_S };
        Rate { milli_per_min: self.milli_per_min - beyond }
    }

    /// Rounded up to a rate that is printed per second; rates below 1/s are unchanged.
    pub fn up_to_per_s(self) -> Rate {
        let down = self.down_to_per_s();
        let step = if down == self { 0 } else { FINEST_PER_S };
        Rate { milli_per_min: down.milli_per_min.saturating_add(step) }
    }

    /// Whether the rate is zero.
    pub const fn is_zero(self) -> bool {
        self.milli_per_min == 0
    }

    /// The number of events due after `elapsed`, rounded down: never early, and exact in the long run. Saturates.
    pub fn due(self, elapsed: Nanos) -> u64 {
        let events = u128::from(self.milli_per_min) * u128::from(elapsed.0) / ONE;
        u64::try_from(events).unwrap_or(u64::MAX)
    }

    /// The first time at which `n` events are due; [`Nanos::NEVER`] if it is out of range.
    pub fn time_of(self, n: u64) -> Nanos {
        if n == 0 {
            return Nanos::ZERO;
        }
        if self.is_zero() {
            return Nanos::NEVER;
        }
        let nanos = (u128::from(n) * ONE).div_ceil(u128::from(self.milli_per_min));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Parses `100/s`, `20k/s`, `1e4/sec`, `0.5/s` or `600/m`. Fails with a [`ParseError`] if the text is not per second or per minute, or
    /// has a finer resolution than a thousandth per minute.
    pub fn parse(text: &str) -> Result<Rate, ParseError> {
        let read = text.split_once('/').and_then(|(number, unit)| match span::unit(unit.trim_start())? {
            span::SECOND => scaled(number.trim_end(), ONE_PER_S),
            span::MINUTE => scaled(number.trim_end(), 1_000),
            _ => None,
        });
        read.map(|milli_per_min| Rate { milli_per_min }).ok_or_else(|| {
            let bare = scaled(text, 1).is_some();
            ParseError::new(
                text,
                "a rate",
                if bare { format!("{text}/s") } else { "20k/s or 600/m".to_owned() },
            )
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (thousandths, unit) = match self.milli_per_min {
            rate if rate % FINEST_PER_S == 0 => (rate / FINEST_PER_S, "s"),
            rate => (rate, "m"),
        };
        let (whole, rest) = (thousandths / 1_000, thousandths % 1_000);
        match rest {
            0 => write!(f, "{whole}/{unit}"),
            _ => write!(f, "{whole}.{}/{unit}", format!("{rest:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        check("100/s", Ok((100.0, "100/s")));
        check("20k/s", Ok((20_000.0, "20000/s")));
        check("1m/s", Ok((1_000_000.0, "1000000/s")));
        check("600/m", Ok((10.0, "10/s")));
        check("600/min", Ok((10.0, "10/s")));
        check("100/sec", Ok((100.0, "100/s")));
        check("1e3/s", Ok((1_000.0, "1000/s")));
        check("10_000/s", Ok((10_000.0, "10000/s")));
        check("1/m", Ok((1.0 / 60.0, "1/m")));
        check("0.5/s", Ok((0.5, "0.5/s")));
        check(".5/s", Ok((0.5, "0.5/s")));
        check("10 /s", Ok((10.0, "10/s")));
        check("10 / min", Ok((1.0 / 6.0, "10/m")));
        check("0.0001/s", Ok((0.0001, "0.006/m")));
        check("0/s", Ok((0.0, "0/s")));
        check("30", Err("30/s"));
        check("20k", Err("20k/s"));
        check("1e3", Err("1e3/s"));
        for text in
            ["", "/s", "fast", "30/h", "30/ms", "30/", "30s", "30/s/s", "0.00001/s", "999999999999g/s"]
        {
            check(text, Err("20k/s or 600/m"));
        }
    }

    fn check(text: &str, expected: Result<(f64, &str), &str>) {
        let expected = expected
            .map(|(per_s, printed)| (per_s, printed.to_owned()))
            .map_err(|fix| format!("{text:?} is not a rate; use {fix}"));
        let read =
            Rate::parse(text).map(|rate| (rate.per_s_f64(), rate.to_string())).map_err(|e| e.to_string());
        assert_eq!(read, expected);
    }

    #[test]
    fn dues_are_exact() {
        let rate = Rate::per_s(3);
        for (elapsed, due) in
            [(0, 0), (333_333_333, 0), (333_333_334, 1), (1_000_000_000, 3), (3_600_000_000_000, 10_800)]
        {
            assert_eq!(rate.due(Nanos(elapsed)), due, "{elapsed} ns");
        }
        assert_eq!(rate.time_of(1), Nanos(333_333_334));
        assert_eq!(Rate::default().time_of(1), Nanos::NEVER);
        assert_eq!(Rate::default().time_of(0), Nanos::ZERO);
        assert_eq!(Rate::from_per_s_f64(f64::NAN), Rate::default());
    }

    #[test]
    fn what_is_no_round_number_per_second_has_neighbours_that_are() {
        let check = |text: &str, down: &str, up: &str| {
            let rate = Rate::parse(text).unwrap();
            let printed = [rate.down_to_per_s(), rate.up_to_per_s()].map(|rate| rate.to_string());
            assert_eq!(printed, [down, up], "{text}");
        };
        check("5990/m", "99.833/s", "99.834/s");
        check("100/s", "100/s", "100/s");
        check("99.8/s", "99.8/s", "99.8/s");
        check("61/m", "1.016/s", "1.017/s");
        check("10/m", "10/m", "10/m");
        check("0/s", "0/s", "0/s");
    }

    proptest! {
        #[test]
        fn reads_what_it_prints(milli_per_min: u64) {
            let rate = Rate { milli_per_min };
            prop_assert_eq!(Rate::parse(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn a_due_is_never_early_and_never_late(milli_per_min in 1u64..1 << 40, n in 1u64..1 << 40) {
            let rate = Rate { milli_per_min };
            let at = rate.time_of(n);
            prop_assume!(at != Nanos::NEVER);
            prop_assert!(rate.due(at) >= n);
            prop_assert!(rate.due(Nanos(at.0 - 1)) < n);
        }
    }
}
