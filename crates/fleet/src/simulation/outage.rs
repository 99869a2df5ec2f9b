//! Outages of the broker at any time: nothing that the agents counted is lost.

use samples::{AgentState, Verdict};
use units::Nanos;

use super::{
    chaos::{Chaos, Event},
    obey_the_laws, plan, play,
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
        let mut world =
            World::new(&plan, 2 + seed as u32 % 3, seed, Chaos { events, ..Chaos::carrier_only() });
        world.gather().expect("it begins");
        let (summary, shown) = play(&mut world, &plan);
        obey_the_laws(&mut world, &summary, &shown, seed);
        let states: Vec<AgentState> = summary.agents.iter().map(|agent| agent.state).collect();
        assert!(states.iter().all(|state| *state == AgentState::Done), "seed {seed}: {states:?}");
        assert_eq!(summary.connections.held, u64::from(CONNECTIONS), "seed {seed}: {}", summary.headline);
        assert_eq!(summary.verdict, Verdict::Pass, "seed {seed}: {:?}", summary.reasons);
    }
}
