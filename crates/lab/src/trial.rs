//! A trial: starts the server, applies the load, stops the server, and assembles the outcome.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use host::Root;
use serde_json::Value;
use units::{Date, Nanos};

use crate::{
    agents::Agents,
    case::Case,
    clients::Clients,
    curve::{Second, intervals},
    error::Error,
    experiment::Experiment,
    file::{Lab, Server},
    load::Load,
    needs,
    outcome::{Outcome, SCHEMA, Subject},
    pauses::{self, pauses},
    process::{self, Running},
    template::{Environment, Values},
    workspace::Workspace,
};

/// Number of intervals in the stored curve.
const INTERVALS: usize = 40;
/// Number of the longest pauses that are stored.
const PAUSES: usize = 10;
/// Default maximum number of repetitions if throng itself was the limit. If throng shares the machine with the server, a Java virtual
/// machine that warms up takes all processors for a while.
pub const REPEATS: u32 = 2;

/// How and where to run trials.
pub struct Runner<'a> {
    /// The folder with a folder for each lab, for builds and logs.
    pub folder: PathBuf,
    /// The run store to which `throng run` writes, if any.
    pub store: Option<PathBuf>,
    /// The scale; `None` for that of each experiment.
    pub scale: Option<f64>,
    /// Time at full load; `None` for that of each experiment.
    pub time: Option<Nanos>,
    /// A server that runs already; `None` to start the lab's own.
    pub at: Option<Elsewhere>,
    /// Maximum number of repetitions if throng itself was the limit.
    pub repeats: u32,
    /// Becomes true when the user interrupts.
    pub stop: &'a AtomicBool,
    /// Prints a line about the progress.
    pub progress: &'a dyn Fn(&str),
}

/// A server that runs already. If it speaks TLS, the system must trust its certificate.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// Host and port.
    pub host: String,
    /// Whether it speaks TLS.
    pub is_secured: bool,
}

impl Runner<'_> {
    /// Messages about what a case lacks on this machine, each with its fix.
    pub fn missing(&self, case: &Case) -> Vec<String> {
        if self.at.is_some() { Vec::new() } else { needs::missing(case.server) }
    }

    /// Builds a case's server ahead of [`Runner::run`]: a build may download packages, a run does not.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(&self, case: &Case) -> Result<(), Error> {
        let (server, purpose) = (case.server, format!("build-{}", case.server.name));
        let workspace = Workspace::new(&self.folder, case.lab, Values::default(), &purpose)?;
        process::build(&workspace, server, &workspace.values, self.progress)
    }

    /// Starts a server without a load. `variant` overrides its environment.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn start(&self, lab: &Lab, server: &Server, variant: &Environment) -> Result<Running, Error> {
        let values = Values { scale: self.scale.unwrap_or(1.0), share: 1.0, ..Values::default() };
        let workspace = Workspace::new(&self.folder, lab, values, &format!("up-{}", server.name))?;
        Running::start(&workspace, server, 0, variant, self.progress)
    }

    /// Runs a case, and repeats it if throng itself was the limit.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn run(&self, case: &Case) -> Result<Outcome, Error> {
        let mut repeats = 0;
        loop {
            let (outcome, _) = Trial::start(self, case, false)?.end(&mut |_| {})?;
            let is_invalid = outcome.text("verdict") == Some("invalid");
            if !is_invalid || repeats == self.repeats || self.stop.load(Relaxed) {
                return Ok(outcome);
            }
            (self.progress)(&format!("repeating: {}", outcome.headline()));
            repeats += 1;
        }
    }
}

/// A trial in progress.
pub(crate) struct Trial<'a> {
    runner: &'a Runner<'a>,
    experiment: &'a Experiment,
    log: PathBuf,
    // Dropped before the server, so that clients do not see the server end.
    load: Box<dyn Load>,
    running: Option<Running>,
    /// The outcome, still without the results.
    outcome: Outcome,
}

impl<'a> Trial<'a> {
    /// Starts the server, then the load. If `is_quiet`, the load prints nothing each second.
    pub(crate) fn start(runner: &'a Runner<'a>, case: &Case<'a>, is_quiet: bool) -> Result<Trial<'a>, Error> {
        let Case { lab, experiment, server, variant } = *case;
        let scale = runner.scale.unwrap_or(experiment.scale);
        let share = scale / experiment.scale;
        let values = Values { scale, time: runner.time, share, named: BTreeMap::new() };
        let purpose = case.names().collect::<Vec<_>>().join("-").replace([' ', '/', ','], "");
        let mut workspace = Workspace::new(&runner.folder, lab, values, &purpose)?;
        let size = (experiment.size(&lab.folder) as f64 * scale).round() as u64;
        let is_here = runner.at.is_none();
        let (none, own) = (Environment::new(), variant.map(|(_, environment)| environment));
        let start = || Running::start(&workspace, server, size, own.unwrap_or(&none), runner.progress);
        let running = is_here.then(start).transpose()?;
        if runner.stop.load(Relaxed) {
            return Err(Error::Interrupted);
        }
        let trusted = server.certificate.as_ref().filter(|_| is_here);
        let trusted = trusted.map(|file| workspace.values.fill(file)).transpose().map_err(Error::Machine)?;
        match (&running, &runner.at) {
            (Some(running), _) => workspace.set_host(&running.host(), trusted.is_some()),
            (None, at) => at.iter().for_each(|at| workspace.set_host(&at.host, at.is_secured)),
        }
        let mut outcome = Outcome {
            schema: SCHEMA.to_owned(),
            throng: env!("CARGO_PKG_VERSION").to_owned(),
            machine: host::facts(&Root::real()),
            subject: Subject {
                lab: lab.name.clone(),
                experiment: experiment.name.clone(),
                server: server.name.clone(),
                variant: variant.filter(|_| is_here).map(|(name, _)| name.to_owned()),
                scale,
                for_s: runner.time.map(Nanos::secs_f64),
                elsewhere: runner.at.as_ref().map(|at| at.host.clone()),
            },
            server_version: if is_here { workspace.version(server) } else { String::new() },
            processes: running.as_ref().map_or(1, |running| running.addresses.len() as u8),
            clients: experiment.clients.max(experiment.agents),
            heap_mib: running.as_ref().and_then(|running| running.heap_mib),
            ..Outcome::default()
        };
        (runner.progress)(&outcome.title(lab));
        let load: Box<dyn Load> = match experiment.agents {
            0 => {
                let trusted = trusted.as_deref();
                Box::new(Clients::start(&workspace, experiment, &outcome.subject, trusted, is_quiet)?)
            }
            _ => Box::new(Agents::start(&workspace, experiment, &outcome.subject)?),
        };
        outcome.words = load.args();
        Ok(Trial { runner, experiment, log: workspace.log, load, running, outcome })
    }

    /// Waits for the end of the load and stops the server. `meanwhile` is called repeatedly until then.
    pub(crate) fn end(
        mut self,
        meanwhile: &mut dyn FnMut(&mut dyn Load),
    ) -> Result<(Outcome, Vec<Second>), Error> {
        self.load.wait(self.runner.stop, meanwhile);
        let (summary, seconds) = self.load.results(self.runner.store.as_deref())?;
        drop(self.load);
        drop(self.running.take());
        let mut outcome = self.outcome;
        outcome.at = Date::from(units::date()).to_string();
        outcome.curve = intervals(&seconds, INTERVALS);
        outcome.pauses = pauses::longest(pauses(&self.log, &seconds), PAUSES);
        outcome.pauses.sort_by(|a, b| a.time.cmp(&b.time));
        outcome.summary = shortened(summary, self.experiment.scenario.as_deref());
        outcome.expected = is_expected(self.experiment, &outcome);
        Ok((outcome, seconds))
    }
}

/// The summary without the samples of each second, which are in the run store. `scenario` replaces the target's name.
fn shortened(mut summary: Value, scenario: Option<&str>) -> Value {
    if let Some(fields) = summary.as_object_mut() {
        fields.extend(scenario.map(|name| ("target".to_owned(), Value::from(name))));
        fields.remove("observed");
        fields.remove("rig");
        if fields.get("populations").and_then(Value::as_object).is_some_and(|all| all.len() == 1) {
            fields.remove("populations");
        }
    }
    summary
}

/// Whether the trial reached the limit that the experiment expects, or passed if it expects none.
fn is_expected(experiment: &Experiment, outcome: &Outcome) -> bool {
    match &experiment.limit {
        Some(cause) => outcome.text("limit.cause") == Some(cause),
        None => ["pass", "found", "not-reached"]
            .contains(&outcome.text("verdict").or(outcome.text("outcome")).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_that_cannot_run_leaves_no_log_folder() {
        let root = std::env::temp_dir().join(format!("throng-lab-trial-{}", std::process::id()));
        let lab: Lab = toml::from_str(
            r#"
            title = "t"
            soak = { name = "soak", title = "t", words = ["tcp://{address}"] }
            experiment = []
            server = [
                { name = "missing", start = "true", needs = [{ program = "no-such-program", package = "p" }] },
                { name = "unbuilt", start = "true", build = ["exit 7"] },
            ]
            "#,
        )
        .unwrap();
        let lab = Lab { name: "l".to_owned(), folder: root.join("source"), ..lab };
        std::fs::create_dir_all(&lab.folder).unwrap();
        let (stop, folder) = (AtomicBool::new(false), root.join("labs"));
        let (work, at) = (folder.join("l"), None);
        let runner = Runner {
            folder,
            store: None,
            scale: None,
            time: None,
            at,
            repeats: 0,
            stop: &stop,
            progress: &|_| {},
        };
        let check = |server: &Server, expected: &str| {
            let case = Case { lab: &lab, experiment: lab.soak.as_ref().unwrap(), server, variant: None };
            let up = runner.start(&lab, server, &Environment::new()).err();
            let soak = Trial::start(&runner, &case, true).err();
            for error in [up, soak] {
                assert!(matches!(&error, Some(Error::Machine(why)) if why.contains(expected)), "{error:?}");
            }
            let left =
                std::fs::read_dir(&work).into_iter().flatten().flatten().map(|entry| entry.file_name());
            left.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(check(&lab.servers[0], "no-such-program: apt-get install p"), [""; 0]);
        assert!(!work.exists());
        assert_eq!(check(&lab.servers[1], "build failed: exit status 7"), ["build-unbuilt-1.log"]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn an_experiment_ends_as_it_is_meant_to() {
        let check = |limit: Option<&str>, summary: Value, expected: bool| {
            let mut experiment: Experiment = toml::from_str("name = \"n\"\ntitle = \"t\"").unwrap();
            experiment.limit = limit.map(str::to_owned);
            let outcome = Outcome { summary, ..Outcome::default() };
            assert_eq!(is_expected(&experiment, &outcome), expected, "{}", outcome.summary);
        };
        check(None, json!({"verdict": "pass"}), true);
        check(None, json!({"verdict": "fail", "limit": {"cause": "ports"}}), false);
        check(None, json!({"outcome": "found"}), true);
        check(None, json!({"outcome": "impossible"}), false);
        check(Some("ports"), json!({"verdict": "fail", "limit": {"cause": "ports"}}), true);
        check(Some("ports"), json!({"verdict": "pass", "limit": null}), false);
    }

    #[test]
    fn a_summary_is_stored_without_its_samples() {
        let summary = |populations: Value| json!({"target": "log/hold-1.toml", "observed": {}, "rig": null, "seed": 1, "populations": populations});
        let check = |populations: Value, scenario: Option<&str>, expected: Value| {
            assert_eq!(shortened(summary(populations), scenario), expected);
        };
        check(json!({"load": {}}), None, json!({"target": "log/hold-1.toml", "seed": 1}));
        let both = json!({"a": {}, "b": {}});
        let named = json!({"target": "hold.toml", "seed": 1, "populations": both});
        check(both, Some("hold.toml"), named);
    }
}
