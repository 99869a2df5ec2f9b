//! A whole fleet in one thread and in virtual time: the real coordinator and agents, with the conductor of every run. The broker loses,
//! repeats, delays and reorders messages, and processes freeze, die and restart.

mod carrier;
mod chaos;
mod cost;
mod handover;
mod large;
mod machine;
mod outage;
mod world;

use plan::{Environment, Flags, Plan, Source, scenario};
use run::Conductor;
use samples::{AgentState, AgentSummary, AgentTicks, FaultCount, Stage, Summary, Tick, Verdict};
use units::Nanos;

use chaos::Chaos;
use world::World;

/// Rows of the plan's table.
const ROWS: u32 = 397;

fn plan(connections: u32, seed: u64) -> Plan {
    let text = format!(
        "target = \"http://127.0.0.1:80/{{csv users.token}}\"\nconnections = {connections}\nduration = \"30s\"\n\
        [csv.users]\nfile = \"users.csv\"\n"
    );
    let rows: String = (0..ROWS).map(|row| format!("token-{row}\n")).collect();
    let open = |_: &str| Ok(Source::Text(format!("token\n{rows}")));
    let resolve = |_: &str| Err("no name service".to_owned());
    let around = Environment { cores: 1, seed, resolve: &resolve };
    scenario::read("load.toml", &text, &Flags::default(), &around, &open).expect("a plan without mistakes")
}

/// Collects what is shown of each agent: its seconds, and late counts.
fn show(world: &mut World, conductor: &mut Conductor, until: u64, shown: &mut Tick) {
    let late = conductor.take_late();
    let seconds = Tick { agents: run::Workers::take_seconds(world, until), ..Tick::none() };
    late.iter().chain([&seconds]).for_each(|tick| shown.extend(tick));
}

/// Runs a plan like `run::conduct`, even if the coordinator restarts meanwhile. Returns its summary, and what was shown of each agent,
/// summed over all seconds.
fn play(world: &mut World, plan: &Plan) -> (Summary, AgentTicks) {
    loop {
        let mut shown = Tick::none();
        let mut conductor =
            Conductor::new(plan, world, Nanos::ZERO, run::Workers::now(world) + run::Workers::notice(world));
        conductor.give_orders(world);
        let is_over = loop {
            let came = conductor.gather(world);
            if world.has_restarted() {
                break false;
            }
            conductor.give_orders(world);
            if conductor.poll_line(run::Workers::now(world)).is_some() {
                let until = conductor.shown();
                show(world, &mut conductor, until, &mut shown);
            }
            let step = conductor.step(run::Workers::now(world));
            conductor.give_orders(world);
            if step.is_over || came.is_none() {
                break true;
            }
        };
        if !is_over {
            continue;
        }
        run::stop(world, |update| conductor.handle(update));
        if world.has_restarted() {
            continue;
        }
        show(world, &mut conductor, u64::MAX, &mut shown);
        let (_, record) = conductor.finish();
        let summary = run::judge(plan, &record.with_agents(run::Workers::agents(world)));
        return (summary, *shown.agents.unwrap_or_default());
    }
}

/// Checks the invariants that hold whatever happens.
fn obey_the_laws(world: &mut World, summary: &Summary, shown: &AgentTicks, seed: u64) {
    let taken: u64 = world.taken().iter().map(|(_, sent)| sent).sum();
    assert_eq!(summary.requests.sent, taken, "seed {seed}: the summary is the sum of what was taken");
    for (place, (agent, (who, taken))) in summary.agents.iter().zip(world.taken()).enumerate() {
        let shown = AgentTicks::value(&shown.requests, place) + agent.requests_lost;
        let is_shown = shown == taken || agent.missing_ticks > 0;
        assert!(
            is_shown,
            "seed {seed}: {who:?}: what is shown of an agent is what was taken of it: {agent:?}"
        );
        let counted = world.counted(&who);
        match agent.state {
            AgentState::Done => {
                assert_eq!(taken, counted, "seed {seed}: {who:?}: what was counted once is counted once");
                assert!(agent.sealed, "seed {seed}: {who:?}: the seal is the sum of its ticks");
            }
            AgentState::Lost => assert!(taken <= counted, "seed {seed}: {who:?}: {taken} of {counted}"),
            // Its last entries were stored too late, which the run reports.
            AgentState::Ready => {
                let missing = summary.incomplete().expect("something is missing");
                assert!(taken <= counted, "seed {seed}: {who:?}: {taken} of {counted}");
                assert_eq!(summary.verdict, Verdict::Invalid, "seed {seed}: {missing}");
                assert!(summary.headline.contains("did not arrive"), "seed {seed}: {}", summary.headline);
            }
            AgentState::Refused => panic!("seed {seed}: {who:?} refused, and the run began"),
        }
    }
    if summary.incomplete().is_none() {
        let of_requests = |f: &&FaultCount| f.stage == Stage::Exchange && !f.kind.is_wrong_response();
        let failed: u64 = summary.faults.iter().filter(of_requests).map(|f| f.count).sum();
        let r = &summary.requests;
        let lost: u64 = summary.agents.iter().map(|agent| agent.requests_lost).sum();
        let ends = r.answered + failed + r.unanswered + lost;
        assert_eq!(ends, r.sent, "seed {seed}: each request has one end: {summary:#?}");
        assert_eq!((r.due, r.lost), (ends + r.missed, lost), "seed {seed}: the books: {summary:#?}");
    }
    if summary.agents.iter().all(|agent| agent.state == AgentState::Done) {
        let held = summary.agents.iter().map(|agent| agent.held).sum::<u64>();
        assert_eq!(
            summary.connections.held, held,
            "seed {seed}: what is held is what the agents hold: {summary:#?}"
        );
    }
    world.end();
    assert!(world.all_are_free(), "seed {seed}: agents whose run is over are free");
}

fn check(agents: u32, connections: u32, seed: u64, chaos: Chaos) -> Option<Summary> {
    let plan = plan(connections, seed);
    let mut world = World::new(&plan, agents, seed, chaos);
    // Faults before the beginning may prevent it; that is reported, and every agent is released.
    if let Err(why) = world.gather() {
        assert!(!why.to_string().is_empty());
        world.end();
        assert!(world.all_are_free(), "seed {seed}: {why}");
        return None;
    }
    Some(finish(&mut world, &plan, seed))
}

/// Runs a plan on agents that are ready, and checks the invariants.
fn finish(world: &mut World, plan: &Plan, seed: u64) -> Summary {
    let (summary, shown) = play(world, plan);
    obey_the_laws(world, &summary, &shown, seed);
    summary
}

/// Runs a plan whose beginning no fault prevents, and checks the invariants.
fn simulate(plan: &Plan, agents: u32, seed: u64, chaos: Chaos) -> (Summary, World) {
    let mut world = World::new(plan, agents, seed, chaos);
    world.gather().expect("it begins");
    (finish(&mut world, plan, seed), world)
}

#[test]
fn without_faults_all_are_held_and_everything_adds_up() {
    for seed in 0..20 {
        let summary = check(1 + seed as u32 % 5, 1_003, seed, Chaos::none()).expect("it begins");
        assert!(summary.agents.iter().all(|agent| agent.state == AgentState::Done), "{:?}", summary.agents);
        assert_eq!(summary.connections.held, 1_003, "seed {seed}");
        assert_eq!(summary.agents.iter().map(|agent| agent.wanted).sum::<u64>(), 1_003);
        let agents = summary.agents.len() as u64;
        if agents > 3 {
            // The second agent may take half of an equal share, and does.
            assert_eq!(summary.agents[1].wanted, 1_003u64.div_ceil(agents) / 2, "seed {seed}");
        }
        // Of the agents without a limit, the fourth was calibrated for four times as much as the first, where calibration counts.
        if let [first, _, _, fourth, ..] = &summary.agents[..] {
            let times = if !seed.is_multiple_of(3) && seed.is_multiple_of(2) { 4 } else { 1 };
            assert!(
                fourth.wanted.abs_diff(times * first.wanted) <= times,
                "seed {seed}: {:?}",
                summary.agents
            );
        }
        // The clocks of the agents are hours apart, but they begin simultaneously.
        for agent in &summary.agents {
            let (late, error) = (agent.began_late_ms.unwrap(), agent.clock_error_ms.unwrap());
            assert!(late.abs() <= error + world::STEP.0 as f64 / 1e6, "seed {seed}: {agent:?}");
        }
    }
}

#[test]
fn rows_that_have_arrived_are_counted() {
    let rows = u64::from(ROWS);
    for seed in 0..20 {
        let agents = 1 + seed as u32 % 4;
        let mut world = World::new(&plan(1_003, seed), agents, seed, Chaos::carrier_only());
        world.gather().expect("it begins");
        let arrived = &world.arrived;
        assert!(arrived.is_sorted() && arrived[0].0 == 0 && arrived.len() > 6, "seed {seed}: {arrived:?}");
        let (last, of) = arrived[arrived.len() - 1];
        // Agents with more connections than there are rows get all rows.
        assert!(last == of && (rows..=rows * u64::from(agents)).contains(&of), "seed {seed}: {last} of {of}");
        assert!(agents > 1 || of == rows, "seed {seed}: {of}");
    }
}

#[test]
fn what_was_counted_once_is_counted_once_whatever_happens() {
    // The number of seeds, or a single seed: `=N`.
    let asked = std::env::var("THRONG_SEEDS").unwrap_or("200".to_owned());
    if let Some(seed) = asked.strip_prefix('=') {
        let seed = seed.parse().expect("a seed");
        println!("{:?}", Chaos::drawn(seed));
        println!("{:#?}", check(1 + (seed % 5) as u32, 1_003, seed, Chaos::drawn(seed)));
        return;
    }
    let seeds = asked.parse().expect("a number of seeds");
    let (mut begun, mut lost, mut resumed, mut taken_over, mut whole) = (0, 0, 0, 0, 0);
    for seed in 0..seeds {
        let chaos = Chaos::drawn(seed);
        let agents = 1 + (seed % 5) as u32;
        let has_restart = chaos.has_restart();
        let Some(summary) = check(agents, 1_003, seed, chaos) else { continue };
        begun += 1;
        resumed += u64::from(has_restart);
        let has_lost = summary.agents.iter().any(|agent| agent.state == AgentState::Lost);
        lost += u64::from(has_lost);
        let is_missing =
            |agent: &AgentSummary| agent.state == AgentState::Lost && agent.taken_over_by.is_empty();
        let is_passed = summary.verdict == Verdict::Pass;
        assert!(
            !is_passed || !summary.agents.iter().any(is_missing),
            "seed {seed}: a run that lost an agent passes"
        );
        let is_taken_over = summary.agents.iter().any(|agent| !agent.taken_over_by.is_empty());
        taken_over += u64::from(is_taken_over);
        whole += u64::from(is_taken_over && summary.connections.held == 1_003);
    }
    assert!(
        taken_over > seeds / 50 && whole > taken_over / 2,
        "{taken_over} were taken over, {whole} in whole"
    );
    assert!(
        begun > seeds / 2 && lost > seeds / 20 && resumed > seeds / 20,
        "{begun} began, {lost} lost, {resumed} resumed"
    );
}

/// Full load does not begin and end with the agents' seconds.
#[test]
fn full_load_lasts_exactly_as_long_as_it_is_to() {
    for seed in 0..20 {
        let plan = plan(1_003, seed);
        let (summary, _) = simulate(&plan, 1 + seed as u32 % 4, seed, Chaos::none());
        assert_eq!(summary.duration_s, 30.0, "seed {seed}");
        let requests = &summary.requests;
        assert!(requests.answered > 100, "seed {seed}");
        assert!((requests.per_s * 30.0 - requests.answered as f64).abs() < 1e-6, "seed {seed}: {requests:?}");
    }
}

/// Held connections are counted at the peak, for the run and for each agent.
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
        let (summary, _) = simulate(&plan, 3, seed, Chaos::none());
        let held: Vec<(AgentState, bool)> =
            summary.agents.iter().map(|agent| (agent.state, agent.held == agent.wanted)).collect();
        assert_eq!(held, [(AgentState::Done, true); 3], "seed {seed}: {:?}", summary.agents);
        assert_eq!((summary.connections.held, summary.verdict), (1_003, Verdict::Pass), "seed {seed}");
    }
}
