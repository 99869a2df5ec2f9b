//! Numbers of bytes: `512`, `64KiB`, `10MB`.

use crate::{
    ParseError,
    decimal::{Decimal, rounded},
};
use std::{fmt, iter};

/// Binary units, smallest first (IEC 80000-13).
const BINARY: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
/// Decimal units, smallest first.
const DECIMAL: [(&str, u64); 4] =
    [("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("TB", 1_000_000_000_000)];

/// A number of bytes. Prints exactly, in the largest binary unit that divides it: `64KiB`, `1000B`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Parses `512`, `64KiB` (1,024 bytes each), `10MB` (1,000,000 bytes each), `1.5GiB` or `12.5 MiB`; case does not matter. Fails with a
    /// [`ParseError`] if the unit is unknown (`64K` is ambiguous), or if the result is not a whole number.
    pub fn parse(text: &str) -> Result<Bytes, ParseError> {
        let read = Decimal::leading(text).and_then(|(number, name)| {
            let name = if name.is_empty() { "B" } else { name.trim_start() };
            let (_, unit) =
                BINARY.iter().chain(&DECIMAL).find(|(known, _)| known.eq_ignore_ascii_case(name))?;
            number.times(*unit)
        });
        read.map(Bytes).ok_or_else(|| ParseError::new(text, "a number of bytes", "512, 64KiB or 10MB"))
    }

    /// Rounded, for people: `512 B`, `12.3 MiB`, `640 KiB`.
    pub fn brief(self) -> impl fmt::Display {
        self.rounded(BINARY, 1_024)
    }

    /// As `brief`, in decimal units: `12.9 MB`.
    pub fn brief_decimal(self) -> impl fmt::Display {
        self.rounded(iter::once(BINARY[0]).chain(DECIMAL), 1_000)
    }

    /// Whether a text has a decimal unit, as `10MB` does, and not `10MiB` or `10`.
    pub fn is_decimal(text: &str) -> bool {
        let is_unit = |name: &str| DECIMAL.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        Decimal::leading(text).is_some_and(|(_, name)| is_unit(name.trim_start()))
    }

    /// Rounded, in the smallest of `units` that yields less than `next`, or in terabytes.
    fn rounded(self, units: impl IntoIterator<Item = (&'static str, u64)>, next: u128) -> String {
        for (name, unit) in units {
            let (whole, text) = rounded(self.0, unit, 100);
            if whole < next || name.starts_with('T') {
                return format!("{text} {name}");
            }
        }
        unreachable!("the last unit takes everything")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let largest = BINARY.iter().rfind(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit));
        let (name, unit) = largest.unwrap_or(&BINARY[0]);
        f.pad(&format!("{}{name}", self.0 / unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        check("0", Ok(0));
        check("512", Ok(512));
        check("512B", Ok(512));
        check("1_500", Ok(1_500));
        check("64KiB", Ok(65_536));
        check("64kib", Ok(65_536));
        check("64 KiB", Ok(65_536));
        check("1e3", Ok(1_000));
        check("10MB", Ok(10_000_000));
        check("1.5GiB", Ok(1_610_612_736));
        check("24GB", Ok(24_000_000_000));
        check("2TiB", Ok(2_199_023_255_552));
        for text in ["", "64K", "64k", "1.5", "1.0001KiB", "big", "-1", "64 ", "99999999TiB"] {
            check(text, Err(format!("{text:?} is not a number of bytes; use 512, 64KiB or 10MB")));
        }
    }

    fn check(text: &str, expected: Result<u64, String>) {
        assert_eq!(Bytes::parse(text).map(|bytes| bytes.0).map_err(|e| e.to_string()), expected);
    }

    #[test]
    fn prints_briefly() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (12_897_485, "12.3 MiB"),
            (102_348, "99.9 KiB"),
            (102_400, "100 KiB"),
            (1_048_063, "1023 KiB"),
            (1_048_064, "1.0 MiB"),
            (8 << 40, "8.0 TiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(Bytes(bytes).brief().to_string(), expected, "{bytes} bytes");
        }
    }

    #[test]
    fn prints_in_decimal_units_what_is_written_in_them() {
        for (bytes, expected) in [
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (200_043, "200 kB"),
            (999_600, "1.0 MB"),
            (38_448_245, "38.4 MB"),
            (24_000_000_000, "24.0 GB"),
            (u64::MAX, "18446744 TB"),
        ] {
            assert_eq!(Bytes(bytes).brief_decimal().to_string(), expected, "{bytes} bytes");
        }
        for (text, expected) in
            [("10MB", true), ("1.5 gb", true), ("1e3kB", true), ("10MiB", false), ("10", false), ("B", false)]
        {
            assert_eq!(Bytes::is_decimal(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn reads_what_it_prints(bytes: u64, shift in 0u32..64) {
            for bytes in [Bytes(bytes), Bytes(bytes << shift)] {
                prop_assert_eq!(Bytes::parse(&bytes.to_string()), Ok(bytes));
            }
        }
    }
}
