//! The routes of the server, the same for every version of HTTP.

use units::{Nanos, Spans};
use wire::http1;

/// Maximum length of a text: the servers whose experiments the labs repeat clamp `length` to 1..10240.
pub(crate) const LONGEST: u64 = 10_240;
/// Longest `/delay`.
const LONGEST_DELAY: Nanos = Nanos::from_secs(24 * 3600);

/// Longest interval of `/ws/push`: a server that stops waits for it.
const LONGEST_PUSH: Nanos = Nanos::from_secs(30);
/// Shortest interval: timers are accurate to a millisecond.
const SHORTEST_PUSH: Nanos = Nanos::from_millis(10);

/// The body of `/`.
pub(crate) const HELLO: &[u8] = b"Hello World!";

/// The response to a request, once that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Hello,
    /// Text of this length, in characters.
    Text(u16),
    Stats,
    /// The WebSocket echo; the upgrade has been accepted.
    Echo,
    /// Like `Echo`, with pushed messages of at least this length, at the interval that [`route`] returns.
    Push(u16),
    /// This route requires a WebSocket.
    UpgradeRequired,
    /// Only a status.
    Empty(u16),
}

/// Whether a request is an upgrade to WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    Valid,
    /// For the supported version, but invalid.
    Invalid,
    /// No upgrade, or one for another version.
    No,
}

/// The response to a request for `target`, and its delay (or the interval of messages) in milliseconds.
pub(crate) fn route(target: &str, upgrade: Upgrade) -> (Body, u32) {
    match target.split('?').next().unwrap_or_default() {
        "/" => (text(target), 0),
        "/stats" => (Body::Stats, 0),
        "/ws/echo" => (upgraded(upgrade, Body::Echo), 0),
        "/ws/push" => match (upgraded(upgrade, push(target)), every_ms(target)) {
            (Body::Push(length), Some(ms)) => (Body::Push(length), ms),
            (Body::Push(_), None) => (Body::Empty(400), 0),
            (refused, _) => (refused, 0),
        },
        "/delay" => match delay_ms(target) {
            Some(ms) => (text(target), ms),
            None => (Body::Empty(400), 0),
        },
        _ => (Body::Empty(404), 0),
    }
}

fn upgraded(upgrade: Upgrade, to: Body) -> Body {
    match upgrade {
        Upgrade::Valid => to,
        Upgrade::Invalid => Body::Empty(400),
        Upgrade::No => Body::UpgradeRequired,
    }
}

fn push(target: &str) -> Body {
    match http1::query(target, "length").map(str::parse::<u64>) {
        None => Body::Push(0),
        Some(Ok(n)) => Body::Push(n.min(LONGEST) as u16),
        Some(Err(_)) => Body::Empty(400),
    }
}

/// `every=100ms`; one second by default. `None` if it is not a time, or out of range.
fn every_ms(target: &str) -> Option<u32> {
    let Some(text) = http1::query(target, "every") else { return Some(1_000) };
    let every = Nanos::parse(text).ok()?.millis();
    (SHORTEST_PUSH.millis()..=LONGEST_PUSH.millis()).contains(&every).then_some(every as u32)
}

fn text(target: &str) -> Body {
    match http1::query(target, "length").map(str::parse::<u64>) {
        None => Body::Hello,
        Some(Ok(n)) => Body::Text(n.clamp(1, LONGEST) as u16),
        Some(Err(_)) => Body::Empty(400),
    }
}

/// `for=5s`; no delay by default. `None` if it is not a time.
fn delay_ms(target: &str) -> Option<u32> {
    let Some(text) = http1::query(target, "for") else { return Some(0) };
    let Spans { min, max } = Spans::parse(text).ok()?;
    (min == max).then(|| min.min(LONGEST_DELAY).millis() as u32)
}
