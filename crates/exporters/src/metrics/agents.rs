//! Series for each agent of a fleet, identified by a label.

use samples::{AgentShare, AgentTicks};

use super::Moment;

/// Maximum number of agents with their own series: the first ones in the header. With nine series each, that is at most 2,304 series
/// in a scrape (about 160 kB per second if names have 24 letters), points in a push, or columns in CSV. They are the first agents
/// rather than the slowest ones so that the set of series stays the same during a run. `throng_agents` and the sums of the run
/// include all agents.
pub(super) const MAX_AGENTS: usize = 256;

impl Moment<'_> {
    /// The agents that have series.
    pub(super) fn exported_agents(&self) -> &[AgentShare] {
        &self.header.agents[..self.header.agents.len().min(MAX_AGENTS)]
    }

    /// Calls `each` for each agent that has series, with its name, the figures of all agents since the run began and in the last
    /// period, and the agent's index in them.
    pub(super) fn agents(&self, mut each: impl FnMut(&str, &AgentTicks, &AgentTicks, usize)) {
        let none = AgentTicks::default();
        let [total, last] = [self.total, self.last].map(|tick| tick.agents.as_deref().unwrap_or(&none));
        for (at, agent) in self.exported_agents().iter().enumerate() {
            each(&agent.id, total, last, at);
        }
    }

    /// The number of agents in each state, including those without series; empty if the run is on one machine.
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
