//! Simulated targets, whose capacity changes between steps in different ways.

use search::{Outcome, Proposal, SeenLimit};
use units::Random;

/// How the capacity behaves. Percentages are of the capacity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A limit that is met exactly.
    Hard,
    /// A hard limit that is observed.
    Fixed,
    /// The probability of a pass is logistic in the logarithm of the load, with this standard deviation in percent.
    Knee(u32),
    /// The capacity of each step is random, with this standard deviation in percent.
    Spread(u32),
    /// This percentage of steps fails at any load.
    Lapses(u32),
    /// The capacity changes by this per mille in each step.
    Drift(i32),
    /// After an overload the capacity is smaller until the load falls to half of it.
    Hysteresis,
    /// Unused capacity is released: after a load of at most half, the next step has less.
    Spares,
    /// The capacity rises from half to all of it over this many steps.
    WarmUp(u32),
    /// The capacity doubles after this many steps of overload.
    Autoscaling(u32),
}

/// What a failed step reports to have sustained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sustained {
    /// The capacity of the step, to within one percent.
    Measured,
    /// Nothing.
    Unknown,
    /// A third of the capacity, or one and a half times as much.
    Misleading,
}

pub(crate) struct Target {
    kind: Kind,
    sustained: Sustained,
    base: f64,
    random: Random,
    steps: u32,
    overloads: u32,
    is_degraded: bool,
    is_small: bool,
    misleads_by: f64,
}

impl Target {
    pub(crate) fn new(kind: Kind, sustained: Sustained, seed: u64) -> Target {
        let mut random = Random::new(seed);
        // From 200 to 100,000, uniform in the logarithm.
        let base = (200.0 * (500f64.ln() * uniform(&mut random)).exp()).floor();
        let misleads_by = if random.below(2) == 0 { 0.3 } else { 1.5 };
        Target {
            kind,
            sustained,
            base,
            random,
            steps: 0,
            overloads: 0,
            is_degraded: false,
            is_small: true,
            misleads_by,
        }
    }

    /// The load that it sustains now half of the time: the truth.
    pub(crate) fn capacity(&self) -> f64 {
        let factor = match self.kind {
            Kind::Drift(per_mille) => 1.0 + f64::from(per_mille) / 1e3 * f64::from(self.steps),
            Kind::WarmUp(steps) => 0.5 + 0.5 * f64::from(self.steps.min(steps)) / f64::from(steps),
            Kind::Autoscaling(after) if self.overloads >= after => 2.0,
            _ => 1.0,
        };
        self.base * factor
    }

    /// Performs a step.
    pub(crate) fn step(&mut self, proposal: Proposal) -> Outcome {
        let load = proposal.load as f64;
        let recovers_at = self.capacity() / 2.0;
        let was_low = proposal.settle.is_some_and(|load| load as f64 <= recovers_at);
        if load <= recovers_at || was_low {
            self.is_degraded = false;
        }
        let degraded = if self.is_degraded { 0.7 } else { 1.0 };
        let small = if self.is_small || was_low { 0.8 } else { 1.0 };
        self.is_small = load <= recovers_at;
        let now = match self.kind {
            Kind::Knee(percent) => {
                let u = uniform(&mut self.random).clamp(1e-9, 1.0 - 1e-9);
                (0.5513 * f64::from(percent) / 100.0 * (u / (1.0 - u)).ln()).exp() * self.capacity()
            }
            Kind::Spread(percent) => {
                (f64::from(percent) / 100.0 * normal(&mut self.random)).exp() * self.capacity()
            }
            Kind::Hysteresis => self.capacity() * degraded,
            Kind::Spares => self.capacity() * small,
            _ => self.capacity(),
        };
        let lapses = matches!(self.kind, Kind::Lapses(percent) if self.random.below(100) < percent.into());
        self.steps += 1;
        if load <= now && !lapses {
            return Outcome::Passed;
        }
        if load > now {
            self.overloads += 1;
            self.is_degraded = matches!(self.kind, Kind::Hysteresis);
        }
        let is_counted = matches!(self.kind, Kind::Fixed);
        let seen = if is_counted { now } else { now.min(load) * (1.0 - 0.01 * uniform(&mut self.random)) };
        let sustained = match self.sustained {
            Sustained::Measured => Some(seen as u64),
            Sustained::Unknown => None,
            Sustained::Misleading => Some((now * self.misleads_by).min(load) as u64),
        };
        let limit = if is_counted { SeenLimit::Fixed } else { SeenLimit::None };
        Outcome::Failed { sustained, limit, is_certain: false }
    }
}

/// From 0 to 1.
fn uniform(random: &mut Random) -> f64 {
    random.bits() as f64 / u64::MAX as f64
}

/// A standard normal random number: the sum of twelve uniform ones.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}
