//! `throng agent`, and the fleet of a run.

use std::sync::atomic::AtomicBool;

use fleet::{About, Allow, Caps, Fleet, Job, OnLost, Server, Service};
use plan::{Flags, Plan, flag};
use run::Workers;

use crate::{
    Failure,
    args::AgentArgs,
    control, folders, message,
    mistakes::Mistakes,
    nats,
    plans::{self, Scenario},
    print_stdout, signals,
};

/// Takes part in runs, and serves the control API, until a signal; returns the exit status.
pub(crate) fn agent(args: &AgentArgs, flags: &Flags) -> Result<u8, Failure> {
    let mut mistakes = Mistakes::default();
    let joins = args.nats.is_some() || nats::has_url();
    let server = joins.then(|| nats::server("--nats", args.nats.as_deref(), flags, &mut mistakes)).flatten();
    let (control, caps) = control::read(&args.control, &mut mistakes);
    if !joins && args.control.listen.is_none() {
        mistakes.add(
            "nothing to do: use --nats URL to join a fleet, --listen ADDR to be controlled by curl, or both",
        );
    }
    let allow = Allow::parse(&args.allow, &plans::resolve);
    allow.as_ref().err().into_iter().flatten().for_each(|mistake| mistakes.add(mistake));
    let allow = mistakes.end(()).map(|()| allow.expect("it is no mistake"))?;
    let stop = signals::order_to_stop(false)?;
    let served = control.map(|control| control.start(allow.clone(), caps.clone())).transpose()?;
    match server {
        Some(server) => join(&server, (allow, caps), &stop)?,
        None => signals::wait_for(&stop),
    }
    served.into_iter().for_each(control::Served::end);
    Ok(0)
}

/// Takes part in runs until it is to stop.
fn join(server: &Server, limits: (Allow, Caps), stop: &AtomicBool) -> Result<(), Failure> {
    let Some(link) = nats::join("--nats", server, stop)? else { return Ok(()) };
    let planner = |flags: &Flags, scenario: Option<&str>, files: &[(String, String)]| {
        plans::elsewhere(flags, scenario, files).map_err(|failure| failure.lines.join("; "))
    };
    let id = format!("{:08x}", units::system_random() as u32);
    let spool = folders::data().unwrap_or_else(|| std::env::temp_dir().join("throng")).join("spool");
    print_stdout(&format!("agent {id} at {server}\n"))?;
    let about = About { id, version: env!("CARGO_PKG_VERSION").to_owned(), cores: plans::cores(), spool };
    let mut service = Service::new(link, about, limits, &planner);
    service.serve(stop, &mut |line| message(line)).map_err(Failure::machine)
}

/// The agents that a run is to use, ready to begin; none without `--fleet`. A run that is taken up again keeps its seed.
pub(crate) fn fleet(
    plan: &mut Plan,
    flags: &Flags,
    scenario: Option<&Scenario>,
) -> Result<Option<Fleet>, Failure> {
    let Some(url) = flags.get(&flag::FLEET) else { return Ok(None) };
    let mut mistakes = Mistakes::default();
    let server = nats::server("--fleet", Some(url), flags, &mut mistakes);
    let agents = mistakes.read("--agents", flags.get(&flag::AGENTS), |text| match text.parse() {
        Ok(n @ 1..) => Ok(n),
        _ => Err(format!("{text:?} is not a number of agents; use 1 or more")),
    });
    let on_lost = mistakes.read("--on-lost", flags.get(&flag::ON_LOST), OnLost::parse).unwrap_or_default();
    let server = mistakes.end(()).map(|()| server.expect("it is no mistake"))?;
    let link = nats::link("--fleet", &server)?;
    let failed = |why: String| Failure::machine(format!("--fleet: {why}"));
    let job = Job {
        flags: flags.clone().without_place().pairs(),
        scenario: scenario.map(|scenario| scenario.text.clone()),
        files: scenario.map(|scenario| scenario.files.clone()).unwrap_or_default(),
        agents,
        on_lost,
    };
    let fleet = Fleet::gather(link, plan, &job, &mut |line| message(line)).map_err(failed)?;
    plan.seed = fleet.seed();
    message(&format!("run {} on {} agents", fleet.id(), fleet.agents().len()));
    Ok(Some(fleet))
}
