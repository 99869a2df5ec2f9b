//! `throng agent`, and the fleet of a run.

use fleet::{Agent, Allow, Fleet, Job, Link};
use plan::{Flags, Plan, flag};

use crate::{Failure, args::AgentArgs, plans, print_stdout, signals};

/// Takes part in runs until a signal; returns the exit status.
pub(crate) fn agent(args: &AgentArgs) -> Result<u8, Failure> {
    let allow = Allow::parse(&args.allow, &plans::resolve).map_err(Failure::usage)?;
    let link = Link::connect(&args.nats).map_err(|why| Failure::machine(format!("--nats: {why}")))?;
    let stop = signals::order_to_stop(false)?;
    let planner = |flags: &Flags, scenario: Option<&str>| {
        plans::elsewhere(flags, scenario).map_err(|failure| failure.lines.join("; "))
    };
    let mut agent = Agent::new(link, env!("CARGO_PKG_VERSION"), plans::cores(), allow, &planner);
    print_stdout(&format!("agent {} at {}\n", agent.id(), args.nats))?;
    agent.serve(&stop).map_err(Failure::machine)?;
    Ok(0)
}

/// The agents that a run is to use, ready to begin; none without `--fleet`.
pub(crate) fn fleet(plan: &Plan, flags: &Flags, scenario: Option<&str>) -> Result<Option<Fleet>, Failure> {
    let Some(url) = flags.get(&flag::FLEET) else { return Ok(None) };
    let failed = |why: String| Failure::machine(format!("--fleet: {why}"));
    let link = Link::connect(url).map_err(failed)?;
    let flags = flags.clone().without(&flag::FLEET).or(&flag::SEED, plan.seed).pairs();
    Fleet::gather(link, plan, &Job { flags, scenario }).map(Some).map_err(failed)
}
