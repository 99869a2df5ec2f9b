//! The agents of a fleet, as labels of series.

use samples::{AgentShare, AgentTicks};

use super::Moment;

/// The most agents with series of their own: the first of the header. Each has nine, so a scrape of Prometheus has 2,304 of them at
/// most (about 160 kB each second, with names of 24 letters), a push as many points, and `--csv` as many columns. They are the first and
/// not the worst, since the series of a run are to stay the same. `throng_agents` and the sums of the run include all agents.
pub(super) const MAX_AGENTS: usize = 256;

impl Moment<'_> {
    /// Those that have series of their own.
    pub(super) fn exported_agents(&self) -> &[AgentShare] {
        &self.header.agents[..self.header.agents.len().min(MAX_AGENTS)]
    }

    /// Goes over the agents that have series of their own. `each` gets the name, what all agents have done since the run began, and in
    /// the last period, and the place of this one.
    pub(super) fn agents(&self, mut each: impl FnMut(&str, &AgentTicks, &AgentTicks, usize)) {
        let none = AgentTicks::default();
        let [total, last] = [self.total, self.last].map(|tick| tick.agents.as_deref().unwrap_or(&none));
        for (at, agent) in self.exported_agents().iter().enumerate() {
            each(&agent.id, total, last, at);
        }
    }

    /// How many of all agents are in each state, not only of those with series of their own; nothing on one machine.
    pub(super) fn agent_states(&self) -> Vec<(&'static str, usize)> {
        let all = self.header.agents.len();
        if all == 0 {
            return Vec::new();
        }
        let none = AgentTicks::default();
        let [total, last] = [self.total, self.last].map(|tick| tick.agents.as_deref().unwrap_or(&none));
        let is_lost = |at: &usize| AgentTicks::value(&total.lost.0, *at) > 0;
        let lost = (0..all).filter(is_lost).count();
        let up = (0..all).filter(|at| !is_lost(at) && AgentTicks::value(&last.reports, *at) > 0).count();
        vec![("up", up), ("silent", all - up - lost), ("lost", lost)]
    }
}
