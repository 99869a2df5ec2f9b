//! Thresholds: conditions on figures of the summary for a run to pass, such as `latency.p99 < 200ms`.

use std::fmt;

use crate::Population;
use samples::Figure;
use units::{Bytes, Count, Nanos, ParseError, Rate, Unit};

mod meant;
mod names;

pub(crate) use names::{Names, list_once};

/// Completes the message "… is not" for a condition on held connections, if all of them come and go, or a step closes them.
pub(crate) const NEVER_HELD: &str =
    "a condition for connections that are closed after their requests, and not held";

/// One condition on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As written.
    pub text: String,
    /// Figure that is judged.
    pub figure: Figure,
    /// Whether the bound is a percentage of the figure's whole.
    pub is_share: bool,
    /// How the figure is compared with the bound.
    pub comparison: Comparison,
    /// The bound, in the unit of the summary's figure (microseconds, seconds, bytes, a number), or percent.
    pub bound: f64,
    /// Whether the bound is written in a decimal unit of bytes.
    pub is_decimal: bool,
}

impl Threshold {
    /// Whether the bound is a minimum.
    pub fn is_lower_bound(&self) -> bool {
        matches!(self.comparison, Comparison::Greater | Comparison::GreaterOrEqual)
    }

    /// Parses `FIGURE OPERATOR BOUND`. A figure is named by its path in the summary's JSON, or by its short name; a figure of a population
    /// has that population's name in front (`users.latency.p99`), and one of a step also the step's (`users.login.latency.p99`).
    ///
    /// # Errors
    /// What cannot be parsed, with the fix.
    pub fn parse(text: &str, populations: &[Population]) -> Result<Threshold, ParseError> {
        let threshold = Threshold::named(text, &Names::of(populations))?;
        let fix = "errors < 1%, answered >= 99% or finished >= 99%";
        match threshold.is_never_held(populations) {
            true => Err(ParseError::new(text, NEVER_HELD, fix)),
            false => Ok(threshold),
        }
    }

    fn named(text: &str, names: &Names) -> Result<Threshold, ParseError> {
        let Some((name, comparison, bound)) = Comparison::split(text) else {
            return Err(ParseError::new(text, "a threshold", "latency.p99 < 200ms"));
        };
        if has_several(bound) {
            let fix = "one for each condition: --threshold 'latency.p95 < 200ms' --threshold 'errors < 1%'";
            return Err(ParseError::new(text, "a threshold", fix));
        }
        let figure = names.figure(name)?;
        let is_path = name.ends_with(&figure.key);
        let is_error_rate = figure.is_any(&["errors.count"]) && !is_path;
        if is_error_rate && !bound.ends_with('%') && bound.parse::<f64>() != Ok(0.0) {
            return Err(share_or_number(name, comparison, bound));
        }
        let is_decimal = Bytes::is_decimal(amount(bound));
        let (bound, is_share) = read(bound, &figure, is_path)?;
        let threshold = Threshold { text: text.to_owned(), figure, is_share, comparison, bound, is_decimal };
        threshold.beyond_the_whole(name).map_or(Ok(threshold), Err)
    }

    /// An error if the percentage makes the condition trivial or impossible: a part is never more than its whole.
    fn beyond_the_whole(&self, name: &str) -> Option<ParseError> {
        use Comparison::{Different, Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        if !self.is_share || !self.figure.is_part() {
            return None;
        }
        let wanted = match self.comparison {
            Less | Different if self.bound > 100.0 => "a condition that can fail",
            LessOrEqual if self.bound >= 100.0 => "a condition that can fail",
            Equal | GreaterOrEqual if self.bound > 100.0 => "a condition that can be met",
            Greater if self.bound >= 100.0 => "a condition that can be met",
            _ => return None,
        };
        let usual = match self.comparison {
            Less | LessOrEqual => "1%",
            _ => "99%",
        };
        Some(ParseError::new(&self.text, wanted, format!("{name} {} {usual}", self.comparison.sign())))
    }

    /// A value in the bound's unit, formatted: `141 µs`, `99.9 %`; bytes in the kind of unit of the bound, `38.4 MB/s` or `36.7 MiB/s`.
    pub fn shown(&self, value: f64) -> String {
        if self.is_share {
            // Enough digits to show on which side of the bound a close value lies.
            let digits = (value * 1e3).round() / 1e3;
            return format!("{digits} %");
        }
        match self.is_decimal {
            true => self.figure.unit.brief_decimal(value),
            false => self.figure.unit.brief(value),
        }
    }

    /// Whether it is on the number of held connections.
    pub fn is_of_held(&self) -> bool {
        self.figure.is_any(&["connections.held"])
    }

    /// Whether it is on the number of held connections, although all connections that it counts come and go.
    fn is_never_held(&self, populations: &[Population]) -> bool {
        let of = self.figure.population();
        let is_counted = |own: &&Population| of.is_none_or(|name| own.name == name);
        let mut counted = populations.iter().filter(is_counted).peekable();
        self.is_of_held() && counted.peek().is_some() && counted.all(Population::closes_its_connections)
    }

    /// Whether a value in the bound's unit meets the condition.
    pub fn is_met_by(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.bound,
            Comparison::LessOrEqual => value <= self.bound,
            Comparison::Greater => value > self.bound,
            Comparison::GreaterOrEqual => value >= self.bound,
            Comparison::Equal => value == self.bound,
            Comparison::Different => value != self.bound,
        }
    }
}

/// The error for `errors < 1`: most people mean a share of the requests, but the summary's figure of that name is a number.
fn share_or_number(name: &str, comparison: Comparison, bound: &str) -> ParseError {
    let sign = comparison.sign();
    let share = match bound.parse::<f64>() {
        Ok(n) if n > 0.0 && n < 1.0 => (n * 1e5).round() / 1e3,
        Ok(n) if (1.0..=100.0).contains(&n) => n,
        _ => 1.0,
    };
    let number = if Count::parse(bound).is_ok() { bound } else { "10" };
    let fix = format!(
        "{name} {sign} {share}% (a share of the requests) or {name}.count {sign} {number} (a number)"
    );
    ParseError::new(bound, "a share", fix)
}

/// The bytes of a rate, without `/s`.
fn amount(bound: &str) -> &str {
    bound.strip_suffix("/s").unwrap_or(bound)
}

/// Whether another condition follows the bound.
fn has_several(bound: &str) -> bool {
    let mut parts = bound.split([',', ';', '&']).flat_map(|part| part.split(" and "));
    parts.any(|part| {
        part.trim_start().starts_with(|c: char| c.is_alphabetic()) && Comparison::split(part).is_some()
    })
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A comparison of a figure with its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `==`
    Equal,
    /// `!=`
    Different,
}

impl Comparison {
    /// Longer signs first, because `<` is a prefix of `<=`.
    const SIGNS: [(&'static str, Comparison); 6] = [
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("==", Comparison::Equal),
        ("!=", Comparison::Different),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];

    /// Its operator.
    fn sign(self) -> &'static str {
        Comparison::SIGNS.iter().find(|(_, own)| *own == self).map_or("", |(sign, _)| sign)
    }

    /// The text before the operator, the operator, and the text after it.
    fn split(text: &str) -> Option<(&str, Comparison, &str)> {
        let at = text.find(['<', '>', '=', '!'])?;
        let (name, rest) = text.split_at(at);
        let (sign, comparison) = Comparison::SIGNS.iter().find(|(sign, _)| rest.starts_with(sign))?;
        let (name, bound) = (name.trim(), rest[sign.len()..].trim());
        (!name.is_empty() && !bound.is_empty()).then_some((name, *comparison, bound))
    }
}

/// Parses a bound in this figure's unit; also returns whether it is a percentage of the whole. `is_path`: the figure was named by its path.
fn read(text: &str, figure: &Figure, is_path: bool) -> Result<(f64, bool), ParseError> {
    if let Some(percent) = text.strip_suffix('%') {
        let number = percent.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        return match (number, figure.whole().is_some(), figure.unit) {
            (Some(number), _, Unit::Share) => Ok((number / 100.0, false)),
            (Some(number), true, _) => Ok((number, true)),
            (None, true, _) | (None, _, Unit::Share) => Err(ParseError::new(text, "a share", "99.9%")),
            _ => Err(misread(text, figure.unit)),
        };
    }
    let plain = || text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let count = || Count::parse(text).ok().map(|n| n.0 as f64);
    let bytes = |text| Bytes::parse(text).ok().map(|bytes| bytes.0 as f64).or_else(plain);
    let micros = || Nanos::parse(text).ok().map(|time| time.0 as f64 / 1e3);
    // A path names the unit, so a plain number is accepted; the short name of a time implies no unit.
    let bare = || if is_path { plain() } else { None };
    let read = match figure.unit {
        Unit::Count => count(),
        Unit::Micros => bare().or_else(micros),
        Unit::Seconds => bare().or_else(|| micros().map(|us| us / 1e6)),
        Unit::PerSecond => Rate::parse(text).ok().map(Rate::per_s_f64).or_else(count).or_else(plain),
        Unit::Bytes => bytes(text).or_else(count),
        Unit::BytesPerSecond => bytes(amount(text)),
        Unit::Share => plain(),
        Unit::Number => plain().or_else(count),
    };
    read.map(|bound| (bound, false)).ok_or_else(|| misread(text, figure.unit))
}

fn misread(text: &str, unit: Unit) -> ParseError {
    let bare = text.parse::<f64>().is_ok();
    let (wanted, fix) = match unit {
        Unit::Count => ("a count", "10 or 100k".to_owned()),
        Unit::Micros if bare => ("a time", format!("{text}ms")),
        Unit::Micros => ("a time", "200ms".to_owned()),
        Unit::Seconds if bare => ("a time", format!("{text}s")),
        Unit::Seconds => ("a time", "30s".to_owned()),
        Unit::PerSecond => ("a rate", "20k/s".to_owned()),
        Unit::Bytes => ("a number of bytes", "512, 64KiB or 10MB".to_owned()),
        Unit::BytesPerSecond => ("a number of bytes per second", "64KiB/s or 10MB/s".to_owned()),
        Unit::Share => ("a share", "95% or 0.95".to_owned()),
        Unit::Number => ("a number", "0.5 or 100k".to_owned()),
    };
    ParseError::new(text, wanted, fix)
}
#[cfg(test)]
mod tests;
