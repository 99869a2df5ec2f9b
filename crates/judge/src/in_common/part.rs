//! Parts of a response: whether its first byte was late, or the rest.

use samples::{
    Bad, InCommon, InCommonRow, Tick,
    breakdown::{self, Breakdown, Dimension, Outcomes},
};
use stats::{Dispersion, Homogeneity};
use units::{Nanos, percent};

use super::{Candidate, ENOUGH, NEARLY_ALL, Share, Shares, Trait};

/// The buckets of a candidate: those whose first byte came in time and whose rest was late, those whose first byte was late, the others.
pub(super) const NAMES: [&str; 3] = ["rest late", "first byte late", "neither late"];

/// A late rest is more than chance if more than half of the slow have one.
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

/// The probability that a share is as much more than a half by chance; as if the half had been counted, which is on the safe side.
fn against_half(own: u64, others: u64, dispersion: Dispersion) -> f64 {
    if own <= others {
        return 1.0;
    }
    let half = [(own, others), (own + others, own + others)];
    Homogeneity::of(&half).map_or(1.0, |groups| groups.p(dispersion))
}

/// The octave that half of the first bytes of the slow have reached.
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

/// Responses that are quicker than this are not slow.
const NOTICED: Nanos = Nanos::from_millis(10);
/// The first byte comes in a quarter of the time, or less: this many octaves before the last.
const OCTAVES: usize = 3;
/// A response of up to 16 KiB is not held up by the window of its path (RFC 6928: ten segments, 14.6 kB).
const AT_ONCE: usize = 9;
/// The shortest time for which Linux delays an acknowledgement (TCP_DELACK_MIN, 40 ms), and what comes on top of it.
const DELAYED: [Nanos; 2] = [Nanos::from_millis(38), Nanos::from_millis(50)];

/// Where no response is slower than the others: that the rest of each comes late, though it is short.
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
