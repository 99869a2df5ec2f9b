//! Cause: for a while, no connection received a response.

use super::*;
use crate::{evidence::Stall, honesty, stall};

/// For 0.6 s or more, beginning before the load ended, no connection received a response while throng was on time; they received them
/// afterwards.
pub(crate) struct Silent {
    /// Of several populations, the one whose connections had no response.
    pub(crate) of: Option<String>,
    pub(crate) seconds: f64,
    pub(crate) stall: Stall,
}

impl Cause for Silent {
    const ID: &'static str = "silent";
    const OF: (Side, Name) = (Side::Target, Name::Stall);
    const YIELDS_TO: &'static str =
        "target-stopped throng-stopped shared-processors starved oom-killed ended";

    fn find(case: &Case) -> Option<Found<Silent>> {
        let (stall, seconds) = stall::of(case).filter(|_| case.is_waiting())?;
        // A silence shorter than the timeout does not explain requests that ran into it.
        let is_shorter = !honesty::is_of_timeout(case.evidence, (stall.until_s - stall.from_s) * 1e6);
        if case.trouble == Trouble::Waiting && is_shorter {
            return None;
        }
        let of = case.evidence.stall_of.clone();
        Some(Found::seen(Silent { of, seconds, stall }, case.left()).began(Began::Silence))
    }

    fn sentence(&self) -> String {
        let of = self.of.as_ref().map_or(String::new(), |name| format!(" of {name}"));
        let state = stall::doing(self.stall.state);
        format!("the target{of} stalled: no response for {:.1} s{state}", self.seconds)
    }

    fn detail(&self, case: &Case) -> String {
        stall::describe(case, &self.stall)
    }

    fn fix(&self, _: &Case) -> String {
        stall::advice(self.stall.state).to_owned()
    }
}
