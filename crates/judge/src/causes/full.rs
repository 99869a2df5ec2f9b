//! Cause: the target serves a limited number of connections, as an experiment shows.

use super::*;
use record::answers::TurnedAway;

/// Connections were open and not served, or were closed; four more after the load were not served either, with as many open, and were served with half
/// of them, from another source address, or at another address of the target ([experiments](experiments.md)).
pub(crate) struct Full {
    pub(crate) most: u64,
    pub(crate) of: TurnedAway,
}

impl Cause for Full {
    const ID: &'static str = "full";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    const YIELDS_TO: &'static str = "turns-away makes-room starved queue-overflowed queue-unaccepted queue-standing slow-accept \
        open-files logged logged-connections heap thread-ended cpu cpu-quota conntrack socket-memory \
        target-stopped probe-turned-away probe-starved";

    fn find(case: &Case) -> Option<Found<Full>> {
        // If dials get no reply, it may be the path that is full.
        let are_open =
            matches!(case.trouble, Trouble::Waiting | Trouble::Lost) && case.stage != Some(Stage::Dial);
        let most = case.left();
        let is_its_own = are_open && By::of(case) == By::Target;
        let of = case.evidence.answers.turned_away(most).filter(|_| is_its_own)?;
        let is_limit = matches!(of, TurnedAway::Full | TurnedAway::BySource | TurnedAway::ByAddress);
        is_limit.then(|| Found::seen(Full { most, of }, most))
    }

    fn sentence(&self) -> String {
        let most = connections(self.most);
        match self.of {
            TurnedAway::BySource => {
                format!(
                    "the target serves no more than {most} of a source address: one from another address was served"
                )
            }
            TurnedAway::ByAddress => {
                format!(
                    "the target serves no more than {most} at this address: one at another of its addresses was served"
                )
            }
            TurnedAway::Full | TurnedAway::Passed | TurnedAway::Broken => format!(
                "the target serves no more than {most}: one more was served only when half of them were closed"
            ),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let what = if case.trouble == Trouble::Lost { "were closed" } else { "had no response" };
        format!("{} {what}; after the load one more was served only as the sentence says", case.n())
    }

    fn fix(&self, _: &Case) -> String {
        if self.of == TurnedAway::BySource { BY_SOURCE } else { RAISE }.to_owned()
    }
}
