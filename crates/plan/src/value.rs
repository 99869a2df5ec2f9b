//! Values of flags and keys: numbers, rates and times, with their limits, their defaults, and error messages that contain a fix.

use units::{Count, Nanos, ParseError, Rate, Spans};

use crate::load::DEFAULT_CONNECTIONS;
use crate::{Hold, Ramp, Reconnect};

/// Default of `--duration` if connections are held.
pub(crate) const DEFAULT_HOLD: Hold = Hold::For(Nanos::from_secs(10));

/// Default of `--ping`.
pub(crate) const DEFAULT_PING: Nanos = Nanos::from_secs(30);

/// Default of `--max-lag`: a tenth of what people notice, and within reach of a dedicated machine.
pub const DEFAULT_MAX_LAG: Nanos = Nanos::from_millis(10);

/// Maximum number of threads; more are probably a typing error.
pub(crate) const MAX_THREADS: u32 = 1_024;

/// Concurrent requests on an HTTP/2 connection.
pub(crate) fn streams(text: &str) -> Result<u16, ParseError> {
    within(text, u32::from(MAX_STREAMS), "a number of streams", "1 to 1,024").map(|n| n as u16)
}

/// Maximum number of streams; common servers allow fewer.
const MAX_STREAMS: u16 = 1_024;

pub(crate) fn connections(text: &str) -> Result<u32, ParseError> {
    within(text, u32::MAX, "a number of connections", "1 to 4,294,967,295, as 100k or 1m")
}

/// Parses a number of threads.
///
/// # Errors
/// The number is not from 1 to 1,024.
pub fn threads(text: &str) -> Result<u32, ParseError> {
    within(text, MAX_THREADS, "a number of threads", "1 to 1024")
}

/// Parses a count from 1 to `most`.
pub(crate) fn within(text: &str, most: u32, wanted: &'static str, fix: &str) -> Result<u32, ParseError> {
    let count = Count::parse(text).ok().and_then(|count| u32::try_from(count.0).ok());
    count.filter(|n| (1..=most).contains(n)).ok_or_else(|| ParseError::new(text, wanted, fix))
}

pub(crate) fn ramp(text: &str) -> Result<Ramp, ParseError> {
    match (Rate::parse(text), Nanos::parse(text)) {
        (Ok(_), _) => a_rate(text, "20k/s").map(Ramp::Rate),
        (_, Ok(time)) => Ok(Ramp::Within(time)),
        // A bare number may be a rate or a time.
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
        // Most people mean milliseconds, while a time without a unit is in seconds elsewhere.
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
    // In the form that a run prints, without a suffix, so that a seed has one spelling.
    text.parse().map_err(|_| ParseError::new(text, "a seed", "a whole number, as 42"))
}

/// Parses a number of requests.
pub(crate) fn requests(text: &str) -> Result<u64, ParseError> {
    match Count::parse(text) {
        Ok(Count(n)) if n > 0 => Ok(n),
        _ => Err(ParseError::new(text, "a number of requests", "1 or more, as 100k")),
    }
}

/// The number of connections for few requests, if it is below the default.
pub(crate) fn connections_for(requests: Option<u64>) -> Option<u32> {
    requests.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < DEFAULT_CONNECTIONS)
}

/// Parses the interval between PINGs of a connection: servers regard many PINGs as an attack, and close the connection.
pub(crate) fn between_pings(text: &str) -> Result<Nanos, ParseError> {
    match Nanos::parse_or_seconds(text)? {
        every if every < Nanos::from_millis(10) => {
            Err(ParseError::new(text, "a time between PINGs of at least 10ms", "30s"))
        }
        every => Ok(every),
    }
}

/// Maximum rate, above what any fleet can send: each due request that cannot be sent has to be counted.
const MOST_PER_S: f64 = 100e6;

/// Parses a rate above zero where only a rate is possible: a number without a unit is per second.
///
/// # Errors
/// The text is no rate, or the rate is zero.
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

/// Parses a rate above zero; `fix`: an example.
///
/// # Errors
/// The text is no rate, or the rate is zero.
pub fn a_rate(text: &str, fix: &str) -> Result<Rate, ParseError> {
    let nothing = || ParseError::new(text, "a rate greater than 0", fix);
    match Rate::parse(text) {
        Ok(rate) if rate.is_zero() => Err(nothing()),
        // With a unit it would be no valid rate, either.
        Err(_) if Count::parse(text).is_ok_and(|count| count.0 == 0) => Err(nothing()),
        read => read,
    }
}
