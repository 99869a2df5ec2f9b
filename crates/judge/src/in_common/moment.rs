//! Moments: whether bad responses came at the same time, and periodically.

use samples::breakdown::Bins;
use units::Nanos;

use super::{Candidate, Share};

/// A time in which bad responses came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Episode {
    /// Beginning of its first bin.
    pub(super) from: Nanos,
    /// End of its last bin.
    pub(super) until: Nanos,
    pub(super) bad: u64,
    pub(super) others: u64,
}

/// Minimum number of bins; fewer are too short a time.
const LEAST_BINS: usize = 20;
/// Intervals count as periodic if they differ by at most this share, or two bins.
const REGULAR: f64 = 0.2;

/// Compares the moments with bad responses with the total time instead of the number of other responses, which is low while the target
/// stands still and high afterwards.
pub(super) fn weighed(one: Candidate, bins: &Bins) -> Candidate {
    let used = one.buckets.iter().filter(|(bad, others)| bad + others > 0).count();
    let episodes = episodes(&one, bins);
    let is_clear = used >= LEAST_BINS && !are_in_step(&episodes, &one.of);
    let beside = if is_clear { one.chosen.len() as f64 / used as f64 } else { 1.0 };
    Candidate { beside, ..one }
}

/// Joins the chosen bins to episodes; a single bin in between is included, as a tick may be late.
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

/// Whether episodes follow from the load itself: connections that are always slow, and send their next request with each response, keep
/// responding at the same time.
fn are_in_step(episodes: &[Episode], of: &Share) -> bool {
    interval(episodes).is_some_and(|mean| mean.0 < 2 * of.times[1].0)
}

/// Mean time between episodes.
fn interval(episodes: &[Episode]) -> Option<Nanos> {
    let (first, last) = (episodes.first()?, episodes.last()?);
    Some(Nanos(last.from.since(first.from).0 / (episodes.len() as u64 - 1).max(1)))
        .filter(|_| episodes.len() > 1)
}

/// The period of the episodes; `None` if there are fewer than three or their intervals differ.
pub(super) fn period(episodes: &[Episode], width: Nanos) -> Option<Nanos> {
    let mean = interval(episodes).filter(|_| episodes.len() > 2)?;
    let slack = (REGULAR * mean.0 as f64).max(2.0 * width.0 as f64);
    let is_regular = |pair: &[Episode]| pair[1].from.since(pair[0].from).0.abs_diff(mean.0) as f64 <= slack;
    // An interval as long as its tolerance is no period.
    (slack < 0.5 * mean.0 as f64 && episodes.windows(2).all(is_regular)).then_some(mean)
}
