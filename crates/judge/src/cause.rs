//! What a cause is, and how a finding becomes a [`Limit`].

use samples::{Cause as Name, Certainty, Limit, Side};

use crate::case::Case;
use record::signs::Sign;

/// A possible cause of a run's limit: how to detect it, and how to describe it. A cause looks at the case alone, never at other causes:
/// which of several findings is reported is decided in one place (`resolve`).
pub(crate) trait Cause: Sized {
    /// Identifier, used by the `YIELDS_TO` of other causes.
    const ID: &'static str;
    /// The side and name that are reported.
    const OF: (Side, Name);
    /// Identifiers (separated by spaces) of causes that explain this one: if one of them is found as well, this cause is its consequence.
    const YIELDS_TO: &'static str = "";

    /// The fix, if it is always the same.
    const FIX: &'static str = "";

    /// Looks for evidence; `None` if there is none.
    fn find(case: &Case) -> Option<Found<Self>>;

    /// The side and name that are reported, if they depend on what was found.
    fn of(&self) -> (Side, Name) {
        Self::OF
    }

    /// The one-line sentence of the report.
    fn sentence(&self) -> String;

    /// The numbers that support it.
    fn detail(&self, case: &Case) -> String;

    /// The fix in this case.
    fn fix(&self, _: &Case) -> String {
        Self::FIX.to_owned()
    }
}

/// A cause with its numbers, its certainty, and the time when it began.
pub(crate) struct Found<C> {
    cause: C,
    certainty: Certainty,
    at: u64,
    began: Began,
}

/// How to determine when a finding began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    Unknown,
    /// When this sign was first seen.
    Seen(Sign),
    /// With the longest time without responses, or with the stop of the target's process.
    Silence,
    Stop,
    /// With the faults that it explains.
    Failing,
}

impl<C> Found<C> {
    /// The cause itself was observed: a counter, a state or a message. `at`: connections open at that time.
    pub(crate) fn seen(cause: C, at: u64) -> Found<C> {
        Found { cause, certainty: Certainty::Seen, at, began: Began::Unknown }
    }

    /// The cause follows from what all failures have in common.
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

/// A row of the table of causes.
pub(crate) struct Entry {
    #[cfg(test)]
    pub(crate) id: &'static str,
    #[cfg(test)]
    pub(crate) yields_to: &'static str,
    pub(crate) find: fn(&Case) -> Option<Finding>,
}

/// A finding, ready to be reported.
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

/// Runs a cause's detection and describes its finding.
pub(crate) fn find<C: Cause>(case: &Case) -> Option<Finding> {
    C::find(case).map(|found| finding(found, case))
}

/// Describes what a cause has found.
pub(crate) fn finding<C: Cause>(found: Found<C>, case: &Case) -> Finding {
    let Found { cause, certainty, at, began } = found;
    let ((side, name), first_seen_s) = (cause.of(), None);
    let (sentence, detail, fix) = (cause.sentence(), cause.detail(case), cause.fix(case));
    let limit =
        Limit { side, cause: name, at_connections: at, certainty, first_seen_s, sentence, detail, fix };
    Finding { id: C::ID, yields_to: C::YIELDS_TO, began, limit }
}
