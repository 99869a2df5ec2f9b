//! Parses what a request to the API describes. The resulting plan reads no file or environment variable of this machine, and dials
//! only allowed targets.

use std::{cell::RefCell, collections::BTreeSet};

use api::{Given, Spec};
use fleet::{Allow, Job};
use plan::{
    Flag, Flags, Plan, Source,
    flag::{self, FLAGS, Takes},
};

use super::Place;
use crate::{
    Failure,
    args::refused_by_find,
    contents, job,
    mistakes::Mistakes,
    number::Plans,
    plans::{self, Scenario},
    search::{Asked, How},
};

/// The name of a request's scenario.
pub(super) const SCENARIO: &str = "scenario.toml";
/// The flags of a search that are not flags of its plan.
const OF_SEARCH: [&str; 3] = ["by", "max", "max-time"];

/// A parsed run, or each step of a search.
pub(super) struct Described {
    pub(super) flags: Flags,
    pub(super) plan: Plan,
    /// The job for agents.
    pub(super) job: Job,
    /// The tags of the stored run.
    pub(super) tags: Vec<String>,
}

/// A parsed search.
pub(super) struct Wanted {
    pub(super) how: How,
    pub(super) of_step: Described,
}

impl Place {
    /// Parses a run.
    ///
    /// # Errors
    /// All mistakes, one per line.
    pub(super) fn read_run(&self, spec: &Spec) -> Result<Described, Vec<String>> {
        let (flags, mistakes) = self.read_flags(spec, spec.flags.iter(), |flag, _| self.refuses(flag));
        self.described(spec, flags, mistakes)
    }

    /// Parses a search.
    ///
    /// # Errors
    /// All mistakes, one per line.
    pub(super) fn read_wanted(&self, spec: &Spec) -> Result<Wanted, Vec<String>> {
        let is_own = |name: &str| OF_SEARCH.contains(&name);
        let mut mistakes = Mistakes::default();
        let mut own = |name: &str| {
            let (_, given) = spec.flags.iter().find(|(own, _)| own == name)?;
            let values =
                values(Takes::One, given).map_err(|why| mistakes.add(format_args!("--{name}: {why}")));
            values.ok()?.pop()
        };
        let [by, max, max_time] = ["by", "max", "max-time"].map(&mut own);
        let asked = Asked { by: by.as_deref(), max: max.as_deref(), max_time: max_time.as_deref() };
        let refuses = |flag: &Flag, value: &str| self.refuses(flag).or_else(|| refused_by_find(flag, value));
        let of_plan = spec.flags.iter().filter(|(name, _)| !is_own(name));
        let (flags, refused) = self.read_flags(spec, of_plan, refuses);
        let (how, flags) = How::read(asked, flags, self.plans_of(spec), &mut mistakes);
        let of_step = self.described(spec, flags, [refused, lines(mistakes)].concat())?;
        let mut mistakes = Mistakes::default();
        how.check(&of_step.plan, &mut mistakes);
        let mistakes = lines(mistakes);
        if mistakes.is_empty() { Ok(Wanted { how, of_step }) } else { Err(mistakes) }
    }

    /// The plans of a search by a number.
    fn plans_of(&self, spec: &Spec) -> Requested {
        let allow = match self {
            Place::Here(allow) => Some(allow.clone()),
            Place::Fleet(_) => None,
        };
        Requested { spec: spec.clone(), allow }
    }

    /// The flags of a plan, and the mistakes: unknown flags, wrong values, and flags that would read or write files here, connect to
    /// another host, or choose another place. `refuses` returns the reason if a flag is not accepted with a value.
    fn read_flags<'s>(
        &self,
        spec: &Spec,
        given: impl Iterator<Item = &'s (String, Given)>,
        refuses: impl Fn(&Flag, &str) -> Option<&'static str>,
    ) -> (Flags, Vec<String>) {
        let (mut flags, mut mistakes) = (Flags::default(), Vec::new());
        for (name, given) in given {
            let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) else {
                mistakes.push(format!("no such flag: {name}"));
                continue;
            };
            match values(flag.takes, given) {
                Ok(values) => flags = values.iter().fold(flags, |flags, value| flags.with(flag, value)),
                Err(why) => mistakes.push(format!("{}: {why}", flag.place())),
            }
        }
        let refused = flags.refused(|flag, value| refuses(flag, value).map(str::to_owned));
        mistakes.extend(refused.iter().map(ToString::to_string));
        if flags.get(&flag::TARGET).is_some() {
            mistakes.push("flags.target: use target, beside flags".to_owned());
        }
        let target = spec.target.as_deref().unwrap_or(SCENARIO);
        (flags.without(&flag::TARGET).with(&flag::TARGET, target), mistakes)
    }

    /// The reason if a flag is not accepted in requests.
    fn refuses(&self, flag: &Flag) -> Option<&'static str> {
        if flag.name == flag::OBSERVE.name {
            return Some(
                "not supported by this API, because its host would connect to any address given; remove it",
            );
        }
        let is_file = flag.name.ends_with("-file");
        let is_taken = flag.name == flag::TAG.name
            || self.is_fleet()
                && [flag::AGENTS.name, flag::ON_LOST.name, flag::SHARE.name].contains(&flag.name);
        (!is_taken && (!flag.role.is_of_plan() || is_file)).then_some("not supported by this API; remove it")
    }

    /// The plan of these flags and the request's scenario; its targets must be allowed. `refused` are mistakes found before.
    fn described(&self, spec: &Spec, flags: Flags, refused: Vec<String>) -> Result<Described, Vec<String>> {
        let whole = spec.scenario.clone().map(|text| Scenario { text });
        let mut mistakes = Mistakes::default();
        let job = job::read(&flags.clone().without(&flag::TAG), whole.as_ref(), &mut mistakes);
        let refused = [refused, lines(mistakes)].concat();
        let tags = plan::tags(&flags).map_err(Failure::usage);
        let plan = plan_of(spec, spec.scenario.as_deref(), &flags);
        let (plan, tags) = match (plan, tags) {
            (Ok(plan), Ok(tags)) if refused.is_empty() => (plan, tags),
            (plan, tags) => {
                // Each flag gets at most one message: a refused flag is not parsed.
                let is_new = |line: &String| refused.iter().all(|other| place_of(other) != place_of(line));
                let others = [plan.err(), tags.err()].into_iter().flatten().flat_map(|failure| failure.lines);
                let others: Vec<String> = others.filter(is_new).collect();
                return Err([refused, others].concat());
            }
        };
        if let Place::Here(allow) = self {
            check(allow, &plan).map_err(|why| vec![why])?;
        }
        Ok(Described { flags, plan, job, tags })
    }
}

/// Checks that this machine may dial the plan's targets.
fn check(allow: &Allow, plan: &Plan) -> Result<(), String> {
    allow
        .check(plan)
        .map_err(|why| why.to_string().replace("start the agent with", "start throng fleet serve with"))
}

/// The source of the plans of a search by a number.
struct Requested {
    spec: Spec,
    /// The targets that this machine may dial; `None` on a fleet, where each agent has its own list.
    allow: Option<Allow>,
}

impl Plans for Requested {
    fn scenario(&self, _: &str) -> Result<String, String> {
        Ok(self.spec.scenario.clone().unwrap_or_default())
    }

    fn plan(&self, flags: &Flags, scenario: Option<(&str, &str)>) -> Result<Plan, String> {
        let plan = plan_of(&self.spec, scenario.map(|(_, text)| text), flags);
        let plan = plan.map_err(|failure| failure.lines.first().cloned().unwrap_or_default())?;
        let Some(allow) = &self.allow else { return Ok(plan) };
        check(allow, &plan)?;
        Ok(plans::settled(plan, true))
    }
}

/// The plan of these flags and this text of the scenario, with the files of the request.
fn plan_of(spec: &Spec, scenario: Option<&str>, flags: &Flags) -> Result<Plan, Failure> {
    let read = RefCell::new(BTreeSet::new());
    let text = |name: &str| -> Result<String, String> {
        let (name, text) = spec
            .files
            .iter()
            .find(|(file, _)| file == name)
            .ok_or("it is not among the files of the request")?;
        read.borrow_mut().insert(name);
        Ok(text.clone())
    };
    let plan = plans::elsewhere(flags, scenario, |name| text(name).map(Source::Text))?;
    let plan = plans::with_certificates(plan, text).map_err(Failure::usage).and_then(contents::none)?;
    let read = read.into_inner();
    let unread = spec.files.iter().filter(|(name, _)| !read.contains(name));
    let unread: Vec<String> = unread
        .map(|(name, _)| format!("files: the scenario does not read it; remove it: {name:?}"))
        .collect();
    if unread.is_empty() { Ok(plan) } else { Err(Failure::usage(unread)) }
}

/// The values of a flag as they would be typed, or why they are wrong.
fn values(takes: Takes, given: &Given) -> Result<Vec<String>, &'static str> {
    match (takes, given) {
        (Takes::Nothing, Given::Alone) => Ok(vec![String::new()]),
        (Takes::Nothing, _) => Err("it has no value; use true or false"),
        (Takes::OneOr(value), Given::Alone) => Ok(vec![value.to_owned()]),
        (_, Given::Alone) => Err("it requires a value; use a string or a number, not true"),
        (_, Given::One(value)) => Ok(vec![value.clone()]),
        (Takes::Many, Given::Many(values)) => Ok(values.clone()),
        (_, Given::Many(_)) => Err("it has one value; use a string or a number, not a list"),
    }
}

/// The target of a request, or the first one of its scenario.
pub(super) fn target(spec: &Spec, plan: &Plan) -> String {
    spec.target.clone().unwrap_or_else(|| plan.populations[0].target.text.clone())
}

fn lines(mistakes: Mistakes) -> Vec<String> {
    mistakes.end(()).err().map(|failure| failure.lines).unwrap_or_default()
}

/// The flag or the scenario's key that a mistake refers to; both have the same name.
fn place_of(mistake: &str) -> &str {
    mistake.split(": ").next().unwrap_or_default().trim_start_matches("--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Given {
        Given::One(text.to_owned())
    }

    fn list(texts: &[&str]) -> Given {
        Given::Many(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn read(spec: &Spec) -> Result<Described, Vec<String>> {
        Place::Here(Allow::parse(&[], &plans::resolve).unwrap()).read_run(spec)
    }

    /// Parses a run with these flags.
    fn read_flags(flags: &[(&str, Given)]) -> Result<Described, Vec<String>> {
        let flags = flags.iter().map(|(name, given)| ((*name).to_owned(), given.clone())).collect();
        read(&Spec { target: Some("http://127.0.0.1:1/".to_owned()), flags, ..Spec::default() })
    }

    #[test]
    fn true_is_a_flag_without_its_value() {
        let flags = [("probe", Given::Alone), ("http2", Given::Alone), ("target-gc", Given::Alone)];
        let Described { flags, plan, .. } = read_flags(&flags).unwrap_or_else(|why| panic!("{why:?}"));
        assert!(plan.probe.is_some() && plan.target_gc);
        assert_eq!([&flag::PROBE, &flag::HTTP2].map(|flag| flags.get(flag)), [Some("10/s"), Some("")]);
        for flag in FLAGS {
            let may_stand_alone = matches!(flag.takes, Takes::Nothing | Takes::OneOr(_));
            assert_eq!(values(flag.takes, &Given::Alone).is_ok(), may_stand_alone, "{}", flag.name);
        }
    }

    #[test]
    fn values_are_as_many_as_can_be_typed() {
        let flags = [("threshold", list(&["faults == 0", "held >= 99%"])), ("connections", text("7"))];
        let plan = read_flags(&flags).unwrap_or_else(|why| panic!("{why:?}")).plan;
        assert_eq!((plan.thresholds.len(), plan.places()), (2, 7));
        for (name, given, expected) in [
            (
                "connections",
                list(&["7", "8"]),
                "--connections: it has one value; use a string or a number, not a list",
            ),
            (
                "connections",
                Given::Alone,
                "--connections: it requires a value; use a string or a number, not true",
            ),
            ("http2", text("false"), "--http2: it has no value; use true or false"),
            ("fly", Given::Alone, "no such flag: fly"),
        ] {
            let why = read_flags(&[(name, given)]).err().unwrap();
            assert_eq!(why, [expected]);
        }
    }

    #[test]
    fn tags_are_as_on_a_command_line() {
        let tags = |given| read_flags(&[("tag", given)]).map(|described| described.tags);
        assert_eq!(tags(list(&["a", "b-1", "a"])), Ok(vec!["a".to_owned(), "b-1".to_owned()]));
        let why = tags(list(&["a b", "c", "d/e"])).unwrap_err();
        let wrong = |tag: &str| format!("--tag: may have letters, digits, -, _ and . only: {tag:?}");
        assert_eq!(why, [wrong("a b"), wrong("d/e")]);
    }

    /// Parses a search with this `by` and `max`.
    fn search(spec: Spec, by: &str, max: &str) -> Result<Wanted, Vec<String>> {
        let own = [("by", by), ("max", max)].map(|(name, value)| (name.to_owned(), text(value)));
        let spec = Spec { flags: [spec.flags, own.into()].concat(), ..spec };
        Place::Here(Allow::parse(&[], &plans::resolve).unwrap()).read_wanted(&spec)
    }

    #[test]
    fn a_search_by_a_number_has_the_scenario_and_the_files_of_the_request() {
        let scenario = "target = \"http://127.0.0.1:1/{csv users.id}\"\n[[population]]\nname = \"chat\"\nconnections = 4\n[csv.users]\nfile = \"users.csv\"\n";
        let path = "population.chat.connections";
        let files = vec![("users.csv".to_owned(), "id\n1\n".to_owned())];
        let spec = || Spec { scenario: Some(scenario.to_owned()), files: files.clone(), ..Spec::default() };
        let Wanted { how, .. } = search(spec(), path, "9").unwrap_or_else(|why| panic!("{why:?}"));
        let (by, _) = how.without_mistakes();
        let step = by.variant(7).unwrap().unwrap();
        assert_eq!((by.name(), step.plan.places()), (path, 7));
        assert_eq!(step.text, Some(scenario.replace("= 4", "= 7")));
        drop(how);
        assert_eq!(
            by.variant(7).unwrap().err().map(|why| why.to_string()).as_deref(),
            Some("the search is over"),
            "its plans are freed"
        );
        let why = |by: &str, max: &str| search(spec(), by, max).err().unwrap();
        let missing = format!("--by: scenario.toml: has no \"population.chat.rate\"; use {path}");
        assert_eq!(why("population.chat.rate", "9"), [missing]);
        assert!(why(path, "5g")[0].starts_with("--max: scenario.toml:4:15: "), "{:?}", why(path, "5g"));
    }

    #[test]
    fn a_number_of_the_scenario_reaches_no_other_target() {
        let allow = Some(Allow::parse(&[], &plans::resolve).unwrap());
        let requested = Requested { spec: Spec::default(), allow };
        let plan = |host: &str| {
            let text = format!("target = \"http://{host}:1/\"");
            requested.plan(&Flags::new(SCENARIO), Some((SCENARIO, &text))).map(|_| ())
        };
        assert_eq!(plan("127.0.0.1"), Ok(()));
        assert!(plan("192.0.2.1").is_err_and(|why| why.starts_with("192.0.2.1:1 is not allowed here")));
    }

    #[test]
    fn streams_of_a_request_are_searched() {
        let flags = vec![("http2".to_owned(), Given::Alone)];
        let spec = Spec { target: Some("http://127.0.0.1:1/".to_owned()), flags, ..Spec::default() };
        let Wanted { how, .. } = search(spec, "streams", "8").unwrap_or_else(|why| panic!("{why:?}"));
        let step = how.without_mistakes().0.variant(3).unwrap().unwrap();
        assert_eq!(step.flag, Some(("streams".to_owned(), "3".to_owned())));
        assert_eq!(step.plan.populations[0].streams, Some(3));
    }

    #[test]
    fn a_scenario_reads_all_files_that_come_with_it_and_no_others() {
        let read = |files: &[&str]| {
            let scenario =
                "target = \"http://127.0.0.1:1/?{csv users.id}\"\n[csv.users]\nfile = \"users.csv\"\n";
            let files = files.iter().map(|name| ((*name).to_owned(), "id\n1\n".to_owned())).collect();
            read(&Spec { scenario: Some(scenario.to_owned()), files, ..Spec::default() }).map(|_| ())
        };
        assert_eq!(read(&["users.csv"]), Ok(()));
        let why = read(&["users.csv", "others.csv"]).unwrap_err();
        assert_eq!(why, ["files: the scenario does not read it; remove it: \"others.csv\""]);
        let why = read(&["others.csv"]).unwrap_err().concat();
        assert!(why.contains("it is not among the files of the request"), "{why}");
    }
}
