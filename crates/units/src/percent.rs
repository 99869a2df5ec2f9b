//! Shares as people read them.

/// A share, 0..=1, to two digits at least.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        n if n >= 10.0 => format!("{n:.0} %"),
        n if n >= 1.0 => format!("{n:.1} %"),
        n if n >= 0.01 => format!("{n:.2} %"),
        _ => "<0.01 %".to_owned(),
    }
}
