//! Shares in percent, for people.

/// A share, 0..=1, with at least two digits. Only zero is printed as 0 %, and only one as 100 %.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        n if n >= 100.0 => format!("{n:.0} %"),
        n if n >= 99.95 => ">99.9 %".to_owned(),
        n if n >= 99.5 => format!("{n:.1} %"),
        n if n >= 10.0 => format!("{n:.0} %"),
        n if n >= 1.0 => format!("{n:.1} %"),
        n if n >= 0.01 => format!("{n:.2} %"),
        n if n > 0.0 => "<0.01 %".to_owned(),
        _ => "0 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_nothing_is_0_and_only_all_is_100() {
        for (share, expected) in [
            (0.0, "0 %"),
            (1e-9, "<0.01 %"),
            (0.000_099, "<0.01 %"),
            (0.000_1, "0.01 %"),
            (0.005, "0.50 %"),
            (0.031_4, "3.1 %"),
            (0.104, "10 %"),
            (0.994, "99 %"),
            (0.996, "99.6 %"),
            (0.999_44, "99.9 %"),
            (0.999_7, ">99.9 %"),
            (0.999_999, ">99.9 %"),
            (1.0, "100 %"),
            (1.23, "123 %"),
        ] {
            assert_eq!(percent(share), expected, "{share}");
        }
    }
}
