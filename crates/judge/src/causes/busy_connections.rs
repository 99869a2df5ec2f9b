//! Cause: in a search by rate, the connections are too few for the rate at the response time of the target.

use super::*;
use crate::{evidence::Paced, paced};
use record::tolerances::NINE_TENTHS;

/// In a step of a search by rate, all connections wait for responses that take no longer than those of smaller loads: with more of them the target
/// may serve more. Where it is the target that is busy, each response takes longer, and they carry less.
pub(crate) struct BusyConnections {
    pub(crate) held: u64,
    /// Requests per second that they carried, and that were due.
    pub(crate) carried: f64,
    pub(crate) due: f64,
    pub(crate) response: Nanos,
}

impl Cause for BusyConnections {
    const ID: &'static str = "busy-connections";
    const OF: (Side, Name) = (Side::Host, Name::TooFewConnections);
    const YIELDS_TO: &'static str = paced::YIELDS_TO;

    fn find(case: &Case) -> Option<Found<BusyConnections>> {
        let Paced { due_per_s: due, response } = case.evidence.paced?;
        let (s, held, response_s) = (case.summary, case.held(), response.secs_f64());
        let counted_s = s.duration_s - response_s;
        if !case.is_waiting() || held == 0 || counted_s <= response_s {
            return None;
        }
        // No response can arrive before the first one has taken its time, so that time is left out.
        let carried = case.requests().per_s * s.duration_s / counted_s;
        let are_busy = carried * response_s >= NINE_TENTHS * held as f64;
        let found = BusyConnections { held, carried, due, response };
        (are_busy && carried < due).then(|| Found::inferred(found, held))
    }

    fn sentence(&self) -> String {
        paced::too_few(self.held, self.carried, self.due)
    }

    fn detail(&self, _: &Case) -> String {
        let response_ms = self.response.secs_f64() * 1e3;
        let held = connections(self.held);
        format!("a response takes {response_ms:.0} ms, also at smaller loads: {held} cannot carry more")
    }

    fn fix(&self, _: &Case) -> String {
        let needed = (self.held as f64 * self.due / self.carried).ceil();
        format!("use -c {needed:.0} or more, which is what the rate needs at this response time")
    }
}
