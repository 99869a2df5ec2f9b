//! Cause: requests come faster than the target serves them.

use super::*;
use crate::{
    By,
    evidence::Queueing,
    paced::{self, Missed},
};
use units::Unit;

/// Requests were due while all connections waited for a response, and responses wait for each other: the first ones were quick, and those that
/// came together later took equally long. Or replies take longer than the interval at which each connection is to send.
pub(crate) struct FallsBehind {
    pub(crate) missed: Missed,
    /// At an interval, on each connection by itself.
    pub(crate) is_by_interval: bool,
}

impl Cause for FallsBehind {
    const ID: &'static str = "falls-behind";
    const OF: (Side, Name) = (Side::Target, Name::Saturated);
    const YIELDS_TO: &'static str = paced::YIELDS_TO;

    fn find(case: &Case) -> Option<Found<FallsBehind>> {
        let missed = paced::missed(case).filter(|_| case.evidence.paced.is_none())?;
        let is_by_interval = paced::is_by_interval(case);
        // A target that pauses, and serves everything in between, is not too slow.
        let pauses = case.evidence.pauses.is_some();
        let is_it = is_by_interval || case.evidence.queueing == Queueing::InLine && !pauses;
        let held = missed.held;
        is_it.then(|| Found::inferred(FallsBehind { missed, is_by_interval }, held))
    }

    fn sentence(&self) -> String {
        format!(
            "the target responds to only {} of the {} requests due per second",
            Count(self.missed.answered_per_s.round() as u64),
            Count(self.missed.due_per_s().round() as u64)
        )
    }

    fn detail(&self, _: &Case) -> String {
        if self.is_by_interval {
            let missed = some(self.missed.missed, "message");
            return format!("{missed} were due while their connection awaited the reply to one before");
        }
        format!(
            "responses took {} at first, and longer the more requests were under way; {:.0}/s were answered",
            Unit::Micros.brief(self.missed.least_us),
            self.missed.answered_per_s
        )
    }

    fn fix(&self, case: &Case) -> String {
        if self.is_by_interval {
            return "find out what delays the replies, or send less often (--ping)".to_owned();
        }
        let less = match case.evidence.search {
            Some(By::Rate) => String::new(),
            _ => {
                format!(", or lower the rate to {:.0}/s", (0.9 * self.missed.answered_per_s).floor().max(1.0))
            }
        };
        format!("more connections would only wait longer: {WORKERS}{less}")
    }
}
