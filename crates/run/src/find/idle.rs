//! The idle timeout of a server, and shorter think times that stay below it.

use plan::{Plan, Think};
use samples::IdleTimeout;
use units::Nanos;

use judge::longest_pause;
use record::Record;

/// Shortest and longest pause, as fractions of the idle timeout.
const SHORTEST: f64 = 0.3;
const LONGEST: f64 = 0.6;

/// The time after which the server closes idle connections, as announced (`Keep-Alive: timeout`) or as observed in this step, whichever
/// is shorter. `None` if unknown.
pub(super) fn timeout(record: &Record) -> Option<Nanos> {
    let announced = Some(Nanos::from_secs(record.totals.keep_alive_s)).filter(|time| *time > Nanos::ZERO);
    announced.into_iter().chain(judge::idle_timeout(record)).min()
}

/// The plan with pauses shorter than the idle timeout; `None` if they already are.
pub(super) fn outlasted(plan: &Plan, timeout: Nanos) -> Option<(Plan, IdleTimeout)> {
    if plan.populations.iter().all(|population| longest_pause(population) < timeout) {
        return None;
    }
    // Rounded down to tenths of a second.
    let part = |share: f64| Nanos((timeout.0 as f64 * share) as u64 / 100_000_000 * 100_000_000);
    let think = Think { min: part(SHORTEST), max: part(LONGEST) };
    let mut plan = plan.clone();
    plan.populations.iter_mut().for_each(|population| population.set_think(think));
    let think_s = [think.min, think.max].map(Nanos::secs_f64);
    Some((plan, IdleTimeout { timeout_s: timeout.secs_f64(), think_s }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture;

    /// The server announces a timeout; 50 connections were closed after 3 s of silence, while others were open for longer.
    #[test]
    fn a_pause_that_others_survived_is_no_idle_timeout() {
        let check = |announced_s: u64, survived_s: u64, expected_s: Option<u64>| {
            let mut r = fixture::record();
            (0..50).for_each(|_| r.totals.silence.record(Nanos::from_secs(3)));
            r.totals.keep_alive_s = announced_s;
            r.totals.longest_silence = Nanos::from_secs(survived_s);
            let seen = timeout(&r).map(|time| time.secs_f64().round() as u64);
            assert_eq!(seen, expected_s, "{announced_s} {survived_s}");
        };
        check(0, 0, Some(3));
        check(0, 2, Some(3));
        check(0, 9, None);
        // An announced timeout applies in any case.
        check(5, 9, Some(5));
        check(2, 0, Some(2));
    }
}
