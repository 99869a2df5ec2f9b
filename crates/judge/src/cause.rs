//! What a cause is, and what finding one says.

use samples::{Cause as Name, Certainty, Limit, Side};

use crate::case::Case;
use record::signs::Sign;

/// A cause: where the evidence for it is, and what is said of it. It looks at the case alone, and never at what other causes find: which
/// of several is the one that stopped a run is decided once, for all of them (`resolve`).
pub(crate) trait Cause: Sized {
    /// Its own name, of which others know.
    const ID: &'static str;
    /// What it is about.
    const OF: (Side, Name);
    /// The names of what explains it: where one of these is found, too, this one follows from that.
    const YIELDS_TO: &'static str = "";

    /// What helps, where that is always the same.
    const FIX: &'static str = "";

    /// The numbers, where there is evidence.
    fn find(case: &Case) -> Option<Found<Self>>;

    /// What it is about, where that depends on what was found.
    fn of(&self) -> (Side, Name) {
        Self::OF
    }

    /// The one line.
    fn sentence(&self) -> String;

    /// What was seen.
    fn detail(&self, case: &Case) -> String;

    /// What helps, in this case.
    fn fix(&self, _: &Case) -> String {
        Self::FIX.to_owned()
    }
}

/// The numbers of a cause, and how sure it is.
pub(crate) struct Found<C> {
    cause: C,
    certainty: Certainty,
    at: u64,
    began: Began,
}

/// When what was found began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    Unknown,
    /// When this was seen.
    Seen(Sign),
    /// With the silence, or the stop, that it is.
    Silence,
    Stop,
    /// With what it makes fail.
    Failing,
}

impl<C> Found<C> {
    /// A counter, a state or words that show the cause itself; `at`: connections then.
    pub(crate) fn seen(cause: C, at: u64) -> Found<C> {
        Found { cause, certainty: Certainty::Seen, at, began: Began::Unknown }
    }

    /// It follows from what all that failed have in common.
    pub(crate) fn inferred(cause: C, at: u64) -> Found<C> {
        Found { certainty: Certainty::Inferred, ..Found::seen(cause, at) }
    }

    pub(crate) fn certain(self, certainty: Certainty) -> Found<C> {
        Found { certainty, ..self }
    }

    pub(crate) fn began(self, began: Began) -> Found<C> {
        Found { began, ..self }
    }
}

/// A cause of the list.
pub(crate) struct Entry {
    #[cfg(test)]
    pub(crate) id: &'static str,
    #[cfg(test)]
    pub(crate) yields_to: &'static str,
    pub(crate) find: fn(&Case) -> Option<Finding>,
}

/// What was found, in words.
pub(crate) struct Finding {
    pub(crate) id: &'static str,
    pub(crate) yields_to: &'static str,
    pub(crate) began: Began,
    pub(crate) limit: Limit,
}

impl Entry {
    pub(crate) const fn of<C: Cause>() -> Entry {
        Entry {
            #[cfg(test)]
            id: C::ID,
            #[cfg(test)]
            yields_to: C::YIELDS_TO,
            find: find::<C>,
        }
    }
}

/// What a cause finds, in words.
pub(crate) fn find<C: Cause>(case: &Case) -> Option<Finding> {
    C::find(case).map(|found| finding(found, case))
}

/// The same of what was found.
pub(crate) fn finding<C: Cause>(found: Found<C>, case: &Case) -> Finding {
    let Found { cause, certainty, at, began } = found;
    let ((side, name), first_seen_s) = (cause.of(), None);
    let (sentence, detail, fix) = (cause.sentence(), cause.detail(case), cause.fix(case));
    let limit =
        Limit { side, cause: name, at_connections: at, certainty, first_seen_s, sentence, detail, fix };
    Finding { id: C::ID, yields_to: C::YIELDS_TO, began, limit }
}
