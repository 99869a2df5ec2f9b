//! Groups outcomes that are repetitions of the same trial.

use stats::median;

use crate::{
    figure::shown,
    outcome::{Outcome, Subject},
};

/// The repetitions of a trial.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    /// The subject that they have in common.
    pub(crate) subject: &'a Subject,
    /// The outcomes, oldest first; at least one.
    pub(crate) outcomes: Vec<&'a Outcome>,
}

impl Group<'_> {
    /// The outcomes whose figures count: the valid ones, or all if none is valid.
    pub(crate) fn counted(&self) -> Vec<&Outcome> {
        let valid: Vec<&Outcome> =
            self.outcomes.iter().copied().filter(|outcome| outcome.is_valid()).collect();
        if valid.is_empty() { self.outcomes.clone() } else { valid }
    }

    /// The latest outcome.
    pub(crate) fn last(&self) -> &Outcome {
        self.outcomes[self.outcomes.len() - 1]
    }

    /// How the repetitions ended: for each kind of end, the latest headline.
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

/// Groups outcomes by subject and machine, in the order of each group's first outcome.
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

/// The distribution of a figure over repetitions.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// The distribution of the figure at this path of the summary, over the repetitions that have it.
    pub(crate) fn of(outcomes: &[&Outcome], path: &str) -> Option<Spread> {
        let figures = || outcomes.iter().filter_map(|outcome| outcome.figure(path));
        let (least, most) = (figures().reduce(f64::min)?, figures().reduce(f64::max)?);
        Some(Spread { median: median(figures())?, least, most })
    }

    /// The median with the range.
    pub(crate) fn text(self, path: &str) -> String {
        let [least, median, most] = [self.least, self.median, self.most].map(|n| shown(path, n));
        if least == most { median } else { format!("{median} ({least} to {most})") }
    }
}
