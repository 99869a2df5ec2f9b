//! Full load in a run on agents: its duration, and its responses.

use super::{chaos::Chaos, obey_the_laws, plan, play, world::World};

/// Full load does not begin and end with the agents' seconds.
#[test]
fn full_load_lasts_exactly_as_long_as_it_is_to() {
    for seed in 0..20 {
        let plan = plan(1_003, seed);
        let mut world = World::new(&plan, 1 + seed as u32 % 4, seed, Chaos::none());
        world.gather().expect("it begins");
        let (summary, shown) = play(&mut world, &plan);
        obey_the_laws(&mut world, &summary, &shown, seed);
        assert_eq!(summary.duration_s, 30.0, "seed {seed}");
        let requests = &summary.requests;
        assert!(requests.answered > 100, "seed {seed}");
        assert!((requests.per_s * 30.0 - requests.answered as f64).abs() < 1e-6, "seed {seed}: {requests:?}");
    }
}
