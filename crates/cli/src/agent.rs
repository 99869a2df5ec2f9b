//! `throng agent`, and the fleet of a run.

use fleet::{About, Allow, Caps, Fleet, Job, Link, Server, Service};
use plan::{Flags, Plan, flag};

use run::Workers;

use crate::{
    Failure,
    args::AgentArgs,
    folders, message,
    mistakes::Mistakes,
    plans::{self, Scenario},
    print_stdout, signals,
};

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
    let planner = |flags: &Flags, scenario: Option<&str>, files: &[(String, String)]| {
        plans::elsewhere(flags, scenario, files).map_err(|failure| failure.lines.join("; "))
    };
    let id = format!("{:08x}", units::system_random() as u32);
    let spool = folders::data().unwrap_or_else(|| std::env::temp_dir().join("throng")).join("spool");
    print_stdout(&format!("agent {id} at {server}\n"))?;
    let about = About { id, version: env!("CARGO_PKG_VERSION").to_owned(), cores: plans::cores(), spool };
    let mut service = Service::new(link, about, (allow, Caps::default()), &planner);
    service.serve(&stop, &mut |line| message(line)).map_err(Failure::machine)?;
    Ok(0)
}

/// The agents that a run is to use, ready to begin; none without `--fleet`. A run that is taken up again keeps its seed.
pub(crate) fn fleet(
    plan: &mut Plan,
    flags: &Flags,
    scenario: Option<&Scenario>,
) -> Result<Option<Fleet>, Failure> {
    let Some(url) = flags.get(&flag::FLEET) else { return Ok(None) };
    let server = Server::parse(url).map_err(|why| Failure::usage([format!("--fleet: {why}")]))?;
    let failed = |why: String| Failure::machine(format!("--fleet: {why}"));
    let agents = flags.get(&flag::AGENTS).map(|text| match text.parse() {
        Ok(n @ 1..) => Ok(n),
        _ => Err(Failure::usage([format!("--agents: {text:?} is not a number of agents; use 1 or more")])),
    });
    let agents = agents.transpose()?;
    let link = Link::connect(&server).map_err(failed)?;
    let job = Job {
        flags: flags.clone().without(&flag::FLEET).without(&flag::AGENTS).pairs(),
        scenario: scenario.map(|scenario| scenario.text.clone()),
        files: scenario.map(|scenario| scenario.files.clone()).unwrap_or_default(),
        agents,
    };
    let fleet = Fleet::gather(link, plan, &job, &mut |line| message(line)).map_err(failed)?;
    plan.seed = fleet.seed();
    message(&format!("run {} on {} agents", fleet.id(), fleet.agents().len()));
    Ok(Some(fleet))
}
