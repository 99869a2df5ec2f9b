use super::*;
use crate::destinations;

/// Beyond a certain number, as many connections were closed as others opened: new ones, if each was closed at once although older ones had
/// been silent for longer, or none of them had a response and those that are left had.
pub(crate) struct TurnsAway {
    pub(crate) beyond: u64,
    pub(crate) count: u64,
    /// Whether they were new; else that is not known.
    pub(crate) are_new: bool,
}

/// Whether connections were lost from some number on; and if they had been open for a while, where that is known.
pub(super) fn surplus(case: &Case) -> Option<Option<bool>> {
    let losses = &case.evidence.losses;
    if !is_unannounced(case) || !losses.is_surplus || is_in_use(case) {
        return None;
    }
    // One that holds none at all has no limit on them.
    let destinations = destinations::at_fault(&case.summary.destinations);
    let holds_none = destinations.is_some_and(|(bad, _)| bad.iter().all(|own| own.open == 0));
    (!holds_none).then_some(losses.were_old)
}

impl Cause for TurnsAway {
    const ID: &'static str = "turns-away";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    const YIELDS_TO: &'static [&'static str] = &[
        "requests-per-connection",
        "makes-room",
        "logged-connections",
        "request-timeout",
        "tls-expected",
        "starved",
    ];

    fn find(case: &Case) -> Option<Found<TurnsAway>> {
        let are_new = match surplus(case)? {
            Some(true) => return None,
            were_old => were_old.is_some(),
        };
        let beyond = case.held();
        Some(Found::inferred(TurnsAway { beyond, count: case.count, are_new }, beyond))
    }

    fn sentence(&self) -> String {
        let beyond = Count(self.beyond);
        match self.are_new {
            true => format!("the target immediately closes connections beyond {beyond}"),
            false => format!(
                "the target closed {} as others opened, and keeps about {beyond}",
                connections(self.count)
            ),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let (beyond, how) = (Count(self.beyond), case.kind.map_or("closed", how));
        match self.are_new {
            true => format!("new connections beyond {beyond} open ones were {how} immediately"),
            false => format!(
                "{} {how} as others opened, beyond {beyond} open ones: new ones, or idle ones to make room",
                Count(self.count).were("connection")
            ),
        }
    }

    fn fix(&self, _: &Case) -> String {
        RAISE.to_owned()
    }
}
