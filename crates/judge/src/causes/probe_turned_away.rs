//! Cause: new connections of the probe are closed, reset or rejected, while kept ones are served.

use super::*;
use crate::probe;

/// Of five or more new connections of the probe, at most a tenth had a correct response, because most were closed or reset, or had another
/// status, while those that it keeps had five or more.
pub(crate) struct ProbeTurnedAway {
    pub(crate) beyond: u64,
    pub(crate) new: u64,
    /// Of their responses; none where they were closed or reset.
    pub(crate) status: Option<String>,
}

impl Cause for ProbeTurnedAway {
    const ID: &'static str = "probe-turned-away";
    const OF: (Side, Name) = (Side::Target, Name::ConnectionLimit);

    fn find(case: &Case) -> Option<Found<ProbeTurnedAway>> {
        let fits = case.is_waiting() || case.trouble == Trouble::Lost;
        let own = case.summary.probe.as_ref().filter(|_| fits)?;
        let (new, status) = match probe::turned_away(own) {
            Some(new) => (new, None),
            None => {
                let (new, _) = probe::shut_out(own).filter(|_| case.is_waiting())?;
                (new, Some(probe::status_of(own, new)?))
            }
        };
        let beyond = case.left();
        Some(Found::inferred(ProbeTurnedAway { beyond, new, status }, beyond))
    }

    fn sentence(&self) -> String {
        let beyond = Count(self.beyond);
        match &self.status {
            None => format!("the target immediately closes connections beyond {beyond} plus the probe's"),
            Some(status) => {
                format!("the target responds with {status} to connections beyond {beyond} plus the probe's")
            }
        }
    }

    fn detail(&self, _: &Case) -> String {
        let (new, beyond) = (some(self.new, "new connection"), Count(self.beyond));
        let what = match &self.status {
            None => format!("of the probe were closed or reset immediately, beyond {beyond}"),
            Some(status) => format!("of the probe had {status}, beyond {}", self.beyond),
        };
        format!("{new} {what} open ones and those that it keeps")
    }

    fn fix(&self, case: &Case) -> String {
        probe::with_its_places(case, RAISE.to_owned())
    }
}
