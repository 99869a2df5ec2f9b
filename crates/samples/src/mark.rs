//! Moments of a run that charts mark: its stages, the user's commands, and the experiments after the load.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{merge::Merge, words::words};

words! {
    /// What happened at a moment.
    #[derive(Default)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    MarkKind {
        /// A stage of the plan began.
        #[default]
        Stage = "stage",
        /// A command of the user was carried out.
        Command = "command",
        /// The target was asked, after the load.
        Experiment = "experiment",
    }
}

/// A moment with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Mark {
    /// When, by the clock of the ticks.
    #[cfg_attr(test, ts(type = "number"))]
    pub at: Nanos,
    /// What happened.
    pub kind: MarkKind,
    /// The stage's name; `paused`, `load 90 %`; an experiment with its answer.
    pub what: String,
}

/// Moments of a period, ascending, each once; of more than [`Marks::MAX`] the earliest, so that they merge in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(from = "Vec<Mark>")]
pub struct Marks(Vec<Mark>);

impl Marks {
    /// A chart cannot distinguish more.
    pub const MAX: usize = 64;

    /// Adds a moment, unless it is there already.
    pub fn add(&mut self, mark: Mark) {
        if let Err(at) = self.0.binary_search(&mark) {
            self.0.insert(at, mark);
            self.0.truncate(Marks::MAX);
        }
    }

    /// Whether there are no moments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The moments, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.0.iter()
    }
}

impl From<Vec<Mark>> for Marks {
    fn from(all: Vec<Mark>) -> Marks {
        let mut marks = Marks::default();
        all.into_iter().for_each(|mark| marks.add(mark));
        marks
    }
}

impl Merge for Marks {
    fn merge(&mut self, other: &Marks) {
        other.iter().for_each(|mark| self.add(mark.clone()));
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(at: u64) -> Mark {
        Mark { at: Nanos(at), kind: MarkKind::Command, what: "paused".to_owned() }
    }

    proptest! {
        /// More than are kept: the same in any order, ascending, and each once.
        #[test]
        fn marks_merge_in_any_order(times in proptest::collection::vec(0u64..200, 0..150)) {
            let (first, second) = times.split_at(times.len() / 3);
            let of = |times: &[u64]| Marks::from(times.iter().map(|at| mark(*at)).collect::<Vec<_>>());
            let (mut a, mut b) = (of(first), of(second));
            let before = a.clone();
            a.merge(&b);
            b.merge(&before);
            let mut expected = times.clone();
            expected.sort_unstable();
            expected.dedup();
            expected.truncate(Marks::MAX);
            prop_assert_eq!(a.iter().map(|mark| mark.at.0).collect::<Vec<_>>(), expected);
            prop_assert_eq!(a, b);
        }
    }
}
