//! Loads for which there is no step: no valid plan has them, or this machine cannot carry them out.

use search::{Outcome, Proposal, Purpose};
use units::Count;

use super::Known;
use crate::By;

impl Known {
    /// The next step that has a valid plan.
    pub(super) fn propose(&mut self, by: By) -> Option<Proposal> {
        loop {
            let step = self.search.propose()?;
            let Some(Err(why)) = by.variant(step.load) else { return Some(step) };
            self.refuse(step, &why);
        }
    }

    /// Excludes this load: the search stays below it.
    pub(super) fn refuse(&mut self, step: Proposal, why: &str) {
        // A refused baseline is no upper bound.
        if step.purpose != Purpose::Baseline {
            self.refused = Some(format!("{} was refused: {why}", Count(step.load)));
        }
        self.search.learn(step.load, Outcome::Invalid);
    }
}

#[cfg(test)]
mod tests {
    use samples::{FindOutcome, FindSummary, Summary, Verdict};
    use search::{Range, Search};

    use super::*;
    use record::fixture::plan;

    /// A search from 4 to 100 whose scenario refuses loads from `refused` on, at a target that sustains less than `capacity`.
    fn searched(refused: u64, capacity: u64) -> FindSummary {
        let by = By::number("users", (4, ""), move |load| match load {
            load if load >= refused => Err(format!("at most {}", refused - 1)),
            _ => Ok(crate::Variant { plan: plan(&[]), text: None, flag: None }),
        });
        let search = Search::new(Range { least: 1, most: 100 }, 0.02).climbing_from(4, 2);
        let mut known = Known::new(search, &plan(&[]));
        while let Some(step) = known.propose(by) {
            assert!(step.load < refused, "{step:?}");
            let verdict = if step.load < capacity { Verdict::Pass } else { Verdict::Fail };
            let reasons = vec!["slow".to_owned(); usize::from(verdict == Verdict::Fail)];
            known.learn(by, step, Summary { verdict, reasons, ..Summary::default() }, &mut |_| {});
        }
        known.into_summary(by, &plan(&[]), None)
    }

    #[test]
    fn a_load_that_is_refused_bounds_the_search() {
        let found = searched(20, 1_000);
        assert_eq!((found.outcome, found.max, found.error), (FindOutcome::NotReached, 19, 0));
        assert_eq!((found.exit_status(), found.ended.as_deref()), (0, Some("20 was refused: at most 19")));
        assert!(found.curve.len() < 8, "a refused load is no step: {found:?}");
    }

    #[test]
    fn what_the_target_does_not_sustain_is_its_limit_whatever_is_refused() {
        let found = searched(24, 20);
        assert_eq!((found.outcome, found.ended.as_deref()), (FindOutcome::Found, None));
        assert!(found.max.abs_diff(19) <= 1 && found.failed.is_some_and(|load| load < 24), "{found:?}");
    }

    #[test]
    fn a_baseline_that_is_refused_bounds_nothing() {
        let by = By::number("users", (400, ""), |load| match load {
            0..8 => Err("at least 8".to_owned()),
            _ => Ok(crate::Variant { plan: plan(&[]), text: None, flag: None }),
        });
        let search = Search::new(Range { least: 1, most: 800 }, 0.02).climbing_from(400, 2).with_baseline(4);
        let mut known = Known::new(search, &plan(&[]));
        assert_eq!(known.propose(by).map(|step| (step.load, step.purpose)), Some((400, Purpose::Climb)));
        assert_eq!(known.refused, None);
    }
}
