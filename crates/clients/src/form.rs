//! The form that requests clients: `ws=ws://HOST:PORT/PATH&count=5`.

use plan::a_rate;
use units::{Count, Nanos, Rate};

/// A request for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The target.
    pub(crate) ws: String,
    /// Number of clients, at least 1.
    pub(crate) count: u32,
    /// Dials per second; `None`: all at once.
    pub(crate) rate: Option<Rate>,
    /// Interval of pings.
    pub(crate) ping: Nanos,
    /// Accept any certificate.
    pub(crate) insecure: bool,
}

/// Default interval of pings.
const PING: Nanos = Nanos::from_secs(30);
/// Minimum interval: clients are held, not loaded.
const MIN_PING: Nanos = Nanos::from_millis(100);
const MAX_PING: Nanos = Nanos::from_secs(24 * 3600);
/// Message for a body that is not a form.
const NO_FORM: &str = "the body is JSON, and must be a form (application/x-www-form-urlencoded); use --data \
                       'ws=ws://HOST:PORT/PATH&count=5'";

impl Wanted {
    /// Parses a form (`application/x-www-form-urlencoded`); reports all mistakes at once, a line each.
    pub(crate) fn parse(form: &[u8]) -> Result<Wanted, Vec<String>> {
        // The content type does not help: curl declares any data a form. No field name begins like this.
        if matches!(form.trim_ascii_start(), [b'{' | b'[', ..]) {
            return Err(vec![NO_FORM.to_owned()]);
        }
        let mut wanted = Wanted { ws: String::new(), count: 1, rate: None, ping: PING, insecure: false };
        let (mut seen, mut mistakes) = (Vec::new(), Vec::new());
        for (field, value) in form_urlencoded::parse(form) {
            if seen.contains(&field) {
                mistakes.push(format!("{field}: given twice"));
            }
            mistakes.extend(wanted.set(&field, &value).err());
            seen.push(field);
        }
        if wanted.ws.is_empty() {
            mistakes.push("ws: missing; use ws=ws://HOST:PORT/PATH&count=5".to_owned());
        }
        if mistakes.is_empty() { Ok(wanted) } else { Err(mistakes) }
    }

    fn set(&mut self, field: &str, value: &str) -> Result<(), String> {
        let placed = |why: &dyn std::fmt::Display| format!("{field}: {why}");
        match field {
            "ws" => self.ws = value.to_owned(),
            "count" => match Count::parse(value).map_err(|e| placed(&e))? {
                Count(n @ 1..) if n <= u32::MAX.into() => self.count = n as u32,
                Count(n) => return Err(format!("count: must be 1 to {}: {n}", Count(u32::MAX.into()))),
            },
            "rate" => self.rate = Some(a_rate(value, "500/s").map_err(|e| placed(&e))?),
            "ping" => match Nanos::parse(value).map_err(|e| placed(&e))? {
                time if (MIN_PING..=MAX_PING).contains(&time) => self.ping = time,
                _ => return Err(format!("ping: must be 100ms to 24h: {value:?}")),
            },
            "insecure" => match value {
                "true" | "false" => self.insecure = value == "true",
                _ => return Err(format!("insecure: must be true or false: {value:?}")),
            },
            _ => return Err(format!("{field:?} is not a field; use ws, count, rate, ping, insecure")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(form: &str, expected: Result<(&str, u32, Option<u32>, u64), &[&str]>) {
        let wanted = expected.map(|(ws, count, rate, ping_ms)| Wanted {
            ws: ws.to_owned(),
            count,
            rate: rate.map(Rate::per_s),
            ping: Nanos::from_millis(ping_ms),
            insecure: form.contains("insecure=true"),
        });
        let wanted = wanted.map_err(|lines| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        assert_eq!(Wanted::parse(form.as_bytes()), wanted, "{form}");
    }

    #[test]
    fn the_line_of_the_source_text_is_read() {
        check(
            "ws=ws://c100k_server:9000/ws/echo&count=5",
            Ok(("ws://c100k_server:9000/ws/echo", 5, None, 30_000)),
        );
        check("ws=ws%3A%2F%2Fh%3A1%2Fa%3Fb%3Dc", Ok(("ws://h:1/a?b=c", 1, None, 30_000)));
        check("count=10k&ws=ws://h:1/&rate=500/s&ping=10s", Ok(("ws://h:1/", 10_000, Some(500), 10_000)));
    }

    #[test]
    fn json_is_no_form() {
        for json in ["{\"ws\": \"ws://h:1/\", \"count\": 5}", " \n[]", "{"] {
            check(json, Err(&[NO_FORM]));
        }
    }

    #[test]
    fn all_mistakes_are_named() {
        check("", Err(&["ws: missing; use ws=ws://HOST:PORT/PATH&count=5"]));
        check("ws=ws://h:1/&count=0", Err(&["count: must be 1 to 4,294,967,295: 0"]));
        check("ws=ws://h:1/&count=-1", Err(&["count: \"-1\" is not a count; use 50, 100k or 1.5m"]));
        check("ws=ws://h:1/&count=5g", Err(&["count: must be 1 to 4,294,967,295: 5000000000"]));
        check(
            "ws=a&ws=b&count=five&rate=5&ping=1ms&colour=red",
            Err(&[
                "ws: given twice",
                "count: \"five\" is not a count; use 50, 100k or 1.5m",
                "rate: \"5\" is not a rate; use 5/s",
                "ping: must be 100ms to 24h: \"1ms\"",
                "\"colour\" is not a field; use ws, count, rate, ping, insecure",
            ]),
        );
    }
}
