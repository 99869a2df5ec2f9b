//! `throng agent`, and the fleet of a run.

use fleet::{Agent, Allow, Fleet, Job, Link, Server};
use plan::{Flags, Plan, flag};

use crate::{Failure, args::AgentArgs, mistakes::Mistakes, plans, print_stdout, signals};

/// Takes part in runs until a signal; returns the exit status.
pub(crate) fn agent(args: &AgentArgs) -> Result<u8, Failure> {
    let mut mistakes = Mistakes::default();
    let server = mistakes.read("--nats", Some(&args.nats), Server::parse);
    let allow = Allow::parse(&args.allow, &plans::resolve);
    allow.as_ref().err().into_iter().flatten().for_each(|mistake| mistakes.add(mistake));
    let (server, allow) =
        mistakes.end(()).map(|()| (server.expect("it is no mistake"), allow.expect("nor is this")))?;
    let link = Link::connect(&server).map_err(|why| Failure::machine(format!("--nats: {why}")))?;
    let stop = signals::order_to_stop(false)?;
    let planner = |flags: &Flags, scenario: Option<&str>| {
        plans::elsewhere(flags, scenario).map_err(|failure| failure.lines.join("; "))
    };
    let mut agent = Agent::new(link, env!("CARGO_PKG_VERSION"), plans::cores(), allow, &planner);
    print_stdout(&format!("agent {} at {server}\n", agent.id()))?;
    agent.serve(&stop).map_err(Failure::machine)?;
    Ok(0)
}

/// The agents that a run is to use, ready to begin; none without `--fleet`.
pub(crate) fn fleet(plan: &Plan, flags: &Flags, scenario: Option<&str>) -> Result<Option<Fleet>, Failure> {
    let Some(url) = flags.get(&flag::FLEET) else { return Ok(None) };
    let server = Server::parse(url).map_err(|why| Failure::usage([format!("--fleet: {why}")]))?;
    let failed = |why: String| Failure::machine(format!("--fleet: {why}"));
    let link = Link::connect(&server).map_err(failed)?;
    let flags = flags.clone().without(&flag::FLEET).or(&flag::SEED, plan.seed).pairs();
    Fleet::gather(link, plan, &Job { flags, scenario }).map(Some).map_err(failed)
}
