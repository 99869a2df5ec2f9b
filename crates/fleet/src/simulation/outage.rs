//! Outages of the broker and suspensions of the coordinator at any time: the silence of agents meanwhile says nothing about them, and
//! nothing that they counted is lost.

use samples::{AgentState, AgentSummary, Verdict};
use units::Nanos;

use super::{
    chaos::{Chaos, Event},
    obey_the_laws, plan, play, simulate,
    world::World,
};

const CONNECTIONS: u32 = 1_003;

/// The load ends 32 s after the agents are asked, and the coordinator waits for their reports for 4 s.
#[test]
fn a_broker_that_is_away_at_the_end_is_waited_for() {
    for seed in 0..60 {
        let mut plan = plan(CONNECTIONS, seed);
        plan.populations[0].timeout = Nanos::from_secs(1);
        assert_eq!(plan.longest_timeout(), Nanos::from_secs(1));
        // Every third of a second, from 3 s before the end.
        let at = Nanos::from_millis(29_000 + seed % 15 * 333);
        let events = vec![(at, Event::Outage(Nanos::from_millis(2_000 + 700 * (seed / 10))))];
        let chaos = Chaos { events, ..Chaos::carrier_only() };
        let (summary, _) = simulate(&plan, 2 + seed as u32 % 3, seed, chaos);
        let states: Vec<AgentState> = summary.agents.iter().map(|agent| agent.state).collect();
        assert!(states.iter().all(|state| *state == AgentState::Done), "seed {seed}: {states:?}");
        assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}: {}", summary.headline);
        assert_eq!(summary.verdict, Verdict::Pass, "seed {seed}: {:?}", summary.reasons);
    }
}

/// The agents of a run whose coordinator is suspended for this long during the load, which lasts from 2 s to 32 s.
fn paused(seed: u64, span: Nanos) -> Vec<AgentSummary> {
    let plan = plan(CONNECTIONS, seed);
    let events = vec![(Nanos::from_millis(8_000 + seed % 8 * 250), Event::Pause(span))];
    let mut world = World::new(&plan, 2 + seed as u32 % 3, seed, Chaos { events, ..Chaos::carrier_only() });
    world.gather().expect("it begins");
    let (summary, shown) = play(&mut world, &plan);
    for (who, taken) in world.taken() {
        assert_eq!(taken, world.counted(&who), "seed {seed}: {who:?}: what was counted is in the log");
    }
    obey_the_laws(&mut world, &summary, &shown, seed);
    summary.agents
}

#[test]
fn agents_are_not_lost_because_their_coordinator_stood_still() {
    for seed in 0..30 {
        for agent in paused(seed, Nanos::from_millis(3_000 + seed % 5 * 1_000)) {
            assert_eq!((agent.state, agent.away_s), (AgentState::Done, 0.0), "seed {seed}: {agent:?}");
            assert_eq!(agent.closed_by_lease, 0, "seed {seed}: {agent:?}");
        }
    }
}

/// Their leases run out after 10 s.
#[test]
fn agents_whose_coordinator_stood_still_too_long_have_ended_and_all_that_they_counted_is_taken() {
    for seed in 0..30 {
        for agent in paused(seed, Nanos::from_secs(12 + seed % 3 * 3)) {
            assert_eq!((agent.state, agent.away_s), (AgentState::Lost, 0.0), "seed {seed}: {agent:?}");
            let why = agent.why.as_deref().unwrap_or_default();
            assert!(agent.sealed && why.contains("no message"), "seed {seed}: {agent:?}");
            // Step by step, and not as planned.
            assert!((1..=agent.wanted).contains(&agent.closed_by_lease), "seed {seed}: {agent:?}");
        }
    }
}
