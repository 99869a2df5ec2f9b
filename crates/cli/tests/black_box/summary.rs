//! A run and its summary, as a script reads it.

use serde_json::Value;

use crate::program::{Ended, Program};

/// `throng.summary/1`.
#[derive(Debug)]
pub(crate) struct Summary(pub(crate) Value);

/// Runs to the end; standard output holds the summary, and nothing else.
pub(crate) fn run(target: &str, args: &[&str]) -> (Ended, Summary) {
    let ended = Program::start(&[&["run", target, "--json", "-"], args].concat()).end();
    let json = serde_json::from_str(&ended.stdout);
    let json = json.unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    (ended, Summary(json))
}

impl Summary {
    /// The value at a path with dots.
    pub(crate) fn at(&self, path: &str) -> &Value {
        let found = path.split('.').try_fold(&self.0, |value, key| value.get(key));
        found.unwrap_or_else(|| panic!("{path}: not there: {:#}", self.0))
    }

    pub(crate) fn count(&self, path: &str) -> u64 {
        self.at(path).as_u64().unwrap_or_else(|| panic!("{path}: no count: {:#}", self.0))
    }

    /// A measured number: in a distribution without samples all times are 0, and any bound would hold.
    pub(crate) fn number(&self, path: &str) -> f64 {
        if let Some((of, figure)) = path.rsplit_once('.')
            && figure != "count"
            && let Some(count) = self.at(of).get("count")
        {
            assert_ne!(count, 0, "{path}: nothing was measured: {:#}", self.0);
        }
        self.at(path).as_f64().unwrap_or_else(|| panic!("{path}: no number: {:#}", self.0))
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.at(path).as_str().unwrap_or_else(|| panic!("{path}: no text: {:#}", self.0))
    }

    /// What the target was asked after the load, each as its name and the answer: a connection each.
    pub(crate) fn experiments(&self) -> Vec<(&str, &str)> {
        let all = self.0.get("experiments").and_then(Value::as_array);
        all.into_iter()
            .flatten()
            .filter_map(|one| Some((one["what"].as_str()?, one["answer"].as_str()?)))
            .collect()
    }

    /// Connections of all experiments: four where it counts whether users are served, one where times count.
    pub(crate) fn connections_of_experiments(&self) -> u64 {
        let users = |(what, _): &(&str, &str)| match *what {
            "tls" | "alone" | "silent" | "busy" => 1,
            _ => 4,
        };
        self.experiments().iter().map(users).sum()
    }

    /// Responses that waited while throng stalled: each has one more entry among the lags.
    pub(crate) fn stalled(&self) -> u64 {
        self.at("latency_us.stalled")["count"].as_u64().unwrap_or(0)
    }

    /// Each as `side·stage·kind` with its count.
    pub(crate) fn faults(&self) -> Vec<(String, u64)> {
        let text = |fault: &Value, key: &str| fault[key].as_str().expect("a string").to_owned();
        let one = |fault: &Value| {
            let name = ["side", "stage", "kind"].map(|key| text(fault, key)).join("·");
            (name, fault["count"].as_u64().expect("a count"))
        };
        self.at("faults").as_array().expect("a list").iter().map(one).collect()
    }
}

/// The expected result of a run.
pub(crate) struct Expected<'a> {
    pub(crate) status: i32,
    pub(crate) verdict: &'a str,
    pub(crate) faults: &'a [(&'a str, u64)],
    /// Counts of the summary by their path.
    pub(crate) counts: &'a [(&'a str, u64)],
}

impl Expected<'_> {
    /// Runs and compares; returns the summary for further checks.
    pub(crate) fn check(&self, target: &str, args: &[&str]) -> Summary {
        self.check_timed(target, args).0
    }

    /// The same, and how long it took by the test's clock, seconds.
    pub(crate) fn check_timed(&self, target: &str, args: &[&str]) -> (Summary, f64) {
        let (ended, summary) = run(target, args);
        let faults = summary.faults();
        let faults: Vec<(&str, u64)> = faults.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(faults, self.faults, "{}", ended.stderr);
        for (path, n) in self.counts {
            assert_eq!(summary.count(path), *n, "{path}: {}", ended.stderr);
        }
        ended.assert_status(self.status);
        // A run that passes, or has no fault, has done something.
        let opened = summary.count("connections.opened");
        assert!(opened > 0 || !self.faults.is_empty(), "nothing was opened: {}", ended.stderr);
        let verdict = if ended.status == Some(4) { "invalid" } else { self.verdict };
        assert_eq!(summary.text("verdict"), verdict, "{}", ended.stderr);
        (summary, ended.took_s)
    }
}
