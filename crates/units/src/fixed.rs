//! Numbers with a fixed number of decimals, in which zero has no sign.

/// `n` with this number of decimals; a value that rounds to zero is `0.0`, never `-0.0`.
pub fn fixed(n: f64, places: usize) -> String {
    let text = format!("{n:.places$}");
    match text.strip_prefix('-') {
        Some(digits) if is_nothing(digits) => digits.to_owned(),
        _ => text,
    }
}

/// As `fixed`, with sign: `+0.3`, `-1.2`, `0.0`.
pub fn signed(n: f64, places: usize) -> String {
    let text = fixed(n, places);
    if text.starts_with('-') || is_nothing(&text) { text } else { format!("+{text}") }
}

fn is_nothing(digits: &str) -> bool {
    digits.bytes().all(|b| matches!(b, b'0' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_sign() {
        for (n, places, without, with) in [
            (0.26, 1, "0.3", "+0.3"),
            (-1.24, 1, "-1.2", "-1.2"),
            (0.0, 1, "0.0", "0.0"),
            (-0.0, 1, "0.0", "0.0"),
            (-0.04, 1, "0.0", "0.0"),
            (0.04, 1, "0.0", "0.0"),
            (-0.06, 1, "-0.1", "-0.1"),
            (-0.4, 0, "0", "0"),
            (-20.0, 0, "-20", "-20"),
            (1_000.0, 2, "1000.00", "+1000.00"),
        ] {
            assert_eq!((fixed(n, places).as_str(), signed(n, places).as_str()), (without, with), "{n}");
        }
    }
}
