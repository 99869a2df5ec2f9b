//! Cause: beyond a certain number, the target turns connections away.

use super::*;
use crate::destinations;
use record::answers::TurnedAway;

/// Beyond a certain number, as many connections were closed as others opened: new ones, if each was closed at once although older ones had
/// been silent for longer, or none of them had a response and those that are left had.
pub(crate) struct TurnsAway {
    pub(crate) beyond: u64,
    pub(crate) count: u64,
    /// Whether they were new; else that is not known.
    pub(crate) are_new: bool,
    pub(crate) by: By,
    /// What one more connection after the load says of it.
    pub(crate) asked: Option<TurnedAway>,
}

/// Whether connections were lost beyond some number; the inner value is whether they had been open for a while, if known.
pub(super) fn surplus(case: &Case) -> Option<Option<bool>> {
    let losses = &case.evidence.losses;
    if !is_unannounced(case) || !losses.is_surplus || is_in_use(case) {
        return None;
    }
    // A destination that holds no connection at all has no limit on their number.
    let destinations = destinations::at_fault(&case.summary.destinations);
    let holds_none = destinations.is_some_and(|(bad, _)| bad.iter().all(|own| own.open == 0));
    (!holds_none).then_some(losses.were_old)
}

impl Cause for TurnsAway {
    const ID: &'static str = "turns-away";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    const YIELDS_TO: &'static str =
        "requests-per-connection makes-room logged-connections request-timeout tls-expected starved";

    fn find(case: &Case) -> Option<Found<TurnsAway>> {
        let are_new = match surplus(case)? {
            Some(true) => return None,
            were_old => were_old.is_some(),
        };
        // If connections come and go, the number that is left at the end says nothing.
        if case.evidence.subject.arrives {
            return None;
        }
        let beyond = case.held();
        let asked = case.evidence.answers.turned_away(case.left());
        let certainty = match asked {
            // It turns connections away even at half the number, so the number is not the reason.
            Some(TurnedAway::Broken) => return None,
            Some(TurnedAway::Full | TurnedAway::BySource | TurnedAway::ByAddress) => Certainty::Seen,
            Some(TurnedAway::Passed) | None => Certainty::Inferred,
        };
        Some(
            Found::inferred(
                TurnsAway { beyond, count: case.count, are_new, by: By::of(case), asked },
                beyond,
            )
            .certain(certainty),
        )
    }

    fn of(&self) -> (Side, Name) {
        (self.by.side(), Self::OF.1)
    }

    fn sentence(&self) -> String {
        let beyond = Count(self.beyond);
        match self.are_new {
            true => format!("{} immediately closes connections beyond {beyond}", self.by),
            false => format!(
                "{} closed {} as others opened, and keeps about {beyond}",
                self.by,
                connections(self.count)
            ),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let asked = match self.asked {
            Some(TurnedAway::Full) => "; with fewer connections open one more was served",
            Some(TurnedAway::BySource) => "; from another source address one more was served",
            Some(TurnedAway::ByAddress) => "; at another address of the target one more was served",
            Some(TurnedAway::Passed) => "; a second after the load, with as many open, one more was served",
            Some(TurnedAway::Broken) | None => "",
        };
        let (beyond, how) = (Count(self.beyond), case.kind.map_or("closed", how));
        match self.are_new {
            true => format!("new connections beyond {beyond} open ones were {how} immediately{asked}"),
            false => format!(
                "{} {how} as others opened, beyond {beyond} open ones: new ones, or idle ones to make room{asked}",
                Count(self.count).were("connection")
            ),
        }
    }

    fn fix(&self, _: &Case) -> String {
        match self.asked {
            Some(TurnedAway::BySource) => BY_SOURCE.to_owned(),
            Some(TurnedAway::Passed) => "look for a limit on the rate of new connections, or for trouble that has passed, in the target's log; or dial \
                more slowly (--ramp)"
                .to_owned(),
            _ => RAISE.to_owned(),
        }
    }
}
