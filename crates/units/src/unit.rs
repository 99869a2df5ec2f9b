//! Units of figures, and their form for people.

use crate::{Bytes, Count};

/// The unit of a figure in the summary's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count.
    Count,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
    /// A count per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A share, 0..=1.
    Share,
    /// Any other number.
    Number,
}

impl Unit {
    /// The value with three significant digits, or all digits before the point: `1.23 ms`, `12,345/s`, `8,349 B`.
    pub fn brief(self, value: f64) -> String {
        match self {
            // Whole numbers that were computed by logarithms are nearly whole.
            Unit::Count | Unit::Number if (value - value.round()).abs() < 1e-6 => whole(value),
            Unit::Count | Unit::Number => three(value),
            Unit::Micros if value < 999.5 => format!("{} µs", three(value)),
            Unit::Micros if value < 999_500.0 => format!("{} ms", three(value / 1e3)),
            Unit::Micros => format!("{} s", three(value / 1e6)),
            Unit::Seconds => format!("{} s", three(value)),
            Unit::PerSecond => format!("{}/s", three(value)),
            Unit::Bytes if value < 99_999.5 => format!("{} B", whole(value)),
            Unit::Bytes if value < 1_023.5 * 1_024.0 => format!("{} KiB", three(value / 1_024.0)),
            Unit::Bytes => format!("{} MiB", three(value / 1_048_576.0)),
            // As in the live display: rates are not compared to the byte.
            Unit::BytesPerSecond => format!("{}/s", Bytes(value.round() as u64).brief()),
            Unit::Share => format!("{:.1} %", value * 100.0),
        }
    }

    /// As `brief`, with bytes in decimal units: `38.4 MB/s`.
    pub fn brief_decimal(self, value: f64) -> String {
        let decimal = || Bytes(value.round() as u64).brief_decimal();
        match self {
            Unit::Bytes if value >= 99_999.5 => decimal().to_string(),
            Unit::BytesPerSecond => format!("{}/s", decimal()),
            other => other.brief(value),
        }
    }
}

/// Three significant digits, or all digits before the point.
fn three(n: f64) -> String {
    match n.abs() {
        99.95.. => whole(n),
        9.995.. => format!("{n:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{n:.2}"),
    }
}

fn whole(n: f64) -> String {
    let sign = if n <= -0.5 { "-" } else { "" };
    format!("{sign}{}", Count(n.abs().round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: Unit, value: f64, expected: &str) {
        assert_eq!(unit.brief(value), expected, "{value} {unit:?}");
    }

    #[test]
    fn figures_are_written_to_three_digits() {
        check(Unit::Count, 200.000_000_000_03, "200");
        check(Unit::Count, 1_234_567.0, "1,234,567");
        check(Unit::Count, 0.0, "0");
        check(Unit::Count, 1.0 / 3.0, "0.33");
        check(Unit::Number, -1_500.4, "-1,500");
        check(Unit::Micros, 0.064, "0.06 µs");
        check(Unit::Micros, 12.34, "12.3 µs");
        check(Unit::Micros, 999.4, "999 µs");
        check(Unit::Micros, 999.6, "1.00 ms");
        check(Unit::Micros, 1_234.0, "1.23 ms");
        check(Unit::Micros, 99_960.0, "100 ms");
        check(Unit::Micros, 999_600.0, "1.00 s");
        check(Unit::Micros, 6e7, "60.0 s");
        check(Unit::Micros, 5_000.0, "5.00 ms");
        check(Unit::Micros, 0.0, "0 µs");
        check(Unit::Seconds, 29.97, "30.0 s");
        check(Unit::PerSecond, 12_345.6, "12,346/s");
        check(Unit::PerSecond, 9.994, "9.99/s");
        check(Unit::Bytes, 8_349.2, "8,349 B");
        check(Unit::Bytes, 102_400.0, "100 KiB");
        check(Unit::Bytes, 1_048_576.0, "1.00 MiB");
        check(Unit::Bytes, 37.4, "37 B");
        check(Unit::Bytes, 22_032_384.0, "21.0 MiB");
        check(Unit::BytesPerSecond, 256.4, "256 B/s");
        check(Unit::BytesPerSecond, 83_620.0, "81.7 KiB/s");
        check(Unit::BytesPerSecond, 22_032_384.0, "21.0 MiB/s");
        check(Unit::Share, 0.951, "95.1 %");
    }

    #[test]
    fn bytes_are_written_in_decimal_units_where_asked() {
        let check = |unit: Unit, value, expected| assert_eq!(unit.brief_decimal(value), expected, "{value}");
        check(Unit::Bytes, 8_349.2, "8,349 B");
        check(Unit::Bytes, 120_025_800.0, "120 MB");
        check(Unit::BytesPerSecond, 256.4, "256 B/s");
        check(Unit::BytesPerSecond, 38_448_245.5, "38.4 MB/s");
        check(Unit::Micros, 1_234.0, "1.23 ms");
    }
}
