//! Decreasing loads: held connections are counted at the peak, for the run and for each agent.

use plan::{Environment, Flags, scenario};
use samples::{AgentState, Verdict};

use super::{chaos::Chaos, obey_the_laws, play, world::World};

#[test]
fn agents_held_what_the_run_held() {
    let text = "target = \"http://127.0.0.1:80/\"\nconnections = 1003\n\
        [[stage]]\nto = \"40%\"\nramp = \"0s\"\nfor = \"4s\"\n\
        [[stage]]\nto = \"100%\"\nramp = \"0s\"\nfor = \"4s\"\n\
        [[stage]]\nto = \"50%\"\nramp = \"0s\"\nfor = \"4s\"\n";
    let resolve = |_: &str| Err("no name service".to_owned());
    let open = |_: &str| Err("no file".to_owned());
    for seed in 0..10 {
        let around = Environment { cores: 1, seed, resolve: &resolve };
        let plan = scenario::read("load.toml", text, &Flags::default(), &around, &open).expect("a plan");
        let mut world = World::new(&plan, 3, seed, Chaos::none());
        world.gather().expect("it begins");
        let (summary, shown) = play(&mut world, &plan);
        obey_the_laws(&mut world, &summary, &shown, seed);
        let held: Vec<(AgentState, bool)> =
            summary.agents.iter().map(|agent| (agent.state, agent.held == agent.wanted)).collect();
        assert_eq!(held, [(AgentState::Done, true); 3], "seed {seed}: {:?}", summary.agents);
        assert_eq!((summary.connections.held, summary.verdict), (1_003, Verdict::Pass), "seed {seed}");
    }
}
