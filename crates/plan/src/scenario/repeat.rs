//! Parses and checks the conditions and repetitions of steps.

use units::Count;

use super::Reader;
use super::document::Section;
use super::step::is_of_choice;
use crate::condition::MOST_TIMES;
use crate::{Act, Bound, Condition, Repeat};

impl Reader<'_, '_> {
    /// The condition of a step.
    pub(super) fn only_if(&mut self, section: &Section, act: &Act) -> Option<Condition> {
        if section.has("if") && !is_of_choice(act) {
            section.note(self.notes, "if", "conditions are for requests, messages and pauses; remove it");
        }
        let tables = self.tables;
        section.read(self.notes, "if", |text| Condition::parse(text, tables))
    }

    /// How often a step is taken in a row.
    pub(super) fn repeat(&mut self, section: &Section, act: &Act) -> Option<Repeat> {
        let tables = self.tables;
        let times = section.read(self.notes, "times", |text| match Count::parse(text) {
            Ok(Count(times)) if (1..=MOST_TIMES.into()).contains(&times) => Ok(times as u16),
            _ => Err(format!("{text:?} is not a number of times; use 1 to {MOST_TIMES}")),
        });
        let mut read = |key| section.read(self.notes, key, |text| Condition::parse(text, tables));
        let bound = match (read("while"), read("until")) {
            (Some(condition), _) => Bound::While(condition),
            (None, Some(condition)) => Bound::Until(condition),
            (None, None) => Bound::Times,
        };
        for key in ["until", "while"].into_iter().filter(|key| section.has(key) && !section.has("times")) {
            section.note(self.notes, key, "needs the most repetitions; add times = 20");
        }
        if section.has("until") && section.has("while") {
            section.note(self.notes, "while", "cannot be used with until; remove one of the two");
        }
        if section.has("until") && !act.takes_response() {
            section.note(
                self.notes,
                "until",
                "no response is expected that could decide it; add expect, or use while",
            );
        }
        if section.has("times") && !is_of_choice(act) {
            section.note(self.notes, "times", "only requests, messages and pauses are repeated; remove it");
        }
        times.map(|times| Repeat { times, bound })
    }
}
