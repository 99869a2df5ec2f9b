//! How often a plan dials and sends, for the caps of agents.

use plan::{Act, Activity, Plan, Population, Ramp, Stage};
use units::{Nanos, Rate};

/// The most dials a second of a stage; none where it has no limit.
pub(crate) fn dial_rate(plan: &Plan, stage: &Stage) -> Option<Rate> {
    let held = |nth: &u16| u64::from(plan.populations[usize::from(*nth)].load.held());
    let connections: u64 = stage.of.iter().map(held).sum();
    match stage.ramp {
        _ if connections == 0 => Some(Rate::per_s(0)),
        Ramp::Adaptive => None,
        Ramp::Rate(rate) => Some(rate),
        Ramp::Within(Nanos::ZERO) => None,
        Ramp::Within(time) => Some(Rate::from_per_s_f64(connections as f64 / time.secs_f64())),
    }
}

/// The most requests, or arrivals, a second; none where they have no limit.
pub(crate) fn request_rate(population: &Population) -> Option<Rate> {
    if population.load.connections() == 0 {
        return Some(Rate::per_s(0));
    }
    if let Some(rate) = population.load.rate() {
        return Some(rate);
    }
    let (requests, round) = match &population.activity {
        Activity::Idle => return Some(Rate::per_s(0)),
        Activity::Ping { every, .. } => (1, *every),
        Activity::Steps { steps, .. } => {
            let idle = steps.iter().fold(Nanos::ZERO, |sum, step| sum + least_idle(&step.act));
            (steps.len(), idle)
        }
    };
    let all = f64::from(population.load.connections()) * requests as f64;
    (round > Nanos::ZERO).then(|| Rate::from_per_s_f64(all / round.secs_f64()))
}

/// The shortest time that a connection does nothing after it.
fn least_idle(act: &Act) -> Nanos {
    match act {
        Act::Request { think, .. }
        | Act::Upgrade { think, .. }
        | Act::Send { think, .. }
        | Act::Expect { think, .. } => think.min,
        Act::Wait(time) => time.min,
        Act::Close => Nanos::ZERO,
    }
}
