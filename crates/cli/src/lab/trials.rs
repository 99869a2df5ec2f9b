//! The experiments of a lab, one after the other: server up, `throng run` against it, server down, then and now.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use host::Root;
use lab::{Experiment, Lab, Running, SCENARIO, Server, Trial, Values, then_and_now};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use units::{Clock, Nanos};

use super::table;
use crate::{Failure, answer, args::LabRunArgs, folders, run as verb, say, signals};

/// A run that was told to end has so long for it.
const PATIENCE: Nanos = Nanos::from_secs(15);
/// So many open files a server needs besides its connections.
const OTHER_FILES: u64 = 500;
/// The least heap, MiB.
const LEAST_HEAP: f64 = 256.0;

/// One experiment with one server, and one environment of it.
pub(super) struct Chosen<'a> {
    server: &'a Server,
    experiment: &'a Experiment,
    variant: Option<(&'a str, &'a BTreeMap<String, String>)>,
}

/// Those that were asked for: each of `wanted` is the name of an experiment, of a server or of a variant.
pub(super) fn trials<'a>(lab: &'a Lab, wanted: &[String]) -> Vec<Chosen<'a>> {
    let mut all = Vec::new();
    for experiment in &lab.experiments {
        for server in lab.servers_of(experiment) {
            if experiment.variants.is_empty() {
                all.push(Chosen { server, experiment, variant: None });
            }
            let variants = experiment.variants.iter().map(|(name, environment)| (name.as_str(), environment));
            all.extend(variants.map(|variant| Chosen { server, experiment, variant: Some(variant) }));
        }
    }
    let is = |chosen: &Chosen, name: &String| {
        [
            Some(chosen.experiment.name.as_str()),
            Some(&*chosen.server.name),
            chosen.variant.map(|(name, _)| name),
        ]
        .contains(&Some(name.as_str()))
    };
    all.retain(|chosen| wanted.iter().all(|name| is(chosen, name)));
    all
}

/// Where a lab works, and how large.
pub(super) struct Settings {
    values: Values,
    work: PathBuf,
    throng: PathBuf,
}

impl Settings {
    pub(super) fn new(lab: &Lab, scale: f64) -> Result<Settings, Failure> {
        let none = "no place to build in: set HOME or XDG_CACHE_HOME to a folder";
        let work = folders::cache().ok_or_else(|| Failure::machine(none))?.join("labs").join(&lab.name);
        // Of this throng alone: what an earlier one logged stays.
        let log = work.join(format!("log-{}", std::process::id()));
        fs::create_dir_all(&log).map_err(|e| Failure::machine(format!("{}: {e}", log.display())))?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let named = BTreeMap::from([
            ("folder", path(&lab.folder)),
            ("work", path(&work)),
            ("log", path(&log)),
            ("cores", verb::cores().to_string()),
        ]);
        let throng = env::current_exe().map_err(Failure::machine)?;
        Ok(Settings { values: Values { scale, named }, work, throng })
    }

    pub(super) fn start(
        &self,
        lab: &Lab,
        server: &Server,
        processes: u8,
        variant: &[(String, String)],
    ) -> Result<Running, String> {
        let mut values = self.values.clone();
        if let Some(heap) = &server.heap {
            values.named.insert("heap", heap_mib(heap, values.scale / f64::from(processes.max(1)))?);
        }
        let throng = ("THRONG".to_owned(), self.throng.to_string_lossy().into_owned());
        let environment = [&[throng], variant].concat();
        Running::start(lab, server, processes, &values, &environment, &self.work)
    }

    /// With what stands for the server's addresses.
    fn values_at(&self, host: &str) -> Values {
        let mut values = self.values.clone();
        for (name, scheme) in [("url", "http"), ("ws", "ws"), ("tcp", "tcp")] {
            values.named.insert(name, format!("{scheme}://{host}"));
        }
        values
    }
}

/// `3g` at a scale, in MiB.
fn heap_mib(heap: &str, scale: f64) -> Result<String, String> {
    let (number, unit) = heap.split_at(heap.len().saturating_sub(1));
    let mib = match unit {
        "g" => 1024.0,
        "m" => 1.0,
        _ => return Err(format!("heap: write 3g or 512m: {heap}")),
    };
    let number: f64 = number.parse().map_err(|_| format!("heap: write 3g or 512m: {heap}"))?;
    Ok(format!("{:.0}", (number * mib * scale).max(LEAST_HEAP)))
}

/// Runs what was asked for; returns the exit status: 0 where all went as expected.
pub(super) fn run(lab: &Lab, args: &LabRunArgs) -> Result<u8, Failure> {
    let chosen = trials(lab, &args.variant);
    if chosen.is_empty() {
        let why = format!(
            "--variant: {} has no such experiment, server or variant: {}",
            lab.name,
            args.variant.join(" ")
        );
        return Err(Failure::words([why]));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let order = stop.clone();
    signals::on_signal(move || order.store(true, Relaxed)).map_err(Failure::machine)?;
    let (mut worst, mut ran) = (0, 0);
    for chosen in &chosen {
        let missing = if args.at.is_some() { Vec::new() } else { lab::missing(chosen.server) };
        if !missing.is_empty() {
            let (lab, server) = (&lab.name, &chosen.server.name);
            say(&format!(
                "throng: {lab} · {} · {server}: not run: {}",
                chosen.experiment.name,
                missing.join("; ")
            ));
            continue;
        }
        ran += 1;
        worst = worst.max(one(lab, chosen, args, &stop)?);
        if stop.load(Relaxed) {
            return Ok(130);
        }
    }
    if ran == 0 {
        return Err(Failure::machine(format!("nothing of {} can run here", lab.name)));
    }
    Ok(worst)
}

/// One trial: 0 where it went as expected, else 1.
fn one(lab: &Lab, chosen: &Chosen, args: &LabRunArgs, stop: &AtomicBool) -> Result<u8, Failure> {
    let Chosen { server, experiment, variant } = chosen;
    let scale = args.scale.unwrap_or(experiment.scale);
    let settings = Settings::new(lab, scale)?;
    let size = (experiment.size(&lab.folder) as f64 * scale).round() as u64;
    let processes = if args.at.is_some() { 1 } else { processes(server, size) };
    let environment: Vec<(String, String)> = variant
        .map(|(_, all)| all.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
        .unwrap_or_default();
    let running = match &args.at {
        Some(_) => None,
        None => Some(settings.start(lab, server, processes, &environment).map_err(Failure::machine)?),
    };
    let host = match (&args.at, &running) {
        (Some(url), _) => {
            url.split_once("://").map_or(url.as_str(), |(_, rest)| rest).trim_end_matches('/').to_owned()
        }
        (None, Some(running)) if processes > 1 => {
            format!("127.0.0.{{1..{processes}}}:{}", running.addresses[0].port())
        }
        (None, running) => running.as_ref().map_or(String::new(), |running| running.addresses[0].to_string()),
    };
    let trial =
        experiment.trial(&lab.folder, &settings.values_at(&host)).map_err(|why| Failure::words([why]))?;
    let name = title(lab, chosen, scale, processes);
    say(&format!("throng: {name}"));
    let summary = apply(&settings, lab, chosen, &trial, stop)?;
    drop(running);
    let rows = then_and_now(&experiment.then, &summary);
    let mut text = table(&name, &rows);
    let headline = summary["headline"].as_str().unwrap_or_default();
    text += &format!("  {headline}\n");
    text.extend(experiment.look.iter().map(|look| format!("  look at: {look}\n")));
    answer(&text)?;
    Ok(u8::from(!is_expected(experiment, &summary)))
}

/// Whether it was stopped as it was meant to be, or met what is expected.
fn is_expected(experiment: &Experiment, summary: &Value) -> bool {
    match &experiment.limit {
        Some(cause) => summary.pointer("/limit/cause").and_then(Value::as_str) == Some(cause),
        None => ["pass", "found", "not-reached"]
            .contains(&summary["verdict"].as_str().or(summary["outcome"].as_str()).unwrap_or_default()),
    }
}

/// As many as it takes where a process may not open all the files that it would need.
fn processes(server: &Server, size: u64) -> u8 {
    let hard = host::open_files(&Root::real()).map_or(u64::MAX, |files| files.hard);
    match server.connections_each {
        Some(each) if size + OTHER_FILES > hard => size.div_ceil(each.max(1)).clamp(1, 250) as u8,
        _ => 1,
    }
}

fn title(lab: &Lab, chosen: &Chosen, scale: f64, processes: u8) -> String {
    let Chosen { server, experiment, variant } = chosen;
    let variant = variant.map_or(String::new(), |(name, _)| format!(", {name}"));
    let several = if processes > 1 { format!(", {processes} processes") } else { String::new() };
    format!(
        "{} · {} · {}{variant} (scale {scale}{several}): {}",
        lab.name, experiment.name, server.name, experiment.title
    )
}

/// `throng run`, or `find`, as a process of its own; its summary.
fn apply(
    settings: &Settings,
    lab: &Lab,
    chosen: &Chosen,
    trial: &Trial,
    stop: &AtomicBool,
) -> Result<Value, Failure> {
    let Chosen { server, experiment, .. } = chosen;
    let file = |name: String| settings.work.join(name);
    let failed = |path: &Path, e: std::io::Error| Failure::machine(format!("{}: {e}", path.display()));
    let (json, scenario) =
        (file(format!("{}.json", experiment.name)), file(format!("{}.toml", experiment.name)));
    let _ = fs::remove_file(&json);
    if let Some(text) = &trial.scenario {
        fs::write(&scenario, text).map_err(|e| failed(&scenario, e))?;
        // Tables that it names lie beside it.
        copy_tables(&lab.folder, &settings.work).map_err(|e| failed(&lab.folder, e))?;
    }
    let scenario = scenario.to_string_lossy().into_owned();
    let words =
        trial.words.iter().map(|word| if word == SCENARIO { scenario.as_str() } else { word.as_str() });
    let mut command = Command::new(&settings.throng);
    command.args(words).arg("--json").arg(&json);
    if experiment.find.is_empty() {
        let tag = format!("lab.{}.{}.{}", lab.name, experiment.name, server.name);
        command.args(["--tag", &tag]);
        command.args(experiment.format.iter().flat_map(|tool| ["--format", tool.as_str()]));
    }
    let child = command.spawn().map_err(|e| failed(&settings.throng, e))?;
    let status = wait(child, stop).map_err(Failure::machine)?;
    let text = fs::read_to_string(&json)
        .map_err(|_| Failure::machine(format!("{}: throng ended with {status}", experiment.name)))?;
    serde_json::from_str(&text).map_err(|e| Failure::machine(format!("{}: {e}", json.display())))
}

fn copy_tables(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in
        fs::read_dir(from)?.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "csv"))
    {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Waits for its end. A signal of the terminal it has got itself; one that came to us alone is passed on.
fn wait(mut child: Child, stop: &AtomicBool) -> std::io::Result<i32> {
    let (clock, mut told_at) = (Clock::start(), None);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code().unwrap_or(-1));
        }
        if stop.load(Relaxed) && clock.now() > *told_at.get_or_insert(clock.now()) + PATIENCE {
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            told_at = Some(clock.now());
        }
        thread::sleep(Duration::from_millis(50));
    }
}
