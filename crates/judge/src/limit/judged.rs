//! What the failed thresholds are about: what others met is not why they failed.

use plan::Threshold;
use samples::{FaultCount, Requests, Summary, ThresholdResult};

use super::wrong;
use crate::evidence::Evidence;

/// Fewer responses than one in this many do not make the others slow by being wrong.
const FEW: u64 = 10;

/// All failed thresholds together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Judged<'a> {
    /// The population that all of them are of.
    pub(super) population: Option<&'a str>,
    /// The step that they are of.
    pub(super) step: Option<&'a str>,
    /// Whether they ask for nothing but short times.
    pub(super) is_latency: bool,
}

impl Judged<'_> {
    /// None where none has failed.
    pub(crate) fn of<'a>(thresholds: &'a [Threshold], results: &[ThresholdResult]) -> Option<Judged<'a>> {
        // Those that throng's lateness leaves open only where none else failed.
        let has_failed = results.iter().any(|result| result.fails());
        let counts = |result: &ThresholdResult| !result.pass && (!has_failed || !result.unreliable);
        let failed = thresholds.iter().zip(results).filter(|(_, result)| counts(result));
        let each = failed.map(|(threshold, _)| {
            let figure = &threshold.figure;
            Judged { population: figure.population(), step: figure.step(), is_latency: figure.is_latency }
        });
        each.reduce(|all, own| {
            let population = all.population.filter(|_| all.population == own.population);
            let step = all.step.filter(|_| population.is_some() && all.step == own.step);
            Judged { population, step, is_latency: all.is_latency && own.is_latency }
        })
    }

    /// The summary without the faults, requests and times of others. None where the run fails for these, too.
    pub(super) fn figures(&self, s: &Summary) -> Option<Summary> {
        let mut s = s.clone();
        if let Some(population) = self.population {
            let own = s.populations.get(population)?.figures.clone();
            if s.requests.unanswered > own.requests.unanswered {
                return None;
            }
            (s.latency_us, s.ramp_latency_us) = (own.latency_us, own.ramp_latency_us);
            (s.faults, s.requests) = (own.faults, own.requests);
            for (_, other) in s.populations.iter_mut().filter(|(name, _)| *name != population) {
                (other.faults, other.requests) = (Vec::new(), Requests::default());
                other.steps.values_mut().for_each(|step| step.faults.clear());
            }
            self.leave_step(&mut s, population);
        }
        let responses = |faults: &[FaultCount]| -> u64 {
            faults.iter().filter(|f| wrong::is_response(f)).map(|f| f.count).sum()
        };
        if self.is_latency && FEW * responses(&s.faults) < s.requests.answered {
            s.faults.retain(|fault| !wrong::is_response(fault) && !fault.fault().follows_response());
        }
        Some(s)
    }

    /// Leaves the faults and times of the step alone; and the statuses only where they are all of its responses'.
    fn leave_step(&self, s: &mut Summary, population: &str) {
        let own = self.step.and_then(|step| s.populations.get(population)?.steps.get(step).cloned());
        let Some(own) = own else { return };
        if own.faults != s.faults {
            s.requests.status.retain(|status, _| (200..300).contains(status));
        }
        (s.faults, s.latency_us, s.ramp_latency_us) = (own.faults, own.latency_us, own.ramp_latency_us);
        let faults = s.faults.clone();
        if let Some(whole) = s.populations.get_mut(population) {
            whole.faults = faults;
            let others = whole.steps.iter_mut().filter(|(name, _)| Some(name.as_str()) != self.step);
            others.for_each(|(_, other)| other.faults.clear());
        }
    }

    /// The evidence without what is known to be of others.
    pub(super) fn evidence(&self, e: &Evidence) -> Evidence {
        let Some(population) = self.population else { return e.clone() };
        // Those that are judged together have the names of all.
        let is_own = |name: &Option<String>| {
            name.as_ref().is_none_or(|names| names.split(" and ").any(|name| name == population))
        };
        let place = self.step.map_or(population.to_owned(), |step| format!("{population}.{step}"));
        let slow_part = e.slow_parts.iter().find(|(name, _)| *name == place).map(|(_, part)| *part);
        Evidence {
            slow_part,
            // Of all populations together.
            slow_seconds: Vec::new(),
            stall: e.stall.filter(|_| is_own(&e.stall_of)),
            starved: e.starved.iter().filter(|starved| is_own(&starved.name)).cloned().collect(),
            ..e.clone()
        }
    }

    /// Whether it is only of a part of the run.
    pub(crate) fn is_of_part(&self) -> bool {
        self.population.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_all_failed_thresholds_have_in_common() {
        let check = |paths: &[(&str, bool)], expected: Option<(Option<&str>, Option<&str>, bool)>| {
            let threshold = |(path, _): &(&str, bool)| {
                let mut threshold = fixture::plan(&["held == 1"]).thresholds.remove(0);
                threshold.figure.path = (*path).to_owned();
                threshold.figure.is_latency = path.contains("latency");
                threshold
            };
            let thresholds: Vec<_> = paths.iter().map(threshold).collect();
            let result =
                |(_, pass): &(&str, bool)| ThresholdResult { pass: *pass, ..ThresholdResult::default() };
            let results: Vec<_> = paths.iter().map(result).collect();
            let judged = Judged::of(&thresholds, &results);
            assert_eq!(judged.map(|all| (all.population, all.step, all.is_latency)), expected, "{paths:?}");
        };
        let (a, login) = ("populations.a.latency_us.p99", "populations.b.steps.login.latency_us.p99");
        check(&[], None);
        check(&[(a, true), (login, true)], None);
        check(&[(a, true), (login, false)], Some((Some("b"), Some("login"), true)));
        check(&[("populations.b.faults", false), (login, false)], Some((Some("b"), None, false)));
        check(&[(a, false), ("populations.a.faults", false)], Some((Some("a"), None, false)));
        check(&[(a, false), (login, false)], Some((None, None, true)));
        check(&[(a, false), ("faults", false)], Some((None, None, false)));
        check(&[("latency_us.p99", false)], Some((None, None, true)));
    }
}
