//! `throng run`, or `find`, as processes of their own: one, or several that share the load, and their summaries as one.

use std::{
    fs,
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
    children: Vec<Child>,
    /// Where each writes its summary, and its seconds.
    files: Vec<(PathBuf, PathBuf)>,
    /// All of this trial's runs have it.
    tag: String,
    /// What the first was told, without outputs.
    pub(super) words: Vec<String>,
}

/// What a trial left.
pub(super) struct Left {
    pub(super) summary: Value,
    pub(super) seconds: Vec<Second>,
}

impl Clients {
    /// Starts those of an experiment, each with its part of the load. `tag`: what their runs are called; `quiet`: they say nothing.
    pub(super) fn start(
        settings: &Settings,
        lab: &Lab,
        experiment: &Experiment,
        values: &Values,
        tag: &str,
        quiet: bool,
    ) -> Result<Clients, Failure> {
        let n = experiment.clients;
        let mut clients = Clients {
            children: Vec::new(),
            files: Vec::new(),
            tag: format!("lab-{}-{}", std::process::id(), Date::from(units::date()).0),
            words: Vec::new(),
        };
        for nth in 1..=n {
            let mut own = values.clone();
            own.scale /= f64::from(n);
            let trial = experiment.trial(&lab.folder, &own).map_err(|why| Failure::words([why]))?;
            let file = |ending: &str| settings.work.join(format!("{}-{nth}.{ending}", experiment.name));
            let failed =
                |path: &Path, e: std::io::Error| Failure::machine(format!("{}: {e}", path.display()));
            let (json, jsonl, scenario) = (file("json"), file("jsonl"), file("toml"));
            let (_, _) = (fs::remove_file(&json), fs::remove_file(&jsonl));
            let source = (n > 1).then(|| format!("127.0.{}.1", 100 + nth));
            let mut words = trial.words;
            if let Some(mut text) = trial.scenario {
                if let Some(source) = &source {
                    text = format!("sources = \"{source}\"\n{text}");
                }
                fs::write(&scenario, text).map_err(|e| failed(&scenario, e))?;
                // Tables that it names lie beside it.
                copy_tables(&lab.folder, &settings.work).map_err(|e| failed(&lab.folder, e))?;
            } else if let Some(source) = source {
                words.extend(["--sources".to_owned(), source]);
            }
            // Gone when we are, however we end.
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "TERM"]).arg(&settings.throng);
            let path = scenario.to_string_lossy();
            command.args(words.iter().map(|word| if word == SCENARIO { &*path } else { word.as_str() }));
            command.arg("--json").arg(&json);
            if experiment.find.is_empty() {
                command.arg("--jsonl").arg(&jsonl).args(["--tag", tag, "--tag", &clients.tag]);
                if n == 1 && !quiet {
                    command.args(experiment.format.iter().flat_map(|tool| ["--format", tool.as_str()]));
                } else {
                    command.args(["--live", "off"]).stdout(Stdio::null()).stderr(Stdio::null());
                }
            }
            if nth == 1 {
                let named = experiment.scenario.clone().unwrap_or_default();
                clients.words = words.iter().map(|word| word.replace(SCENARIO, &named)).collect();
            }
            clients.children.push(command.spawn().map_err(|e| failed(Path::new("setpriv"), e))?);
            clients.files.push((json, jsonl));
        }
        Ok(clients)
    }

    /// Whether one of them still runs.
    ///
    /// # Errors
    /// The kernel does not say.
    pub(super) fn is_under_way(&mut self) -> std::io::Result<bool> {
        let mut any = false;
        for child in &mut self.children {
            any |= child.try_wait()?.is_none();
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
                for child in &self.children {
                    let _ = kill_process(Pid::from_child(child), Signal::TERM);
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
        let of = |(_, jsonl): &(PathBuf, PathBuf)| {
            let text = fs::read_to_string(jsonl).unwrap_or_default();
            // The last line may not be written to its end.
            text.lines().map_while(|line| Second::parse(line).ok()).collect::<Vec<_>>()
        };
        Second::together(self.files.iter().map(of).collect())
    }

    /// What they left, once they have ended.
    pub(super) fn left(&self) -> Result<Left, Failure> {
        let summary = |(json, _): &(PathBuf, PathBuf)| {
            let text = fs::read_to_string(json)
                .map_err(|_| Failure::machine(format!("{}: throng ended without it", json.display())))?;
            serde_json::from_str(&text).map_err(|e| Failure::machine(format!("{}: {e}", json.display())))
        };
        let mut summaries = self.files.iter().map(summary).collect::<Result<Vec<Value>, _>>()?;
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
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
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
