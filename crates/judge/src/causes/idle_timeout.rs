//! Cause: connections that are idle for a certain time are closed.

use super::*;
use record::{answers::Experiment, tolerances::CONFIGURED};

/// All lost connections had been idle for the same time, 0.9 s or more, and no surviving one for longer: within 0.25 s, a tenth, or a fifth
/// up to 0.6 s, whichever is most.
pub(crate) struct IdleTimeout {
    pub(crate) time: Nanos,
    pub(crate) count: u64,
    pub(crate) by: By,
}

/// The silence after which all connections were lost, if they have one in common. For connections with traffic only at their start, age and
/// silence are the same: then a close suggests an idle timeout, and a reset a limit on age or a restart. Routers and firewalls reset idle
/// connections, too.
pub(super) fn silence(case: &Case) -> Option<Nanos> {
    let pattern = &case.evidence.losses;
    let may_be_age = super::age_limit::age(case).is_some() || pattern.is_one_moment;
    let silence = pattern.silence.filter(|time| *time >= CONFIGURED && is_unannounced(case));
    // The experiment with a busy connection decides: it was closed as well, or it was not.
    let is_age = case.evidence.answers.is_closed(Experiment::Busy);
    let is_usual = case.kind == Some(Kind::Closed) || By::of(case) == By::Path;
    let is_idle = is_age.map_or(!may_be_age || is_usual, |is_age| !is_age);
    silence.filter(|_| is_idle)
}

impl Cause for IdleTimeout {
    const ID: &'static str = "idle-timeout";
    const OF: (Side, Name) = (Side::Target, Name::IdleCut);
    const YIELDS_TO: &'static str = "requests-per-connection makes-room worker-ended turns-away";

    fn find(case: &Case) -> Option<Found<IdleTimeout>> {
        let time = silence(case).filter(|_| case.stage != Some(Stage::Exchange))?;
        Some(Found::inferred(IdleTimeout { time, count: case.count, by: By::of(case) }, case.peak()))
    }

    fn of(&self) -> (Side, Name) {
        (self.by.side(), Self::OF.1)
    }

    fn sentence(&self) -> String {
        let (time, n) = (tenths(self.time), Count(self.count));
        format!("{} closes connections after {time} of inactivity ({n} closed)", self.by)
    }

    fn detail(&self, case: &Case) -> String {
        let how = case.kind.map_or("closed", how);
        format!("{} {how} after {} of inactivity", Count(self.count).were("connection"), tenths(self.time))
    }

    fn fix(&self, case: &Case) -> String {
        outlast(case, self.time)
    }
}
