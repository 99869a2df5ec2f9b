//! A simulation with a thousand agents.

use samples::AgentState;

use super::{chaos::Chaos, check};
use crate::coordinator::OnLost;

const AGENTS: u32 = 1_000;
const CONNECTIONS: u32 = 100_000_000;

#[test]
fn a_thousand_agents_of_a_hundred_thousand_connections() {
    // A fifth of all messages is lost, and so are some agents, whose parts others take over.
    let chaos = Chaos { on_lost: OnLost::Reassign, lost: 200, unheard: 300, ..Chaos::carrier_only() };
    let summary = check(AGENTS, CONNECTIONS, 7, chaos).expect("it begins");
    assert_eq!(summary.agents.len(), 1_000);
    assert_eq!(summary.agents.iter().map(|agent| agent.wanted).sum::<u64>(), 100_000_000);
    let lost = || summary.agents.iter().filter(|agent| agent.state == AgentState::Lost);
    // An agent lost shortly before the end has its lease until then.
    let left = lost().filter(|agent| agent.taken_over_by.is_empty()).map(|agent| agent.wanted).sum::<u64>();
    assert_eq!(summary.connections.held + left, 100_000_000);
    assert!(lost().count() < 20, "{}", summary.headline);
}

/// The invariants hold, whichever agents are disconnected, suspended or killed, and whatever happens to broker and coordinator.
#[test]
fn a_thousand_agents_of_which_some_fail() {
    // Each seed costs as much as several hundred small fleets.
    let asked = std::env::var("THRONG_SEEDS").unwrap_or("200".to_owned());
    let seeds: Vec<u64> = match asked.strip_prefix('=') {
        Some(seed) => vec![seed.parse().expect("a seed")],
        None => (0..asked.parse::<u64>().expect("a number of seeds") / 200).collect(),
    };
    for seed in seeds {
        let chaos = Chaos::of_many(seed, AGENTS);
        let least_away = usize::from(chaos.has_absence());
        let summary = check(AGENTS, CONNECTIONS, seed, chaos).expect("it begins");
        assert_eq!(summary.agents.len(), AGENTS as usize, "seed {seed}");
        let all = summary.agents.iter().map(|agent| agent.wanted).sum::<u64>();
        assert_eq!(all, u64::from(CONNECTIONS), "seed {seed}");
        let lost = summary.agents.iter().filter(|agent| agent.state == AgentState::Lost).count();
        assert!((4..40).contains(&lost), "seed {seed}: {lost} lost: {}", summary.headline);
        let away = summary.agents.iter().filter(|agent| agent.away_s > 0.0).count();
        assert!((least_away..40).contains(&away), "seed {seed}: {away} away");
    }
}
