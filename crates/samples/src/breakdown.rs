//! Requests broken down by properties that they may have in common: for each bucket of some dimensions, the number of requests by outcome.
//! A table of fixed size, so counting does not allocate and takes some nanoseconds.

use std::{collections::BTreeMap, ops::AddAssign};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::Nanos;

use crate::{merge::Merge, words::words};

words! {
    /// What requests may have in common. Each has a few buckets; a request is in at most one of them.
    Dimension {
        /// The destination's row, see [`crate::row_of`].
        Destination = "destination",
        /// The last four bits of the local address, where there are several.
        Source = "source",
        /// A sampled connection.
        Connection = "connection",
        /// The connections in groups, at random: how much connections differ from each other, whatever the reason.
        Group = "group",
        /// Connections open when it ended, in eighths of those that its shard has room for.
        Open = "open",
        /// Which request on its connection: 1, 2, 3 to 4, 5 to 8, and so on; of sampled connections.
        Number = "number",
        /// The plan's step.
        Step = "step",
        /// Bytes of the response, head and content: up to 64, 128, 256, and so on.
        Size = "size",
        /// When the first byte of the response came, as [`cell`].
        FirstByte = "first byte",
        /// How long nothing had come on its connection when it was sent, as [`cell`]; known to 50 ms.
        Pause = "pause",
    }
}

impl Dimension {
    /// Number of buckets.
    #[inline]
    pub const fn buckets(self) -> usize {
        match self {
            Dimension::Destination | Dimension::Connection | Dimension::Group => 64,
            Dimension::Source | Dimension::Step => 16,
            Dimension::Open => 8,
            Dimension::Number => 17,
            Dimension::Size => 24,
            Dimension::FirstByte | Dimension::Pause => TIMES,
        }
    }

    /// Index of its first row in the table.
    const fn first(self) -> usize {
        let (mut at, mut sum) = (0, 0);
        while at < self as usize {
            sum += Dimension::ALL[at].buckets();
            at += 1;
        }
        sum
    }
}

const ROWS: usize = Dimension::Pause.first() + Dimension::Pause.buckets();

/// Number of octaves of time: below 8 µs, below 16 µs, and so on, and from 69 s on.
const TIMES: usize = 25;
const LOWEST_BITS: u32 = 13;

/// The octave of a time.
#[inline]
pub const fn cell(time: Nanos) -> usize {
    let cell = (u64::BITS - (time.0 >> LOWEST_BITS).leading_zeros()) as usize;
    if cell < TIMES { cell } else { TIMES - 1 }
}

/// The shortest time of an octave.
pub const fn from_cell(cell: usize) -> Nanos {
    if cell == 0 { Nanos::ZERO } else { Nanos(1 << (LOWEST_BITS as usize + cell - 1)) }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A correct response to a request that was due before full load.
    InRamp,
    /// A wrong response, or a fault other than a timeout.
    Wrong,
    /// No response in time.
    Missing,
    /// A correct response after this time, to a request that was due at full load.
    Took(Nanos),
}

const COLUMNS: usize = 3 + TIMES;

impl Outcome {
    const fn column(self) -> usize {
        match self {
            Outcome::InRamp => 0,
            Outcome::Wrong => 1,
            Outcome::Missing => 2,
            Outcome::Took(time) => 3 + cell(time),
        }
    }
}

/// Number of requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes([u64; COLUMNS]);

impl Outcomes {
    /// Counts one outcome.
    pub fn count(&mut self, outcome: Outcome) {
        self.0[outcome.column()] += 1;
    }

    /// Number of all requests.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Requests with a wrong response, or a fault other than a timeout.
    pub fn wrong(&self) -> u64 {
        self.0[1]
    }

    /// Requests without a response in time.
    pub fn missing(&self) -> u64 {
        self.0[2]
    }

    /// Requests due at full load with a correct response.
    pub fn timed(&self) -> u64 {
        self.0[3..].iter().sum()
    }

    /// The part of them that took at least the shortest time of this octave.
    pub fn from(&self, cell: usize) -> u64 {
        self.0[3 + cell.min(TIMES)..].iter().sum()
    }
}

impl AddAssign<&Outcomes> for Outcomes {
    fn add_assign(&mut self, other: &Outcomes) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }
}

/// Serialised as non-zero columns: column, count, column, count.
impl Serialize for Outcomes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.pairs())
    }
}

impl Outcomes {
    fn pairs(&self) -> impl Iterator<Item = u64> {
        (0..).zip(self.0).filter(|(_, count)| *count > 0).flat_map(|(at, count)| [at, count])
    }

    /// `None` if these are not such pairs.
    fn of_pairs(pairs: &[u64]) -> Option<Outcomes> {
        let mut outcomes = Outcomes::default();
        let (pairs, rest) = pairs.as_chunks::<2>();
        for [at, count] in pairs {
            *outcomes.0.get_mut(usize::try_from(*at).ok()?)? = *count;
        }
        rest.is_empty().then_some(outcomes)
    }
}

impl<'de> Deserialize<'de> for Outcomes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Outcomes, D::Error> {
        let pairs = Vec::<u64>::deserialize(d)?;
        Outcomes::of_pairs(&pairs).ok_or_else(|| serde::de::Error::custom("not pairs of column and count"))
    }
}

/// The buckets of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets([u8; Dimension::ALL.len()]);

const NOWHERE: u8 = u8::MAX;

impl Buckets {
    /// In no bucket.
    pub const NONE: Buckets = Buckets([NOWHERE; Dimension::ALL.len()]);

    /// Adds a bucket; the last bucket of a dimension includes everything beyond it.
    #[inline]
    pub fn set(&mut self, dimension: Dimension, bucket: usize) {
        self.0[dimension as usize] = bucket.min(dimension.buckets() - 1) as u8;
    }
}

/// Ended requests, by properties that they may have in common.
#[derive(Clone, Default)]
pub struct Breakdown {
    /// The buckets of all dimensions, one dimension after the other; empty before the first request is counted.
    rows: Box<[Outcomes]>,
}

impl Breakdown {
    /// Counts a request that has ended.
    pub fn count(&mut self, buckets: Buckets, outcome: Outcome) {
        Merge::reserve(self);
        let column = outcome.column();
        for (first, bucket) in FIRSTS.iter().zip(buckets.0) {
            if bucket != NOWHERE {
                self.rows[first + usize::from(bucket)].0[column] += 1;
            }
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| *row == Outcomes::default())
    }

    /// The buckets of a dimension; empty if nothing was counted at all.
    pub fn buckets(&self, dimension: Dimension) -> &[Outcomes] {
        let first = dimension.first();
        self.rows.get(first..first + dimension.buckets()).unwrap_or_default()
    }

    /// All counted requests; each has a connection, and so is in one group.
    pub fn all(&self) -> Outcomes {
        let mut all = Outcomes::default();
        self.buckets(Dimension::Group).iter().for_each(|group| all += group);
        all
    }

    /// Adds the counts of another breakdown.
    pub fn merge(&mut self, other: &Breakdown) {
        Merge::merge(self, other);
    }
}

const FIRSTS: [usize; Dimension::ALL.len()] = {
    let mut firsts = [0; Dimension::ALL.len()];
    let mut at = 0;
    while at < firsts.len() {
        firsts[at] = Dimension::ALL[at].first();
        at += 1;
    }
    firsts
};

impl Merge for Breakdown {
    fn merge(&mut self, other: &Breakdown) {
        if !other.rows.is_empty() {
            self.reserve();
            self.rows.iter_mut().zip(&other.rows).for_each(|(own, other)| *own += other);
        }
    }

    fn clear(&mut self) {
        self.rows.fill(Outcomes::default());
    }

    fn reserve(&mut self) {
        if self.rows.is_empty() {
            self.rows = vec![Outcomes::default(); ROWS].into();
        }
    }
}

/// Compares counts, whether memory is allocated or not.
impl PartialEq for Breakdown {
    fn eq(&self, other: &Breakdown) -> bool {
        self.used().eq(other.used())
    }
}

impl std::fmt::Debug for Breakdown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.used()).finish()
    }
}

impl Breakdown {
    /// Rows that are not zero.
    fn used(&self) -> impl Iterator<Item = (usize, &Outcomes)> {
        self.rows.iter().enumerate().filter(|(_, row)| **row != Outcomes::default())
    }
}

/// Serialised by the name of the dimension: each non-zero bucket as its number, followed by its [`Outcomes`].
impl Serialize for Breakdown {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut all: BTreeMap<&str, Vec<Vec<u64>>> = BTreeMap::new();
        for dimension in Dimension::ALL {
            for (bucket, row) in (0..).zip(self.buckets(*dimension)).filter(|(_, row)| row.all() > 0) {
                let row = [bucket].into_iter().chain(row.pairs()).collect();
                all.entry(dimension.name()).or_default().push(row);
            }
        }
        all.serialize(s)
    }
}

impl<'de> Deserialize<'de> for Breakdown {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Breakdown, D::Error> {
        let mut breakdown = Breakdown::default();
        let all = BTreeMap::<String, Vec<Vec<u64>>>::deserialize(d)?;
        for dimension in Dimension::ALL {
            for row in all.get(dimension.name()).into_iter().flatten() {
                breakdown.read(*dimension, row).ok_or_else(|| serde::de::Error::custom("not a breakdown"))?;
            }
        }
        Ok(breakdown)
    }
}

impl Breakdown {
    fn read(&mut self, dimension: Dimension, row: &[u64]) -> Option<()> {
        let (bucket, pairs) = row.split_first()?;
        let bucket = usize::try_from(*bucket).ok().filter(|bucket| *bucket < dimension.buckets())?;
        self.reserve();
        self.rows[dimension.first() + bucket] = Outcomes::of_pairs(pairs)?;
        Some(())
    }
}

/// Outcomes in time bins of equal width. If there are too many bins, neighbours are merged in pairs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Bins {
    /// Width of a bin.
    pub width: Nanos,
    first: u64,
    bins: Vec<Outcomes>,
}

impl Bins {
    /// Maximum number of bins: two minutes at the width of a tick.
    const MOST: usize = 600;

    /// Adds the outcomes at a time.
    pub fn add(&mut self, at: Nanos, outcomes: &Outcomes) {
        if self.bins.is_empty() {
            self.first = at.0 / self.width.0;
        }
        // The tick of a late worker may precede the first bin, and is counted there.
        let place = |own: &Bins| (at.0 / own.width.0).saturating_sub(own.first) as usize;
        while place(self) >= Bins::MOST {
            self.widen();
        }
        let place = place(self);
        self.bins.resize(self.bins.len().max(place + 1), Outcomes::default());
        self.bins[place] += outcomes;
    }

    fn widen(&mut self) {
        let first = self.first / 2;
        let mut bins = vec![Outcomes::default(); self.bins.len() / 2 + 1];
        for (at, bin) in (self.first..).zip(&self.bins) {
            bins[(at / 2 - first) as usize] += bin;
        }
        (self.width, self.first, self.bins) = (Nanos(self.width.0 * 2), first, bins);
    }

    /// The bins with their start times.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, &Outcomes)> {
        (self.first..).map(|at| Nanos(at * self.width.0)).zip(&self.bins)
    }
}

impl Default for Bins {
    fn default() -> Bins {
        Bins { width: Nanos::from_millis(200), first: 0, bins: Vec::new() }
    }
}

/// Test data: random buckets in each dimension.
#[cfg(test)]
pub(crate) fn drawn(seed: u64) -> Breakdown {
    let mut breakdown = Breakdown::default();
    for n in 0..=seed % 5 {
        let mut buckets = Buckets::NONE;
        let each: [u64; Dimension::ALL.len()] = std::array::from_fn(|at| (seed + n) * (at as u64 + 3) % 70);
        Dimension::ALL.iter().zip(each).for_each(|(dimension, at)| buckets.set(*dimension, at as usize));
        let took = Outcome::Took(Nanos((seed + n).pow(5)));
        breakdown.count(buckets, [Outcome::InRamp, Outcome::Wrong, Outcome::Missing, took][n as usize % 4]);
    }
    breakdown
}

#[cfg(test)]
mod tests;
