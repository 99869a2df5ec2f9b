//! Outcomes that repeat each other.

use crate::{
    outcome::{Outcome, Subject},
    table::Spread,
};

/// Repetitions of one trial.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// What was tried.
    pub(crate) subject: &'a Subject,
    /// The oldest first; at least one.
    pub(crate) outcomes: Vec<&'a Outcome>,
}

impl Group<'_> {
    /// Those whose figures count: the valid ones, or all if none is.
    pub(crate) fn counted(&self) -> Vec<&Outcome> {
        let valid: Vec<&Outcome> =
            self.outcomes.iter().copied().filter(|outcome| outcome.is_valid()).collect();
        if valid.is_empty() { self.outcomes.clone() } else { valid }
    }

    /// A figure of the summary, of those repetitions that have it.
    pub(crate) fn spread(&self, path: &str) -> Option<Spread> {
        Spread::of(self.counted().iter().filter_map(|outcome| outcome.figure(path)).collect())
    }

    /// The latest.
    pub(crate) fn last(&self) -> &Outcome {
        self.outcomes[self.outcomes.len() - 1]
    }

    /// How the repetitions ended: the last headline of each kind of end.
    pub(crate) fn ends(&self) -> String {
        let kind = |outcome: &Outcome| {
            ["verdict", "outcome", "limit.side", "limit.cause"]
                .map(|path| outcome.text(path).map(str::to_owned))
        };
        let mut ends: Vec<(&Outcome, usize)> = Vec::new();
        for outcome in &self.outcomes {
            match ends.iter_mut().find(|(end, _)| kind(end) == kind(outcome)) {
                Some((end, n)) => (*end, *n) = (outcome, *n + 1),
                None => ends.push((outcome, 1)),
            }
        }
        let n = self.outcomes.len();
        let line = |(end, times): &(&Outcome, usize)| {
            if *times == n { end.headline() } else { format!("{times} of {n}: {}", end.headline()) }
        };
        ends.iter().map(line).collect::<Vec<_>>().join("; ")
    }
}

/// Outcomes of one subject on one machine, in the order of their first.
pub(crate) fn groups(outcomes: &[Outcome]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for outcome in outcomes {
        let is = |group: &&mut Group| {
            *group.subject == outcome.subject && group.outcomes[0].machine == outcome.machine
        };
        match groups.iter_mut().find(is) {
            Some(group) => group.outcomes.push(outcome),
            None => groups.push(Group { subject: &outcome.subject, outcomes: vec![outcome] }),
        }
    }
    groups
}
