//! Cause: the target's process was stopped.

use super::*;
use crate::stall::{advice, longest_us};

/// The target's process was stopped (state `T`) while dials or requests timed out, or connections were in its accept queue.
pub(crate) struct TargetStopped {
    pub(crate) from_s: f64,
    pub(crate) until_s: f64,
}

impl Cause for TargetStopped {
    const ID: &'static str = "target-stopped";
    const OF: (Side, Name) = (Side::Target, Name::Stall);

    fn find(case: &Case) -> Option<Found<TargetStopped>> {
        let (from_s, until_s) = case.evidence.stopped.filter(|_| case.is_waiting())?;
        // The stopped process may be one of several, and responses may not depend on it.
        let (times, ramp) = case.latency_us();
        let has_waited = longest_us(times, ramp) >= 0.5e6 * (until_s - from_s);
        if case.trouble == Trouble::None && times.count > 0 && !has_waited {
            return None;
        }
        let at = if case.evidence.unaccepted > 0 { case.held() } else { case.left() };
        Some(Found::seen(TargetStopped { from_s, until_s }, at).began(Began::Stop))
    }

    fn sentence(&self) -> String {
        format!("the target's process was stopped from second {:.0} to {:.0}", self.from_s, self.until_s)
    }

    fn detail(&self, case: &Case) -> String {
        let (from, until) = (self.from_s, self.until_s);
        let queued = match case.evidence.unaccepted {
            0 => String::new(),
            n => format!("; {} in its accept queue", connections(n)),
        };
        format!(
            "the target's process was stopped (process {}, state T) from second {from:.0} to {until:.0}: no CPU, no response{queued}",
            case.pid()
        )
    }

    fn fix(&self, _: &Case) -> String {
        advice(crate::evidence::State::Stopped).to_owned()
    }
}
