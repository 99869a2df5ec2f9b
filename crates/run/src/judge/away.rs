//! Agents that were away when full load began, and came back: what was measured is not of the load that was planned.

use samples::{AgentState, AgentSummary, Kind, Summary, Verdict};
use units::{Count, Nanos};

/// Why the figures are not of full load; `began`: connections open when it began without a lost worker, and those wanted. An agent that
/// is still lost is a reason of its own.
pub(super) fn began_without(began: Option<(u64, u64)>, s: &Summary) -> Option<String> {
    let (open, wanted) = began.filter(|_| s.verdict != Verdict::Interrupted)?;
    let is_back = |agent: &&AgentSummary| agent.away_s > 0.0 && agent.state != AgentState::Lost;
    let away = |agent: &AgentSummary| {
        format!("agent {} was away for {}", agent.id, Nanos((agent.away_s * 1e9) as u64).brief())
    };
    let agents: Vec<String> = s.agents.iter().filter(is_back).map(away).collect();
    let (open, wanted) = (Count(open), Count(wanted).of("connection"));
    (!agents.is_empty()).then(|| format!("full load began with {open} of {wanted}: {}", agents.join(", ")))
}

/// Whether an agent was not there for some of the load that was its part, whoever took it over: what it held then was closed.
pub(super) fn was_missing(agent: &AgentSummary) -> bool {
    agent.state == AgentState::Lost || agent.away_s > 0.0 || agent.why.is_some()
}

/// Whether an agent was lost, and nothing else than timeouts was counted: they are its own, as far as is known.
pub(super) fn has_only_timeouts_of_the_lost(s: &Summary) -> bool {
    let is_lost = |agent: &AgentSummary| agent.state == AgentState::Lost;
    s.agents.iter().any(is_lost) && s.faults.iter().all(|f| f.count == 0 || f.kind == Kind::Timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        began: Option<(u64, u64)>,
        verdict: Verdict,
        agents: &[(AgentState, f64)],
        expected: Option<&str>,
    ) {
        let agent = |(nth, (state, away_s)): (usize, &(AgentState, f64))| AgentSummary {
            id: format!("a{nth}"),
            state: *state,
            away_s: *away_s,
            ..AgentSummary::default()
        };
        let agents = agents.iter().enumerate().map(agent).collect();
        let s = Summary { verdict, agents, ..Summary::default() };
        assert_eq!(began_without(began, &s).as_deref(), expected, "{began:?} {verdict:?}");
    }

    #[test]
    fn full_load_without_an_agent_that_came_back_is_none() {
        let away = [(AgentState::Done, 0.0), (AgentState::Done, 6.32), (AgentState::Lost, 3.0)];
        let why = "full load began with 30 of 1,060 connections: agent a1 was away for 6.3 s";
        check(Some((30, 1_060)), Verdict::Pass, &away, Some(why));
        check(Some((30, 1_060)), Verdict::Fail, &away, Some(why));
        check(Some((30, 1_060)), Verdict::Invalid, &away, Some(why));
        check(Some((30, 1_060)), Verdict::Interrupted, &away, None);
        // Away later, or not come back: that is another reason.
        check(None, Verdict::Pass, &away, None);
        check(Some((30, 1_060)), Verdict::Fail, &[(AgentState::Done, 0.0), (AgentState::Lost, 3.0)], None);
    }
}
