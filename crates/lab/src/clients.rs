//! Runs `throng run` or `throng find` as child processes: one, or several that share the load and whose results are combined.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use samples::{Summary, Tick};
use serde_json::{Value, json};
use store::{RunFilter, Store, StoreTrouble};
use units::{Clock, Date, Nanos};

use crate::{
    combined::combined,
    curve::Second,
    error::Error,
    experiment::{Arguments, Experiment, SCENARIO},
    load::Load,
    outcome::Subject,
    process::POLL,
    workspace::Workspace,
};

/// Maximum time for a run to end after a signal.
const STOP_TIMEOUT: Nanos = Nanos::from_secs(15);
/// throng's exit status for a usage error.
const EXIT_USAGE: i32 = 2;

/// The client processes of a trial.
pub(crate) struct Clients {
    each: Vec<Client>,
    /// The tag of all their runs in the store.
    tag: String,
}

struct Client {
    child: Child,
    /// The arguments, without those for outputs.
    args: Vec<String>,
    summary: PathBuf,
    seconds: PathBuf,
    /// The file with the output of a quiet client.
    printed: Option<PathBuf>,
    /// The seconds that have been read from the file `seconds`.
    read: Vec<Second>,
    offset: u64,
}

impl Clients {
    /// Starts the clients, each with its part of the load, against the addresses in `workspace`. `trusted` is a file of certificates
    /// to trust instead of the system's. Quiet clients do not print to the terminal.
    pub(crate) fn start(
        workspace: &Workspace,
        experiment: &Experiment,
        subject: &Subject,
        trusted: Option<&str>,
        is_quiet: bool,
    ) -> Result<Clients, Error> {
        workspace.make_log()?;
        let Subject { lab, experiment: name, server, elsewhere, .. } = subject;
        let tag = format!("lab-{}-{}", std::process::id(), Date::from(units::date()).0);
        let tags = [format!("lab.{lab}.{name}.{server}"), tag.clone()];
        let mut values = workspace.values.clone();
        values.scale /= f64::from(experiment.clients);
        let mut clients = Clients { each: Vec::new(), tag };
        for nth in 1..=experiment.clients {
            let arguments = experiment.arguments(&workspace.lab.folder, &values);
            let mut arguments = arguments.map_err(Error::usage)?;
            if let Some(file) = trusted {
                arguments.trust(file);
            }
            if experiment.clients > 1 && elsewhere.is_none() {
                arguments.dial_from(&format!("127.0.{}.1", 100 + nth));
            }
            let is_quiet = is_quiet || experiment.clients > 1;
            clients.each.push(Client::start(workspace, experiment, nth, arguments, &tags, is_quiet)?);
        }
        Ok(clients)
    }

    fn is_running(&mut self) -> bool {
        self.each.iter_mut().any(|client| client.child.try_wait().is_ok_and(|status| status.is_none()))
    }

    /// The sum of all ticks of all runs.
    fn totals(&self, store: &Path) -> Result<Tick, StoreTrouble> {
        let mut totals = Tick::default();
        if let Some(store) = Store::existing(store)? {
            for run in store.runs(&RunFilter::of_tag(&self.tag))? {
                store.ticks(&run.id, &mut |record| totals.extend(&record.tick))?;
            }
        }
        Ok(totals)
    }
}

impl Load for Clients {
    /// The arguments of the first client.
    fn args(&self) -> Vec<String> {
        self.each.first().map_or(Vec::new(), |client| client.args.clone())
    }

    /// The clients receive the terminal's signals themselves; a signal to this process alone is passed on.
    fn wait(&mut self, stop: &AtomicBool, meanwhile: &mut dyn FnMut(&mut dyn Load)) {
        let (clock, mut stopped_at) = (Clock::start(), None);
        while self.is_running() {
            if stop.load(Relaxed) && clock.now() > *stopped_at.get_or_insert(clock.now()) + STOP_TIMEOUT {
                for client in &self.each {
                    let _ = kill_process(Pid::from_child(&client.child), Signal::TERM);
                }
                stopped_at = Some(clock.now());
            }
            meanwhile(self);
            thread::sleep(POLL);
        }
    }

    /// The seconds from index `from` on; those of several clients are combined.
    fn seconds(&mut self, from: usize) -> Vec<Second> {
        self.each.iter_mut().for_each(Client::read_on);
        let since = |client: &Client| client.read.iter().skip(from).cloned().collect();
        Second::together(self.each.iter().map(since).collect())
    }

    /// The summary and the seconds after the end; `store` is the run store with the runs.
    fn results(&mut self, store: Option<&Path>) -> Result<(Value, Vec<Second>), Error> {
        let mut summaries = self.each.iter_mut().map(Client::summary).collect::<Result<Vec<Value>, _>>()?;
        let seconds = self.seconds(0);
        if summaries.len() == 1 {
            return Ok((summaries.remove(0), seconds));
        }
        let peak = seconds.iter().map(Second::open).fold(0.0, f64::max) as u64;
        let totals = store.map_or(Ok(Tick::default()), |store| self.totals(store));
        let totals = totals.map_err(|e| Error::Machine(e.to_string()))?;
        let summaries: Result<Vec<Summary>, _> = summaries.iter().map(Summary::from_json).collect();
        let mut all = json!(combined(&summaries.map_err(Error::Machine)?, peak, &totals));
        // A latency that cannot be computed from the store is unknown rather than 0.
        let fields = all.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
        fields.filter(|times| times["count"] == 0).for_each(|times| *times = Value::Null);
        Ok((all, seconds))
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
    /// Starts the client with this number.
    fn start(
        workspace: &Workspace,
        experiment: &Experiment,
        nth: u8,
        Arguments { args, scenario: text }: Arguments,
        tags: &[String; 2],
        is_quiet: bool,
    ) -> Result<Client, Error> {
        let file = |ending: &str| workspace.log.join(format!("{}-{nth}.{ending}", experiment.name));
        let (summary, seconds, scenario) = (file("json"), file("jsonl"), file("toml"));
        // Two trials in the same second have the same log folder, so files of the earlier one may exist.
        let (_, _) = (fs::remove_file(&summary), fs::remove_file(&seconds));
        if let Some(text) = text {
            fs::write(&scenario, text).map_err(Error::at(&scenario))?;
            let folder = &workspace.lab.folder;
            copy_tables(folder, &workspace.log).map_err(Error::at(folder))?;
        }
        let mut command = workspace.throng();
        let path = scenario.to_string_lossy();
        command.args(args.iter().map(|arg| if arg == SCENARIO { &*path } else { arg.as_str() }));
        command.arg("--json").arg(&summary);
        let is_run = experiment.find.is_empty();
        if is_run {
            command.arg("--jsonl").arg(&seconds).args(tags.iter().flat_map(|tag| ["--tag", tag.as_str()]));
        }
        let printed = is_quiet.then(|| file("said"));
        if let Some(printed) = &printed {
            let to = File::create(printed).map_err(Error::at(printed))?;
            command.args(["--live", "off"]).stdout(Stdio::null()).stderr(to);
        } else if is_run {
            command.args(experiment.format.iter().flat_map(|tool| ["--format", tool.as_str()]));
        }
        let child = command.spawn().map_err(Error::at("setpriv"))?;
        let named = experiment.scenario.as_deref().unwrap_or_default();
        let args = args.iter().map(|arg| arg.replace(SCENARIO, named)).collect();
        Ok(Client { child, args, summary, seconds, printed, read: Vec::new(), offset: 0 })
    }

    /// Reads the lines that have been completed since the last call.
    fn read_on(&mut self) {
        let Ok(mut file) = File::open(&self.seconds) else { return };
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(self.offset)).and_then(|_| file.read_to_string(&mut text));
        let Some(end) = read.ok().and_then(|_| text.rfind('\n')) else { return };
        self.read.extend(text[..end].lines().filter_map(|line| Second::parse(line).ok()));
        self.offset += end as u64 + 1;
    }

    /// The summary that the client wrote when it ended.
    fn summary(&mut self) -> Result<Value, Error> {
        let Ok(text) = fs::read_to_string(&self.summary) else {
            let printed = self.printed.as_ref().and_then(|file| fs::read_to_string(file).ok());
            let printed = printed.unwrap_or_default();
            let what = format!("throng {}: no summary\n{}", self.args.join(" "), printed.trim_end());
            let status = self.child.try_wait().ok().flatten().and_then(|status| status.code());
            return Err(match status {
                Some(EXIT_USAGE) => Error::Usage(what.lines().map(str::to_owned).collect()),
                _ => Error::Machine(what),
            });
        };
        serde_json::from_str(&text).map_err(|e| Error::at(&self.summary)(e.into()))
    }
}

/// Copies the tables beside a scenario, since the scenario refers to them by paths relative to its folder.
fn copy_tables(from: &Path, to: &Path) -> io::Result<()> {
    let is_table = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "csv");
    for table in fs::read_dir(from)?.flatten().map(|entry| entry.path()).filter(is_table) {
        fs::copy(&table, to.join(table.file_name().unwrap_or_default()))?;
    }
    Ok(())
}
