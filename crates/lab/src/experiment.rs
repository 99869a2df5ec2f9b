//! An experiment of a lab: a load, the published results, and the expected result.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use units::Count;

use crate::template::{self, Environment, Values};

/// An experiment, as described in `lab.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name on the command line.
    pub name: String,
    /// A title of one line.
    pub title: String,
    /// The servers to which it applies; if empty, the lab's first.
    #[serde(default)]
    pub(crate) servers: Vec<String>,
    /// The name of a scenario file beside `lab.toml`; or
    pub(crate) scenario: Option<String>,
    /// the arguments of `throng run`.
    #[serde(default)]
    pub(crate) words: Vec<String>,
    /// Additional arguments that turn it into a `throng find`.
    #[serde(default)]
    pub(crate) find: Vec<String>,
    /// The other tool in whose format the summary is also printed.
    pub(crate) format: Option<String>,
    /// The default scale, suited to a small machine.
    #[serde(default = "full_scale")]
    pub(crate) scale: f64,
    /// The published results, by their paths in the summary.
    #[serde(default)]
    pub(crate) then: BTreeMap<String, Then>,
    /// Thresholds.
    #[serde(default)]
    pub(crate) expect: Vec<String>,
    /// Variants of the server's environment, by name; the experiment is repeated with each.
    #[serde(default)]
    pub(crate) variants: BTreeMap<String, Environment>,
    /// The cause of the limit that the experiment is expected to reach.
    pub(crate) limit: Option<String>,
    /// The experiment in which that limit is lifted.
    pub(crate) lifted: Option<String>,
    /// Number of `throng run` processes that share the load, each with its own source address.
    #[serde(default = "one")]
    pub(crate) clients: u8,
    /// If not 0, the number of `throng agent` processes that generate the load instead. Each gets `words` as the form of a `POST
    /// /clients`.
    #[serde(default)]
    pub(crate) agents: u8,
    /// How long the agents hold the load.
    #[serde(default)]
    pub(crate) hold: String,
    /// What to pay attention to in the result.
    pub(crate) look: Option<String>,
}

/// A published figure: a number, or `"{scale 400k}"` if it is proportional to the scale.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "toml::Value")]
pub(crate) struct Then {
    /// The value at scale 1.
    pub(crate) value: f64,
    /// Whether the value is proportional to the scale.
    pub(crate) scales: bool,
}

impl TryFrom<toml::Value> for Then {
    type Error = String;

    fn try_from(written: toml::Value) -> Result<Then, String> {
        if let Some(value) = written.as_float().or(written.as_integer().map(|n| n as f64)) {
            return Ok(value.into());
        }
        let text = written.as_str().unwrap_or_default();
        let number = text.strip_prefix("{scale ").and_then(|rest| rest.strip_suffix('}'));
        let count = number.and_then(|number| Count::parse(number).ok());
        let Count(n) = count.ok_or_else(|| format!("then: use 400 or \"{{scale 400}}\": {text:?}"))?;
        Ok(Then { value: n as f64, scales: true })
    }
}

impl From<f64> for Then {
    fn from(value: f64) -> Then {
        Then { value, scales: false }
    }
}

/// Whether a number is a valid scale, that is a fraction or multiple of the published size.
pub fn is_scale(scale: f64) -> bool {
    scale > 0.0 && scale <= 100.0
}

fn one() -> u8 {
    1
}

fn full_scale() -> f64 {
    1.0
}

/// The arguments of throng for one trial.
pub(crate) struct Arguments {
    /// The arguments, without those for outputs, beginning with the subcommand; [`SCENARIO`] stands for the scenario file.
    pub(crate) args: Vec<String>,
    /// The text of the scenario file.
    pub(crate) scenario: Option<String>,
}

impl Experiment {
    pub(crate) fn mistakes(&self, folder: &Path) -> Vec<String> {
        let mut mistakes = Vec::new();
        match (&self.scenario, self.words.is_empty()) {
            (None, true) => mistakes.push("missing words or scenario".to_owned()),
            (Some(_), false) => mistakes.push("use words or scenario, not both".to_owned()),
            (None, false) => {}
            (Some(_), true) => {
                let unread = self.scenario_text(folder).and_then(Result::err);
                mistakes.extend(unread.map(|why| format!("scenario {why}")));
            }
        }
        if !is_scale(self.scale) {
            mistakes.push(format!("scale: must be greater than 0 and at most 100: {}", self.scale));
        }
        if !(1..=100).contains(&self.clients) || self.clients > 1 && !self.find.is_empty() {
            mistakes.push(format!("clients: must be 1 to 100, and 1 for a search: {}", self.clients));
        }
        let is_plain = self.find.is_empty() && self.expect.is_empty() && self.clients == 1;
        if self.agents > 100
            || self.agents > 0 && (self.scenario.is_some() || self.hold.is_empty() || !is_plain)
        {
            mistakes.push(
                "agents: at most 100, with words and hold, without find, expect and clients".to_owned(),
            );
        }
        mistakes.extend(Values::default().fill(&self.text(folder)).err());
        mistakes
    }

    /// All texts that may contain placeholders.
    pub(crate) fn text(&self, folder: &Path) -> String {
        let scenario = self.scenario_text(folder).and_then(Result::ok);
        let variants = self.variants.values().flat_map(|environment| environment.values());
        let all = self.words.iter().chain(&self.find).chain(&self.expect).chain(variants);
        all.chain([&self.hold]).cloned().chain(scenario).collect::<Vec<_>>().join("\n")
    }

    /// The largest number that is proportional to the scale, at scale 1; usually the number of connections.
    pub(crate) fn size(&self, folder: &Path) -> u64 {
        let scenario = self.scenario_text(folder).and_then(Result::ok).unwrap_or_default();
        template::largest(&(self.words.join(" ") + &scenario)).unwrap_or(0)
    }

    fn scenario_text(&self, folder: &Path) -> Option<Result<String, String>> {
        let read = |file: &String| fs::read_to_string(folder.join(file)).map_err(|e| format!("{file}: {e}"));
        self.scenario.as_ref().map(read)
    }

    /// The arguments of throng with placeholders replaced.
    ///
    /// # Errors
    /// A placeholder cannot be replaced, or the scenario cannot be read.
    pub(crate) fn arguments(&self, folder: &Path, values: &Values) -> Result<Arguments, String> {
        let verb = if self.find.is_empty() { "run" } else { "find" };
        let scenario = self.scenario_text(folder).transpose()?.map(|text| values.fill(&text)).transpose()?;
        let mut args = vec![verb.to_owned()];
        args.extend(scenario.is_some().then(|| SCENARIO.to_owned()));
        for word in self.words.iter().chain(&self.find) {
            args.push(values.fill(word)?);
        }
        for expected in &self.expect {
            args.extend(["--threshold".to_owned(), values.fill(expected)?]);
        }
        Ok(Arguments { args, scenario })
    }
}

impl Arguments {
    /// Adds a file of certificates to trust.
    pub(crate) fn trust(&mut self, file: &str) {
        match &mut self.scenario {
            Some(text) => text.insert_str(0, &format!("cacert = {file:?}\n")),
            None => self.args.extend(["--cacert".to_owned(), file.to_owned()]),
        }
    }

    /// Restricts the source addresses of connections to this one.
    pub(crate) fn dial_from(&mut self, source: &str) {
        match &mut self.scenario {
            Some(text) => text.insert_str(0, &format!("sources = \"{source}\"\n")),
            None => self.args.extend(["--sources".to_owned(), source.to_owned()]),
        }
    }
}

/// The argument that stands for the scenario file.
pub(crate) const SCENARIO: &str = "{scenario}";
