//! `throng agent`; also finds the fleet for a run.

mod name;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use fleet::{Allow, Caps, Control, Error, Fleet, Identity, Job, Kubernetes, Link, Server, Service, Waiting};
use host::Root;
use plan::{Flags, Plan, Source, TableHead, flag};
use run::{Interrupt, Workers};
use units::{Count, Nanos};

use self::name::Name;
use crate::{
    Failure,
    args::AgentArgs,
    calibrate,
    cluster::Cluster,
    control,
    fleet::broker::OwnBroker,
    job, message,
    mistakes::Mistakes,
    nats,
    plans::{self, Scenario},
    print_stdout, runs, signals,
};

/// Takes part in runs and serves the control API until a signal; returns the exit status.
pub(crate) fn agent(args: &AgentArgs, flags: &Flags) -> Result<u8, Failure> {
    let mut mistakes = Mistakes::default();
    let joins = args.nats.is_some() || nats::has_url();
    let server = joins.then(|| nats::server("--nats", args.nats.as_deref(), flags, &mut mistakes)).flatten();
    if !joins {
        nats::refuse_access(flags, &mut mistakes);
    }
    let (control, caps) = control::read(&args.control, &mut mistakes);
    if !joins && args.control.listen.is_none() {
        mistakes.add(
            "nothing to do: use --nats URL to join a fleet, --listen ADDR to be controlled by curl, or both",
        );
    }
    let allow = Allow::parse(&args.allow, &plans::resolve);
    let name = mistakes.read("--name", args.name.as_deref(), fleet::agent_name);
    allow.as_ref().err().into_iter().flatten().for_each(|mistake| mistakes.add(mistake));
    let idle = mistakes.read("--idle-exit", args.idle_exit.as_deref(), Nanos::parse);
    let allow = mistakes.end(()).map(|()| allow.expect("it is no mistake"))?;
    let stop = signals::order_to_stop(false)?;
    let served = control.map(|control| control.start(allow.clone(), caps.clone())).transpose()?;
    match server {
        Some(server) => join(&server, name, (allow, caps), idle, &stop)?,
        None => signals::wait_for(&stop),
    }
    served.into_iter().for_each(control::Served::end);
    Ok(0)
}

/// Takes part in runs until `stop` is set, or until no run has needed the agent for `idle`.
fn join(
    server: &Server,
    name: Option<String>,
    limits: (Allow, Caps),
    idle: Option<Nanos>,
    stop: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let spool = store::folders::spool().map_err(Failure::machine)?;
    let has_joined = Arc::new(AtomicBool::new(false));
    if let Some(idle) = idle {
        stop_unless(has_joined.clone(), idle, stop.clone());
    }
    let Some(link) = nats::join("--nats", server, stop)? else { return Ok(()) };
    has_joined.store(true, Relaxed);
    let planner = |flags: &Flags, scenario: Option<&str>, tables: &[(String, TableHead)]| {
        let sent = |name: &str| {
            let table = tables.iter().find(|(file, _)| file == name);
            let head = table.map(|(_, head)| Source::Head(head.clone()));
            head.ok_or_else(|| "the coordinator did not send it".to_owned())
        };
        plans::elsewhere(flags, scenario, sent).map_err(|failure| Error::Refused(failure.lines.join("; ")))
    };
    let doctor = |flags: &Flags| planner(flags, None, &[]).ok();
    let Name { name: id, kept: _kept } = name::of_this_agent(name);
    let calibration = runs::calibrations().into_iter().next();
    let version = env!("CARGO_PKG_VERSION");
    let (_, caps) = &limits;
    let who = Identity::of_this_machine(
        &Root::real(),
        id.clone(),
        version,
        plans::cores(),
        calibration,
        caps.connections(),
        &doctor,
    );
    let control = Control::new(&link, who, &doctor, calibrate::elsewhere)
        .map_err(|why| Failure::machine(format!("--nats: {why}")))?;
    print_stdout(&format!("agent {id} at {server}\n"))?;
    let mut service = Service::new(link, control, spool, limits, &planner);
    service.serve(stop, idle, &mut |line| message(line)).map_err(Failure::machine)
}

/// Sets `stop` after this time, unless `that` is set by then.
fn stop_unless(that: Arc<AtomicBool>, time: Nanos, stop: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_nanos(time.0));
        if !that.load(Relaxed) {
            stop.store(true, Relaxed);
        }
    });
}

/// Gathers the agents for a run; `None` without `--fleet`. A run that is continued keeps its seed, which replaces that of the plan.
/// `cluster` contains agents that were launched for this run. `interrupt` ends the wait for agents.
pub(crate) fn fleet(
    plan: &mut Plan,
    flags: &Flags,
    scenario: Option<&Scenario>,
    cluster: Option<&Cluster>,
    interrupt: &Interrupt,
) -> Result<Option<Members>, Failure> {
    let Some(Place { link, job, broker }) = place(flags, scenario, cluster, interrupt)? else {
        return Ok(None);
    };
    let failed = |why: Error| Failure::waiting(format!("--fleet: {why}"), interrupt);
    let mut waiting = Waiting { interrupt, say: &mut |line| message(line) };
    let fleet = Fleet::gather(link, plan, &job, &mut waiting).map_err(failed)?;
    plan.seed = fleet.seed();
    message(&format!("run {} on {}", fleet.id(), Count(fleet.agents().len() as u64).of("agent")));
    Ok(Some(Members { fleet, _broker: broker }))
}

/// The connection to a fleet, and the job for it.
pub(crate) struct Place {
    pub(crate) link: Link,
    pub(crate) job: Job,
    pub(crate) broker: Option<OwnBroker>,
}

/// The fleet that the flags name; `None` without `--fleet`. `cluster` contains agents that were launched for this run. `interrupt`
/// ends waits.
pub(crate) fn place(
    flags: &Flags,
    scenario: Option<&Scenario>,
    cluster: Option<&Cluster>,
    interrupt: &Interrupt,
) -> Result<Option<Place>, Failure> {
    let Some(url) = flags.get(&flag::FLEET) else { return Ok(None) };
    let url = cluster.map_or(url, Cluster::url);
    let mut mistakes = Mistakes::default();
    if Kubernetes::is_meant(url) {
        mistakes
            .add("--fleet: agents are launched for `throng run`; for others, use those of deploy/kubernetes");
        return mistakes.end(None);
    }
    let own = own_broker(url);
    let server = match own {
        Some(_) => None,
        None => nats::server("--fleet", Some(url), flags, &mut mistakes),
    };
    let job = job::read(flags, scenario, &mut mistakes);
    let agents = job.agents.or(cluster.map(Cluster::agents));
    mistakes.end(())?;
    let target = flags.get(&flag::TARGET).unwrap_or_default();
    let broker = own.map(|listen| OwnBroker::start(listen, target, interrupt)).transpose()?;
    let server = server.or_else(|| broker.as_ref().map(|broker| broker.server.clone()));
    let link = nats::link_unless(interrupt, "--fleet", &server.expect("it is no mistake"))?;
    cluster.map_or(Ok(()), |cluster| cluster.wait_for_agents(&link))?;
    // With its own broker, agents can join only now, so throng waits for at least one.
    let job = Job { agents: agents.or(broker.as_ref().map(|_| 1)), ..job };
    Ok(Some(Place { link, job, broker }))
}

/// The agents of a run, and the broker that was started for them.
pub(crate) struct Members {
    pub(crate) fleet: Fleet,
    /// Dropped last: its end is how agents learn that the run is over.
    _broker: Option<OwnBroker>,
}

/// Where throng's own broker is to listen, from `own` or `own:ADDR`; `None` if the URL is that of another broker.
fn own_broker(url: &str) -> Option<Option<&str>> {
    match url.split_once(':') {
        None if url == "own" => Some(None),
        Some(("own", listen)) => Some(Some(listen)),
        _ => None,
    }
}
