//! All tolerances that causes have in common: how many are few, how equal is equal, how long is a stall. One row each, with its derivation.

use units::Nanos;

/// Fewer connections, dials or requests may be chance: with one in a hundred that fails for another reason, three of ten do in one run of
/// eight thousand (1 % ³ × 120).
pub const FEW: u64 = 3;
/// One in twenty is known of no fewer: the 95th percentile of less is its longest.
pub const ONE_IN_TWENTY_OF: u64 = 20;
/// Fewer responses than one in this many do not make the others slow by being wrong.
pub const FEW_RESPONSES: u64 = 10;
/// Of a hundred dials one or more: fewer do not reach the 99th percentile.
pub const ONE_PERCENT: f64 = 0.01;
/// More than chance, where each has one in a hundred; and little of a whole.
pub const ONE_IN_TEN: f64 = 0.1;
/// A part that is not to be neglected, nor the rule.
pub const QUARTER: f64 = 0.25;
/// What has, takes or explains this share of a whole has more of it than all else together.
pub const HALF: f64 = 0.5;
/// What is as full, or as busy, as this has room for little more: samples are a second apart, and what is free is used in between.
pub const NINE_TENTHS: f64 = 0.9;
/// This share counts as all: of a processor's time, whose clock has a resolution of 10 ms; of faults, of which a few have other reasons; of a rate,
/// which a line through samples, or a run that ends within a period of its schedule, shows no more exactly.
pub const NEARLY_ALL: f64 = 0.95;
/// CPU time over less than this is meaningless: its resolution is 10 ms.
pub const CPU_OVER: Nanos = Nanos::from_millis(500);
/// How much times may differ that a server takes for the same: they are `known_to` so much here, it checks its clock twice a second or more
/// seldom, and adds a jitter of a tenth. Of short times no more than a fifth.
pub fn equal_within(time: Nanos, known_to: Nanos) -> Nanos {
    let by_its_clock = (known_to + Nanos::from_millis(400)).min(Nanos(time.0 / 5));
    known_to.max(Nanos(time.0 / 10)).max(by_its_clock)
}

/// Shorter times are not configured timeouts, which are whole seconds: immediate losses have other reasons.
pub const CONFIGURED: Nanos = Nanos::from_millis(900);
/// The first SYN that is lost is sent again after a second (RFC 6298, section 2), the next ones after two and four more; microseconds.
pub const SYN_AGAIN_US: f64 = 0.95e6;
/// Acknowledgements come within a round trip, or 40 ms later where they are delayed (RFC 9293, section 3.8.6.3); none for this long on any
/// connection is not a slow one. Seconds.
pub const QUIET_S: f64 = 1.0;
/// Shorter than this, throng's own stalls are lag.
pub const OWN_STALL: Nanos = Nanos::from_millis(100);
/// A silence stands out if it is this many times as long as the usual response time.
pub const STANDS_OUT: f64 = 4.0;
/// Ticks are this long: a silence begins within one, and ends within another. Seconds.
pub const TICK_S: f64 = 0.2;
