//! One of a lab's experiments: a load, what the text saw, and what is expected now.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;
use units::Count;

use crate::{template, template::Values};

/// As `lab.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name on the command line.
    pub name: String,
    /// A line.
    pub title: String,
    /// Those that it is for; none: the lab's first.
    #[serde(default)]
    pub servers: Vec<String>,
    /// A scenario file beside `lab.toml`; or
    #[serde(default)]
    pub scenario: Option<String>,
    /// the words of `throng run`.
    #[serde(default)]
    pub words: Vec<String>,
    /// With these words it is a `throng find`.
    #[serde(default)]
    pub find: Vec<String>,
    /// The summary in another tool's form, besides.
    #[serde(default)]
    pub format: Option<String>,
    /// By default, on a small machine.
    #[serde(default = "whole")]
    pub scale: f64,
    /// What the text saw, by the summary's paths.
    #[serde(default)]
    pub then: BTreeMap<String, Then>,
    /// Thresholds of now.
    #[serde(default)]
    pub expect: Vec<String>,
    /// The same with another environment of the server, by name.
    #[serde(default)]
    pub variants: BTreeMap<String, BTreeMap<String, String>>,
    /// The cause that is meant to stop it.
    #[serde(default)]
    pub limit: Option<String>,
    /// The experiment in which that limit is lifted.
    #[serde(default)]
    pub lifted: Option<String>,
    /// Number of simultaneous `throng run`, each with its own source address, that share the load.
    #[serde(default = "one")]
    pub clients: u8,
    /// What is measured.
    #[serde(default)]
    pub look: Option<String>,
}

/// A figure of the text, at its own size: a number, or `"{scale 400k}"` where it goes with the size.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "ThenText")]
pub struct Then {
    /// At scale 1.
    pub value: f64,
    /// At another scale it is that share of it.
    pub scales: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ThenText {
    Number(f64),
    Text(String),
}

impl TryFrom<ThenText> for Then {
    type Error = String;

    fn try_from(text: ThenText) -> Result<Then, String> {
        match text {
            ThenText::Number(value) => Ok(Then { value, scales: false }),
            ThenText::Text(text) => {
                let number = text.strip_prefix("{scale ").and_then(|rest| rest.strip_suffix('}'));
                let count = number.and_then(|number| Count::parse(number).ok());
                let Count(n) =
                    count.ok_or_else(|| format!("then: use 400 or \"{{scale 400}}\": {text:?}"))?;
                Ok(Then { value: n as f64, scales: true })
            }
        }
    }
}

impl From<f64> for Then {
    fn from(value: f64) -> Then {
        Then { value, scales: false }
    }
}

fn one() -> u8 {
    1
}

fn whole() -> f64 {
    1.0
}

/// An experiment once, with one server.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Words of `throng`, the verb first, without outputs.
    pub words: Vec<String>,
    /// A scenario's text, all its places filled, for a file that the words name `{scenario}`.
    pub scenario: Option<String>,
}

impl Experiment {
    pub(crate) fn mistakes(&self, folder: &Path) -> Vec<String> {
        let mut mistakes = Vec::new();
        match (&self.scenario, self.words.is_empty()) {
            (None, true) => mistakes.push("missing words or scenario".to_owned()),
            (Some(_), false) => mistakes.push("use words or scenario, not both".to_owned()),
            (None, false) => {}
            (Some(file), true) => {
                if let Err(e) = fs::read_to_string(folder.join(file)) {
                    mistakes.push(format!("scenario {file}: {e}"));
                }
            }
        }
        if !(self.scale > 0.0 && self.scale <= 100.0) {
            mistakes.push(format!("scale: must be greater than 0 and at most 100: {}", self.scale));
        }
        if !(1..=100).contains(&self.clients) || self.clients > 1 && !self.find.is_empty() {
            mistakes.push(format!("clients: must be 1 to 100, and 1 for a search: {}", self.clients));
        }
        mistakes.extend(Values::default().fill(&self.text(folder)).err());
        mistakes
    }

    /// All that has places in it.
    pub(crate) fn text(&self, folder: &Path) -> String {
        let scenario = self.scenario.as_ref().and_then(|file| fs::read_to_string(folder.join(file)).ok());
        let variants = self.variants.values().flat_map(|environment| environment.values());
        let all = self.words.iter().chain(&self.find).chain(&self.expect).chain(variants);
        all.cloned().chain(scenario).collect::<Vec<_>>().join("\n")
    }

    /// The largest number that scales with it, at full scale: its connections, as a rule.
    pub fn size(&self, folder: &Path) -> u64 {
        let of = |text: &str| template::largest(text).unwrap_or(0);
        let scenario = self.scenario.as_ref().and_then(|file| fs::read_to_string(folder.join(file)).ok());
        of(&self.words.join(" ")).max(scenario.map_or(0, |text| of(&text)))
    }

    /// The arguments of throng.
    ///
    /// # Errors
    /// A place that cannot be filled, or the scenario cannot be read.
    pub fn trial(&self, folder: &Path, values: &Values) -> Result<Trial, String> {
        let verb = if self.find.is_empty() { "run" } else { "find" };
        let mut words = vec![verb.to_owned()];
        let scenario = match &self.scenario {
            None => None,
            Some(file) => {
                let text = fs::read_to_string(folder.join(file)).map_err(|e| format!("{file}: {e}"))?;
                words.push(SCENARIO.to_owned());
                Some(values.fill(&text)?)
            }
        };
        for word in self.words.iter().chain(&self.find) {
            words.push(values.fill(word)?);
        }
        for expected in &self.expect {
            words.extend(["--threshold".to_owned(), values.fill(expected)?]);
        }
        Ok(Trial { words, scenario })
    }
}

impl Trial {
    /// From this address only.
    pub fn dial_from(&mut self, source: &str) {
        match &mut self.scenario {
            Some(text) => text.insert_str(0, &format!("sources = \"{source}\"\n")),
            None => self.words.extend(["--sources".to_owned(), source.to_owned()]),
        }
    }
}

/// Placeholder for the scenario file among the arguments.
pub const SCENARIO: &str = "{scenario}";
