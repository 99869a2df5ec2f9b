//! All tolerances that causes have in common: how many are few, how equal is equal, how long is a stall. One row each, with its derivation.

use units::Nanos;

/// Fewer connections, dials or requests may be chance: with one in a hundred that fails for another reason, three of ten do in one run of
/// eight thousand (1 % ³ × 120).
pub(crate) const FEW: u64 = 3;
/// One in twenty is known of no fewer: the 95th percentile of less is its longest.
pub(crate) const ONE_IN_TWENTY_OF: u64 = 20;
/// Fewer responses than one in this many do not make the others slow by being wrong.
pub(crate) const FEW_RESPONSES: u64 = 10;
/// Of a hundred dials one or more: fewer do not reach the 99th percentile.
pub(crate) const ONE_PERCENT: f64 = 0.01;
/// More than chance, where each has one in a hundred.
pub(crate) const ONE_IN_TEN: f64 = 0.1;
/// What has this share of all is said to have nearly all.
pub(crate) const NEARLY_ALL: f64 = 0.95;
/// What took this share of a time explains it.
pub(crate) const HALF: f64 = 0.5;
/// A rate that is within this of another is that one: a line through samples of a queue is no more exact.
pub(crate) const KEEPS_UP: f64 = 0.95;
/// Shorter times are not configured timeouts, which are whole seconds: immediate losses have other reasons.
pub(crate) const CONFIGURED: Nanos = Nanos::from_millis(900);
/// The first SYN that is lost is sent again after a second (RFC 6298, section 2), the next ones after two and four more; microseconds.
pub(crate) const SYN_AGAIN_US: f64 = 0.95e6;
/// Acknowledgements come within a round trip, or 40 ms later where they are delayed (RFC 9293, section 3.8.6.3); none for this long on any
/// connection is not a slow one. Seconds.
pub(crate) const QUIET_S: f64 = 1.0;
/// Shorter than this, throng's own stalls are lag.
pub(crate) const OWN_STALL: Nanos = Nanos::from_millis(100);
/// A silence stands out if it is this many times as long as the usual response time.
pub(crate) const STANDS_OUT: f64 = 4.0;
/// Ticks are this long: a silence begins within one, and ends within another. Seconds.
pub(crate) const TICK_S: f64 = 0.2;
