//! `{now}`: the time at which a request is written, in the forms that APIs expect.

use super::write_decimal;
use std::fmt;
use units::{Date, Nanos};

/// A time in a text, as an offset from when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    form: Form,
    /// Added to it.
    later: Nanos,
    /// Subtracted from it.
    earlier: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// RFC 3339 with milliseconds.
    Iso,
    /// IMF-fixdate (RFC 9110, section 5.6.7).
    Http,
    /// Since 1970, in units of this many nanoseconds.
    Units(u64),
}

/// The forms, by the word that selects them.
const FORMS: [(&str, Form); 6] = [
    ("iso", Form::Iso),
    ("http", Form::Http),
    ("s", Form::Units(1_000_000_000)),
    ("ms", Form::Units(1_000_000)),
    ("us", Form::Units(1_000)),
    ("ns", Form::Units(1)),
];

impl Now {
    /// Parses the words of `{now}`, `{now ms}` or `{now s +5m}`.
    pub(super) fn parse(whole: &str, words: &[&str]) -> Result<Now, String> {
        let misread =
            || format!("{whole:?} is no form of the time; use {{now}}, {{now ms}} or {{now s +5m}}");
        let (form, rest) = match words {
            [name, rest @ ..] if !name.starts_with(['+', '-']) => {
                let form = FORMS.iter().find(|(own, _)| own == name).ok_or_else(misread)?;
                (form.1, rest)
            }
            rest => (Form::Iso, rest),
        };
        let mut now = Now { form, later: Nanos::ZERO, earlier: Nanos::ZERO };
        match rest {
            [] => {}
            [shift] => {
                let (side, time) = match (shift.strip_prefix('+'), shift.strip_prefix('-')) {
                    (Some(time), _) => (&mut now.later, time),
                    (_, Some(time)) => (&mut now.earlier, time),
                    _ => return Err(misread()),
                };
                *side = Nanos::parse(time).map_err(|why| format!("{whole:?}: {why}"))?;
            }
            _ => return Err(misread()),
        }
        Ok(now)
    }

    pub(super) fn max_len(self) -> usize {
        match self.form {
            // A year has four digits until the year 10000, and nanoseconds since 1970 end in the year 2554.
            Form::Iso => "2026-11-20T17:04:09.125Z".len(),
            Form::Http => "Fri, 20 Nov 2026 17:04:09 GMT".len(),
            Form::Units(_) => 20,
        }
    }

    /// Writes the time for `now`, since 1970, to the start of `out`, and returns its length.
    pub(super) fn write(self, now: Nanos, out: &mut [u8]) -> usize {
        let time = Nanos((now + self.later).0.saturating_sub(self.earlier.0));
        let date = Date(time.0 / 1_000_000);
        match self.form {
            Form::Iso => super::copy(&date.with_millis(), out),
            Form::Http => super::copy(&date.http(), out),
            Form::Units(unit) => write_decimal(time.0 / unit, out),
        }
    }
}

impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{now")?;
        if let Some((name, _)) = FORMS[1..].iter().find(|(_, form)| *form == self.form) {
            write!(f, " {name}")?;
        }
        for (sign, shift) in [('+', self.later), ('-', self.earlier)] {
            if shift > Nanos::ZERO {
                write!(f, " {sign}{shift}")?;
            }
        }
        f.write_str("}")
    }
}
