//! Parts of a response: whether its first byte was late, or the rest of it.

use samples::{
    Bad, InCommon, InCommonRow, Tick,
    breakdown::{self, Breakdown, Dimension, Outcomes},
};
use stats::{Dispersion, Homogeneity};
use units::{Nanos, percent};

use super::{Candidate, ENOUGH, NEARLY_ALL, Share, Shares, Trait};

/// The buckets of this trait: first byte in time and rest late, first byte late, neither late.
pub(super) const NAMES: [&str; 3] = ["rest late", "first byte late", "neither late"];

/// The trait of late rests: significant if clearly more than half of the slow responses have one.
pub(super) fn candidate(of: Share, shares: &Shares, dispersion: Dispersion) -> Option<Candidate> {
    let rows = shares.all.buckets(Dimension::FirstByte);
    if of.bad != Bad::Slow || rows.is_empty() {
        return None;
    }
    let (in_time, late) = rows.split_at(of.edge);
    let slow = |rows: &[Outcomes]| rows.iter().map(|row| row.from(of.edge)).sum::<u64>();
    let (rest, first) = (slow(in_time), slow(late));
    let known = rest + first;
    if known < ENOUGH || (known as f64) < super::NINE_TENTHS * of.count as f64 {
        return None;
    }
    let p = against_half(rest, first, dispersion);
    let caught = rest as f64 / known as f64;
    let buckets = vec![(rest, 0), (first, 0), (0, of.of - of.count)];
    Some(Candidate { of, by: Trait::Part, p, buckets, chosen: vec![0], caught, beside: 0.5 })
}

/// The probability that the share of `own` exceeds one half by chance. The half is treated as if it had been counted, which is
/// conservative.
fn against_half(own: u64, others: u64, dispersion: Dispersion) -> f64 {
    if own <= others {
        return 1.0;
    }
    let half = [(own, others), (own + others, own + others)];
    Homogeneity::of(&half).map_or(1.0, |groups| groups.p(dispersion))
}

/// The octave that half of the slow responses' first bytes reach.
pub(super) fn first_byte(of: &Share, shares: &Shares) -> Nanos {
    let slow = shares.all.buckets(Dimension::FirstByte).iter().map(|row| row.from(of.edge));
    let half = slow.clone().sum::<u64>() / 2;
    let mut sum = 0;
    let reaches = |own: u64| {
        sum += own;
        sum > half
    };
    breakdown::from_cell(1 + slow.map(reaches).position(|is_it| is_it).unwrap_or(0))
}

/// Faster responses are not slow.
const NOTICED: Nanos = Nanos::from_millis(10);
/// The first byte comes within a quarter of the total time: this many octaves before the last byte.
const OCTAVES: usize = 3;
/// Bucket of response sizes up to 16 KiB, which the initial window of a path does not delay (RFC 6928: ten segments, 14.6 kB).
const AT_ONCE: usize = 9;
/// The minimum time for which Linux delays an acknowledgement (TCP_DELACK_MIN, 40 ms), with tolerance.
const DELAYED: [Nanos; 2] = [Nanos::from_millis(38), Nanos::from_millis(50)];

/// If no response is slower than the others: whether the rest of each response comes late although it is short.
pub(super) fn all_late(all: &Breakdown, totals: &Tick) -> Option<InCommon> {
    let rows = all.buckets(Dimension::FirstByte);
    let timed: u64 = rows.iter().map(Outcomes::timed).sum();
    let late: u64 = rows.iter().enumerate().map(|(at, row)| row.from(at + OCTAVES)).sum();
    let short: u64 = all.buckets(Dimension::Size).iter().take(AT_ONCE).map(Outcomes::timed).sum();
    let is_nearly_all = |n: u64| n as f64 >= NEARLY_ALL * timed as f64;
    let (first, whole) = (totals.first_byte.quantile(0.5), totals.latency.quantile(0.5));
    if late < ENOUGH || !is_nearly_all(late) || !is_nearly_all(short) || whole < NOTICED {
        return None;
    }
    let rest = whole.since(first);
    let is_delayed = (DELAYED[0]..=DELAYED[1]).contains(&rest);
    let like = if is_delayed { ", as with Nagle's algorithm and delayed ACK" } else { "" };
    let share = late as f64 / timed as f64;
    let who =
        if late == timed { "all responses".to_owned() } else { format!("{} of responses", percent(share)) };
    let sentence = format!(
        "the first byte of {who} came after {}, the rest {} later{like}",
        first.brief(),
        rest.brief()
    );
    let row = |name: &str, bad, others| InCommonRow { name: name.to_owned(), bad, others };
    let rows = [row(NAMES[0], late, 0), row(NAMES[2], 0, timed - late)];
    Some(InCommon {
        of: Bad::Slow,
        count: late,
        share,
        dimension: Trait::Part.name().to_owned(),
        p: against_half(late, timed - late, Dispersion::INDEPENDENT),
        sentence,
        rows: rows.into_iter().filter(|row| row.bad + row.others > 0).collect(),
    })
}
