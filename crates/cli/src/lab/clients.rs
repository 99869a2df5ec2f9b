//! `throng run`, or `find`, as processes of their own: one, or several that share the load, and their summaries as one.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

use lab::{Experiment, Lab, SCENARIO, Second, Values};
use rustix::process::{Pid, Signal, kill_process};
use samples::Latency;
use serde_json::{Map, Value};
use units::{Clock, Date, Nanos};

use super::settings::Settings;
use crate::{Failure, runs};

/// A run that was told to end has so long for it.
const PATIENCE: Nanos = Nanos::from_secs(15);
/// Looked at so often.
const LOOK: Duration = Duration::from_millis(50);

/// Those of a trial that is under way.
pub(super) struct Clients {
    each: Vec<Client>,
    /// All of this trial's runs have it.
    tag: String,
}

struct Client {
    child: Child,
    /// What it was told, without outputs.
    words: Vec<String>,
    summary: PathBuf,
    seconds: PathBuf,
    /// Of one that says nothing to the person: what it said.
    said: Option<PathBuf>,
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
}

impl Clients {
    /// Starts those of an experiment, each with its part of the load.
    pub(super) fn start(settings: &Settings, order: &Order) -> Result<Clients, Failure> {
        let now = Date::from(units::date()).0;
        let tag = format!("lab-{}-{now}", std::process::id());
        let mut clients = Clients { each: Vec::new(), tag };
        for nth in 1..=order.experiment.clients {
            let client = Client::start(settings, order, nth, &clients.tag)?;
            clients.each.push(client);
        }
        Ok(clients)
    }

    /// What the first was told, without outputs.
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
        meanwhile: &mut dyn FnMut(&Clients),
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

    /// All seconds so far, those of several clients together.
    pub(super) fn seconds(&self) -> Vec<Second> {
        let of = |client: &Client| {
            let text = fs::read_to_string(&client.seconds).unwrap_or_default();
            // The last line may not be written to its end.
            text.lines().map_while(|line| Second::parse(line).ok()).collect::<Vec<_>>()
        };
        Second::together(self.each.iter().map(of).collect())
    }

    /// What they left, once they have ended.
    pub(super) fn left(&self) -> Result<Left, Failure> {
        let mut summaries = self.each.iter().map(Client::summary).collect::<Result<Vec<Value>, _>>()?;
        let seconds = self.seconds();
        let summary = match summaries.len() {
            1 => summaries.remove(0),
            _ => {
                let peak = seconds.iter().map(Second::open).fold(0.0, f64::max);
                combined(&summaries, peak, &self.latency()?)
            }
        };
        Ok(Left { summary: shortened(summary), seconds })
    }

    /// Of all their requests at full load, from the histograms that are kept of each run: percentiles do not add up.
    fn latency(&self) -> Result<Latency, Failure> {
        let mut all = Latency::default();
        if let Some(store) = runs::store()? {
            for run in store.tagged(&self.tag).map_err(Failure::machine)? {
                store
                    .ticks(&run.id, &mut |record| all.merge(&record.tick.latency))
                    .map_err(Failure::machine)?;
            }
        }
        Ok(all)
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
        if experiment.clients > 1 {
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
        Ok(Client { child, words, summary, seconds, said })
    }

    /// As it wrote it.
    fn summary(&self) -> Result<Value, Failure> {
        let placed = |what: &str| Failure::machine(format!("{}: {what}", self.summary.display()));
        let said = || self.said.as_ref().and_then(|said| fs::read_to_string(said).ok()).unwrap_or_default();
        let text = fs::read_to_string(&self.summary)
            .map_err(|_| placed(&format!("throng ended without it\n{}", said().trim_end())))?;
        serde_json::from_str(&text).map_err(|e| placed(&e.to_string()))
    }
}

fn copy_tables(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in
        fs::read_dir(from)?.flatten().filter(|entry| entry.path().extension().is_some_and(|e| e == "csv"))
    {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// What was looked at each second is in the run store.
fn shortened(mut summary: Value) -> Value {
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("observed");
        fields.remove("rig");
        if fields.get("populations").and_then(Value::as_object).is_some_and(|all| all.len() == 1) {
            fields.remove("populations");
        }
    }
    summary
}

/// Several summaries of one load as one: what is counted adds up, what is seen of the one server is the most that one of
/// them saw, what is judged is the worst.
fn combined(summaries: &[Value], peak: f64, latency: &Latency) -> Value {
    const WORST: [&str; 4] = ["pass", "fail", "invalid", "interrupted"];
    let rank = |summary: &&Value| WORST.iter().position(|word| summary["verdict"] == **word);
    let worst = summaries.iter().max_by_key(rank).expect("there are several");
    let mut all = worst.clone();
    for group in ["connections", "requests"] {
        let parts: Vec<&Value> = summaries.iter().map(|summary| &summary[group]).collect();
        all[group] = added(&parts);
    }
    all["connections"]["peak"] = Value::from(peak);
    if let Some(at) = all.pointer_mut("/limit/at_connections") {
        *at = Value::from(peak);
    }
    for path in ["/ramp_s", "/duration_s", "/target_cost/rss_bytes", "/target_cost/cpu_s"] {
        let most = summaries.iter().filter_map(|summary| summary.pointer(path)?.as_f64()).reduce(f64::max);
        if let (Some(place), Some(most)) = (all.pointer_mut(path), most) {
            *place = Value::from(most);
        }
    }
    // Each has seen the server's whole memory grow over its own part of the connections.
    for path in ["/target_cost/user_bytes_per_connection", "/kernel_bytes_per_connection", "/cost"] {
        if let Some(place) = all.pointer_mut(path) {
            *place = Value::Null;
        }
    }
    let faults: Vec<Value> =
        summaries.iter().filter_map(|s| s["faults"].as_array()).flatten().cloned().collect();
    all["faults"] = Value::Array(faults);
    all["latency_us"] = serde_json::to_value(latency.quantiles()).expect("plain numbers");
    let (n, held) = (summaries.len(), all["connections"]["held"].as_f64().unwrap_or(0.0));
    let headline = worst["headline"].as_str().unwrap_or_default();
    let headline = match worst["verdict"].as_str() {
        Some("pass") => format!("pass: {n} clients held all {held:.0} connections, each without a fault"),
        _ => format!("{n} clients, one of them: {headline}"),
    };
    all["headline"] = Value::from(headline);
    all
}

/// Numbers added, field by field.
fn added(parts: &[&Value]) -> Value {
    let Some(first) = parts.first().and_then(|part| part.as_object()) else { return Value::Null };
    let field = |name: &String| {
        let values: Vec<&Value> = parts.iter().filter_map(|part| part.get(name)).collect();
        let sum = || values.iter().filter_map(|value| value.as_f64()).sum::<f64>();
        match values.first() {
            Some(Value::Number(_)) => Value::from(sum()),
            Some(Value::Object(_)) => added(&values),
            Some(other) => (*other).clone(),
            None => Value::Null,
        }
    };
    let fields: Map<String, Value> = first.keys().map(|name| (name.clone(), field(name))).collect();
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn several_summaries_are_one() {
        let summary = |verdict: &str, held: u64, rss: u64| {
            json!({
                "verdict": verdict,
                "headline": format!("{verdict}: of one"),
                "ramp_s": held as f64,
                "duration_s": 30.0,
                "connections": {"held": held, "peak": held + 5, "open_per_s": 10.5},
                "requests": {"answered": held * 2, "lower_bound": false, "status": {"200": held * 2}},
                "faults": if verdict == "fail" { json!([{"kind": "reset", "count": 1}]) } else { json!([]) },
                "target_cost": {"rss_bytes": rss, "cpu_s": 1.0, "user_bytes_per_connection": 99.0},
                "latency_us": {"p50": 1.0},
            })
        };
        let mut latency = Latency::default();
        latency.record(Nanos::from_millis(7));
        let all = combined(&[summary("pass", 100, 5000), summary("pass", 200, 6000)], 290.0, &latency);
        assert_eq!(all["connections"], json!({"held": 300.0, "peak": 290.0, "open_per_s": 21.0}));
        assert_eq!(
            all["requests"],
            json!({"answered": 600.0, "lower_bound": false, "status": {"200": 600.0}})
        );
        assert_eq!(all["headline"], "pass: 2 clients held all 300 connections, each without a fault");
        let cost = json!({"rss_bytes": 6000.0, "cpu_s": 1.0, "user_bytes_per_connection": null});
        assert_eq!(all["target_cost"], cost);
        assert_eq!(all["ramp_s"], 200.0);
        assert_eq!(all["latency_us"]["max"], 7000.0);
        let all = combined(&[summary("pass", 1, 1), summary("fail", 2, 2)], 3.0, &latency);
        assert_eq!(all["headline"], "2 clients, one of them: fail: of one");
        assert_eq!(
            (all["verdict"].as_str(), all["faults"].as_array().map(Vec::len)),
            (Some("fail"), Some(1))
        );
    }
}
