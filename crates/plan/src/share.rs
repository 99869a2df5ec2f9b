//! Shares of a load: `100%`, `12.5%`.

use std::fmt;
use units::{ParseError, Rate};

/// A share from nothing to all, exact to a ten-thousandth of a percent. Prints as `12.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    /// In millionths.
    millionths: u32,
}

impl Share {
    /// Nothing.
    pub const NONE: Share = Share { millionths: 0 };
    /// The whole.
    pub const ALL: Share = Share { millionths: 1_000_000 };

    /// Parses `0%`, `12.5%` or `100%`. Fails without `%`, with more than four decimals, or above 100.
    pub fn parse(text: &str) -> Result<Share, ParseError> {
        let read = text.strip_suffix('%').and_then(|number| {
            let (whole, rest) = number.split_once('.').unwrap_or((number, "0"));
            let digits =
                |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            (digits(whole) && digits(rest)).then_some(())?;
            let millionths = format!("{whole}{rest:0<4}").parse().ok()?;
            (millionths <= Share::ALL.millionths).then_some(Share { millionths })
        });
        read.ok_or_else(|| ParseError::new(text, "a share of the load", "100% or 12.5%"))
    }

    /// The share for a number of millionths, at most 1,000,000.
    pub fn of_millionths(millionths: u32) -> Share {
        Share { millionths: millionths.min(Share::ALL.millionths) }
    }

    /// The share nearest to `n` of `all`, but never zero: exact for up to a million. `None` if `n` is not from 1 to `all`.
    pub fn nearest(n: u64, all: u64) -> Option<Share> {
        if n == 0 || n > all {
            return None;
        }
        let (n, all) = (u128::from(n), u128::from(all));
        // At most 1,000,000, so it fits.
        let millionths = (n * 1_000_000 + all / 2) / all;
        Some(Share { millionths: (millionths as u32).max(1) })
    }

    /// In millionths.
    pub fn millionths(self) -> u32 {
        self.millionths
    }

    /// This share of `n`, rounded to the nearest; at least 1 unless one of them is zero.
    pub fn of(self, n: u64) -> u64 {
        let part = (u128::from(n) * u128::from(self.millionths) + 500_000) / 1_000_000;
        // At most `n`, so it fits.
        (part as u64).max(u64::from(n > 0 && self > Share::NONE))
    }

    /// `n` / `of` of this share.
    pub fn part(self, n: u32, of: u32) -> Share {
        Share { millionths: (u64::from(self.millionths) * u64::from(n) / u64::from(of)) as u32 }
    }

    /// This share of a rate.
    pub fn of_rate(self, rate: Rate) -> Rate {
        if self == Share::ALL {
            return rate;
        }
        Rate::from_per_s_f64(rate.per_s_f64() * f64::from(self.millionths) / f64::from(Share::ALL.millionths))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.millionths / 10_000, self.millionths % 10_000);
        match rest {
            0 => write!(f, "{whole}%"),
            _ => write!(f, "{whole}.{}%", format!("{rest:04}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_shares() {
        for (text, millionths) in [
            ("0%", 0),
            ("100%", 1_000_000),
            ("12.5%", 125_000),
            ("0.0001%", 1),
            ("33.3333%", 333_333),
            ("007%", 70_000),
        ] {
            assert_eq!(Share::parse(text), Ok(Share { millionths }), "{text}");
        }
        for text in
            ["", "%", "50", "100.0001%", "101%", "-1%", "1.23456%", "1.%", ".5%", "1,5%", "99999%", "5 %"]
        {
            let expected = format!("{text:?} is not a share of the load; use 100% or 12.5%");
            assert_eq!(Share::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_share_of_a_load() {
        for (share, n, expected) in [
            ("100%", 7, 7),
            ("0%", 7, 0),
            ("50%", 7, 4),
            ("0.0001%", 50, 1),
            ("33.3333%", 3_000_000, 999_999),
            ("1%", 0, 0),
        ] {
            assert_eq!(Share::parse(share).unwrap().of(n), expected, "{share} of {n}");
        }
        assert_eq!(Share::ALL.of(u64::MAX), u64::MAX);
    }

    #[test]
    fn there_is_a_share_for_every_number_from_one_to_all() {
        for (n, all, expected) in [
            (100, 300, Some(333_333)),
            (200, 300, Some(666_667)),
            (300, 300, Some(1_000_000)),
            (1, 100_000_000, Some(1)),
            (u64::MAX, u64::MAX, Some(1_000_000)),
            (0, 300, None),
            (301, 300, None),
            (0, 0, None),
        ] {
            assert_eq!(Share::nearest(n, all).map(Share::millionths), expected, "{n} of {all}");
        }
    }

    proptest! {
        #[test]
        fn a_number_of_up_to_a_million_is_a_share_exactly((n, all) in (1u64..=1_000_000).prop_flat_map(|all| (1..=all, Just(all)))) {
            prop_assert_eq!(Share::nearest(n, all).map(|share| share.of(all)), Some(n));
        }

        #[test]
        fn reads_what_it_prints(millionths in 0u32..=1_000_000) {
            let share = Share { millionths };
            prop_assert_eq!(Share::parse(&share.to_string()), Ok(share));
        }
    }
}
