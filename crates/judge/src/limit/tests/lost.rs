//! Fleets with agents that were lost or away.

use samples::{AgentState, AgentSummary};

use super::*;

fn agent(state: AgentState) -> AgentSummary {
    AgentSummary { id: "a1".to_owned(), state, held: 500, sealed: true, ..AgentSummary::default() }
}

#[test]
fn what_missing_agents_did_not_send_needs_no_more_connections() {
    let short = |agent: AgentSummary| {
        let mut s = stopped(1_000, Vec::new());
        (s.requests.sent, s.requests.missed, s.duration_s) = (500, 700, 10.0);
        s.agents = vec![agent, self::agent(AgentState::Done)];
        limit(&s, &Evidence::default()).map(|limit| limit.cause)
    };
    assert_eq!(short(agent(AgentState::Done)), Some(Cause::TooFewConnections));
    assert_eq!(short(agent(AgentState::Lost)), None);
    let away = AgentSummary { away_s: 12.0, ..agent(AgentState::Done) };
    assert_eq!(short(away), Some(Cause::Unknown));
    let expired =
        AgentSummary { why: Some("no message from its coordinator".to_owned()), ..agent(AgentState::Done) };
    assert_eq!(short(expired), Some(Cause::Unknown));
}

#[test]
fn all_closed_as_announced_is_said() {
    let mut s = stopped(20, Vec::new());
    (s.connections.closed, s.connections.held) = (20, 0);
    let stranded = vec!["no connection was open at the end, and none was opened again".to_owned()];
    let mut e = Evidence { stranded, ..Evidence::default() };
    let detail = "20 connections were closed as announced, and none was open at the end";
    check(&s, &e, ("target", "closed", 800, detail, "let it keep connections open for longer"));
    e.subject.never_redials = true;
    check(&s, &e, ("target", "closed", 800, detail, "leave out --reconnect never"));
    e.stranded.clear();
    check(&s, &e, ("unknown", "unknown", 800, "", ""));
}

#[test]
fn timeouts_alone_are_of_the_agent_that_was_lost() {
    let cause = |faults: &[FaultCount], agent: AgentSummary| {
        let mut s = stopped(500, faults.to_vec());
        s.agents = vec![agent, self::agent(AgentState::Done)];
        let limit = limit(&s, &Evidence::default());
        (limit.as_ref().map(|limit| limit.cause), crate::headline::headline(&Summary { limit, ..s }))
    };
    let timeouts = [fault(Stage::Exchange, Kind::Timeout, 100)];
    let lost = "fail: agent a1 was lost; the others held 500 of 1,000 connections".to_owned();
    assert_eq!(cause(&timeouts, agent(AgentState::Lost)), (None, lost));
    let taken_over = AgentSummary { taken_over_by: vec!["a2".to_owned()], ..agent(AgentState::Lost) };
    let lost = "fail: agent a1 was lost, and a2 took over its part".to_owned();
    assert_eq!(cause(&timeouts, taken_over), (None, lost));
    assert_eq!(cause(&timeouts, agent(AgentState::Done)).0, Some(Cause::Timeout));
    let others = [fault(Stage::Exchange, Kind::Timeout, 100), fault(Stage::Exchange, Kind::Reset, 1)];
    assert_eq!(cause(&others, agent(AgentState::Lost)).0, Some(Cause::Timeout));
}
