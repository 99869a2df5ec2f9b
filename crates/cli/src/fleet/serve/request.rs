//! What a request describes: a plan that reads no file and no variable of this machine, and calls no other host.

use std::slice;

use api::Spec;
use fleet::Job;
use plan::{Flag, Flags, Plan, Source, flag};

use super::Place;
use crate::{
    Failure,
    args::refused_by_find,
    contents, job,
    mistakes::Mistakes,
    plans::{self, Scenario},
    search::How,
};

/// What the scenario of a request is called.
pub(super) const SCENARIO: &str = "scenario.toml";
/// The flags of a search that are not of its plan.
const OF_SEARCH: [&str; 2] = ["by", "max"];

/// A run, or each step of a search.
pub(super) struct Described {
    pub(super) flags: Flags,
    pub(super) plan: Plan,
    /// The same as agents are given it.
    pub(super) job: Job,
}

/// A search.
pub(super) struct Wanted {
    pub(super) how: How,
    pub(super) of_step: Described,
}

impl Place {
    /// Reads a run.
    ///
    /// # Errors
    /// All mistakes, a line each.
    pub(super) fn read_run(&self, spec: &Spec) -> Result<Described, Vec<String>> {
        let (flags, mistakes) = self.read_flags(spec, &spec.flags, |flag, _| self.refuses(flag))?;
        self.described(spec, flags, mistakes)
    }

    /// Reads a search.
    ///
    /// # Errors
    /// All mistakes, a line each.
    pub(super) fn read_wanted(&self, spec: &Spec) -> Result<Wanted, Vec<String>> {
        let is_own = |(name, _): &(String, String)| OF_SEARCH.contains(&name.as_str());
        let (own, of_plan): (Vec<_>, Vec<_>) = spec.flags.iter().cloned().partition(is_own);
        let given = |name: &str| own.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
        let refuses = |flag: &Flag, value: &str| self.refuses(flag).or_else(|| refused_by_find(flag, value));
        let (flags, refused) = self.read_flags(spec, &of_plan, refuses)?;
        let mut mistakes = Mistakes::default();
        let (how, flags) = How::read(given("by"), given("max"), flags, &mut mistakes);
        let of_step = self.described(spec, flags, [refused, lines(mistakes)].concat())?;
        let mut mistakes = Mistakes::default();
        how.check(&of_step.plan, &mut mistakes);
        let mistakes = lines(mistakes);
        if mistakes.is_empty() { Ok(Wanted { how, of_step }) } else { Err(mistakes) }
    }

    /// The flags of a plan; and what is wrong with those that there are not, or that would read or write files here, call another
    /// host, or choose another place. `refuses`: why a flag is not taken with a value.
    fn read_flags(
        &self,
        spec: &Spec,
        given: &[(String, String)],
        refuses: impl Fn(&Flag, &str) -> Option<&'static str>,
    ) -> Result<(Flags, Vec<String>), Vec<String>> {
        let unknown = |pair: &(String, String)| Flags::from_pairs(slice::from_ref(pair)).err();
        let mut mistakes: Vec<String> = given.iter().filter_map(unknown).collect();
        mistakes.dedup();
        let known: Vec<_> = given.iter().filter(|&pair| unknown(pair).is_none()).cloned().collect();
        let flags = Flags::from_pairs(&known).map_err(|why| vec![why])?;
        let refused = flags.refused(|flag, value| refuses(flag, value).map(str::to_owned));
        mistakes.extend(refused.iter().map(ToString::to_string));
        if flags.get(&flag::TARGET).is_some() {
            mistakes.push("flags.target: use target, beside flags".to_owned());
        }
        let target = spec.target.as_deref().unwrap_or(SCENARIO);
        Ok((flags.without(&flag::TARGET).with(&flag::TARGET, target), mistakes))
    }

    /// Why a flag is not for those who send requests, if so.
    fn refuses(&self, flag: &Flag) -> Option<&'static str> {
        if flag.name == flag::OBSERVE.name {
            return Some("not by this API, whose host would call any address for it; remove it");
        }
        let is_file = flag.name.ends_with("-file");
        let is_taken = flag.name == flag::TAG.name
            || self.is_fleet()
                && [flag::AGENTS.name, flag::ON_LOST.name, flag::SHARE.name].contains(&flag.name);
        (!is_taken && (!flag.role.is_of_plan() || is_file)).then_some("not by this API; remove it")
    }

    /// The plan of these flags and of the request's scenario, to a target that is allowed. `refused`: what is known to be wrong.
    fn described(&self, spec: &Spec, flags: Flags, refused: Vec<String>) -> Result<Described, Vec<String>> {
        let whole = spec.scenario.clone().map(|text| Scenario { text });
        let mut mistakes = Mistakes::default();
        let job = job::read(&flags.clone().without(&flag::TAG), whole.as_ref(), &mut mistakes);
        let refused = [refused, lines(mistakes)].concat();
        let sent = |name: &str| {
            let file = spec.files.iter().find(|(file, _)| file == name);
            file.map(|(_, text)| Source::Text(text.clone()))
        };
        let plan = plans::elsewhere(&flags, spec.scenario.as_deref(), sent).and_then(|plan| {
            let text = |name: &str| match sent(name) {
                Some(Source::Text(text)) => Ok(text),
                _ => Err("it is not among the files of the request".to_owned()),
            };
            plans::with_certificates(plan, text).map_err(Failure::usage).and_then(contents::none)
        });
        let plan = match plan {
            Ok(plan) if refused.is_empty() => plan,
            read => {
                // One line for each: what is refused is not read.
                let is_new = |line: &String| refused.iter().all(|other| place_of(other) != place_of(line));
                let others = read.err().map(|failure| failure.lines).unwrap_or_default();
                let others: Vec<String> = others.into_iter().filter(is_new).collect();
                return Err([refused, others].concat());
            }
        };
        if let Place::Here(allow) = self {
            allow
                .check(&plan)
                .map_err(|why| vec![why.replace("start the agent with", "start throng fleet serve with")])?;
        }
        Ok(Described { flags, plan, job })
    }
}

/// What a request loads: its target, or the first of its scenario.
pub(super) fn target(spec: &Spec, plan: &Plan) -> String {
    spec.target.clone().unwrap_or_else(|| plan.populations[0].target.text.clone())
}

fn lines(mistakes: Mistakes) -> Vec<String> {
    mistakes.end(()).err().map(|failure| failure.lines).unwrap_or_default()
}

/// The flag, or key of a scenario, that a mistake is about: both have one name.
fn place_of(mistake: &str) -> &str {
    mistake.split(": ").next().unwrap_or_default().trim_start_matches("--")
}
