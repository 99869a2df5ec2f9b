//! Cause: the load arrives faster than the target serves it, and no resource is seen to be used up.

use super::*;
use crate::{
    By,
    queue::{self, Outrun},
};

/// By arrival, or in a search by rate: a growing number waited for a response, but not in the accept queue, and no resource is seen to be used up.
pub(crate) struct Saturated {
    pub(crate) outrun: Outrun,
}

impl Cause for Saturated {
    const ID: &'static str = "saturated";
    const OF: (Side, Name) = (Side::Target, Name::Saturated);
    const YIELDS_TO: &'static str = "slow-accept too-few-connections busy-connections falls-behind queue-slowed-dials cpu starved unacknowledged";

    fn find(case: &Case) -> Option<Found<Saturated>> {
        Some(Found::inferred(Saturated { outrun: queue::outpaced(case)? }, case.left()))
    }

    fn sentence(&self) -> String {
        self.outrun.sentence()
    }

    fn detail(&self, case: &Case) -> String {
        let timed_out = match case.count {
            0 => String::new(),
            n => format!("; {} timed out", Count(n)),
        };
        format!("{}{timed_out}", queue::more(case.evidence))
    }

    fn fix(&self, case: &Case) -> String {
        match case.evidence.search {
            Some(By::Rate) => {
                format!("{WORKERS}; where all its responses take long, use more connections (-c)")
            }
            _ => WORKERS.to_owned(),
        }
    }
}
