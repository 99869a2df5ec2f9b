//! Cause: new connections of the probe get no response, while kept ones do.

use super::*;
use crate::probe;

/// Five or more new connections of the probe were open, and at most a tenth of them had a correct response, mostly without being closed, while
/// those that it keeps had five or more.
pub(crate) struct ProbeStarved {
    /// New connections of the probe, and responses on those that it keeps.
    pub(crate) new: u64,
    pub(crate) served: u64,
    pub(crate) at: u64,
}

impl Cause for ProbeStarved {
    const ID: &'static str = "probe-starved";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);
    const YIELDS_TO: &'static str = "starved queue-unaccepted queue-overflowed queue-standing slow-accept saturated too-few-connections \
        cut-off";

    fn find(case: &Case) -> Option<Found<ProbeStarved>> {
        let own = case.summary.probe.as_ref().filter(|_| case.is_waiting())?;
        let (new, served) = probe::shut_out(own)?;
        if probe::turned_away(own).is_some() || probe::status_of(own, new).is_some() {
            return None;
        }
        // Requests of the load that still wait are on connections that the target does not serve either.
        let at = case.left().saturating_sub(case.count);
        Some(Found::inferred(ProbeStarved { new, served, at }, at))
    }

    fn sentence(&self) -> String {
        format!(
            "{} got no correct response, the kept ones got {}: the target serves a limited number of connections at a time, including the \
            probe's",
            some(self.new, "new probe connection"),
            Count(self.served)
        )
    }

    fn detail(&self, _: &Case) -> String {
        let at = self.at;
        format!("it serves the connections that it has as long as these are open, {at} and the probe's")
    }

    fn fix(&self, case: &Case) -> String {
        probe::with_its_places(case, case.or_less(probe::MORE_WORKERS, FEWER))
    }
}
