//! How long a server lets connections be idle, and think times that give way to that.

use plan::{Plan, Think};
use samples::IdleTimeout;
use units::Nanos;

use crate::{
    judge::{self, longest_pause},
    record::Record,
};

/// Of the time after which the server closes a connection that is idle: the shortest and the longest pause.
const SHORTEST: f64 = 0.3;
const LONGEST: f64 = 0.6;
/// Who closes connections sooner does not do so because they are idle.
const LEAST: Nanos = Nanos::from_millis(900);

/// After which time the server closes idle connections, as it has announced, or as those of this step were closed.
pub(super) fn timeout(record: &Record) -> Option<Nanos> {
    let announced = Some(Nanos::from_secs(record.totals.keep_alive_s)).filter(|time| *time > Nanos::ZERO);
    let seen = judge::idle_timeout(record);
    announced.into_iter().chain(seen).filter(|time| *time >= LEAST).min()
}

/// The same plan with shorter pauses, where those that it has are longer than a server lets connections be idle.
pub(super) fn outlasted(plan: &Plan, timeout: Nanos) -> Option<(Plan, IdleTimeout)> {
    let part = |share: f64| Nanos((timeout.0 as f64 * share) as u64 / 100_000_000 * 100_000_000);
    let think = Think { min: part(SHORTEST), max: part(LONGEST) };
    let mut plan = plan.clone();
    let is_longer = plan.populations.iter().any(|population| longest_pause(population) >= timeout);
    plan.populations.iter_mut().for_each(|population| population.set_think(think));
    let idle =
        IdleTimeout { timeout_s: timeout.secs_f64(), think_s: [think.min.secs_f64(), think.max.secs_f64()] };
    is_longer.then_some((plan, idle))
}
