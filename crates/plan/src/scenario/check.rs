//! Reads a whole file or command line, and checks the references between its parts.

use super::document::{self, Notes, Section};
use super::keys::SCENARIO;
use super::load::stages;
use super::overrides::overridden;
use super::tables::{Open, rows_for_one_use, tables};
use super::{Reader, typed};
use crate::flag::Role;
use crate::flags::FlagReader;
use crate::population::DEFAULT_TIMEOUT;
use crate::threshold::{NEVER_HELD, list_once};
use crate::value::{DEFAULT_MAX_LAG, MAX_THREADS, max_lag, rate_per_s, seed, threads, timeout};
use crate::{
    Activity, Csv, Environment, Expectation, Flags, IoChoice, Mistake, Plan, Population, Probe, Request,
    Share, Sources, Stage, Target, Text, Think, Threshold, Tls, flag,
};
use std::collections::HashSet;
use units::{Nanos, Rate};

/// Octets of the longest file; a longer one is most likely not a scenario.
const LONGEST_FILE: usize = 1 << 20;

/// Reads the text of a scenario file. Mistakes call it `file`; `open` returns other files that it names, relative to its folder, or a short
/// reason. In `flags`, settings of the run (seed, threads, …) take precedence over the file, and those of the load may change the number of
/// connections, their rates, and the durations; other flags are mistakes.
///
/// # Errors
/// All mistakes, in file order: `load.toml:12:9: population.users.think: "5x" is not a time; use 5s, 1500ms or 1m30s`.
pub fn read(
    file: &str,
    text: &str,
    flags: &Flags,
    around: &Environment,
    open: Open,
) -> Result<Plan, Vec<Mistake>> {
    let mut notes = Notes::new(file, text);
    if text.len() > LONGEST_FILE {
        let size = units::Bytes(text.len() as u64).brief();
        notes.add(0, "", format!("a scenario file may have at most 1 MiB: {size}"));
        return Err(notes.into_mistakes());
    }
    let top = document::read(&mut notes, text, &SCENARIO);
    let tables = tables(&mut notes, &top, open);
    // Settings of the run in flags take precedence over those in the file.
    let mut of_flags = Notes::of_flags();
    let lead = typed::of_flags(&mut of_flags, flags, &[Role::Machine, Role::Judgement]);
    let settings = Settings::read(&mut of_flags, &lead).or(Settings::read(&mut notes, &top));
    let plan = plan(&mut notes, (&top, &tables), settings, around);
    // After a mistake in the file, the load that flags would change is unknown.
    let (is_whole, mut beside) = (notes.is_empty(), FlagReader::beside_a_scenario(flags));
    let plan = if is_whole { overridden(plan, &mut beside) } else { plan };
    if is_whole {
        rows_for_one_use(&mut notes, &top, &plan);
    }
    let own = thresholds(&mut of_flags, &lead, &plan.populations, (is_whole, &names(&top)));
    let thresholds = [plan.thresholds, own].concat();
    let plan = Plan { text: file.to_owned(), thresholds, ..plan };
    whole(plan, beside, around, [notes, of_flags])
}

/// Reads a command line like the top level of a file with one population. The flags of `Machine` and `Judgement` are included.
///
/// # Errors
/// All mistakes, in the order of the flags: `--think: "5x" is not a time; use 5s, 1500ms or 1m30s`.
pub fn from_flags(flags: &Flags, around: &Environment) -> Result<Plan, Vec<Mistake>> {
    let mut notes = Notes::of_flags();
    let roles = [Role::Load, Role::Work, Role::Machine, Role::Judgement];
    let top = typed::of_flags(&mut notes, flags, &roles);
    let settings = Settings::read(&mut notes, &top);
    let plan = plan(&mut notes, (&top, &[]), settings, around);
    let text = plan.populations.first().map_or(String::new(), |main| main.target.text.clone());
    whole(Plan { text, ..plan }, FlagReader::new(flags), around, [notes, Notes::of_flags()])
}

/// Adds what only flags can set to the plan; returns it, or all mistakes.
fn whole(
    plan: Plan,
    mut beside: FlagReader,
    around: &Environment,
    notes: [Notes; 2],
) -> Result<Plan, Vec<Mistake>> {
    let plan = beside.observed(plan, around.resolve);
    let [first, second] = notes.map(Notes::into_mistakes);
    let mut mistakes = [first, beside.mistakes, second].concat();
    list_once(mistakes.iter_mut().map(|mistake| &mut mistake.text));
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}

/// Settings of the run, not of a population, from a file or flags.
#[derive(Default)]
struct Settings {
    sources: Option<Sources>,
    threads: Option<u32>,
    seed: Option<u64>,
    io: Option<IoChoice>,
    max_lag: Option<Nanos>,
    no_experiments: bool,
}

impl Settings {
    fn read(notes: &mut Notes, top: &Section) -> Settings {
        Settings {
            sources: top.read(notes, "sources", Sources::parse),
            threads: top.read(notes, "threads", threads),
            seed: top.read(notes, "seed", seed),
            io: top.read(notes, "io", IoChoice::parse),
            max_lag: top.read(notes, "max-lag", max_lag),
            no_experiments: top.truth("no-experiments").unwrap_or(false),
        }
    }

    /// Fills settings that are absent here from `other`.
    fn or(self, other: Settings) -> Settings {
        Settings {
            sources: self.sources.or(other.sources),
            threads: self.threads.or(other.threads),
            seed: self.seed.or(other.seed),
            io: self.io.or(other.io),
            max_lag: self.max_lag.or(other.max_lag),
            no_experiments: self.no_experiments || other.no_experiments,
        }
    }
}

/// The plan of a top level.
fn plan(
    notes: &mut Notes,
    (top, tables): (&Section, &[Csv]),
    settings: Settings,
    around: &Environment,
) -> Plan {
    // The address family of the sources decides which addresses of a target are used.
    let sources = settings.sources.unwrap_or(Sources::Automatic);
    let mut reader = Reader { notes, around, tables, top, v4: sources.is_v4() };
    let populations = reader.populations();
    let probe = reader.probe(&populations);
    let stages = stages_of(notes, top, &populations);
    let is_whole = notes.is_empty();
    let thresholds = thresholds(notes, top, &populations, (is_whole, &names(top)));
    if notes.is_empty() && !have_places(&populations) {
        let why = "all steps together compile to more than 65,536 operations; use fewer";
        top.note(notes, "population", why);
    }
    Plan {
        text: String::new(),
        populations,
        stages,
        probe,
        tables: tables.to_vec(),
        sources,
        threads: settings.threads.unwrap_or(around.cores.clamp(1, MAX_THREADS)),
        seed: settings.seed.unwrap_or(around.seed),
        io: settings.io.unwrap_or(IoChoice::Auto),
        thresholds,
        max_lag: settings.max_lag.unwrap_or(DEFAULT_MAX_LAG),
        experiments: !settings.no_experiments,
        max_segment: None,
        target_gc: false,
        observe: None,
    }
}

/// Whether the operations of all populations can be numbered with 16 bits: a connection stores only the number of its operation.
pub(crate) fn have_places(populations: &[Population]) -> bool {
    populations.iter().map(Population::operations).sum::<usize>() <= 1 << 16
}

/// The stages; they refer to populations by name.
fn stages_of(notes: &mut Notes, top: &Section, populations: &[Population]) -> Vec<Stage> {
    // Indices in the file. They are those in `populations`, too, unless one was left out because of a mistake.
    let mut names: Vec<&str> = match top.has("population") {
        true => top
            .sections("population")
            .iter()
            .map(|own| own.scalar("name").map_or("", |scalar| &scalar.text))
            .collect(),
        false => vec!["main"],
    };
    // Indices have 16 bits.
    names.truncate(u16::MAX.into());
    let before = notes.len();
    let stages = stages(notes, top, &names, populations);
    // After a mistake in `of`, the populations that stages start are unknown.
    let is_known = !top.is_wrong("stage") && !top.sections("stage").iter().any(Section::has_mistake);
    if notes.len() == before && is_known {
        all_come_up(notes, top, &names, &stages);
    }
    stages
}

impl Reader<'_, '_> {
    /// All populations; those with an invalid target are left out.
    fn populations(&mut self) -> Vec<Population> {
        let top = self.top;
        self.defaults();
        if !top.has("population") {
            return self.population(top, true).into_iter().collect();
        }
        let sections = top.sections("population");
        if top.is_empty_list("population") {
            top.note(self.notes, "population", "empty; remove it, or use [[population]]");
        }
        let own = ["connections", "rate", "arrive", "total", "calls", "requests"];
        top.refuse(self.notes, &own, "set per population; move it to a [[population]]");
        let mut seen = HashSet::new();
        for scalar in sections.iter().filter_map(|own| own.scalar("name")) {
            if !seen.insert(&scalar.text) {
                let why = format!("duplicate population name: {:?}", scalar.text);
                self.notes.add(scalar.at, "population", why);
            }
        }
        sections.iter().filter_map(|own| self.population(own, false)).collect()
    }

    fn probe(&mut self, populations: &[Population]) -> Option<Probe> {
        let top = self.top;
        let rate = match top.section("probe") {
            Some(section) => {
                if !section.has("rate") {
                    self.notes.add(section.at, "probe.rate", "missing; use rate = \"10/s\"");
                }
                section.read(self.notes, "rate", |text| rate_per_s(text, "10/s"))
            }
            None => {
                let fix = self.notes.written(&flag::PROBE, "\"10/s\"");
                top.read(self.notes, "probe", |text| match text.contains("://") {
                    true => Err(format!("a target, and no rate; use {fix}: {text:?}")),
                    false => rate_per_s(text, "10/s").map_err(|misread| misread.to_string()),
                })
            }
        };
        if !top.has("probe") {
            return None;
        }
        let Some(own) = top.section("probe").filter(|section| section.has("target")) else {
            return self.probe_like(populations, rate);
        };
        let target = self.target(own, "target")?;
        let tls = if target.secure { self.tls(top, true) } else { Tls::default() };
        let headers = self.fields(own, &target);
        if !target.scheme.has_plain_requests() {
            let why = format!("the probe sends HTTP requests; use http://host:port/: {:?}", target.text);
            own.note(self.notes, "target", why);
        }
        let (streams, timeout) = (streams_at(&target, populations), self.probe_timeout());
        Some(Probe::new(rate?, Population { streams, timeout, ..probe_population(target, tls, headers) }))
    }

    /// A probe without a separate target. It uses the population at the file's top-level target, or else the first one that sends requests,
    /// and repeats the request of that population if that is always the same.
    fn probe_like(&mut self, populations: &[Population], rate: Option<Rate>) -> Option<Probe> {
        let top = self.top;
        let has_requests = |population: &&Population| population.target.scheme.has_requests();
        let at_top = top.scalar("target").map(|scalar| &scalar.text);
        let first = populations.iter().find(|population| Some(&population.target.text) == at_top);
        let first = first.filter(has_requests).or_else(|| populations.iter().find(has_requests));
        let is_alone = !top.has("population") && !top.has("step");
        let Some(first) = first.or(populations.first().filter(|_| is_alone)) else {
            // After an invalid target, the schemes are unknown.
            if self.notes.is_empty() {
                let why = "the probe needs an http:// target; use [probe] with target = \
                        \"http://host:port/\"";
                top.note(self.notes, "probe", why);
            }
            return None;
        };
        let timeout = self.probe_timeout();
        if first.grpc.is_some() || is_alone {
            return Some(Probe::new(rate?, Population { timeout, ..calling(first.clone()) }));
        }
        let headers = self.fields(top, &first.target);
        let like = probe_population(first.target.clone(), first.tls.clone(), headers);
        Some(Probe::new(rate?, Population { streams: first.streams, timeout, ..like }))
    }

    /// The timeout at the file's top level, which populations inherit, too.
    fn probe_timeout(&mut self) -> Nanos {
        self.top.read(self.notes, "timeout", timeout).unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// Whether the probe uses HTTP/2: like the population with the same URL, or else the first one with the same addresses.
fn streams_at(target: &Target, populations: &[Population]) -> Option<u16> {
    let is_there = |own: &&Population| {
        own.target.scheme.has_plain_requests() && own.target.destinations == target.destinations
    };
    let same = populations.iter().find(|own| is_there(own) && own.target.text == target.text);
    same.or_else(|| populations.iter().find(is_there))?.streams
}

/// The population reduced to its first request, for the probe; to its message if it has no requests.
fn calling(mut like: Population) -> Population {
    let call = like.requests().next().cloned();
    let activity = call.map(|call| Activity::again(call, Think::default()));
    Population { activity: activity.unwrap_or_else(|| like.activity.clone()), ..like }
}

/// A population for the probe that requests the path of its target.
fn probe_population(target: Target, tls: Tls, headers: Vec<(String, Text)>) -> Population {
    let request = Request { headers, ..Request::get(target.path.clone(), Expectation::default()) };
    Population::new("probe", target, tls, Activity::again(request, Think::default()))
}

/// Reports populations that no stage starts: they would do nothing.
fn all_come_up(notes: &mut Notes, top: &Section, names: &[&str], stages: &[Stage]) {
    for (i, name) in names.iter().enumerate() {
        let moved = stages.iter().any(|stage| stage.to > Share::NONE && stage.of.contains(&(i as u16)));
        // Stages cannot name a population without a name.
        if !moved && !name.is_empty() {
            let at = top.sections("population").get(i).map_or(top.at, |own| own.at);
            let fix = format!("no stage starts it; add {name:?} to the `of` of a stage");
            notes.add(at, &format!("population.{name}"), fix);
        }
    }
}

/// The names of a file's populations; `None` for one without a name.
fn names(top: &Section) -> Vec<Option<&str>> {
    top.sections("population").iter().map(|own| Some(&*own.scalar("name")?.text)).collect()
}

/// The thresholds on figures of the whole run and of populations. `is_whole`: no population or step was left out because of a mistake;
/// `names`: those of all populations.
fn thresholds(
    notes: &mut Notes,
    section: &Section,
    populations: &[Population],
    (is_whole, names): (bool, &[Option<&str>]),
) -> Vec<Threshold> {
    let mut all = Vec::new();
    // The name may be that of a step or population that was left out because of a mistake.
    let may_be_left_out = |text: &str| {
        let first = text.trim_start().split_once('.').map(|(first, _)| first);
        !is_whole && first.is_some() && (names.contains(&None) || names.contains(&first))
    };
    for scalar in section.scalars("thresholds").unwrap_or_default() {
        match Threshold::parse(&scalar.text, populations) {
            Ok(threshold) => all.push(threshold),
            Err(_) if may_be_left_out(&scalar.text) => {}
            Err(why) if !is_whole && why.wanted == NEVER_HELD => {}
            // The message may list all figures on several lines; the user's text in it is escaped.
            Err(why) => notes.add_lines(scalar.at, "thresholds", &why.to_string()),
        }
    }
    all
}
