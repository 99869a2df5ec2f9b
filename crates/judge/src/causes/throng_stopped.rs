//! Cause: throng itself was stopped, or had no processor.

use super::*;
use crate::{honesty, stall::longest_us};
use record::tolerances::{OWN_STALL, STANDS_OUT};
use samples::{AgentSummary, Summary};

/// Throng itself was stopped or had no processor for 0.1 s or more, four times the median response and half of the longest; for timeouts,
/// half of the timeout.
pub(crate) struct ThrongStopped {
    /// Throng itself, or an agent.
    pub(crate) who: String,
    pub(crate) seconds: f64,
}

impl Cause for ThrongStopped {
    const ID: &'static str = "throng-stopped";
    const OF: (Side, Name) = (Side::Host, Name::Stall);
    const YIELDS_TO: &'static str = "shared-processors";

    fn find(case: &Case) -> Option<Found<ThrongStopped>> {
        let (s, (times, ramp)) = (case.summary, case.latency_us());
        let stall_us = s.generator.stall_us;
        let stands_out = stall_us >= OWN_STALL.0 as f64 / 1e3 && stall_us >= STANDS_OUT * times.p50;
        // A stall does not explain a load that is too small for a threshold.
        let is_longest =
            || 2.0 * stall_us >= longest_us(times, ramp) && crate::throughput::too_little(case).is_none();
        let explains = case.trouble == Trouble::None && is_longest()
            || case.trouble == Trouble::Waiting && honesty::is_of_timeout(case.evidence, stall_us);
        // If throng had no processor for most of the time, that is the cause.
        let is_it = stands_out && explains && honesty::saturated(case.evidence).is_none();
        let found = ThrongStopped { who: stopped_one(s), seconds: stall_us / 1e6 };
        is_it.then(|| Found::seen(found, case.left()))
    }

    fn sentence(&self) -> String {
        format!("{} was stopped, or had no processor, for {:.1} s", self.who, self.seconds)
    }

    fn detail(&self, case: &Case) -> String {
        let failures =
            if case.trouble == Trouble::None { "" } else { ", which may have caused the failures" };
        format!("{}{failures}", self.sentence())
    }

    fn fix(&self, case: &Case) -> String {
        let fix = match case.summary.agents.is_empty() {
            true => "do not suspend throng or its machine, and give it its own processors",
            false => "do not suspend agents or their machines, and give each its own processors",
        };
        fix.to_owned()
    }
}

/// What was stopped: throng, or, on a fleet, the only agent that was away or late for at least half of the stall.
fn stopped_one(s: &Summary) -> String {
    let was_away = |agent: &&AgentSummary| {
        let away_us = (agent.away_s * 1e6).max(agent.lag_p99_us.unwrap_or_default());
        2.0 * away_us >= s.generator.stall_us
    };
    let mut stopped = s.agents.iter().filter(was_away);
    match (stopped.next(), stopped.next()) {
        _ if s.agents.is_empty() => "throng itself".to_owned(),
        (Some(agent), None) => format!("agent {}", agent.id),
        _ => "an agent".to_owned(),
    }
}
