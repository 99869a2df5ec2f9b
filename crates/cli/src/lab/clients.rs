//! `throng run`, or `find`, as processes of their own: one, or several that share the load, and their summaries as one.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use lab::{Experiment, Lab, SCENARIO, Second, Values};
use rustix::process::{Pid, Signal, kill_process};
use samples::{Summary, Tick};
use serde_json::{Value, json};
use units::{Clock, Date, Nanos};

use super::{combined::combined, settings::Settings};
use crate::{EXIT_USAGE, Failure, runs};

/// Time for a run to end after a signal.
const PATIENCE: Nanos = Nanos::from_secs(15);
/// Looked at so often.
const LOOK: Duration = Duration::from_millis(50);

/// Those of a trial that is under way.
pub(super) struct Clients {
    each: Vec<Client>,
    /// All of this trial's runs have it.
    tag: String,
    /// The experiment's.
    scenario: Option<String>,
}

struct Client {
    child: Child,
    /// Its arguments, without outputs.
    words: Vec<String>,
    summary: PathBuf,
    seconds: PathBuf,
    /// Of one that says nothing to the person: what it said.
    said: Option<PathBuf>,
    /// What was read of `seconds`, and how far.
    read: Vec<Second>,
    offset: u64,
}

/// What a trial left.
pub(super) struct Left {
    pub(super) summary: Value,
    pub(super) seconds: Vec<Second>,
}

/// What all clients of a trial have in common.
pub(super) struct Order<'a> {
    pub(super) lab: &'a Lab,
    pub(super) experiment: &'a Experiment,
    /// With the server's addresses.
    pub(super) values: Values,
    /// What their runs are called.
    pub(super) tag: String,
    /// They say nothing each second.
    pub(super) quiet: bool,
    /// The server is on loopback.
    pub(super) is_here: bool,
}

impl Clients {
    /// Starts those of an experiment, each with its part of the load.
    pub(super) fn start(settings: &Settings, order: &Order) -> Result<Clients, Failure> {
        let now = Date::from(units::date()).0;
        let tag = format!("lab-{}-{now}", std::process::id());
        let scenario = order.experiment.scenario.clone();
        let mut clients = Clients { each: Vec::new(), tag, scenario };
        for nth in 1..=order.experiment.clients {
            let client = Client::start(settings, order, nth, &clients.tag)?;
            clients.each.push(client);
        }
        Ok(clients)
    }

    /// The arguments of the first, without outputs.
    pub(super) fn words(&self) -> Vec<String> {
        self.each.first().map_or(Vec::new(), |client| client.words.clone())
    }

    /// Whether one of them still runs.
    ///
    /// # Errors
    /// The kernel does not say.
    pub(super) fn is_under_way(&mut self) -> std::io::Result<bool> {
        let mut any = false;
        for client in &mut self.each {
            any |= client.child.try_wait()?.is_none();
        }
        Ok(any)
    }

    /// Waits for their end. A signal of the terminal they have got themselves; one that came to us alone is passed on.
    /// `meanwhile` is called every now and then.
    pub(super) fn wait(
        &mut self,
        stop: &AtomicBool,
        meanwhile: &mut dyn FnMut(&mut Clients),
    ) -> std::io::Result<()> {
        let (clock, mut told_at) = (Clock::start(), None);
        while self.is_under_way()? {
            if stop.load(Relaxed) && clock.now() > *told_at.get_or_insert(clock.now()) + PATIENCE {
                for client in &self.each {
                    let _ = kill_process(Pid::from_child(&client.child), Signal::TERM);
                }
                told_at = Some(clock.now());
            }
            meanwhile(self);
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Seconds so far, from this one on, those of several clients together.
    pub(super) fn seconds(&mut self, from: usize) -> Vec<Second> {
        self.each.iter_mut().for_each(Client::read_on);
        let since = |client: &Client| client.read.iter().skip(from).cloned().collect();
        Second::together(self.each.iter().map(since).collect())
    }

    /// What they left, once they have ended.
    pub(super) fn left(&mut self) -> Result<Left, Failure> {
        let mut summaries = self.each.iter_mut().map(Client::summary).collect::<Result<Vec<Value>, _>>()?;
        let seconds = self.seconds(0);
        let summary = match summaries.len() {
            1 => summaries.remove(0),
            _ => {
                let peak = seconds.iter().map(Second::open).fold(0.0, f64::max) as u64;
                let each: Result<Vec<Summary>, _> = summaries.iter().map(Summary::from_json).collect();
                let all = combined(&each.map_err(Failure::machine)?, peak, &self.totals()?);
                without_empty(json!(all))
            }
        };
        Ok(Left { summary: shortened(summary, self.scenario.as_deref()), seconds })
    }

    /// All ticks of all of them, as the run store has them.
    fn totals(&self) -> Result<Tick, Failure> {
        let mut totals = Tick::default();
        if let Some(store) = runs::store()? {
            for run in store.tagged(&self.tag).map_err(Failure::machine)? {
                store.ticks(&run.id, &mut |record| totals.extend(&record.tick)).map_err(Failure::machine)?;
            }
        }
        Ok(totals)
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        for client in &mut self.each {
            let _ = client.child.kill();
            let _ = client.child.wait();
        }
    }
}

impl Client {
    /// Starts the one of this number. `of_all`: the tag that all of the trial's runs have.
    fn start(settings: &Settings, order: &Order, nth: u8, of_all: &str) -> Result<Client, Failure> {
        let Order { lab, experiment, .. } = order;
        let file = |ending: &str| settings.log.join(format!("{}-{nth}.{ending}", experiment.name));
        let failed = |path: &Path, e: std::io::Error| Failure::machine(format!("{}: {e}", path.display()));
        let mut values = order.values.clone();
        values.scale /= f64::from(experiment.clients);
        let mut trial = experiment.trial(&lab.folder, &values).map_err(|why| Failure::words([why]))?;
        if experiment.clients > 1 && order.is_here {
            trial.dial_from(&format!("127.0.{}.1", 100 + nth));
        }
        let (summary, seconds, scenario) = (file("json"), file("jsonl"), file("toml"));
        let (_, _) = (fs::remove_file(&summary), fs::remove_file(&seconds));
        if let Some(text) = &trial.scenario {
            fs::write(&scenario, text).map_err(|e| failed(&scenario, e))?;
            // Tables that it names lie beside it.
            copy_tables(&lab.folder, &settings.log).map_err(|e| failed(&lab.folder, e))?;
        }
        // Gone when we are, however we end.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]).arg(&settings.throng);
        let path = scenario.to_string_lossy();
        command.args(trial.words.iter().map(|word| if word == SCENARIO { &*path } else { word.as_str() }));
        command.arg("--json").arg(&summary);
        let is_run = experiment.find.is_empty();
        if is_run {
            command.arg("--jsonl").arg(&seconds).args(["--tag", &order.tag, "--tag", of_all]);
        }
        let is_quiet = order.quiet || experiment.clients > 1;
        let said = is_quiet.then(|| file("said"));
        if let Some(said) = &said {
            let to = File::create(said).map_err(|e| failed(said, e))?;
            command.args(["--live", "off"]).stdout(Stdio::null()).stderr(to);
        } else if is_run {
            command.args(experiment.format.iter().flat_map(|tool| ["--format", tool.as_str()]));
        }
        let child = command.spawn().map_err(|e| failed(Path::new("setpriv"), e))?;
        let named = experiment.scenario.clone().unwrap_or_default();
        let words = trial.words.iter().map(|word| word.replace(SCENARIO, &named)).collect();
        Ok(Client { child, words, summary, seconds, said, read: Vec::new(), offset: 0 })
    }

    /// What has been written to its end since the last time.
    fn read_on(&mut self) {
        let Ok(mut file) = File::open(&self.seconds) else { return };
        let mut text = String::new();
        let got = file.seek(SeekFrom::Start(self.offset)).and_then(|_| file.read_to_string(&mut text));
        let Some(end) = got.ok().and_then(|_| text.rfind('\n')) else { return };
        self.read.extend(text[..end].lines().filter_map(|line| Second::parse(line).ok()));
        self.offset += end as u64 + 1;
    }

    /// As it wrote it, once it has ended.
    fn summary(&mut self) -> Result<Value, Failure> {
        let said = self.said.as_ref().and_then(|said| fs::read_to_string(said).ok()).unwrap_or_default();
        let status = self.child.try_wait().ok().flatten().and_then(|status| status.code());
        let Ok(text) = fs::read_to_string(&self.summary) else {
            let what = format!("throng {}: no summary\n{}", self.words.join(" "), said.trim_end());
            let wrong = status == Some(i32::from(EXIT_USAGE));
            return Err(if wrong { Failure::words(what.lines()) } else { Failure::machine(what) });
        };
        serde_json::from_str(&text).map_err(|e| Failure::machine(format!("{}: {e}", self.summary.display())))
    }
}

/// What nobody measured of all of them is no figure.
fn without_empty(mut summary: Value) -> Value {
    let fields = summary.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
    fields.filter(|times| times["count"] == 0).for_each(|times| *times = Value::Null);
    summary
}

fn copy_tables(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in
        fs::read_dir(from)?.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "csv"))
    {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// What was looked at each second is in the run store; a scenario goes by the name that it has in its lab.
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
