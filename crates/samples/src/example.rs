//! Examples of wrong responses: one of each fault of a run, with the whole exchange as `throng try` prints it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    fault::{Fault, Kind, Side, Stage},
    merge::Merge,
};

/// An exchange that went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Example {
    /// Whose doing.
    #[cfg_attr(test, ts(type = "string"))]
    side: Side,
    /// When in the connection's life.
    #[cfg_attr(test, ts(type = "string"))]
    stage: Stage,
    /// What was wrong.
    #[cfg_attr(test, ts(type = "string"))]
    kind: Kind,
    /// When it ended, by the clock of the ticks.
    #[cfg_attr(test, ts(type = "number"))]
    at: Nanos,
    /// What was sent and received, in lines; secrets are masked. At most 16 KiB.
    text: String,
}

impl Example {
    /// Maximum length of the text, in bytes.
    const LONGEST: usize = 16 << 10;

    /// An exchange that ended with this fault, as lines of a transcript.
    pub fn new(fault: Fault, at: Nanos, mut text: String) -> Example {
        text.truncate(text.floor_char_boundary(Example::LONGEST));
        let Fault { side, stage, kind, .. } = fault;
        Example { side, stage, kind, at, text }
    }

    /// The fault, without detail.
    pub fn fault(&self) -> Fault {
        Fault { detail: Default::default(), side: self.side, stage: self.stage, kind: self.kind }
    }

    /// The lines of its transcript.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn compare(&self, other: &Example) -> Ordering {
        let key = |it: &Example| (it.side, it.stage, it.kind);
        key(self).cmp(&key(other))
    }
}

/// The first example of each fault of a period, sorted by fault; at most [`Examples::MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Example>")]
pub struct Examples(Vec<Example>);

impl Examples {
    /// Maximum number of examples.
    pub const MAX: usize = 8;

    /// Adds an example, unless there is an earlier one of its fault.
    pub fn add(&mut self, example: Example) {
        match self.0.binary_search_by(|other| other.compare(&example)) {
            Ok(at) => {
                let own = &mut self.0[at];
                if (example.at, &example.text) < (own.at, &own.text) {
                    *own = example;
                }
            }
            Err(at) => {
                self.0.insert(at, example);
                self.0.truncate(Examples::MAX);
            }
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The examples, by fault.
    pub fn iter(&self) -> impl Iterator<Item = &Example> {
        self.0.iter()
    }
}

impl From<Vec<Example>> for Examples {
    fn from(all: Vec<Example>) -> Examples {
        let mut examples = Examples::default();
        all.into_iter().for_each(|example| examples.add(example));
        examples
    }
}

impl Merge for Examples {
    fn merge(&mut self, other: &Examples) {
        other.iter().for_each(|example| self.add(example.clone()));
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(kind: Kind, at: u64) -> Example {
        Example::new(Fault::target(Stage::Exchange, kind), Nanos(at), format!("# {at}"))
    }

    #[test]
    fn the_first_of_each_fault_is_kept_in_any_order() {
        let seen: Vec<Example> = Kind::ALL
            .iter()
            .flat_map(|kind| [example(*kind, 9), example(*kind, 3), example(*kind, 5)])
            .collect();
        let all = Examples::from(seen.clone());
        assert_eq!(all.iter().count(), Examples::MAX);
        assert!(all.iter().all(|it| it.at == Nanos(3) && it.text() == "# 3"));
        let (first, second) = seen.split_at(seen.len() / 3);
        let (mut a, mut b) = (Examples::from(first.to_vec()), Examples::from(second.to_vec()));
        let before = a.clone();
        a.merge(&b);
        b.merge(&before);
        assert_eq!((&a, &b), (&all, &all));
        assert_eq!(all.iter().next().unwrap().fault().stage, Stage::Exchange);
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let long =
            Example::new(Fault::target(Stage::Exchange, Kind::WrongBody), Nanos(1), "é".repeat(10_000));
        assert_eq!(long.text().len(), Example::LONGEST);
    }
}
