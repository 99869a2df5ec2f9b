//! Moments: whether the bad ones came at once, and periodically.

use samples::breakdown::Bins;
use units::Nanos;

use super::{Candidate, Share};

/// A time in which bad ones came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Episode {
    /// When it began, in the first of its bins.
    pub(super) from: Nanos,
    /// The end of its last bin.
    pub(super) until: Nanos,
    pub(super) bad: u64,
    pub(super) others: u64,
}

/// Fewer bins are too short a time.
const LEAST_BINS: usize = 20;
/// Intervals of a period differ by no more than this share of it, and two bins.
const REGULAR: f64 = 0.2;

/// What the moments with bad ones are compared with is the time, and not the number of others: these are few while the target stands still,
/// and many after it.
pub(super) fn weighed(one: Candidate, bins: &Bins) -> Candidate {
    let used = one.buckets.iter().filter(|(bad, others)| bad + others > 0).count();
    let episodes = episodes(&one, bins);
    let is_clear = used >= LEAST_BINS && !are_in_step(&episodes, &one.of);
    let beside = if is_clear { one.chosen.len() as f64 / used as f64 } else { 1.0 };
    Candidate { beside, ..one }
}

/// The chosen bins; a bin without any between two joins them, as a tick may be late.
pub(super) fn episodes(one: &Candidate, bins: &Bins) -> Vec<Episode> {
    let all: Vec<(Nanos, (u64, u64))> =
        bins.iter().map(|(from, _)| from).zip(one.buckets.iter().copied()).collect();
    let mut episodes: Vec<Episode> = Vec::new();
    for at in &one.chosen {
        let (from, (bad, others)) = all[*at];
        let until = from + bins.width;
        match episodes.last_mut() {
            Some(last) if from <= last.until + bins.width => {
                (last.until, last.bad, last.others) = (until, last.bad + bad, last.others + others);
            }
            _ => episodes.push(Episode { from, until, bad, others }),
        }
    }
    episodes
}

/// Connections that are always slow, and send their next request with each response, respond at the same time each time.
fn are_in_step(episodes: &[Episode], of: &Share) -> bool {
    interval(episodes).is_some_and(|mean| mean.0 < 2 * of.times[1].0)
}

/// The mean time from one to the next.
fn interval(episodes: &[Episode]) -> Option<Nanos> {
    let (first, last) = (episodes.first()?, episodes.last()?);
    Some(Nanos(last.from.since(first.from).0 / (episodes.len() as u64 - 1).max(1)))
        .filter(|_| episodes.len() > 1)
}

/// The time from one to the next, where that is always the same, of three at least.
pub(super) fn period(episodes: &[Episode], width: Nanos) -> Option<Nanos> {
    let mean = interval(episodes).filter(|_| episodes.len() > 2)?;
    let slack = (REGULAR * mean.0 as f64).max(2.0 * width.0 as f64);
    let is_regular = |pair: &[Episode]| pair[1].from.since(pair[0].from).0.abs_diff(mean.0) as f64 <= slack;
    // What is as long as its slack is no period.
    (slack < 0.5 * mean.0 as f64 && episodes.windows(2).all(is_regular)).then_some(mean)
}
