//! Numbers and durations in Go's notation (package fmt: `%g` and `%v`; package time: Duration).

/// A number as `%.Ng`: N significant digits, no trailing zeros, and an exponent if that is shorter.
pub(super) fn general(x: f64, digits: usize) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let rounded = format!("{x:.0$e}", digits.max(1) - 1);
    let (mantissa, exponent) = rounded.split_once('e').expect("the format is scientific");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if exponent < -4 || exponent >= digits as i32 {
        return with_exponent(without_zeros(mantissa), exponent);
    }
    let places = (digits as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{x:.places$}")).to_owned()
}

/// A number as `%v`: the shortest digits that identify it.
pub(super) fn shortest(x: f64) -> String {
    let (mantissa, exponent) = {
        let text = format!("{x:e}");
        let (mantissa, exponent) = text.split_once('e').expect("the format is scientific");
        (mantissa.to_owned(), exponent.parse::<i32>().expect("an exponent is a number"))
    };
    if x != 0.0 && !(-4..21).contains(&exponent) { with_exponent(&mantissa, exponent) } else { x.to_string() }
}

fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// A Duration: `1m0.147414s`, `27.000998ms`.
pub(super) fn span(s: f64) -> String {
    let ns = (s * 1e9).round() as u64;
    let fraction = |ns: u64, unit: u64| shortest(ns as f64 / unit as f64);
    match ns {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => fraction(ns, 1_000) + "µs",
        1_000_000..1_000_000_000 => fraction(ns, 1_000_000) + "ms",
        _ => {
            let minutes = ns / 60_000_000_000;
            let seconds = fraction(ns % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_go_prints_them() {
        for (x, digits, expected) in [
            (0.0, 6, "0"),
            (0.056362442, 8, "0.056362442"),
            (0.0056869, 8, "0.0056869"),
            (7.4684e-5, 4, "7.468e-05"),
            (0.0014999999, 6, "0.0015"),
            (28233.14, 5, "28233"),
            (334.159, 5, "334.16"),
            (999_999.6, 6, "1e+06"),
            (629_825.0, 9, "629825"),
            (19_698_150.0, 9, "19698150"),
            (1_234_567_890_123.0, 9, "1.23456789e+12"),
            (2e-5, 6, "2e-05"),
        ] {
            assert_eq!(general(x, digits), expected, "{x} to {digits}");
        }
        for (x, expected) in
            [(0.0, "0"), (0.000835011, "0.000835011"), (8.8632e-5, "8.8632e-05"), (3.0, "3"), (1e21, "1e+21")]
        {
            assert_eq!(shortest(x), expected);
        }
    }

    #[test]
    fn spans_are_as_go_prints_them() {
        for (s, expected) in [
            (0.0, "0s"),
            (5e-9, "5ns"),
            (1.5e-6, "1.5µs"),
            (0.027000998, "27.000998ms"),
            (5.636535962, "5.636535962s"),
            (10.0, "10s"),
            (60.147414, "1m0.147414s"),
            (3723.5, "1h2m3.5s"),
        ] {
            assert_eq!(span(s), expected);
        }
    }
}
