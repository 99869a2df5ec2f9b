//! What is known of a capacity: a probability for each cell of the grid and each kind of target.
//!
//! Each kind has a psychometric curve: the probability that a step passes is a logistic function of the logarithm of the load, with a
//! spread and a lapse rate (Kontsevich and Tyler, "Bayesian adaptive estimation of psychometric slope and threshold", Vision Research 39,
//! 1999). For each curve there are two kinds: what the target reports to have sustained of a failed load either measures its capacity, or
//! misleads.

use std::fmt;

use crate::grid::Grid;

/// Standard deviation of the capacity between steps, as a share of it, with the prior probability of each value: a hard limit, and the
/// noise of a quiet, an ordinary and a crowded machine.
const SPREADS: [(f64, f64); 4] = [(1e-4, 0.35), (0.02, 0.2), (0.08, 0.2), (0.25, 0.25)];
/// Share of steps that fail at any load (the lapse rate), with the prior probability of each value.
const LAPSES: [(f64, f64); 2] = [(0.01, 0.8), (0.12, 0.2)];
/// Factor for the probability of a hard limit once a limit was seen that is the same in each step.
const FIXED: f64 = 100.0;
/// Prior probability that the reported part of a failed load says nothing about the capacity.
const MISLEADS: f64 = 0.15;
/// Share of steps that pass at any load.
const LUCK: f64 = 0.003;
/// Prior probability that no load of the range passes, and that all do.
const NONE: f64 = 0.05;
const ALL: f64 = 0.1;
/// Probability that the target changes between two steps (warmed up, scaled, restarted): earlier steps lose weight as later ones contradict
/// them.
const CHANGE: f64 = 0.005;
/// Probability that the capacity drifts by one cell between two steps, for each direction. Lower if a cell is wider than [`DRIFTS_BY`] in
/// the logarithm.
const DRIFT: f64 = 0.02;
const DRIFTS_BY: f64 = 0.01;
/// Standard deviation of a measured capacity, as a share of it: connections are counted a moment too early or too late.
pub(crate) const MEASUREMENT: f64 = 0.015;
/// The same if a limit was seen: then all connections held are what the target had room for.
pub(crate) const COUNT: f64 = 0.005;
/// Scale of a logistic distribution with standard deviation 1: √3 / π.
const SCALE: f64 = 0.551_328_895_421_792;
/// Cells with a lower probability are ignored in sums of information: only [`CHANGE`] keeps them above zero.
const NEGLIGIBLE: f64 = 1e-4;

const CURVES: usize = SPREADS.len() * LAPSES.len();
/// Probabilities of each curve for a target whose reports measure, followed by those for one whose reports mislead.
type Cell = [f64; 2 * CURVES];

/// The posterior distribution over capacities and kinds of target, on a grid of capacities.
#[derive(Clone)]
pub(crate) struct Posterior {
    grid: Grid,
    /// Prior probability of each cell.
    prior: Vec<f64>,
    cells: Vec<Cell>,
    /// Probability of each cell, summed over kinds.
    marginal: Vec<f64>,
    /// For each spread, the difference between the probability of a pass far below each cell and far above it.
    slopes: Vec<[f64; SPREADS.len()]>,
}

impl Posterior {
    /// The prior: every order of magnitude is equally likely.
    pub(crate) fn new(grid: Grid) -> Posterior {
        let mut prior = grid.widths();
        prior.iter_mut().for_each(|share| *share *= 1.0 - NONE - ALL);
        if let [none, .., all] = &mut prior[..] {
            (*none, *all) = (NONE, ALL);
        }
        let curves = SPREADS.iter().flat_map(|spread| LAPSES.map(|lapse| spread.1 * lapse.1));
        let mut kinds = [0.0; 2 * CURVES];
        for (at, curve) in curves.enumerate() {
            (kinds[at], kinds[CURVES + at]) = (curve * (1.0 - MISLEADS), curve * MISLEADS);
        }
        let cells = prior.iter().map(|share| kinds.map(|kind| share * kind)).collect();
        let mut posterior = Posterior { grid, prior, cells, marginal: Vec::new(), slopes: Vec::new() };
        posterior.normalise();
        posterior
    }

    /// The grid of the distribution.
    pub(crate) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Updates the distribution with a load that passed, or that failed without a report of what was sustained.
    pub(crate) fn observe(&mut self, load: u64, passed: bool) {
        let log = logarithm(load);
        for (middle, cell) in self.grid.middles().iter().zip(&mut self.cells) {
            let curves = pass_probabilities(middle - log);
            for (probability, pass) in cell.iter_mut().zip(curves.iter().chain(&curves)) {
                *probability *= if passed { *pass } else { 1.0 - pass };
            }
        }
        self.normalise();
    }

    /// Updates the distribution with a load that failed, `sustained` being the part reported as sustained. `before` is that report of
    /// the previous failure; `deviation` is the standard deviation of such reports, as a share of the capacity.
    ///
    /// If the report is a measurement, it determines the capacity of this step, and the failure itself adds nothing (a censored regression:
    /// Tobin, "Estimation of relationships for limited dependent variables", Econometrica 26, 1958). A misleading report may have any
    /// value, but a similar one each time.
    pub(crate) fn observe_sustained(
        &mut self,
        load: u64,
        sustained: u64,
        before: Option<u64>,
        deviation: f64,
    ) {
        let (log, seen) = (logarithm(load), logarithm(sustained));
        let apart = before.map(|before| seen - logarithm(before));
        let anywhere = 1.0 / self.grid.middles().last().copied().unwrap_or(1.0).max(1.0);
        for (of, cell) in self.cells.iter_mut().enumerate() {
            let (measures, misleads) = cell.split_at_mut(CURVES);
            let middle = self.grid.middles()[of];
            let curves = pass_probabilities(middle - log);
            // A cell of a single load, such as 5, has its middle between this load and the next.
            let is_within = (self.grid.low(of)..=self.grid.high(of)).contains(&sustained);
            let distance = if is_within { 0.0 } else { middle - seen };
            for at in 0..CURVES {
                let spread = SPREADS[at / LAPSES.len()].0.max(deviation);
                let lapse = LAPSES[at % LAPSES.len()].0;
                let again = apart.map_or(anywhere, |apart| density(apart, f64::sqrt(2.0) * spread));
                measures[at] *= (1.0 - lapse) * density(distance, spread) + lapse * anywhere;
                misleads[at] *= (1.0 - curves[at]) * f64::midpoint(anywhere, again);
            }
        }
        self.normalise();
    }

    /// Updates the distribution with the observation of a limit that is the same in each step.
    pub(crate) fn observe_fixed(&mut self) {
        for cell in &mut self.cells {
            let hard = cell.iter_mut().enumerate().filter(|(at, _)| at % CURVES < LAPSES.len());
            hard.for_each(|(_, p)| *p *= FIXED);
        }
        self.normalise();
    }

    /// Models the time between two steps with a filter for a hidden capacity that drifts, and with a small probability takes any value (a
    /// change point: Adams and MacKay, "Bayesian online changepoint detection", 2007, without its run lengths).
    pub(crate) fn age(&mut self) {
        let before = self.cells.clone();
        let mut sums = [0.0; 2 * CURVES];
        before.iter().for_each(|cell| sums.iter_mut().zip(cell).for_each(|(sum, p)| *sum += p));
        for (at, cell) in self.cells.iter_mut().enumerate() {
            // Capacities outside the range do not drift back into it.
            let is_inner = |cell: &usize| (1..before.len() - 1).contains(cell);
            let neighbours =
                [at.saturating_sub(1), at + 1].into_iter().filter(|to| is_inner(to) && is_inner(&at));
            for other in neighbours {
                let distance = (self.grid.middles()[other] - self.grid.middles()[at]).abs();
                let rate = DRIFT * (DRIFTS_BY / distance).min(1.0);
                let flows = before[other].iter().zip(&before[at]);
                cell.iter_mut().zip(flows).for_each(|(p, (there, here))| *p += rate * (there - here));
            }
            let anew = sums.map(|sum| CHANGE * self.prior[at] * sum);
            cell.iter_mut().zip(anew).for_each(|(p, anew)| *p = (1.0 - CHANGE) * *p + anew);
        }
    }

    /// The cell in which the cumulative probability reaches `share`.
    pub(crate) fn quantile(&self, share: f64) -> usize {
        let mut sum = 0.0;
        let below = self.marginal.iter().take_while(|p| {
            sum += *p;
            sum < share
        });
        below.count().min(self.cells.len().saturating_sub(1))
    }

    /// Probability that the capacity is at least `load`; between two edges, the value for the lower one.
    pub(crate) fn at_least(&self, load: u64) -> f64 {
        let below = self.grid.edges().partition_point(|edge| *edge <= load);
        self.marginal.iter().skip(below).sum()
    }

    /// Expected information of a step at this load about the capacity, in nats: the mutual information of its result and the cell,
    /// marginalised over kinds (Prins, "The psi-marginal adaptive method", Journal of Vision 13, 2013).
    pub(crate) fn information(&self, load: u64) -> f64 {
        let log = logarithm(load);
        let (mut passes, mut remains) = (0.0, 0.0);
        for ((middle, slopes), p) in self.grid.middles().iter().zip(&self.slopes).zip(&self.marginal) {
            if *p < NEGLIGIBLE {
                continue;
            }
            let of_spread = slopes.iter().zip(SPREADS);
            let below =
                of_spread.map(|(slope, (spread, _))| slope * logistic((middle - log) / (SCALE * spread)));
            let pass = LUCK * p + below.sum::<f64>();
            passes += pass;
            remains += p * entropy(pass / p);
        }
        entropy(passes) - remains
    }

    fn normalise(&mut self) {
        let sum: f64 = self.cells.iter().flatten().sum();
        // The sum is never zero: no likelihood is 0 for all kinds, and `CHANGE` keeps every cell above 0.
        self.cells.iter_mut().flatten().for_each(|p| *p /= sum);
        self.marginal = self.cells.iter().map(|cell| cell.iter().sum()).collect();
        self.slopes = self.cells.iter().map(slopes).collect();
    }
}

/// Omits the thousands of probabilities.
impl fmt::Debug for Posterior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Posterior").field("cells", &self.cells.len()).finish_non_exhaustive()
    }
}

/// Natural logarithm of a load; 0 for load 0.
fn logarithm(load: u64) -> f64 {
    (load.max(1) as f64).ln()
}

/// For each curve, the probability that a step passes, given how far its load is below the capacity (difference of the
/// natural logarithms).
fn pass_probabilities(distance: f64) -> [f64; CURVES] {
    let mut curves = [0.0; CURVES];
    for (of_spread, (spread, _)) in curves.chunks_exact_mut(LAPSES.len()).zip(SPREADS) {
        let share = logistic(distance / (SCALE * spread));
        for (pass, (lapse, _)) in of_spread.iter_mut().zip(LAPSES) {
            *pass = LUCK + (1.0 - LUCK - lapse) * share;
        }
    }
    curves
}

/// For each spread, the total rise of its curves, weighted by their probabilities.
fn slopes(cell: &Cell) -> [f64; SPREADS.len()] {
    let mut slopes = [0.0; SPREADS.len()];
    for (at, p) in cell.iter().enumerate() {
        slopes[at % CURVES / LAPSES.len()] += p * (1.0 - LUCK - LAPSES[at % LAPSES.len()].0);
    }
    slopes
}

/// Density of a logistic distribution around 0 with this standard deviation.
fn density(distance: f64, deviation: f64) -> f64 {
    let share = logistic(distance / (SCALE * deviation));
    share * (1.0 - share) / (SCALE * deviation)
}

fn logistic(x: f64) -> f64 {
    match x {
        // Most cells are far away, and an exponential is expensive.
        ..-20.0 => 0.0,
        20.0.. => 1.0,
        _ => 1.0 / (1.0 + (-x).exp()),
    }
}

/// Entropy of a coin with this probability, in nats.
fn entropy(p: f64) -> f64 {
    let of = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    of(p) + of(1.0 - p)
}

#[cfg(test)]
mod tests;
