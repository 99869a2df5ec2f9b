//! Times and ranges of times: `5s`, `1500ms`, `1m30s`, `2 min`; `5s..45s`.

use crate::{
    Nanos, ParseError,
    decimal::{Decimal, rounded},
};
use std::fmt;

pub(crate) const MINUTE: u64 = 60_000_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// Units of time in nanoseconds, longest first; the first name is used for printing.
const UNITS: [(&[&str], u64); 6] = [
    (&["h", "hr", "hrs", "hour", "hours"], 60 * MINUTE),
    (&["m", "min", "mins", "minute", "minutes"], MINUTE),
    (&["s", "sec", "secs", "second", "seconds"], SECOND),
    (&["ms"], 1_000_000),
    (&["us", "µs", "μs"], 1_000), // letter u, micro sign, Greek mu
    (&["ns"], 1),
];

/// The nanoseconds of the unit with this name.
pub(crate) fn unit(name: &str) -> Option<u64> {
    UNITS.iter().find(|(names, _)| names.contains(&name)).map(|(_, unit)| *unit)
}

impl Nanos {
    /// Parses `5s`, `1500ms`, `1.5h`, `1m30s`, `10 s`, `2min`, `1hour`, `100us` or `0`: numbers with units, in descending order of units.
    /// Fails with a [`ParseError`] if a unit is missing or unknown, or the time exceeds 584 years.
    pub fn parse(text: &str) -> Result<Nanos, ParseError> {
        sum(text).map(Nanos).ok_or_else(|| {
            ParseError::new(
                text,
                "a time",
                if is_bare(text) { format!("{text}s") } else { "5s, 1500ms or 1m30s".to_owned() },
            )
        })
    }

    /// As `parse`; a number without a unit is in seconds, as for curl and wrk: `10`, `2.5`.
    pub fn parse_or_seconds(text: &str) -> Result<Nanos, ParseError> {
        if !is_bare(text) {
            return Nanos::parse(text);
        }
        Nanos::parse(&format!("{text}s")).map_err(|misread| ParseError { text: text.to_owned(), ..misread })
    }

    /// Rounded, for people: `350 µs`, `1.2 ms`, `12 s`, `1m30s`.
    pub fn brief(self) -> impl fmt::Display {
        const STEPS: [(&str, u64); 4] = [("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        for (name, unit) in STEPS {
            let (whole, text) = rounded(self.0, unit, 10);
            if whole < if name == "s" { 60 } else { 1_000 } {
                return format!("{text} {name}");
            }
        }
        let seconds = self.0.saturating_add(500_000_000) / 1_000_000_000;
        Nanos(seconds * 1_000_000_000).to_string()
    }
}

/// Whether it is a number without a unit.
fn is_bare(text: &str) -> bool {
    Decimal::leading(text).is_some_and(|(_, unit)| unit.is_empty())
}

/// The nanoseconds of a time such as `1m30s`; `None` if it is invalid.
fn sum(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let (mut total, mut rest, mut shorter_than) = (0u64, text, u64::MAX);
    loop {
        let (number, after) = Decimal::leading(rest)?;
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (name, next) = after.split_at(end);
        let unit = unit(name.trim())?;
        // Requiring descending units catches typing errors such as `30s30s`.
        (unit < shorter_than).then_some(())?;
        total = total.checked_add(number.times(unit)?)?;
        if next.is_empty() {
            return Some(total);
        }
        (rest, shorter_than) = (next, unit);
    }
}

impl fmt::Display for Nanos {
    /// Prints exactly: `1m30s`, `1s500ms`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut text) = (self.0, String::new());
        for (names, unit) in UNITS {
            if rest >= unit {
                text += &format!("{}{}", rest / unit, names[0]);
                rest %= unit;
            }
        }
        f.pad(if text.is_empty() { "0s" } else { &text })
    }
}

/// A range of times, both ends included: `5s..45s`, or a single time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spans {
    /// Minimum.
    pub min: Nanos,
    /// Maximum; at least `min`.
    pub max: Nanos,
}

impl Spans {
    /// Parses `5s..45s`, or one time for both ends. Fails with a [`ParseError`] if an end is no time, or the first exceeds the second.
    pub fn parse(text: &str) -> Result<Spans, ParseError> {
        let Some((min, max)) = text.split_once("..") else {
            return Nanos::parse(text).map(|time| Spans { min: time, max: time });
        };
        let (min, max) = (min.trim(), max.trim());
        let parse_error = |fix: String| ParseError::new(text, "a range of times", fix);
        match (Nanos::parse(min), Nanos::parse(max)) {
            // `0...5s` is a typing error.
            _ if max.starts_with('.') => Err(parse_error("5s..45s".to_owned())),
            (Ok(from), Ok(to)) if from <= to => Ok(Spans { min: from, max: to }),
            (Ok(_), Ok(_)) => Err(parse_error(format!("{max}..{min}"))),
            _ => Err(parse_error("5s..45s".to_owned())),
        }
    }

    /// As `parse`; numbers without a unit are in seconds: `5`, `5..45`.
    pub fn parse_or_seconds(text: &str) -> Result<Spans, ParseError> {
        let with_unit = match text.split_once("..") {
            Some((min, max)) if is_bare(min.trim()) && is_bare(max.trim()) => {
                format!("{}s..{}s", min.trim(), max.trim())
            }
            None if is_bare(text) => format!("{text}s"),
            _ => return Spans::parse(text),
        };
        Spans::parse(&with_unit).map_err(|misread| ParseError { text: text.to_owned(), ..misread })
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { self.min.fmt(f) } else { write!(f, "{}..{}", self.min, self.max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        check("0", Ok("0s"));
        check("0s", Ok("0s"));
        check("5s", Ok("5s"));
        check("1500ms", Ok("1s500ms"));
        check("100us", Ok("100us"));
        check("100µs", Ok("100us"));
        check("7ns", Ok("7ns"));
        check("2m", Ok("2m"));
        check("90m", Ok("1h30m"));
        check("1h", Ok("1h"));
        check("1m30s", Ok("1m30s"));
        check("1.5h", Ok("1h30m"));
        check("0.25s", Ok("250ms"));
        check(".5s", Ok("500ms"));
        check("1m.5s", Ok("1m500ms"));
        check("10 s", Ok("10s"));
        check("1min", Ok("1m"));
        check("2 minutes", Ok("2m"));
        check("1hour", Ok("1h"));
        check("1 h 30 min", Ok("1h30m"));
        check("90sec", Ok("1m30s"));
        check("1e3s", Ok("16m40s"));
        check("30", Err("30s"));
        check("1.5", Err("1.5s"));
        for text in [
            "",
            "s",
            "soon",
            "5 ",
            " 5s",
            "30s1m",
            "1s1sec",
            "1us1µs",
            "1m30",
            "1m 30",
            "2mo",
            "-5s",
            "5S",
            "1.5ns",
            "99999999999h",
        ] {
            check(text, Err("5s, 1500ms or 1m30s"));
        }
    }

    fn check(text: &str, expected: Result<&str, &str>) {
        let expected =
            expected.map(str::to_owned).map_err(|fix| format!("{text:?} is not a time; use {fix}"));
        assert_eq!(Nanos::parse(text).map(|time| time.to_string()).map_err(|e| e.to_string()), expected);
    }

    #[test]
    fn reads_ranges() {
        check_range("5s..45s", Ok((5_000, 45_000)));
        check_range("0..100ms", Ok((0, 100)));
        check_range("2s", Ok((2_000, 2_000)));
        check_range("3s..3s", Ok((3_000, 3_000)));
        check_range("5 s .. 1 min", Ok((5_000, 60_000)));
        check_range("9s..2s", Err("\"9s..2s\" is not a range of times; use 2s..9s"));
        check_range("5..45", Err("\"5..45\" is not a range of times; use 5s..45s"));
        check_range("0...5s", Err("\"0...5s\" is not a range of times; use 5s..45s"));
        check_range("5s..", Err("\"5s..\" is not a range of times; use 5s..45s"));
        check_range("5", Err("\"5\" is not a time; use 5s"));
    }

    #[test]
    fn numbers_without_a_unit_are_seconds_where_that_is_meant() {
        for (text, expected) in
            [("10", Ok(10_000)), ("2.5", Ok(2_500)), ("1e2", Ok(100_000)), ("0", Ok(0)), ("300ms", Ok(300))]
        {
            assert_eq!(Nanos::parse_or_seconds(text).map(Nanos::millis), expected, "{text}");
        }
        for (text, expected) in
            [("5", (5_000, 5_000)), ("5..45", (5_000, 45_000)), ("0..1.5", (0, 1_500)), ("0..5s", (0, 5_000))]
        {
            let read = Spans::parse_or_seconds(text).map(|range| (range.min.millis(), range.max.millis()));
            assert_eq!(read, Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("9..2", "\"9..2\" is not a range of times; use 2s..9s"),
            ("5..10ms", "\"5..10ms\" is not a range of times; use 5s..45s"),
            ("..", "\"..\" is not a range of times; use 5s..45s"),
            ("soon", "\"soon\" is not a time; use 5s, 1500ms or 1m30s"),
        ] {
            assert_eq!(Spans::parse_or_seconds(text).unwrap_err().to_string(), expected);
        }
        let wrong = "\"99999999999999\" is not a time; use 5s, 1500ms or 1m30s";
        assert_eq!(Nanos::parse_or_seconds("99999999999999").unwrap_err().to_string(), wrong);
    }

    /// `expected` in milliseconds.
    fn check_range(text: &str, expected: Result<(u64, u64), &str>) {
        let read = Spans::parse(text).map(|range| (range.min.millis(), range.max.millis()));
        assert_eq!(read.map_err(|e| e.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn prints_briefly() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.0 µs"),
            (350_000, "350 µs"),
            (999_499, "999 µs"),
            (999_500, "1.0 ms"),
            (1_249_999, "1.2 ms"),
            (9_949_999, "9.9 ms"),
            (9_950_000, "10 ms"),
            (12_000_000_000, "12 s"),
            (59_499_999_999, "59 s"),
            (59_500_000_000, "1m"),
            (90_400_000_000, "1m30s"),
            (u64::MAX, "5124095h34m33s"),
        ] {
            assert_eq!(Nanos(ns).brief().to_string(), expected, "{ns} ns");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_prints(ns: u64, fine in 0u64..5_000_000_000) {
            for time in [Nanos(ns), Nanos(fine)] {
                prop_assert_eq!(Nanos::parse(&time.to_string()), Ok(time));
            }
        }

        #[test]
        fn reads_the_range_it_prints(a: u64, b: u64) {
            let range = Spans { min: Nanos(a.min(b)), max: Nanos(a.max(b)) };
            prop_assert_eq!(Spans::parse(&range.to_string()), Ok(range));
        }
    }
}
