//! Agents of a fleet that were lost, or away and came back: figures from such a run do not describe the planned load, or only with a note.

use samples::{AgentState, AgentSummary, Kind, Summary, Verdict};
use units::{Count, Nanos};

/// Why the figures do not describe full load. `began`: connections open when full load began without a lost worker, and the number wanted.
/// An agent that is still lost is reported separately.
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

/// Whether an agent did not carry its part for some of the load, so that its connections were closed, even if others took the part over.
pub(super) fn was_missing(agent: &AgentSummary) -> bool {
    agent.state == AgentState::Lost || agent.away_s > 0.0 || agent.why.is_some()
}

/// Whether an agent was lost and only timeouts were counted: then they are attributed to the loss.
pub(super) fn has_only_timeouts_of_the_lost(s: &Summary) -> bool {
    let is_lost = |agent: &AgentSummary| agent.state == AgentState::Lost;
    s.agents.iter().any(is_lost) && s.faults.iter().all(|f| f.count == 0 || f.kind == Kind::Timeout)
}

/// Notes on agents that were away or lost: which, for how long, and what part of the load was missing or is not counted.
pub(super) fn notes(s: &Summary) -> Vec<String> {
    s.agents.iter().flat_map(|agent| notes_of(agent, s)).collect()
}

fn notes_of(agent: &AgentSummary, s: &Summary) -> Vec<String> {
    let AgentSummary { id, state, wanted, stall_us, away_s, gap_s, closed_by_lease, sealed, .. } = agent;
    let part = match s.connections.wanted {
        0 => "its part of the load".to_owned(),
        all => format!("{} of {}", Count(*wanted), Count(all).of("connection")),
    };
    let brief = |seconds: f64| Nanos((seconds * 1e9) as u64).brief();
    let is_lost = *state == AgentState::Lost;
    let mut notes = Vec::new();
    let away = format!("agent {id} was away for {}", brief(*away_s));
    if *away_s > 0.0 && !is_lost && *sealed && !s.reasons.iter().any(|reason| reason.contains(&away)) {
        // If the event loop stalled for most of the time away, the agent did nothing; otherwise it was cut off and went on.
        let meanwhile = match stall_us / 1e6 {
            still_s if 2.0 * still_s >= *away_s => format!(
                "it stalled for {}: requests due in that time were sent late, or not at all",
                brief(still_s)
            ),
            _ => "its counts for that time arrived later, and are complete".to_owned(),
        };
        notes.push(format!("note: {away}, with {part}; {meanwhile}"));
    }
    if *gap_s > 0.0 {
        notes.push(format!(
            "note: for up to {} no agent carried the part of agent {id}, {part}",
            brief(*gap_s)
        ));
    }
    if *closed_by_lease > 0 {
        let closed = Count(*closed_by_lease).of("connection");
        notes.push(format!("note: agent {id} closed {closed} because its lease had expired, not as planned"));
    }
    if is_lost && !sealed {
        notes.push(format!(
            "note: what agent {id} did after its last report is not counted (a report each second; its part: {part})"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_passes_says_what_was_missing_of_which_agent() {
        let check = |agent: AgentSummary, expected: &[&str]| {
            let agent = AgentSummary { id: "a1".to_owned(), wanted: 100, ..agent };
            let mut s = Summary { agents: vec![agent], ..Summary::default() };
            s.connections.wanted = 300;
            assert_eq!(notes(&s), expected);
        };
        let done = || AgentSummary { state: AgentState::Done, sealed: true, ..AgentSummary::default() };
        check(done(), &[]);
        let away = "note: agent a1 was away for 6.3 s, with 100 of 300 connections; its counts for that time \
                    arrived later, and are complete";
        check(AgentSummary { away_s: 6.32, ..done() }, &[away]);
        check(AgentSummary { away_s: 6.32, stall_us: 0.9e6, ..done() }, &[away]);
        let still = "note: agent a1 was away for 6.3 s, with 100 of 300 connections; it stalled for 5.8 s: requests due \
                     in that time were sent late, or not at all";
        check(AgentSummary { away_s: 6.32, stall_us: 5.8e6, ..done() }, &[still]);
        check(AgentSummary { away_s: 6.32, sealed: false, ..done() }, &[]);
        let lost = || AgentSummary { state: AgentState::Lost, ..done() };
        let gap = "note: for up to 16 s no agent carried the part of agent a1, 100 of 300 connections";
        let uncounted = "note: what agent a1 did after its last report is not counted (a report each second; its \
                         part: 100 of 300 connections)";
        check(AgentSummary { gap_s: 16.2, sealed: false, ..lost() }, &[gap, uncounted]);
        let closed = "note: agent a1 closed 100 connections because its lease had expired, not as planned";
        check(AgentSummary { gap_s: 16.2, closed_by_lease: 100, ..lost() }, &[gap, closed]);
        let reasons =
            vec!["full load began with 9 of 300 connections: agent a1 was away for 6.3 s".to_owned()];
        let agents = vec![AgentSummary { id: "a1".to_owned(), away_s: 6.32, ..done() }];
        assert!(notes(&Summary { reasons, agents, ..Summary::default() }).is_empty(), "it is said");
    }

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
        // Away later, or not back: reported by other means.
        check(None, Verdict::Pass, &away, None);
        check(Some((30, 1_060)), Verdict::Fail, &[(AgentState::Done, 0.0), (AgentState::Lost, 3.0)], None);
    }
}
