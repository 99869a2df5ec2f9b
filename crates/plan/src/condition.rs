//! Conditions on the values of a user, and the repetition of steps: `if = "{var kind} = video"`, `until = "{var state} = done"`.

use std::fmt;

use crate::{
    Text, Values,
    csv::Csv,
    text::{Place, depths},
};

/// Two texts that must be equal, or must differ, when they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What stands before the operator.
    pub left: Text,
    /// What stands after it.
    pub right: Text,
    are_equal: bool,
}

/// How often a step is taken in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Maximum number of times; at least 1.
    pub times: u16,
    /// What ends it earlier.
    pub bound: Bound,
}

/// What ends the repetition of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Only the number.
    Times,
    /// The step is taken if and while this holds.
    While(Condition),
    /// The step is taken until this holds after it; the response after which it does not hold for the last time is wrong.
    Until(Condition),
}

/// Maximum number of times that a step is taken in a row.
pub(crate) const MOST_TIMES: u16 = 1_000;

impl Condition {
    /// Parses `{var state} = done` or `{var next} !=`.
    pub(crate) fn parse(text: &str, tables: &[Csv]) -> Result<Condition, String> {
        let depths = depths(text);
        let is_blank = |side: Option<char>| side.is_none_or(char::is_whitespace);
        // An operator is a word of its own, outside of variables.
        let is_operator = |at: usize, operator: &str| {
            let around = [text[..at].chars().next_back(), text[at + operator.len()..].chars().next()];
            depths[at] == 0 && around.into_iter().all(is_blank)
        };
        let operators =
            ["=", "!="].map(|own| text.match_indices(own).find(|(at, own)| is_operator(*at, own)));
        let (at, operator) = operators.into_iter().flatten().min().ok_or_else(|| {
            format!("not a condition; use {{var state}} = done, or != in place of =: {text:?}")
        })?;
        let side = |side: &str| Text::parse(side.trim(), Place::Content, tables);
        let (left, right) = (side(&text[..at])?, side(&text[at + operator.len()..])?);
        if left.fixed_text().is_some() && right.fixed_text().is_some() {
            return Err(format!("a condition without a variable; use {{var state}} = done: {text:?}"));
        }
        Ok(Condition { left, right, are_equal: operator == "=" })
    }

    /// The opposite.
    #[must_use]
    pub fn negated(&self) -> Condition {
        Condition { are_equal: !self.are_equal, ..self.clone() }
    }

    /// The texts in it.
    pub(crate) fn texts_mut(&mut self) -> [&mut Text; 2] {
        [&mut self.left, &mut self.right]
    }

    /// Both sides with these values.
    pub fn sides(&self, values: &mut Values) -> [String; 2] {
        [&self.left, &self.right].map(|text| {
            let mut written = vec![0; text.max_len()];
            let length = text.write(values, &mut written);
            String::from_utf8_lossy(&written[..length]).into_owned()
        })
    }

    /// Whether it holds for these sides.
    pub fn holds(&self, [left, right]: &[String; 2]) -> bool {
        (left == right) == self.are_equal
    }
}

impl Repeat {
    /// Its condition.
    pub(crate) fn condition_mut(&mut self) -> Option<&mut Condition> {
        match &mut self.bound {
            Bound::Times => None,
            Bound::While(condition) | Bound::Until(condition) => Some(condition),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Condition { left, right, are_equal } = self;
        let operator = if *are_equal { "=" } else { "!=" };
        let gap = if right.is_empty() { "" } else { " " };
        write!(f, "{left} {operator}{gap}{right}")
    }
}

#[cfg(test)]
mod tests {
    use units::Random;

    use super::*;

    #[test]
    fn conditions_compare_two_texts() {
        let check = |text: &str, expected: bool| {
            let condition = Condition::parse(text, &[]).unwrap();
            assert_eq!(Condition::parse(&condition.to_string(), &[]), Ok(condition.clone()), "{condition}");
            let mut random = Random::new(1);
            let sides = condition.sides(&mut Values::new(&mut random, 7, 0));
            assert_eq!(condition.holds(&sides), expected, "{text}: {sides:?}");
            assert_eq!(condition.negated().holds(&sides), !expected, "{text}");
        };
        check("{seq} = 7", true);
        check("{seq}  !=  7", false);
        check("a{seq}=8 = a7=8", true);
        check("{var none} =", true);
        check("{var none} !=", false);
        check("= {var none}", true);
        check("{choice a = a} != {sha256 b != c = d}", true);
        check("{sha256 b != c = d} = {sha256 b != c = d}", true);
        check("two words {seq} = two words 7", true);
    }

    #[test]
    fn what_is_no_condition_says_so() {
        let check = |text: &str, expected: &str| {
            assert_eq!(Condition::parse(text, &[]), Err(format!("{expected}: {text:?}")));
        };
        let misread = "not a condition; use {var state} = done, or != in place of =";
        check("{var state}", misread);
        check("{var state}=done", misread);
        check("{choice a = b}", misread);
        check("a = b", "a condition without a variable; use {var state} = done");
    }
}
