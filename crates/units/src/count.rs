//! Counts: `50`, `100k`, `1.5m`, `1,000,000`, `1e6`.

use crate::{ParseError, decimal::Decimal};
use std::fmt;

/// A number of things. Prints with thousands separators: `1,000,000`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

impl Count {
    /// Parses `50`, `1_000`, `1,000`, `1e3`, `100k`, `1.5m` (million) or `2g`. Fails with a [`ParseError`] if the text is none of these, is
    /// not whole (`1.5`), or exceeds 64 bits.
    pub fn parse(text: &str) -> Result<Count, ParseError> {
        scaled(text, 1).map(Count).ok_or_else(|| ParseError::new(text, "a count", "50, 100k or 1.5m"))
    }

    /// With its noun: `1 thread`, `2,000 threads`. For nouns with a regular plural.
    pub fn of(self, what: &str) -> String {
        format!("{self} {what}{}", self.one_or("", "s"))
    }

    /// As a subject: `1 dial was`, `2,000 dials were`. For nouns with a regular plural.
    pub fn were(self, what: &str) -> String {
        format!("{} {}", self.of(what), self.one_or("was", "were"))
    }

    /// Selects the form for one, or for any other number.
    pub fn one_or<'a>(self, one: &'a str, several: &'a str) -> &'a str {
        if self.0 == 1 { one } else { several }
    }
}

/// A number with optional `k`, `m` or `g`, times `unit`; `None` if the text is none, or the product is not whole.
pub(crate) fn scaled(text: &str, unit: u64) -> Option<u64> {
    let (number, suffix) = Decimal::leading(text)?;
    let thousands = match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return None,
    };
    number.times(thousands * unit)
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        f.pad(&grouped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_thing_is_not_several() {
        let [one, none, many] = [1, 0, 2_000].map(Count);
        assert_eq!([one.of("dial"), none.of("dial"), many.of("dial")], ["1 dial", "0 dials", "2,000 dials"]);
        assert_eq!([one.were("dial"), many.were("dial")], ["1 dial was", "2,000 dials were"]);
        assert_eq!([one, none, many].map(|n| n.one_or("it", "they")), ["it", "they", "they"]);
    }

    #[test]
    fn reads_what_people_write() {
        check("0", Ok(0));
        check("50", Ok(50));
        check("100k", Ok(100_000));
        check("400K", Ok(400_000));
        check("1m", Ok(1_000_000));
        check("1.5m", Ok(1_500_000));
        check("1.1M", Ok(1_100_000));
        check("2g", Ok(2_000_000_000));
        check("1_000", Ok(1_000));
        check("1,000,000", Ok(1_000_000));
        check("10_000", Ok(10_000));
        check("1e3", Ok(1_000));
        check("1E6", Ok(1_000_000));
        check("2.5e3", Ok(2_500));
        check("18446744073709551615", Ok(u64::MAX));
        for text in [
            "",
            "many",
            "1.5",
            "-1",
            "+1",
            "1 000",
            "1kk",
            "1.5e0",
            "1e-1",
            "1e",
            "1e6.5",
            "1e20",
            "5s",
            "18446744073709551616",
            "99999999999g",
        ] {
            check(text, Err(format!("{text:?} is not a count; use 50, 100k or 1.5m")));
        }
    }

    fn check(text: &str, expected: Result<u64, String>) {
        assert_eq!(Count::parse(text).map(|count| count.0).map_err(|e| e.to_string()), expected);
    }

    #[test]
    fn prints_thousands_apart() {
        for (count, expected) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (36_280, "36,280"), (1_000_000, "1,000,000")]
        {
            assert_eq!(Count(count).to_string(), expected);
        }
        assert_eq!(format!("{:>7}|{:<7}|", Count(1_000), Count(1_000)), "  1,000|1,000  |");
    }

    proptest! {
        #[test]
        fn reads_what_it_prints(count: u64) {
            prop_assert_eq!(Count::parse(&Count(count).to_string()), Ok(Count(count)));
        }
    }
}
