//! What the value of a flag or of a key means: numbers, rates and times, each with the fix of a wrong one, and what is meant where none is
//! given.

use units::{Count, Nanos, ParseError, Rate, Spans};

use crate::load::DEFAULT_CONNECTIONS;
use crate::{Hold, Ramp, Reconnect};

/// `--timeout` where none is given.
pub(crate) const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(10);

/// `--duration` where none is given and connections are held.
pub(crate) const DEFAULT_HOLD: Hold = Hold::For(Nanos::from_secs(10));

/// `--ping` where none is given.
pub(crate) const DEFAULT_PING: Nanos = Nanos::from_secs(30);

/// `--max-lag` where none is given: a tenth of what people notice, and what a machine of one's own keeps.
pub const DEFAULT_MAX_LAG: Nanos = Nanos::from_millis(10);

/// More threads than this are a slip of the finger.
pub(crate) const MAX_THREADS: u32 = 1_024;

/// Requests at once on a connection of HTTP/2.
pub(crate) fn streams(text: &str) -> Result<u16, ParseError> {
    within(text, u32::from(MAX_STREAMS), "a number of streams", "1 to 1,024").map(|n| n as u16)
}

/// More streams than this no server in use allows.
const MAX_STREAMS: u16 = 1_024;

pub(crate) fn connections(text: &str) -> Result<u32, ParseError> {
    within(text, u32::MAX, "a number of connections", "1 to 4,294,967,295, as 100k or 1m")
}

/// A number of shards.
///
/// # Errors
/// It is not one from 1 to 1,024.
pub fn threads(text: &str) -> Result<u32, ParseError> {
    within(text, MAX_THREADS, "a number of threads", "1 to 1024")
}

/// A count from 1 to `most`.
pub(crate) fn within(text: &str, most: u32, wanted: &'static str, fix: &str) -> Result<u32, ParseError> {
    let count = Count::parse(text).ok().and_then(|count| u32::try_from(count.0).ok());
    count.filter(|n| (1..=most).contains(n)).ok_or_else(|| ParseError::new(text, wanted, fix))
}

pub(crate) fn ramp(text: &str) -> Result<Ramp, ParseError> {
    match (Rate::parse(text), Nanos::parse(text)) {
        (Ok(_), _) => a_rate(text, "20k/s").map(Ramp::Rate),
        (_, Ok(time)) => Ok(Ramp::Within(time)),
        // A bare number may be either.
        _ if Nanos::parse_or_seconds(text).is_ok() => {
            Err(ParseError::new(text, "a rate or a time", format!("{text}/s or {text}s")))
        }
        (Err(misread), _) if Count::parse(text).is_ok() => Err(misread),
        _ => Err(ParseError::new(text, "a rate or a time", "20k/s or 30s")),
    }
}

pub(crate) fn hold(text: &str) -> Result<Hold, ParseError> {
    if text == "forever" { Ok(Hold::Forever) } else { Nanos::parse_or_seconds(text).map(Hold::For) }
}

pub(crate) fn max_lag(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse(text) {
        Ok(limit) if limit > Nanos::ZERO => Ok(limit),
        // Most people mean milliseconds, and a time without a unit is in seconds elsewhere.
        Err(_) if Nanos::parse_or_seconds(text).is_ok() => {
            Err(ParseError::new(text, "a time with its unit", format!("{text}ms or {text}s")))
        }
        _ => Err(ParseError::new(text, "a time greater than 0", "50ms")),
    }
}

pub(crate) fn timeout(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse_or_seconds(text)? {
        Nanos::ZERO => Err(ParseError::new(text, "a timeout greater than 0", "10s")),
        limit => Ok(limit),
    }
}

pub(crate) fn reconnect(text: &str) -> Result<Reconnect, ParseError> {
    match text {
        "planned" => Ok(Reconnect::Planned),
        "never" => Ok(Reconnect::Never),
        _ => match Spans::parse_or_seconds(text) {
            Ok(span) if span.min == Nanos::ZERO => {
                Err(ParseError::new(text, "a back-off greater than 0", "1s..30s"))
            }
            Ok(span) => Ok(Reconnect::Backoff(span)),
            Err(_) => Err(ParseError::new(text, "a way to reconnect", "planned, never or 1s..30s")),
        },
    }
}

pub(crate) fn seed(text: &str) -> Result<u64, ParseError> {
    // Exactly as a run prints it: no suffix, so that a seed has one spelling.
    text.parse().map_err(|_| ParseError::new(text, "a seed", "a whole number, as 42"))
}

/// A number of requests.
pub(crate) fn requests(text: &str) -> Result<u64, ParseError> {
    match Count::parse(text) {
        Ok(Count(n)) if n > 0 => Ok(n),
        _ => Err(ParseError::new(text, "a number of requests", "1 or more, as 100k")),
    }
}

/// As many connections as so few requests need, where the usual number is more.
pub(crate) fn connections_for(requests: Option<u64>) -> Option<u32> {
    requests.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < DEFAULT_CONNECTIONS)
}

/// The time between two PINGs of a connection: servers take many of them for an attack, and close the connection.
pub(crate) fn between_pings(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse_or_seconds(text)? {
        every if every < Nanos::from_millis(10) => {
            Err(ParseError::new(text, "a time between PINGs of at least 10ms", "30s"))
        }
        every => Ok(every),
    }
}

/// More than any fleet sends: each request that is due and cannot be sent is counted.
const MOST_PER_S: f64 = 100e6;

/// A rate above zero, of which nothing but a rate is expected: a number without a unit is per second.
///
/// # Errors
/// It is no rate, or zero.
pub fn rate_per_s(text: &str, fix: &str) -> Result<Rate, ParseError> {
    match Rate::parse(&format!("{text}/s")) {
        Ok(rate) if rate.is_zero() => Err(ParseError::new(text, "a rate greater than 0", fix)),
        Ok(rate) if rate.per_s_f64() > MOST_PER_S => {
            Err(ParseError::new(text, "a rate of at most 100m/s", fix))
        }
        Ok(rate) => Ok(rate),
        Err(_) => a_rate(text, fix),
    }
}

/// A rate above zero; `fix` is one.
///
/// # Errors
/// It is no rate, or zero.
pub fn a_rate(text: &str, fix: &str) -> Result<Rate, ParseError> {
    let nothing = || ParseError::new(text, "a rate greater than 0", fix);
    match Rate::parse(text) {
        Ok(rate) if rate.is_zero() => Err(nothing()),
        // With a unit it would be no rate either.
        Err(_) if Count::parse(text).is_ok_and(|count| count.0 == 0) => Err(nothing()),
        read => read,
    }
}
