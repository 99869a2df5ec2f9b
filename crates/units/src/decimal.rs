//! Exact decimal numbers, so that `1.1m` is exactly 1,100,000, without rounding by floats.

/// `digits` divided by 10 to the power of `places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    /// Splits a leading number from the unit after it: `1.5m` is 1.5 and `m`. `1_000`, `1,000` and `1e3` are a thousand, `.5` is a half; a
    /// comma is only allowed before three digits, so `1,5` is no number.
    pub(crate) fn leading(text: &str) -> Option<(Decimal, &str)> {
        let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | ',' | '_')).unwrap_or(text.len());
        let (number, after) = text.split_at(end);
        let (exponent, unit) = exponent(after).unwrap_or((0, after));
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => {
                (if whole.is_empty() { "0" } else { whole }, fraction)
            }
            Some(_) => return None,
            None => (number, ""),
        };
        let digits = format!("{}{fraction}", ungrouped(whole)?);
        // A u128 holds at least 38 digits.
        (digits.len() <= 38).then_some(())?;
        let (digits, places) = (digits.parse::<u128>().ok()?, fraction.len() as i32 - exponent);
        let number = match u32::try_from(places) {
            Ok(places) => (places <= 38).then_some(Decimal { digits, places })?,
            Err(_) => {
                let factor = 10u128.checked_pow(places.unsigned_abs())?;
                Decimal { digits: digits.checked_mul(factor)?, places: 0 }
            }
        };
        Some((number, unit))
    }

    /// The number times `unit`; `None` if the product is not whole or too large.
    pub(crate) fn times(self, unit: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(unit))?;
        let scale = 10u128.pow(self.places);
        (product % scale == 0).then(|| u64::try_from(product / scale).ok())?
    }
}

/// A leading exponent, and the text after it: `e3/s` is 3 and `/s`. At most three digits.
fn exponent(text: &str) -> Option<(i32, &str)> {
    let signed = text.strip_prefix(['e', 'E'])?;
    let unsigned = signed.strip_prefix(['+', '-']).unwrap_or(signed);
    let (digits, rest) =
        unsigned.split_at(unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len()));
    let exponent = (digits.len() <= 3).then(|| digits.parse::<i32>().ok())??;
    Some((if signed.starts_with('-') { -exponent } else { exponent }, rest))
}

/// `n` in units of `unit`, rounded to a whole number; and as text, with one decimal if below `most`.
pub(crate) fn rounded(n: u64, unit: u64, most: u128) -> (u128, String) {
    let (n, unit) = (u128::from(n), u128::from(unit));
    let (whole, tenths) = ((n + unit / 2) / unit, (n * 10 + unit / 2) / unit);
    let has_tenths = unit > 1 && tenths < most * 10;
    (whole, if has_tenths { format!("{}.{}", tenths / 10, tenths % 10) } else { whole.to_string() })
}

/// `whole` without its separators; `None` if they are misplaced.
fn ungrouped(whole: &str) -> Option<String> {
    let groups: Vec<&str> = whole.split([',', '_']).collect();
    let commas = whole.contains(',');
    let misplaced = commas && (whole.contains('_') || groups.len() > 1 && groups[0].len() > 3)
        || commas && groups[1..].iter().any(|group| group.len() != 3);
    (!misplaced && groups.iter().all(|group| is_digits(group))).then(|| groups.concat())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_exactly_or_not_at_all() {
        check("0", Some((0, "")));
        check("1_000k", Some((1_000_000, "k")));
        check("1,000,000", Some((1_000_000_000, "")));
        check("1.5m", Some((1_500, "m")));
        check("0.001/s", Some((1, "/s")));
        check(".5s", Some((500, "s")));
        check("1e3", Some((1_000_000, "")));
        check("1.5E+3s", Some((1_500_000, "s")));
        check("25e-1/s", Some((2_500, "/s")));
        check("1_000e2k", Some((100_000_000, "k")));
        // Not an exponent, but a unit that begins with e.
        for unit in ["e", "e+", "eggs", "e1234"] {
            check(&format!("5{unit}"), Some((5_000, unit)));
        }
        check("18,446,744,073,709,551.615", Some((u64::MAX, "")));
        for text in
            ["", "k", ".", ".s", "5.", "1,5", "1,0000", "1000,000", "1,000_000", "1__0", "_1", "1_", "1.2.3"]
        {
            check(text, None);
        }
        check("0.0001", None);
        check("1e-4", None);
        check("1e-39", None);
        check("1e38", None);
        check("1e999", None);
        check("18446744073709551.616", None);
        check("1000000000000000000000000000000000000000", None);
    }

    /// `expected`: the number in thousandths, and the unit.
    fn check(text: &str, expected: Option<(u64, &str)>) {
        let read = Decimal::leading(text).and_then(|(number, unit)| Some((number.times(1_000)?, unit)));
        assert_eq!(read, expected, "{text:?}");
    }
}
