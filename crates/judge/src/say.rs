//! Wording of numbers and times in sentences.

use units::{Count, Nanos};

/// Advice for trouble on the path.
pub(crate) const FIREWALLS: &str =
    "check the routes and the firewalls on the path (ip route get, a limit on connections or their rate)";
/// Advice for trouble with this machine's firewall.
pub(crate) const OWN_FIREWALL: &str = "check this host's firewall (nft list ruleset, iptables -L -v)";
/// Advice if only some fail.
pub(crate) const ONE_OF_SOME: &str =
    "others succeeded at the same time: check each of its backends, and any proxy before them";

/// `800 connections`
pub(crate) fn connections(n: u64) -> String {
    Count(n).of("connection")
}

/// `800 dials`
pub(crate) fn some(n: u64, what: &str) -> String {
    Count(n).of(what)
}

/// `800 dials and requests`, counted together.
pub(crate) fn dials_and_requests(n: u64) -> String {
    format!("{} {}", Count(n), Count(n).one_or("dial or request", "dials and requests"))
}

/// ` after 10 s`; empty if unknown.
pub(crate) fn after(timeout: Nanos) -> String {
    if timeout == Nanos::ZERO { String::new() } else { format!(" after {}", tenths(timeout)) }
}

/// ` within 10 s`; empty if unknown.
pub(crate) fn within(timeout: Nanos) -> String {
    if timeout == Nanos::ZERO { String::new() } else { format!(" within {}", tenths(timeout)) }
}

/// `1,001st`
pub(crate) fn nth(n: u64) -> String {
    let ending = match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{}{ending}", Count(n))
}

/// Rounded to a tenth of a second, because it is not known more exactly.
pub(crate) fn tenths(time: Nanos) -> String {
    let tenths = (time.0 + 50_000_000) / 100_000_000;
    if tenths.is_multiple_of(10) {
        format!("{} s", tenths / 10)
    } else {
        format!("{}.{} s", tenths / 10, tenths % 10)
    }
}
