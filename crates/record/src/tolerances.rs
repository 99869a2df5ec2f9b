//! The tolerances that all causes share (how many are few, how equal is equal, how long is a stall), each with its derivation.

use units::Nanos;

/// Fewer connections, dials or requests may be chance: if one in a hundred fails for another reason, three of ten fail in one of eight
/// thousand runs (1 % ³ × 120).
pub const FEW: u64 = 3;
/// Minimum number of values for a 95th percentile: with fewer it equals the maximum.
pub const ONE_IN_TWENTY_OF: u64 = 20;
/// Wrong responses, if fewer than one in this many, do not explain why the others are slow.
pub const FEW_RESPONSES: u64 = 10;
/// Minimum share of dials that affects the 99th percentile.
pub const ONE_PERCENT: f64 = 0.01;
/// A tenth: more than chance explains if each event has a probability of one in a hundred, but a small part of the whole.
pub const ONE_IN_TEN: f64 = 0.1;
/// A part that is neither negligible nor the rule.
pub const QUARTER: f64 = 0.25;
/// More than half of a whole outweighs everything else together.
pub const HALF: f64 = 0.5;
/// Nearly full or busy: samples are a second apart, and the remaining room is used in between.
pub const NINE_TENTHS: f64 = 0.9;
/// Counts as all: of a processor's time, whose clock has a resolution of 10 ms; of faults, a few of which have other reasons; of a rate,
/// which a fit to samples, or a run that ends within a period of its schedule, does not determine more exactly.
pub const NEARLY_ALL: f64 = 0.95;
/// Minimum time over which CPU time is evaluated: its resolution is 10 ms.
pub const CPU_OVER: Nanos = Nanos::from_millis(500);
/// Maximum difference of times that a server regards as equal: the measurement is accurate to `known_to`, the server may check its timers
/// only about twice per second, and may add a tenth as jitter. For short times at most a fifth.
pub fn equal_within(time: Nanos, known_to: Nanos) -> Nanos {
    let by_its_clock = (known_to + Nanos::from_millis(400)).min(Nanos(time.0 / 5));
    known_to.max(Nanos(time.0 / 10)).max(by_its_clock)
}

/// Minimum of a configured timeout, which is at least one second; immediate losses have other reasons.
pub const CONFIGURED: Nanos = Nanos::from_millis(900);
/// Time after which a lost SYN is first retransmitted, in microseconds: one second (RFC 6298, section 2), then two and four more.
pub const SYN_AGAIN_US: f64 = 0.95e6;
/// Silence on all connections for this long, in seconds, is not a slow acknowledgement: these come within a round trip, or 40 ms later if
/// delayed (RFC 9293, section 3.8.6.3).
pub const QUIET_S: f64 = 1.0;
/// Shorter stalls of throng count as lag.
pub const OWN_STALL: Nanos = Nanos::from_millis(100);
/// A silence is exceptional if it is this many times the usual response time.
pub const STANDS_OUT: f64 = 4.0;
/// Length of a tick in seconds: a silence begins within one, and ends within another.
pub const TICK_S: f64 = 0.2;
