//! Cause: connections are closed at a certain age.

use super::*;
use record::{answers::Experiment, tolerances::CONFIGURED};

/// All were equally old when they were lost: within 0.4 s, a twentieth, or a fifth up to 0.8 s, whichever is most. Not where all were opened,
/// or lost, in one moment.
pub(crate) struct AgeLimit {
    pub(crate) time: Nanos,
    pub(crate) count: u64,
    pub(crate) by: By,
}

/// The age at which all connections were lost, if they have one in common.
pub(super) fn age(case: &Case) -> Option<Nanos> {
    let pattern = &case.evidence.losses;
    let is_age = case.evidence.answers.is_closed(Experiment::Busy) == Some(true);
    let age = pattern.age.or(pattern.silence.filter(|_| is_age));
    age.filter(|time| *time >= CONFIGURED && is_unannounced(case))
}

impl Cause for AgeLimit {
    const ID: &'static str = "age-limit";
    const OF: (Side, Name) = (Side::Target, Name::ResetAfter);
    const YIELDS_TO: &'static str =
        "requests-per-connection makes-room worker-ended idle-timeout request-timeout turns-away";

    fn find(case: &Case) -> Option<Found<AgeLimit>> {
        let time = age(case)?;
        Some(Found::inferred(AgeLimit { time, count: case.count, by: By::of(case) }, case.peak()))
    }

    fn of(&self) -> (Side, Name) {
        (self.by.side(), Self::OF.1)
    }

    fn sentence(&self) -> String {
        let (time, n) = (tenths(self.time), Count(self.count));
        format!("{} ends connections {time} after they are opened ({n} ended)", self.by)
    }

    fn detail(&self, case: &Case) -> String {
        let (n, how) = (Count(self.count), case.kind.map_or("closed", how));
        let they = n.one_or("it was", "they were");
        format!("{} {how} {} after {they} opened", n.were("connection"), tenths(self.time))
    }

    fn fix(&self, _: &Case) -> String {
        let time = tenths(self.time);
        format!("look for a maximum connection age of {time}, in the target and in any proxy before it")
    }
}
