//! The strategy of a search: which load to try next, and what is known.
//!
//! It first climbs until a load fails, then narrows the interval by the most informative steps, and confirms the result. Failures that may
//! have another reason than the load (a cold target, an unfinished recovery) are repeated before they count.

use crate::{
    answer::{Answer, FOUND, Interval},
    grid::Grid,
    posterior::{COUNT, MEASUREMENT, Posterior},
};

/// Posterior probability outside an interval, at each end. It is below the 2.5 % of a 95 % interval, because these would hold on average
/// over all kinds of target, while the interval shall hold for each kind (tests/coverage.rs).
const TAIL: f64 = 0.015;
/// Posterior probability with which a bound of the range is the answer.
const BOUND: f64 = 0.9;
/// Posterior probability that the capacity is below the load of a confirming step.
const PROBABLY: f64 = 0.05;
/// Number of steps after which an interval that suffices for [`Answer::Found`] ends the search; before, it must be within the tolerance.
const ENOUGH_STEPS: u32 = 14;
/// Maximum number of steps of a search.
const MAX_STEPS: u32 = 30;
/// Quantiles whose loads are candidates for a step: denser at the ends, which decide the interval.
const CANDIDATES: [f64; 13] = [0.01, 0.03, 0.07, 0.13, 0.2, 0.35, 0.5, 0.65, 0.8, 0.87, 0.93, 0.97, 0.99];
/// If no limit was seen, the sustained part counts as a measurement only if it is smaller than the load by this share: otherwise something
/// else failed.
const CLEARLY_LESS: f64 = 0.005;
/// A target that sustains this many times as much as in the step before is growing, and gets up to [`MAX_REPEATS`] further steps.
const GROWS: f64 = 1.05;
const MAX_REPEATS: u32 = 4;
/// Share of the next load to which the load falls first after an overload. A target that recovers only below half of its capacity does so,
/// if the next load is less than a quarter above the capacity.
const SETTLE: f64 = 0.4;
/// As [`SETTLE`], for loads that persist between steps (connections): dropping a tenth discards what was not served
/// yet.
const STAYS: f64 = 0.9;

/// The range of loads: connections, or requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest load; at least 1.
    pub least: u64,
    /// The largest load.
    pub most: u64,
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Measure the target while almost idle, for comparison with other steps.
    Baseline,
    /// Raise the load to this value, or as far as the target allows.
    Climb,
    /// Narrow the interval of the capacity.
    Narrow,
    /// Repeat the load that decides the result.
    Confirm,
}

/// A step to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The load, within the search's range.
    pub load: u64,
    /// What the step is for.
    pub purpose: Purpose,
    /// Let the load fall to this one first: the target was overloaded, and may recover only below its capacity.
    pub settle: Option<u64>,
}

/// A limit of the target that was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenLimit {
    /// No limit: another failure may have left less than the target could sustain.
    None,
    /// The target accepts exactly the sustained part, even if the load was only slightly higher.
    Plateau,
    /// As `Plateau`, and the limit is the same in each step, such as the limit of open files.
    Fixed,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The target sustained the load.
    Passed,
    /// The target did not sustain the load.
    Failed {
        /// The part of the load that it sustained, if measured. This is evidence that may be wrong.
        sustained: Option<u64>,
        /// The limit that was observed.
        limit: SeenLimit,
        /// No further step can show more: the target has exited, or its responses are wrong at any load.
        is_certain: bool,
    },
    /// throng was the limit, so the target was not measured. Larger loads are out of reach.
    Invalid,
}

/// A failure that may have another reason than the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt {
    load: u64,
    /// The part of the load that was sustained.
    sustained: u64,
    /// Number of repetitions so far.
    repeats: u32,
    /// The repetition starts from below, because the failed step directly followed an overload and continued with the
    /// connections that had survived it.
    is_after_overload: bool,
}

/// A search in progress.
#[derive(Clone, Debug)]
pub struct Search {
    range: Range,
    tolerance: f64,
    baseline: Option<u64>,
    /// The load of the first climb, and the factor between climbs; `None` if the first climb goes as far as it can.
    ladder: Option<(u64, u64)>,
    posterior: Posterior,
    /// The largest load that throng can generate, as far as known.
    reach: u64,
    /// A load that throng failed to generate once, perhaps because it was late by chance.
    late: Option<u64>,
    /// The sustained part in the last failure that reported one.
    sustained: Option<u64>,
    passed: Option<u64>,
    failed: Option<u64>,
    has_just_failed: bool,
    /// Whether the target gets a pause below its capacity after an overload.
    rests: bool,
    /// A failed load to repeat before its failure counts.
    doubted: Option<Doubt>,
    /// Whether a limit was observed that is the same in each step.
    is_fixed: bool,
    /// Whether a failure was certain.
    is_hopeless: bool,
    is_over: bool,
    steps: u32,
}

impl Search {
    /// A search of `range` to within `tolerance` (0.02: two percent; from 0.5 to 10 %). Its first step climbs to the largest load.
    pub fn new(range: Range, tolerance: f64) -> Search {
        let least = range.least.max(1);
        let range = Range { least, most: range.most.max(least) };
        Search {
            range,
            tolerance,
            baseline: None,
            ladder: None,
            // The tolerance is one cell to each side: a finer grid would not help.
            posterior: Posterior::new(Grid::new(range.least, range.most, tolerance / 2.0)),
            reach: range.most,
            late: None,
            sustained: None,
            passed: None,
            failed: None,
            has_just_failed: false,
            rests: true,
            doubted: None,
            is_fixed: false,
            is_hopeless: false,
            is_over: false,
            steps: 0,
        }
    }

    /// Adds a baseline step as the first one, at a load at which the target is almost idle.
    #[must_use]
    pub fn with_baseline(self, load: u64) -> Search {
        Search { baseline: Some(load.clamp(self.range.least, self.range.most)), ..self }
    }

    /// Climbs to `first`, then multiplies the load by `factor` (at least 2) each time. For loads that cannot stop
    /// halfway, such as rates.
    #[must_use]
    pub fn climbing_from(self, first: u64, factor: u64) -> Search {
        let first = first.clamp(self.range.least, self.range.most);
        Search { ladder: Some((first, factor.max(2))), ..self }
    }

    /// For loads that persist between steps, such as connections: a step with a smaller load continues with the
    /// existing
    /// connections. That is faster than starting from below, and does not make the target release what it has
    /// allocated. If such a
    /// step fails and sustains less than before, it is repeated from below. If it then passes, the target had not
    /// recovered, and it
    /// gets a pause after each later overload.
    #[must_use]
    pub fn that_holds(self) -> Search {
        Search { rests: false, ..self }
    }

    /// The next step; `None` at the end. Unchanged until a result is [learnt](Search::learn).
    pub fn propose(&self) -> Option<Proposal> {
        if self.is_over {
            return None;
        }
        let (load, purpose) = match self.baseline {
            Some(load) if self.steps == 0 => (load, Purpose::Baseline),
            _ if let Some(doubt) = self.doubted => (doubt.load, Purpose::Narrow),
            _ if let Some(load) = self.late.filter(|load| self.is_near(*load)) => (load, Purpose::Climb),
            _ if self.failed.is_none() => (self.highest(), Purpose::Climb),
            _ if self.is_precise() => (self.probably_sustained(), Purpose::Confirm),
            _ if self.interval().is_within(FOUND) => (self.best(), Purpose::Confirm),
            _ => (self.best(), Purpose::Narrow),
        };
        let rests = self.rests || self.doubted.is_some_and(|doubt| doubt.is_after_overload);
        let share = if rests { SETTLE } else { STAYS };
        let low = ((load as f64 * share) as u64).max(self.range.least);
        Some(Proposal { load, purpose, settle: self.has_just_failed.then_some(low) })
    }

    /// The highest load that a step may use now.
    fn highest(&self) -> u64 {
        let climb = self.ladder.map_or(self.range.most, |(first, factor)| {
            self.passed.map_or(first, |passed| passed.saturating_mul(factor).max(first))
        });
        // Halfway between the highest load that passed and the lowest that throng cannot generate.
        let passed = self.passed.unwrap_or(0).min(self.reach);
        let most = if self.is_bounded() { passed + (self.reach - passed).div_ceil(2) } else { self.reach };
        climb.min(most).max(self.range.least)
    }

    /// Whether `load` deserves a second try: a load of at least three quarters of it has passed.
    fn is_near(&self, load: u64) -> bool {
        self.passed.is_some_and(|passed| passed >= load / 4 * 3)
    }

    /// Whether throng cannot generate some loads of the range.
    fn is_bounded(&self) -> bool {
        self.reach < self.range.most
    }

    /// The load with the largest expected information.
    fn best(&self) -> u64 {
        let (edges, highest) = (self.posterior.grid().edges(), self.highest());
        let cells = CANDIDATES.map(|share| self.posterior.quantile(share));
        // Both ends of each cell.
        let ends = cells.iter().flat_map(|cell| [cell.saturating_sub(1), *cell]);
        let mut loads: Vec<u64> = ends.filter_map(|edge| edges.get(edge).copied()).collect();
        loads.iter_mut().for_each(|load| *load = (*load).min(highest));
        loads.dedup();
        let informative = loads.into_iter().map(|load| (self.posterior.information(load), load));
        informative.max_by(|one, other| one.0.total_cmp(&other.0)).map_or(highest, |(_, load)| load)
    }

    /// Takes the result of a step at `load`, which need not be the proposed load; also after the end of the search.
    pub fn learn(&mut self, load: u64, outcome: Outcome) {
        self.steps = self.steps.saturating_add(1);
        let is_baseline = self.steps == 1 && self.baseline == Some(load);
        let before = self.doubted.take().filter(|doubt| doubt.load == load);
        self.rests |= before.is_some_and(|doubt| doubt.is_after_overload) && outcome == Outcome::Passed;
        self.doubted = self.doubt(load, outcome, before).filter(|_| !is_baseline);
        self.has_just_failed = matches!(outcome, Outcome::Failed { .. });
        let late = self.late;
        if outcome != Outcome::Invalid && late.is_some_and(|late| load >= late) {
            (self.reach, self.late) = (self.range.most, None);
        }
        if self.doubted.is_some() {
            self.is_over |= self.is_enough();
            return;
        }
        match outcome {
            // A failed baseline bounds nothing: smaller loads are tried when larger ones have failed.
            Outcome::Invalid | Outcome::Failed { is_certain: false, .. } if is_baseline => {}
            Outcome::Invalid => {
                self.reach = self.reach.min(load.saturating_sub(1)).max(self.range.least);
                self.late = Some(load).filter(|load| late != Some(*load));
                // If throng cannot generate the smallest load, it cannot generate any.
                self.is_over |= load <= self.range.least;
            }
            Outcome::Passed => {
                self.posterior.age();
                self.posterior.observe(load, true);
                self.passed = self.passed.max(Some(load));
            }
            Outcome::Failed { sustained, limit, is_certain } => {
                self.posterior.age();
                // A target that degrades during overload is credited with what it sustained at first. If it sustained
                // more in between
                // and that did not last, the higher value does not count.
                let first = before.filter(|doubt| !doubt.is_after_overload && doubt.repeats == 0);
                self.observe_failure(load, sustained.max(first.map(|doubt| doubt.sustained)), limit);
                if limit == SeenLimit::Fixed && !std::mem::replace(&mut self.is_fixed, true) {
                    self.posterior.observe_fixed();
                }
                self.failed = Some(self.failed.map_or(load, |failed| failed.min(load)));
                self.is_hopeless |= is_certain;
                self.is_over |= is_certain;
            }
        }
        self.is_over |= self.is_enough();
    }

    /// The doubt to record if a failure is repeated before it counts; `before` is the doubt that led to this step.
    ///
    /// The first failure is repeated, as long as more is sustained each time: a target that is cold, or starts processes on demand, grows
    /// under load. A failure immediately after an overload is repeated if it sustained less than the overload and the target had no pause.
    fn doubt(&self, load: u64, outcome: Outcome, before: Option<Doubt>) -> Option<Doubt> {
        let Outcome::Failed { sustained, limit, is_certain: false } = outcome else { return None };
        if limit == SeenLimit::Fixed {
            return None;
        }
        let sustained = sustained.unwrap_or(0);
        if self.failed.is_none() {
            let repeats = before.map_or(0, |doubt| doubt.repeats + 1);
            let grows = before.is_none_or(|doubt| sustained as f64 > GROWS * doubt.sustained as f64);
            let again = sustained > 0 && grows && repeats < MAX_REPEATS;
            return again.then_some(Doubt { load, sustained, repeats, is_after_overload: false });
        }
        let is_less =
            self.sustained.is_none_or(|before| (sustained as f64) < (1.0 - CLEARLY_LESS) * before as f64);
        let again = !self.rests && self.has_just_failed && is_less && before.is_none();
        again.then_some(Doubt { load, sustained, repeats: 0, is_after_overload: true })
    }

    fn observe_failure(&mut self, load: u64, sustained: Option<u64>, limit: SeenLimit) {
        // With few connections, a single missing one is not evidence.
        let is_clear = |part: u64| (part as f64) < (1.0 - CLEARLY_LESS) * load as f64 - 1.0;
        let is_measured =
            |part: &u64| (1..load).contains(part) && (limit != SeenLimit::None || is_clear(*part));
        match sustained.filter(is_measured) {
            Some(part) => {
                let deviation = if limit == SeenLimit::None { MEASUREMENT } else { COUNT };
                self.posterior.observe_sustained(load, part, self.sustained, deviation);
                self.sustained = Some(part);
            }
            None => self.posterior.observe(load, false),
        }
    }

    fn is_enough(&self) -> bool {
        let is_known = match self.answer() {
            Answer::Impossible { .. } => true,
            Answer::NotReached { .. } => self.late.is_none(),
            // A computed result is not enough: a load in its interval must have passed.
            Answer::Found { interval, .. } => {
                self.is_precise() && self.passed.is_some_and(|passed| passed >= interval.low)
            }
            Answer::Unsettled { .. } => false,
        };
        is_known || self.steps >= MAX_STEPS
    }

    fn is_precise(&self) -> bool {
        let Answer::Found { max, interval } = self.answer() else { return false };
        interval.is_around(max, self.tolerance) || self.steps >= ENOUGH_STEPS
    }

    /// A load in the result's interval that the target probably sustains.
    fn probably_sustained(&self) -> u64 {
        let load = self.posterior.grid().low(self.posterior.quantile(PROBABLY));
        load.clamp(self.range.least, self.highest())
    }

    fn interval(&self) -> Interval {
        let grid = self.posterior.grid();
        let (low, high) = (self.posterior.quantile(TAIL), self.posterior.quantile(1.0 - TAIL));
        Interval { low: grid.low(low), high: grid.high(high) }
    }

    /// What the steps so far show; at the end, the result of the search.
    pub fn answer(&self) -> Answer {
        let interval = self.interval();
        let margin = if self.is_bounded() { (self.tolerance * self.reach as f64) as u64 } else { 0 };
        let at_reach = self.passed.filter(|passed| *passed >= self.reach - margin);
        if let Some(most) = at_reach.filter(|most| self.posterior.at_least(*most) > BOUND) {
            return Answer::NotReached { most };
        }
        let fails_at_least = self.failed.is_some() && interval.high < self.range.least;
        if fails_at_least || self.is_hopeless && self.passed.is_none() {
            return Answer::Impossible { least: self.range.least };
        }
        // A load that was seen to pass is a better result than an untried load near it.
        let median = self.posterior.grid().low(self.posterior.quantile(0.5));
        let tried = self.passed.filter(|passed| (interval.low..=median).contains(passed));
        let max = tried.unwrap_or(median);
        if interval.low > 0 && interval.high < self.range.most && interval.is_around(max, FOUND) {
            return Answer::Found { max, interval };
        }
        let failed = self.failed.or(self.doubted.map(|doubt| doubt.load));
        Answer::Unsettled { passed: self.passed, failed, interval }
    }
}

#[cfg(test)]
mod tests;
