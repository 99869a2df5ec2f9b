//! The rates at which a plan dials and sends, which the caps of agents limit.

use plan::{Activity, Plan, Population, Ramp, Stage, Then};
use units::{Nanos, Rate};

/// The maximum rates of a population, or of the probe, as far as they are limited: its requests, then its dials in each stage of the
/// plan. For each of these, the sum over an agent's parts must stay within its cap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rates(Vec<f64>);

impl Rates {
    /// The rates of a population.
    pub(crate) fn of(plan: &Plan, nth: u16) -> Rates {
        let population = &plan.populations[usize::from(nth)];
        let per_s = |rate: Option<Rate>| rate.map_or(0.0, Rate::per_s_f64);
        let dials = |stage: &Stage| match population.load.arrival_rate() {
            Some(rate) => rate.per_s_f64(),
            None if stage.of.contains(&nth) => {
                let part = f64::from(population.load.held()) / held(plan, stage).max(1) as f64;
                per_s(dial_rate(plan, stage)) * part
            }
            None => 0.0,
        };
        Rates([per_s(request_rate(population))].into_iter().chain(plan.stages.iter().map(dials)).collect())
    }

    /// The rates of a probe that sends at this rate: each request may need a connection.
    pub(crate) fn of_probe(plan: &Plan, rate: Rate) -> Rates {
        Rates(vec![rate.per_s_f64(); 1 + plan.stages.len()])
    }
}

/// The unused part of an agent's cap.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    /// `None`: no limit.
    most: Option<f64>,
    used: Vec<f64>,
}

impl Left {
    /// The whole cap.
    pub(crate) fn of(most: Option<f64>) -> Left {
        Left { most, used: Vec::new() }
    }

    /// Subtracts this share of a population or of the probe.
    pub(crate) fn take(&mut self, rates: &Rates, share: f64) {
        self.used.resize(self.used.len().max(rates.0.len()), 0.0);
        self.used.iter_mut().zip(&rates.0).for_each(|(used, rate)| *used += rate * share);
    }

    /// Number of `of` units of a population, or of the probe, that still fit.
    pub(crate) fn units(&self, rates: &Rates, of: u32) -> u64 {
        let Some(most) = self.most else { return u64::MAX };
        let used = self.used.iter().copied().chain(std::iter::repeat(0.0));
        let share = |(rate, used): (&f64, f64)| (*rate > 0.0).then(|| (most - used) / rate);
        let least = rates.0.iter().zip(used).filter_map(share).fold(f64::INFINITY, f64::min);
        // Exact for exact quotients: 100/s of 300/s are 333 of 999. A negative result becomes 0.
        (least * f64::from(of) * (1.0 + 1e-12) + 1e-9) as u64
    }
}

/// The maximum rates of a plan, as far as they are limited: the dials of each stage, and the requests. Each with the names of its parts.
pub(crate) fn totals(plan: &Plan) -> Vec<(String, Rate)> {
    let probe: Option<(&str, Rate)> = plan.probe.as_ref().map(|probe| ("probe", probe.rate));
    let dials = plan.stages.iter().map(|stage| {
        let ramp: Option<(&str, Rate)> = dial_rate(plan, stage).map(|rate| ("ramp", rate));
        sum(ramp.into_iter().chain(named(plan, |population| population.load.arrival_rate())).chain(probe))
    });
    dials.chain([sum(named(plan, request_rate).chain(probe))]).collect()
}

/// The populations that have this rate.
fn named(plan: &Plan, of: fn(&Population) -> Option<Rate>) -> impl Iterator<Item = (&str, Rate)> {
    let populations = plan.populations.iter();
    populations.filter_map(move |population| Some((population.name.as_str(), of(population)?)))
}

fn sum<'a>(all: impl Iterator<Item = (&'a str, Rate)>) -> (String, Rate) {
    let all: Vec<(&str, Rate)> = all.filter(|(_, rate)| !rate.is_zero()).collect();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let rate = match &all[..] {
        [(_, rate)] => *rate,
        all => Rate::from_per_s_f64(all.iter().map(|(_, rate)| rate.per_s_f64()).sum()),
    };
    (names.join(" + "), rate)
}

/// The largest of the plan's rates.
pub(crate) fn busiest(plan: &Plan) -> f64 {
    totals(plan).into_iter().map(|(_, rate)| rate.per_s_f64()).fold(0.0, f64::max)
}

/// Connections that a stage's populations hold.
fn held(plan: &Plan, stage: &Stage) -> u64 {
    stage.of.iter().map(|nth| u64::from(plan.populations[usize::from(*nth)].load.held())).sum()
}

/// Maximum dials per second in a stage's ramp; `None`: no limit.
pub(crate) fn dial_rate(plan: &Plan, stage: &Stage) -> Option<Rate> {
    let connections = held(plan, stage);
    match stage.ramp {
        _ if connections == 0 => Some(Rate::per_s(0)),
        Ramp::Adaptive => None,
        Ramp::Rate(rate) => Some(rate),
        Ramp::Within(Nanos::ZERO) => None,
        Ramp::Within(time) => Some(Rate::from_per_s_f64(connections as f64 / time.secs_f64())),
    }
}

/// Maximum requests per second; `None`: no limit.
pub(crate) fn request_rate(population: &Population) -> Option<Rate> {
    if population.load.connections() == 0 {
        return Some(Rate::per_s(0));
    }
    match (population.load.rate(), requests_of_arrival(population)) {
        (Some(rate), Some(requests)) => {
            return Some(Rate::from_per_s_f64(rate.per_s_f64() * requests as f64));
        }
        (Some(rate), None) if population.load.is_paced() => return Some(rate),
        _ => {}
    }
    let (requests, round) = match &population.activity {
        Activity::Idle => return Some(Rate::per_s(0)),
        Activity::Ping { every, .. } => (1, *every),
        Activity::Steps { steps, .. } => {
            let idle = steps.iter().fold(Nanos::ZERO, |sum, step| sum + step.act.think().min);
            (steps.len(), idle)
        }
    };
    let streams = f64::from(population.streams.unwrap_or(1));
    let all = f64::from(population.load.connections()) * streams * requests as f64;
    (round > Nanos::ZERO).then(|| Rate::from_per_s_f64(all / round.secs_f64()))
}

/// Number of requests per arriving connection; `None` if connections are held, or not closed afterwards.
fn requests_of_arrival(population: &Population) -> Option<u64> {
    population.load.arrival_rate()?;
    match (&population.activity, population.calls) {
        (Activity::Steps { steps, then: Then::Close }, None) => Some(steps.len() as u64),
        (Activity::Steps { .. }, calls) => calls,
        (Activity::Idle | Activity::Ping { .. }, _) => None,
    }
}
