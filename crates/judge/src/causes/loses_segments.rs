//! Cause: segments of responses are lost on the path.

use super::*;
use record::tolerances::{FEW, HALF};

/// Responses began and did not end in time, and on half of the connections or more segments came out of their order (`tcpi_rcv_ooopack` of
/// up to 2,000), of a target on another machine: those before them were lost.
pub(crate) struct LosesSegments {
    pub(crate) count: u64,
    pub(crate) disordered: u64,
    pub(crate) of: u64,
}

impl Cause for LosesSegments {
    const ID: &'static str = "loses-segments";
    const OF: (Side, Name) = (Side::Path, Name::Timeout);
    const YIELDS_TO: &'static str = "black-hole unacknowledged forgotten";
    const FIX: &'static str = "check the path for loss and for a limit on the rate of bytes (a policer, an interface that is full): mtr -T, nstat, tc -s qdisc";

    fn find(case: &Case) -> Option<Found<LosesSegments>> {
        let seen = &case.evidence.segments.lossy;
        let (disordered, of) = (seen.disordered, seen.connections);
        let is_of_responses = case.trouble == Trouble::Waiting && case.stage == Some(Stage::Exchange);
        let are_most = disordered >= FEW && disordered as f64 >= HALF * of as f64;
        let is_it = is_of_responses && case.is_unended() && are_most && !case.evidence.subject.is_loopback;
        is_it.then(|| Found::inferred(LosesSegments { count: case.count, disordered, of }, case.peak()))
    }

    fn sentence(&self) -> String {
        format!("the path loses segments: {} began and did not end in time", some(self.count, "response"))
    }

    fn detail(&self, _: &Case) -> String {
        let (n, all) = (Count(self.disordered), connections(self.of));
        format!(
            "{} began and did not end in time; segments came out of their order on {n} of {all}, as they do where others are lost",
            some(self.count, "response")
        )
    }
}
