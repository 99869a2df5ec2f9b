//! Replaces placeholders in texts: `{url}`, `{scale 400k}`, `{for 30s}`. Placeholders that throng itself replaces (`{rand 1 9}`,
//! `{1..20}`) are left unchanged.

use std::collections::BTreeMap;

use units::{Count, Nanos};

/// Environment variables, by name; placeholders in their values are replaced.
pub type Environment = BTreeMap<String, String>;

/// The values of the placeholders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    /// The factor for `{scale N}`.
    pub(crate) scale: f64,
    /// The value of any `{for TIME}`; if `None`,
    pub(crate) time: Option<Nanos>,
    /// TIME is multiplied by this share, with a result from [`MIN_TIME`] to TIME.
    pub(crate) share: f64,
    /// The values of other placeholders, by name.
    pub(crate) named: BTreeMap<&'static str, String>,
}

/// Minimum time at full load: figures are computed once per second, so less would show nothing.
const MIN_TIME: Nanos = Nanos::from_secs(3);

impl Values {
    /// The text with its placeholders replaced.
    ///
    /// # Errors
    /// A `{scale …}` without a number, or a `{for …}` without a time.
    pub(crate) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            filled.push_str(&rest[..begin]);
            rest = &rest[begin..];
            let Some(end) = rest.find('}') else { break };
            let name = &rest[1..end];
            match (self.named.get(name), name.split_once(' ')) {
                (Some(value), _) => filled.push_str(value),
                (None, Some(("scale", number))) => filled.push_str(&self.scaled(number)?.to_string()),
                (None, Some(("for", time))) => {
                    let written = Nanos::parse(time).map_err(|_| format!("not a time: {{for {time}}}"))?;
                    filled.push_str(&format!("{}ms", self.time(written).millis()));
                }
                (None, _) => filled.push_str(&rest[..=end]),
            }
            rest = &rest[end + 1..];
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn time(&self, written: Nanos) -> Nanos {
        let shortened = (written.millis() as f64 * self.share.min(1.0)).round() as u64;
        self.time.unwrap_or(Nanos::from_millis(shortened).max(MIN_TIME).min(written))
    }

    fn scaled(&self, number: &str) -> Result<u64, String> {
        let Count(n) = Count::parse(number).map_err(|_| format!("not a number: {{scale {number}}}"))?;
        Ok(((n as f64 * self.scale).round() as u64).max(1))
    }
}

/// The largest number in a text that is proportional to the scale, at scale 1.
pub(crate) fn largest(text: &str) -> Result<u64, String> {
    let full = Values { scale: 1.0, ..Values::default() };
    let numbers = text.split("{scale ").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    numbers.map(|number| full.scaled(number)).try_fold(0, |most, n| Ok(most.max(n?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_others_left() {
        let named =
            BTreeMap::from([("url", "http://127.0.0.{1..2}:80".to_owned()), ("port", "80".to_owned())]);
        let values = Values { scale: 0.1, named, ..Values::default() };
        let check = |text: &str, expected: &str| assert_eq!(values.fill(text).unwrap(), expected);
        check("{url}/?length={rand 1 4096}", "http://127.0.0.{1..2}:80/?length={rand 1 4096}");
        check("-p {port} {scale 400k} {scale 3} {", "-p 80 40000 1 {");
        check("", "");
        assert_eq!(values.fill("{scale all}"), Err("not a number: {scale all}".to_owned()));
        assert_eq!(values.fill("{for ever}"), Err("not a time: {for ever}".to_owned()));
        assert_eq!(largest("a {scale 10} b {scale 1.5m}"), Ok(1_500_000));
        assert_eq!(largest("none"), Ok(0));
    }

    #[test]
    fn times_are_shortened_or_fixed() {
        let check = |share: f64, time: Option<Nanos>, expected: &str| {
            let values = Values { share, time, ..Values::default() };
            assert_eq!(values.fill("-d {for 30s} {for 1s}").unwrap(), expected);
        };
        check(1.0, None, "-d 30000ms 1000ms");
        check(7.0, None, "-d 30000ms 1000ms");
        check(0.5, None, "-d 15000ms 1000ms");
        check(0.01, None, "-d 3000ms 1000ms");
        check(0.5, Some(Nanos::from_secs(60)), "-d 60000ms 60000ms");
    }
}
