//! Formats figures for tables and texts.

use units::{Bytes, Count, Nanos};

/// The text for a missing figure.
pub(crate) const NONE: &str = "–";

/// Microseconds, rounded, in the most suitable unit.
pub(crate) fn micros(us: f64) -> String {
    Nanos((us.max(0.0) * 1e3) as u64).brief().to_string()
}

/// A figure in the unit that its path in the summary implies.
pub(crate) fn shown(path: &str, n: f64) -> String {
    if path.contains("_us.") {
        micros(n)
    } else if path.ends_with("_ms") {
        micros(n * 1e3)
    } else if path.contains("bytes") || path.contains(".processes.") {
        Bytes(n.max(0.0) as u64).brief().to_string()
    } else if path.contains("_us_per_") {
        format!("{n:.1}")
    } else if path.ends_with("_s") && !path.ends_with("per_s") {
        format!("{n:.1} s")
    } else {
        Count(n.round() as u64).to_string()
    }
}
