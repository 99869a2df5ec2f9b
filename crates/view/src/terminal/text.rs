//! Styles of the live view, and the formatting of figures for its columns.

use ratatui::{
    style::{Color, Modifier, Style},
    text::Span,
};
use units::{Bytes, Count, Nanos, Unit};

/// Labels, which do not change.
pub(crate) const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
/// The most important text.
pub(crate) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Errors.
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
/// Good results.
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
/// Warnings.
pub(crate) const DOUBT: Style = Style::new().fg(Color::Yellow);
/// Width of the name at the beginning of each line, in columns.
pub(crate) const NAME: usize = 9;

pub(crate) fn quiet(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), QUIET)
}

pub(crate) fn plain(text: impl Into<String>) -> Span<'static> {
    Span::raw(text.into())
}

/// Shortens a text to this many columns, with `…` at the end.
pub(crate) fn fit(text: &str, width: usize) -> String {
    // Control characters are replaced, because they would move the cursor.
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if Span::raw(&*text).width() <= width {
        return text;
    }
    while Span::raw(&*text).width() >= width && text.pop().is_some() {}
    if width > 0 { text + "…" } else { text }
}

/// A time rounded to seconds: `1m5s`.
pub(crate) fn whole_seconds(time: Nanos) -> String {
    Nanos(time.0.saturating_add(500_000_000) / 1_000_000_000 * 1_000_000_000).to_string()
}

pub(crate) fn per_s(rate: f64) -> String {
    format!("{}/s", Count(rate.round() as u64))
}

pub(crate) fn bytes_per_s(rate: f64) -> String {
    Unit::BytesPerSecond.brief(rate)
}

pub(crate) fn bytes(n: u64) -> String {
    Bytes(n).brief().to_string()
}

/// A share as a whole percentage: `45 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A value with its maximum, as far as known: `5 of 20`.
pub(crate) fn of(now: Option<u64>, most: Option<u64>) -> String {
    match (now, most) {
        (Some(now), Some(most)) => format!("{} of {}", Count(now), Count(most)),
        (Some(now), None) => Count(now).to_string(),
        _ => NOTHING.to_owned(),
    }
}

/// The text for a missing figure.
pub(crate) const NOTHING: &str = "–";

pub(crate) fn time(time: Option<Nanos>) -> String {
    time.map_or(NOTHING.to_owned(), |time| time.brief().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_does_not_fit_is_cut() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("abcd", 1, "…"),
            ("abcd", 0, ""),
            ("", 0, ""),
            // Each of these characters is two columns wide.
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a\tb\u{1b}[m", 9, "a b [m"),
        ] {
            assert_eq!(fit(text, width), expected, "{text:?} in {width}");
        }
    }

    #[test]
    fn figures_are_rounded() {
        assert_eq!(whole_seconds(Nanos::from_millis(61_499)), "1m1s");
        assert_eq!(whole_seconds(Nanos::from_millis(61_500)), "1m2s");
        assert_eq!((per_s(1234.5), bytes_per_s(1_572_864.0)), ("1,235/s".to_owned(), "1.5 MiB/s".to_owned()));
        assert_eq!((percent(1.234), percent(0.0)), ("123 %".to_owned(), "0 %".to_owned()));
        assert_eq!(of(Some(5_000), Some(20_000)), "5,000 of 20,000");
        assert_eq!((of(Some(5), None), of(None, Some(5))), ("5".to_owned(), NOTHING.to_owned()));
    }
}
