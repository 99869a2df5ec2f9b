//! The experiments of a lab, one after the other: server up, `throng run` against it, server down, then and now.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use host::Root;
use lab::{
    Experiment, Lab, Machine, Outcome, Running, SCHEMA, Second, Server, Subject, Times, stretches,
    then_and_now,
};
use units::{Date, Nanos};

use super::{
    clients::{Clients, Left, Order},
    settings::{Settings, processes},
    table,
};
use crate::{EXIT_INTERRUPTED, Failure, answer, args::LabRunArgs, folders, say, signals};

/// Number of stretches stored per trial.
const STRETCHES: usize = 40;

/// A trial whose figures say nothing, for throng itself was the limit, is done again so often: where server and throng share a
/// machine, a virtual machine that warms up takes all of it for a while.
const AGAIN: u32 = 2;

/// One experiment with one server, and one environment of it.
pub(super) struct Chosen<'a> {
    pub(super) server: &'a Server,
    pub(super) experiment: &'a Experiment,
    variant: Option<(&'a str, &'a BTreeMap<String, String>)>,
}

/// How a trial is to be done.
pub(super) struct How<'a> {
    pub(super) scale: Option<f64>,
    pub(super) time: Option<Nanos>,
    pub(super) at: Option<&'a str>,
    pub(super) stop: &'a AtomicBool,
    /// Without what each run says each second.
    pub(super) quiet: bool,
}

/// Selects: each of `wanted` is the name of an experiment, a server or a variant.
///
/// # Errors
/// There is none.
pub(super) fn chosen<'a>(
    lab: &'a Lab,
    experiments: impl IntoIterator<Item = &'a Experiment>,
    wanted: &[String],
) -> Result<Vec<Chosen<'a>>, Failure> {
    let mut all = Vec::new();
    for experiment in experiments {
        for server in lab.servers_of(experiment) {
            if experiment.variants.is_empty() {
                all.push(Chosen { server, experiment, variant: None });
            }
            let variants = experiment.variants.iter().map(|(name, environment)| (name.as_str(), environment));
            all.extend(variants.map(|variant| Chosen { server, experiment, variant: Some(variant) }));
        }
    }
    let is = |chosen: &Chosen, name: &String| {
        let variant = chosen.variant.map(|(name, _)| name);
        [Some(chosen.experiment.name.as_str()), Some(&*chosen.server.name), variant]
            .contains(&Some(name.as_str()))
    };
    all.retain(|chosen| wanted.iter().all(|name| is(chosen, name)));
    if all.is_empty() {
        let wanted = wanted.join(" ");
        let why = format!("--variant: {} has no experiment, server or variant {wanted}", lab.name);
        return Err(Failure::words([why]));
    }
    Ok(all)
}

/// What is missing for it, where the server is the lab's own.
pub(super) fn missing(chosen: &Chosen, at: Option<&str>) -> Vec<String> {
    if at.is_some() { Vec::new() } else { lab::missing(chosen.server) }
}

/// Runs the selection; returns the exit status: 0 if all went as expected.
pub(super) fn run(lab: &Lab, args: &LabRunArgs) -> Result<u8, Failure> {
    let mut chosen = chosen(lab, &lab.experiments, &args.variant)?;
    if args.at.is_some() {
        // There is one server, and its environment is its own.
        chosen.dedup_by(|later, first| later.experiment.name == first.experiment.name);
    }
    let time = args.time.as_deref().map(time).transpose()?;
    let results = results(args.results.as_deref())?;
    let stop = signals::order_to_stop(false).map_err(Failure::machine)?;
    let at = args.at.as_deref().map(place).transpose()?;
    let how = How { scale: args.scale, time, at, stop: &stop, quiet: false };
    let (mut worst, mut ran) = (0, 0);
    for chosen in (0..args.times).flat_map(|_| &chosen) {
        let missing = missing(chosen, at);
        if !missing.is_empty() {
            let (lab, server) = (&lab.name, &chosen.server.name);
            let what =
                format!("{lab} · {} · {server}: not run: {}", chosen.experiment.name, missing.join("; "));
            say(&format!("throng: {what}"));
            continue;
        }
        ran += 1;
        let mut outcome = one(lab, chosen, &how)?;
        for _ in 0..AGAIN {
            if outcome.word("verdict") != Some("invalid") || stop.load(Relaxed) {
                break;
            }
            say(&format!("throng: repeating: {}", outcome.headline()));
            outcome = one(lab, chosen, &how)?;
        }
        answer(&told(lab, chosen.experiment, &outcome))?;
        if stop.load(Relaxed) {
            return Ok(EXIT_INTERRUPTED);
        }
        keep(&outcome, &results)?;
        worst = worst.max(u8::from(!outcome.expected));
    }
    if ran == 0 {
        return Err(Failure::machine(format!("no experiment of {} can run here", lab.name)));
    }
    Ok(worst)
}

fn one(lab: &Lab, chosen: &Chosen, how: &How) -> Result<Outcome, Failure> {
    let (outcome, _) = Trial::start(lab, chosen, how)?.end(&mut |_| {})?;
    Ok(outcome)
}

/// Host and port of `--at`.
pub(super) fn place(url: &str) -> Result<&str, Failure> {
    let wrong = || {
        Failure::words([format!(
            "--at: use http://HOST:PORT without a path, which comes from the \
        experiment: {url}"
        )])
    };
    let place = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    if place.is_empty() || place.contains('/') { Err(wrong()) } else { Ok(place) }
}

/// Of a command line.
pub(super) fn time(text: &str) -> Result<Nanos, Failure> {
    Nanos::parse(text).map_err(|e| Failure::words([format!("--for: {e}")]))
}

/// The file that outcomes are appended to.
pub(super) fn results(told: Option<&Path>) -> Result<PathBuf, Failure> {
    let file = results_file(told)?;
    Outcome::open(&file).map_err(|e| Failure::words([format!("--results {}: {e}", file.display())]))?;
    Ok(file)
}

pub(super) fn results_file(told: Option<&Path>) -> Result<PathBuf, Failure> {
    let none = "no folder for the results; use --results FILE, or set HOME or XDG_DATA_HOME";
    let own = || folders::data().map(|folder| folder.join("labs.jsonl"));
    told.map(Path::to_owned).or_else(own).ok_or_else(|| Failure::machine(none))
}

pub(super) fn keep(outcome: &Outcome, results: &Path) -> Result<(), Failure> {
    outcome.keep(results).map_err(|e| Failure::machine(format!("--results {}: {e}", results.display())))
}

/// A trial in progress: its server, and its clients.
pub(super) struct Trial<'a> {
    experiment: &'a Experiment,
    stop: &'a AtomicBool,
    log: PathBuf,
    // Before the server, so that no client sees its end.
    clients: Clients,
    running: Option<Running>,
    /// All but what comes of it.
    outcome: Outcome,
}

impl<'a> Trial<'a> {
    /// Server up, and the load begins.
    pub(super) fn start(lab: &'a Lab, chosen: &'a Chosen, how: &How<'a>) -> Result<Trial<'a>, Failure> {
        let Chosen { server, experiment, variant } = chosen;
        let scale = how.scale.unwrap_or(experiment.scale);
        let times = how.time.map_or(Times::Share(scale / experiment.scale), Times::Told);
        let what = [Some(&*experiment.name), Some(&*server.name), variant.map(|(name, _)| name)];
        let what = what.into_iter().flatten().collect::<Vec<_>>().join("-").replace([' ', '/', ','], "");
        let settings = Settings::new(lab, scale, times, &what)?;
        let size = (experiment.size(&lab.folder) as f64 * scale).round() as u64;
        let processes = if how.at.is_some() { 1 } else { processes(server, size) };
        let environment: Vec<(String, String)> = variant
            .map(|(_, all)| all.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
            .unwrap_or_default();
        let running = match how.at {
            Some(_) => None,
            None => Some(settings.start(lab, server, processes, &environment).map_err(Failure::machine)?),
        };
        if how.stop.load(Relaxed) {
            return Err(Failure { status: EXIT_INTERRUPTED, lines: Vec::new() });
        }
        let host = match (how.at, &running) {
            (Some(place), _) => place.to_owned(),
            (None, Some(running)) if processes > 1 => {
                format!("127.0.0.{{1..{processes}}}:{}", running.addresses[0].port())
            }
            (None, running) => {
                running.as_ref().map_or(String::new(), |running| running.addresses[0].to_string())
            }
        };
        let is_here = how.at.is_none();
        // A variant may have its own.
        let own = environment.iter().find(|(name, _)| name == "HEAP").and_then(|(_, mib)| mib.parse().ok());
        let heap = own.or(settings.heap_mib(server, processes).map_err(Failure::machine)?);
        let facts = host::facts(&Root::real());
        let mut outcome = Outcome {
            schema: SCHEMA.to_owned(),
            throng: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine { kernel: facts.kernel, cores: facts.cores, memory_bytes: facts.memory_bytes },
            subject: Subject {
                lab: lab.name.clone(),
                experiment: experiment.name.clone(),
                server: server.name.clone(),
                variant: variant.filter(|_| is_here).map(|(name, _)| name.to_owned()),
                scale,
                for_s: how.time.map(Nanos::secs_f64),
                elsewhere: how.at.map(str::to_owned),
            },
            server_version: if is_here { settings.version(lab, server) } else { String::new() },
            processes,
            clients: experiment.clients,
            heap_mib: heap.filter(|_| is_here),
            ..Outcome::default()
        };
        say(&format!("throng: {}", outcome.title(lab)));
        let order = Order {
            lab,
            experiment,
            values: settings.values_at(&host),
            tag: format!("lab.{}.{}.{}", lab.name, experiment.name, server.name),
            quiet: how.quiet,
            is_here,
        };
        let clients = Clients::start(&settings, &order)?;
        outcome.words = clients.words();
        Ok(Trial { experiment, stop: how.stop, log: settings.log, clients, running, outcome })
    }

    /// Waits for its end, and stops the server. `meanwhile` is called every now and then.
    pub(super) fn end(
        mut self,
        meanwhile: &mut dyn FnMut(&mut Clients),
    ) -> Result<(Outcome, Vec<Second>), Failure> {
        self.clients.wait(self.stop, meanwhile).map_err(Failure::machine)?;
        let Left { summary, seconds } = self.clients.left()?;
        drop(self.running.take());
        let mut outcome = self.outcome;
        outcome.at = Date::from(units::date()).to_string();
        outcome.curve = stretches(&seconds, STRETCHES);
        outcome.pauses = longest(lab::pauses(&self.log, &seconds));
        outcome.summary = summary;
        outcome.expected = is_expected(self.experiment, &outcome);
        Ok((outcome, seconds))
    }
}

/// The ten longest, in the order of time.
fn longest(mut pauses: Vec<lab::Pause>) -> Vec<lab::Pause> {
    pauses.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    pauses.truncate(10);
    pauses.sort_by(|a, b| a.time.cmp(&b.time));
    pauses
}

/// Whether it was stopped as it was meant to be, or met what is expected.
fn is_expected(experiment: &Experiment, outcome: &Outcome) -> bool {
    match &experiment.limit {
        Some(cause) => outcome.word("limit.cause") == Some(cause),
        None => ["pass", "found", "not-reached"]
            .contains(&outcome.word("verdict").or(outcome.word("outcome")).unwrap_or_default()),
    }
}

/// Then and now of a trial, under its name.
pub(super) fn told(lab: &Lab, experiment: &Experiment, outcome: &Outcome) -> String {
    let mut text =
        table(&outcome.title(lab), outcome.subject.scale, &then_and_now(&experiment.then, &[outcome]));
    text += &format!("  {}\n", outcome.headline());
    text.extend(experiment.look.iter().map(|look| format!("  look at: {look}\n")));
    text
}
