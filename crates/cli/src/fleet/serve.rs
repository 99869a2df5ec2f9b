//! `throng fleet serve`: serves the HTTP API for runs and searches, on a fleet or on this machine.

mod request;

use std::{net::SocketAddr, sync::Arc};

use api::{
    AgentRefusal, AgentRequest, Api, Finished, Past, Ready, ReadySearch, Runner, SearchWork, Spec, Stop, Work,
};
use fleet::{AgentStatus, Agents, Allow, Fleet, Job, Operator, Reply, Request, Server, Waiting};
use host::remote::Token;
use plan::{Flags, Live, Plan, flag};
use run::{Interrupt, Shown};
use samples::{FindSummary, Point, RunRecord, Sink};
use serde_json::{Value, json};
use store::{Store, StoredRun};
use units::Nanos;
use view::Report;
use webserver::Opens;

use super::{calibration_time, table};
use crate::{
    Failure,
    apply::{Applied, Typed, apply},
    args::{CALIBRATION, FleetServeArgs},
    compare, listening, message,
    mistakes::Mistakes,
    nats, plans, print_stdout, runs, search, signals,
};
use request::{Described, SCENARIO, Wanted};

/// Maximum number of simultaneous runs on a fleet; each takes agents that are free.
const MOST_ON_A_FLEET: usize = 16;
/// Maximum duration of each of a calibration's two measurements. During a calibration, which cannot be stopped, an agent accepts no
/// run.
const LONGEST_CALIBRATION: Nanos = Nanos::from_secs(60);

/// Serves until a signal; returns the exit status.
pub(crate) fn serve(args: &FleetServeArgs, flags: &Flags) -> Result<u8, Failure> {
    let (listen, opens, place) = read_args(args, flags)?;
    let stop = signals::order_to_stop(args.until_stdin_ends)?;
    let on = match &place {
        Place::Fleet(server) => format!("the fleet at {server}"),
        Place::Here(_) => "this machine".to_owned(),
    };
    let started = Api::start(listen, place, opens);
    let (api, at) = started.map_err(|e| listening::refused("--listen", listen, &e))?;
    print_stdout(&format!("runs on {on} at http://{at}/\n"))?;
    signals::wait_for(&stop);
    api.end();
    Ok(0)
}

/// The address to listen on, the required token, and where runs are performed; reports all mistakes at once.
fn read_args(args: &FleetServeArgs, flags: &Flags) -> Result<(SocketAddr, Option<Opens>, Place), Failure> {
    let mut mistakes = Mistakes::default();
    let listen = mistakes.address("--listen", &args.listen, "127.0.0.1:9910");
    if args.token_file.is_none() && !listen.ip().is_loopback() {
        let port = listen.port();
        mistakes.add(format!(
            "--listen: without --token-file only loopback is allowed; use 127.0.0.1:{port}: {listen}"
        ));
    }
    let token = mistakes.read("--token-file", args.token_file.as_deref(), Token::read);
    let is_fleet = args.at.nats.is_some() || nats::has_url();
    if is_fleet && !args.allow.is_empty() {
        mistakes.add("--allow: only for runs on this machine; on a fleet, each agent has its own");
    }
    if !is_fleet {
        nats::refuse_access(flags, &mut mistakes);
    }
    let allow = Allow::parse(&args.allow, &plans::resolve);
    allow.as_ref().err().into_iter().flatten().for_each(|mistake| mistakes.add(mistake));
    let server =
        is_fleet.then(|| nats::server("--nats", args.at.nats.as_deref(), flags, &mut mistakes)).flatten();
    let allow = mistakes.end(()).map(|()| allow.expect("it is no mistake"))?;
    let opens = token.map(|token| Arc::new(move |offered: &[u8]| token.is(offered)) as Opens);
    Ok((listen, opens, server.map_or(Place::Here(allow), Place::Fleet)))
}

/// Where runs are performed.
enum Place {
    /// On the agents at this NATS server.
    Fleet(Server),
    /// On this machine, against these targets.
    Here(Allow),
}

impl Place {
    fn is_fleet(&self) -> bool {
        matches!(self, Place::Fleet(_))
    }
}

impl Runner for Place {
    fn read(&self, spec: &Spec, id: &str) -> Result<Ready, Vec<String>> {
        let Described { flags, plan, job, tags } = self.read_run(spec)?;
        let record = RunRecord {
            words: words(&flags),
            api_id: Some(id.to_owned()),
            ..runs::record(units::date().into(), spec.scenario.as_deref(), &tags)
        };
        let target = request::target(spec, &plan);
        let interrupt = Interrupt::default();
        let order = interrupt.clone();
        let stop: Stop = Box::new(move || {
            order.set();
        });
        let work: Work = match self {
            Place::Here(_) => here(plan, record.clone()),
            Place::Fleet(server) => {
                // Agents report the identifier of their run, by which it is found in this API.
                let job = Job { run: Some(id.to_owned()), ..job };
                on_fleet(server.clone(), plan, job, record.clone(), interrupt)
            }
        };
        Ok(Ready { target, record, work, stop })
    }

    fn read_search(&self, spec: &Spec) -> Result<ReadySearch, Vec<String>> {
        let wanted = self.read_wanted(spec)?;
        let target = request::target(spec, &wanted.of_step.plan);
        let server = match self {
            Place::Here(_) => None,
            Place::Fleet(server) => Some(server.clone()),
        };
        let interrupt = Interrupt::default();
        let order = interrupt.clone();
        // Interrupts twice, because a search that is deleted should not wait for outstanding responses.
        let stop: Stop = Box::new(move || {
            order.set();
            order.set();
        });
        let work: SearchWork = Box::new(move |show| search_at(server, wanted, &interrupt, show));
        Ok(ReadySearch { target, began: units::date().into(), work, stop })
    }

    fn has_agents_for(&self, spec: &Spec) -> Option<bool> {
        let Place::Fleet(server) = self else { return None };
        // A run with `--agents` waits for that number of agents.
        if spec.flags.iter().any(|(name, _)| name == flag::AGENTS.name) {
            return None;
        }
        // If agents cannot be reached, or there are none, the run itself reports it.
        let link = nats::link("--nats", server).ok()?;
        let agents = Operator::new(link).ask(&[], &Request::Status).unwrap_or_default();
        (!agents.is_empty()).then(|| agents.iter().any(AgentStatus::is_free))
    }

    fn past(&self) -> Vec<Past> {
        let past = runs::store().and_then(|store| {
            let listed = store.as_ref().map_or(Ok(Vec::new()), Store::listed);
            listed.map_err(Failure::machine)
        });
        let past = past.unwrap_or_else(|failure| {
            failure
                .lines
                .iter()
                .for_each(|line| message(&format!("runs before this are not listed: {line}")));
            Vec::new()
        });
        past.into_iter().filter_map(past_run).collect()
    }

    fn past_run(&self, stored: &str) -> Option<Past> {
        let (_, run) = runs::find(stored).ok()?;
        past_run(run)
    }

    fn report(&self, stored: &str) -> Result<Report, String> {
        let (store, run) = runs::find(stored).map_err(one_line)?;
        let mut report = Report::of(&run);
        store.replay(&run, &mut [&mut report]).map_err(|why| why.to_string())?;
        Ok(report)
    }

    fn compare(&self, base: &str, other: &str) -> Result<String, String> {
        let (store, base_run) = runs::find(base).map_err(one_line)?;
        let other_run = store.run(other).map_err(|why| why.to_string())?;
        let other_run = other_run.ok_or_else(|| store::missing(other))?;
        let groups = vec![(base.to_owned(), vec![base_run]), (other.to_owned(), vec![other_run])];
        let comparison = compare::compared(&store, groups, &[]).map_err(one_line)?;
        Ok(view::compare::json(&comparison))
    }

    fn forget(&self, stored: &str) -> Result<(), String> {
        // A run that was deleted from the store needs no change.
        let Ok((store, run)) = runs::find(stored) else { return Ok(()) };
        store.unlist(&run).map(|_| ()).map_err(|why| why.to_string())
    }

    fn agents(&self) -> Result<Vec<Value>, String> {
        let Place::Fleet(server) = self else {
            let here = json!({ "id": "this machine", "version": env!("CARGO_PKG_VERSION"), "cores": plans::cores() });
            return Ok(vec![here]);
        };
        let link = nats::link("--nats", server).map_err(one_line)?;
        let agents = Operator::new(link).ask(&[], &Request::Status).map_err(|why| why.to_string())?;
        Ok(agents.iter().map(table::agent_json).collect())
    }

    fn ask_agent(&self, id: &str, request: &AgentRequest) -> Result<Value, AgentRefusal> {
        let Place::Fleet(server) = self else {
            let why = "there is no fleet here; start throng fleet serve with --nats URL";
            return Err(AgentRefusal::Conflict(why.to_owned()));
        };
        let request = request_of(request).map_err(AgentRefusal::Wrong)?;
        let away = |failure| AgentRefusal::Unreachable(one_line(failure));
        let operator = Operator::new(nats::link("--nats", server).map_err(away)?);
        let asked = operator.ask_one(id, &request);
        match asked.map_err(|why| AgentRefusal::Unreachable(why.to_string()))? {
            None => Err(AgentRefusal::Unknown),
            Some(Reply::Status(status)) => Ok(table::agent_json(&status)),
            Some(Reply::Refused { why, .. }) => Err(AgentRefusal::Conflict(why)),
            Some(Reply::Calibrating { id } | Reply::Calibrated { id, .. }) => {
                Ok(json!({ "id": id, "state": "calibrating" }))
            }
        }
    }

    fn most(&self) -> usize {
        match self {
            Place::Fleet(_) => MOST_ON_A_FLEET,
            Place::Here(_) => 1,
        }
    }
}

fn one_line(failure: Failure) -> String {
    failure.lines.join("; ")
}

fn past_run(run: StoredRun) -> Option<Past> {
    let is_under_way = run.is_under_way(units::date().into());
    let StoredRun { id: stored, record, figures, .. } = run;
    Some(Past {
        id: record.api_id?,
        // The target as it was requested.
        target: record.words.get(1).filter(|word| *word != SCENARIO).cloned().unwrap_or(record.header.target),
        began: record.began_ms,
        connections: record.header.connections,
        summary: figures,
        stored,
        is_under_way,
    })
}

/// The corresponding request over NATS.
///
/// # Errors
/// The duration of a calibration is invalid or too long.
fn request_of(request: &AgentRequest) -> Result<Request, String> {
    Ok(match request {
        AgentRequest::Doctor => Request::Doctor,
        AgentRequest::Drain => Request::Drain,
        AgentRequest::Undrain => Request::Undrain,
        AgentRequest::Calibrate(duration) => {
            let duration = duration.as_deref().unwrap_or(CALIBRATION);
            let time = calibration_time(duration).map_err(|why| format!("duration: {why}"))?;
            if time > LONGEST_CALIBRATION {
                return Err(format!("duration: at most {LONGEST_CALIBRATION}: {duration:?}"));
            }
            Request::Calibrate { duration: duration.to_owned() }
        }
    })
}

/// The equivalent command line of `throng run`.
fn words(flags: &Flags) -> Vec<String> {
    let target = flags.get(&flag::TARGET).unwrap_or_default().to_owned();
    let typed = flags.clone().without(&flag::TARGET).pairs().into_iter();
    let typed = typed.flat_map(|(name, value)| [format!("--{name}"), value]).filter(|word| !word.is_empty());
    ["run".to_owned(), target].into_iter().chain(typed).collect()
}

fn here(mut plan: Plan, record: RunRecord) -> Work {
    Box::new(move |sink| {
        run::settle(&mut plan, &host::Root::real(), true, &mut message);
        applied(&plan, None, record, &Interrupt::default(), &mut [sink])
    })
}

/// Searches on the agents at this server, or on this machine if there is none.
fn search_at(
    server: Option<Server>,
    wanted: Wanted,
    interrupt: &Interrupt,
    show: &mut dyn FnMut(&Point),
) -> Result<FindSummary, Vec<String>> {
    let Wanted { how, of_step: Described { mut plan, job, .. } } = wanted;
    let (by, _) = how.without_mistakes();
    let link = server.map(|server| nats::link_unless(interrupt, "--nats", &server)).transpose();
    let link = match link {
        Err(_) if interrupt.is_set() => return Ok(run::not_begun(by, &plan)),
        link => link.map_err(|failure| failure.lines)?,
    };
    let mut agents = link.map(|link| Agents::new(link, job, interrupt.clone()));
    if agents.is_none() {
        run::settle(&mut plan, &host::Root::real(), true, &mut message);
    }
    let most = how.most.map_or_else(|| search::most(by, &plan, agents.as_mut()), Ok);
    let most = match most {
        Err(_) if interrupt.is_set() => return Ok(run::not_begun(by, &plan)),
        most => most.map_err(|why| vec![why])?,
    };
    let mut steps = |shown: Shown<'_>| {
        if let Shown::Step(point) = shown {
            show(point);
        }
    };
    search::search(how.up_to(most), &plan, agents.as_mut(), interrupt, &mut steps)
        .map_err(|failure| failure.lines)
}

/// The work of a run on a fleet. `interrupt` ends waits before the run begins; afterwards the run accepts commands.
fn on_fleet(server: Server, mut plan: Plan, job: Job, record: RunRecord, interrupt: Interrupt) -> Work {
    Box::new(move |sink| {
        let link = nats::link_unless(&interrupt, "--nats", &server).map_err(|failure| failure.lines)?;
        let mut waiting = Waiting { interrupt: &interrupt, say: &mut |line| message(line) };
        let failed = |why: fleet::Error| vec![why.to_string()];
        let mut fleet = Fleet::gather(link, &plan, &job, &mut waiting).map_err(failed)?;
        plan.seed = fleet.seed();
        // Also accepts commands of `throng fleet set`.
        let mut commands = fleet.commands().map_err(failed)?;
        applied(&plan, Some(&mut fleet), record, &interrupt, &mut [sink, &mut commands])
    })
}

fn applied(
    plan: &Plan,
    fleet: Option<&mut Fleet>,
    record: RunRecord,
    interrupt: &Interrupt,
    sinks: &mut [&mut dyn Sink],
) -> Result<Finished, Vec<String>> {
    let typed = Typed { plan, flags: &Flags::default() };
    let applied = apply(typed, fleet, Live::Off, record, interrupt, sinks);
    let Applied { summary, kept } = applied.map_err(|failure| failure.lines)?;
    Ok(Finished { summary, stored: kept.map(|kept| kept.id) })
}
