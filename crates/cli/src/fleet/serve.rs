//! `throng fleet serve`: runs by HTTP, on a fleet or on this machine.

use std::{net::SocketAddr, slice, sync::Arc};

use api::{Api, Finished, Past, Ready, Runner, Spec, Work};
use exporters::web::Opens;
use fleet::{Allow, Fleet, Job, Operator, Request, Server};
use host::remote::Token;
use plan::{Flag, Flags, Live, Plan, Source, flag};
use run::Interrupt;
use samples::{RunRecord, Sink};
use serde_json::{Value, json};
use store::{Store, StoredRun};
use view::Report;

use crate::{
    Failure,
    apply::{Applied, apply},
    args::FleetServeArgs,
    contents, job, listening, message,
    mistakes::Mistakes,
    nats,
    plans::{self, Scenario},
    print_stdout, runs, signals,
};

/// Runs on a fleet at the same time: each takes the agents that are free.
const MOST_ON_A_FLEET: usize = 16;
/// What the scenario of a request is called.
const SCENARIO: &str = "scenario.toml";

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

/// Where to listen, the token that is required, and what carries out runs; all mistakes at once.
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
        mistakes.add("--allow: for runs on this machine; of a fleet, each agent has its own");
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

/// Where runs take place.
enum Place {
    /// On the agents at this server.
    Fleet(Server),
    /// On this machine, to these targets.
    Here(Allow),
}

impl Place {
    fn is_fleet(&self) -> bool {
        matches!(self, Place::Fleet(_))
    }

    /// The flags of a run; and what is wrong with those that there are not, or that would read or write files here, call another
    /// host, or choose another place.
    fn read_flags(&self, spec: &Spec) -> Result<(Flags, Vec<String>), Vec<String>> {
        let unknown = |pair: &(String, String)| Flags::from_pairs(slice::from_ref(pair)).err();
        let mut mistakes: Vec<String> = spec.flags.iter().filter_map(unknown).collect();
        mistakes.dedup();
        let known: Vec<_> = spec.flags.iter().filter(|&pair| unknown(pair).is_none()).cloned().collect();
        let flags = Flags::from_pairs(&known).map_err(|why| vec![why])?;
        let refused = flags.refused(|flag, _| self.refuses(flag).map(str::to_owned));
        mistakes.extend(refused.iter().map(ToString::to_string));
        if flags.get(&flag::TARGET).is_some() {
            mistakes.push("flags.target: use target, beside flags".to_owned());
        }
        let target = spec.target.as_deref().unwrap_or(SCENARIO);
        Ok((flags.without(&flag::TARGET).with(&flag::TARGET, target), mistakes))
    }

    /// Why a flag is not for those who send requests, if so.
    fn refuses(&self, flag: &Flag) -> Option<&'static str> {
        if flag.name == flag::OBSERVE.name {
            return Some("not by this API, whose host would call any address for it; remove it");
        }
        let is_file = flag.name.ends_with("-file");
        let is_taken = flag.name == flag::TAG.name
            || self.is_fleet()
                && [flag::AGENTS.name, flag::ON_LOST.name, flag::SHARE.name].contains(&flag.name);
        (!is_taken && (!flag.role.is_of_plan() || is_file)).then_some("not by this API; remove it")
    }
}

/// The flag, or key of a scenario, that a mistake is about: both have one name.
fn place_of(mistake: &str) -> &str {
    mistake.split(": ").next().unwrap_or_default().trim_start_matches("--")
}

impl Runner for Place {
    fn read(&self, spec: &Spec, id: &str) -> Result<Ready, Vec<String>> {
        let (flags, refused) = self.read_flags(spec)?;
        let whole = spec.scenario.clone().map(|text| Scenario { text });
        let mut mistakes = Mistakes::default();
        let job = job::read(&flags.clone().without(&flag::TAG), whole.as_ref(), &mut mistakes);
        let refused = [refused, mistakes.end(()).err().map(|f| f.lines).unwrap_or_default()].concat();
        let scenario = spec.scenario.as_deref();
        let sent = |name: &str| {
            let file = spec.files.iter().find(|(file, _)| file == name);
            file.map(|(_, text)| Source::Text(text.clone()))
        };
        let plan = plans::elsewhere(&flags, scenario, sent).and_then(|plan| {
            let text = |name: &str| match sent(name) {
                Some(Source::Text(text)) => Ok(text),
                _ => Err("it is not among the files of the request".to_owned()),
            };
            plans::with_certificates(plan, text).map_err(Failure::usage).and_then(contents::none)
        });
        let plan = match plan {
            Ok(plan) if refused.is_empty() => plan,
            read => {
                // One line for each: what is refused is not read.
                let is_new = |line: &String| refused.iter().all(|other| place_of(other) != place_of(line));
                let others = read.err().map(|failure| failure.lines).unwrap_or_default();
                let others: Vec<String> = others.into_iter().filter(is_new).collect();
                return Err([refused, others].concat());
            }
        };
        if let Place::Here(allow) = self {
            allow
                .check(&plan)
                .map_err(|why| vec![why.replace("start the agent with", "start throng fleet serve with")])?;
        }
        let tags: Vec<String> = flags.all(&flag::TAG).map(str::to_owned).collect();
        let record = RunRecord {
            words: words(&flags),
            api_id: Some(id.to_owned()),
            ..runs::record(units::date().into(), scenario, &tags)
        };
        let target = spec.target.clone().unwrap_or_else(|| plan.populations[0].target.text.clone());
        let work: Work = match self {
            Place::Here(_) => here(plan, record.clone()),
            Place::Fleet(server) => on_fleet(server.clone(), plan, job, record.clone()),
        };
        Ok(Ready { target, record, work })
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

    fn report(&self, stored: &str) -> Result<Report, String> {
        let failed = |failure: Failure| failure.lines.join("; ");
        let (store, run) = runs::find(stored).map_err(failed)?;
        let mut report = Report::of(&run);
        store.replay(&run, &mut [&mut report]).map_err(|why| why.to_string())?;
        Ok(report)
    }

    fn forget(&self, stored: &str) -> Result<(), String> {
        // One that was deleted from the store is forgotten, too.
        let Ok((store, run)) = runs::find(stored) else { return Ok(()) };
        store.unlist(&run).map(|_| ()).map_err(|why| why.to_string())
    }

    fn agents(&self) -> Result<Vec<Value>, String> {
        let Place::Fleet(server) = self else {
            let here = json!({ "id": "this machine", "version": env!("CARGO_PKG_VERSION"), "cores": plans::cores() });
            return Ok(vec![here]);
        };
        let link = nats::link("--nats", server).map_err(|failure| failure.lines.join("; "))?;
        let agents = Operator::new(link).ask(&[], &Request::Status)?;
        Ok(agents.iter().map(agent).collect())
    }

    fn most(&self) -> usize {
        match self {
            Place::Fleet(_) => MOST_ON_A_FLEET,
            Place::Here(_) => 1,
        }
    }
}

fn past_run(run: StoredRun) -> Option<Past> {
    let StoredRun { id: stored, record, figures, .. } = run;
    Some(Past {
        id: record.api_id?,
        // As it was asked for.
        target: record.words.get(1).filter(|word| *word != SCENARIO).cloned().unwrap_or(record.header.target),
        began: record.began_ms,
        connections: record.header.connections,
        summary: figures,
        stored,
    })
}

/// As `throng fleet ls --json` has it, with its id in front.
fn agent(status: &fleet::AgentStatus) -> Value {
    let mut json = serde_json::to_value(status).expect("a status is data");
    json["id"] = status.identity.id.as_str().into();
    json
}

/// As `throng run` would have been typed.
fn words(flags: &Flags) -> Vec<String> {
    let target = flags.get(&flag::TARGET).unwrap_or_default().to_owned();
    let typed = flags.clone().without(&flag::TARGET).pairs().into_iter();
    let typed = typed.flat_map(|(name, value)| [format!("--{name}"), value]).filter(|word| !word.is_empty());
    ["run".to_owned(), target].into_iter().chain(typed).collect()
}

fn here(mut plan: Plan, record: RunRecord) -> Work {
    Box::new(move |sink| {
        run::settle(&mut plan, &host::Root::real(), true, &mut message);
        applied(&plan, None, record, &mut [sink])
    })
}

fn on_fleet(server: Server, mut plan: Plan, job: Job, record: RunRecord) -> Work {
    Box::new(move |sink| {
        let link = nats::link("--nats", &server).map_err(|failure| failure.lines)?;
        let mut fleet =
            Fleet::gather(link, &plan, &job, &mut |line| message(line)).map_err(|why| vec![why])?;
        plan.seed = fleet.seed();
        // As of `throng fleet set`.
        let mut commands = fleet.commands().map_err(|why| vec![why])?;
        applied(&plan, Some(&mut fleet), record, &mut [sink, &mut commands])
    })
}

fn applied(
    plan: &Plan,
    fleet: Option<&mut Fleet>,
    record: RunRecord,
    sinks: &mut [&mut dyn Sink],
) -> Result<Finished, Vec<String>> {
    let applied = apply(plan, fleet, Live::Off, record, &Interrupt::default(), sinks);
    let Applied { summary, kept } = applied.map_err(|failure| failure.lines)?;
    Ok(Finished { summary, stored: kept.map(|kept| kept.id) })
}
