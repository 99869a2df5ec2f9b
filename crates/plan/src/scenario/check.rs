//! Checks of the whole file: references between its parts.

use super::document::{self, Notes, Section};
use super::keys::SCENARIO;
use super::load::{some_rate, stages};
use super::overrides::overridden;
use super::population::{Reader, name};
use crate::flag;
use crate::flags::{
    DEFAULT_MAX_LAG, DEFAULT_TIMEOUT, FlagReader, MAX_THREADS, max_lag, seed, threads, timeout,
};
use crate::threshold::{NEVER_HELD, list_once};
use crate::{
    Activity, Csv, Environment, Expectation, Flags, IoChoice, Load, Mistake, Plan, Population, Probe, Pushes,
    Reconnect, Request, Share, Source, Sources, Stage, Target, Text, Think, Threshold, Tls,
};
use std::collections::HashSet;
use units::{Nanos, Rate};

/// Opens another file that the scenario names.
type Open<'a> = &'a dyn Fn(&str) -> Result<Source, String>;

/// Octets of the longest file: beyond that it is most likely the wrong one.
const LONGEST_FILE: usize = 1 << 20;

/// Reads the text of a scenario file. `file` is what mistakes call it, and `open` gives another
/// file that it names, from the folder of the first; its error is a short reason. What `flags` say of the run (its seed,
/// its threads, …) goes before the file; of the load they may change how many connections there are, how fast they come and for how long
/// they are held, and the rest is a mistake.
///
/// # Errors
/// All mistakes, in the order of the file: `load.toml:12:9: population.users.think: "5x" is not a time; use 5s, 1500ms or 1m30s`.
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
    let top = document::read(&mut notes, &SCENARIO);
    let tables = tables(&mut notes, &top, open);
    let sources = top.read(&mut notes, "sources", Sources::parse).unwrap_or(Sources::Automatic);
    let mut lead = FlagReader::beside_a_scenario(flags);
    let sources = lead.read(&flag::SOURCES, sources, Sources::parse);
    let mut reader = Reader { notes: &mut notes, around, tables: &tables, top: &top, v4: sources.is_v4() };
    let populations = reader.populations();
    let probe = reader.probe(&populations);
    let stages = stages_of(&mut notes, &top);
    let thresholds = thresholds(&mut notes, &top, &populations);
    let seed = top.read(&mut notes, "seed", seed).unwrap_or(around.seed);
    let threads = top.read(&mut notes, "threads", threads).unwrap_or(around.cores.clamp(1, MAX_THREADS));
    let max_lag = top.read(&mut notes, "max-lag", max_lag).unwrap_or(DEFAULT_MAX_LAG);
    let experiments = !top.truth("no-experiments").unwrap_or(false);
    let io = top.read(&mut notes, "io", IoChoice::parse).unwrap_or(IoChoice::Auto);
    if notes.is_empty() && !have_places(&populations) {
        let why = "all steps together compile to more than 65,536 operations; use fewer";
        top.note(&mut notes, "population", why);
    }
    let plan = Plan {
        text: file.to_owned(),
        populations,
        stages,
        probe,
        tables,
        sources,
        threads,
        seed,
        io,
        thresholds,
        max_lag,
        experiments,
        max_segment: None,
        target_gc: false,
        observe: None,
    };
    // With a mistake in the file, the load to change is not known.
    let plan = if notes.is_empty() { overridden(plan, &mut lead) } else { plan };
    let plan = lead.over(plan, around, notes.is_empty());
    let mut mistakes = [notes.into_mistakes(), lead.mistakes].concat();
    list_once(mistakes.iter_mut().map(|mistake| &mut mistake.text));
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}

/// Whether each operation of all populations can have a place of 16 bits: that is all that a connection keeps of it.
pub(super) fn have_places(populations: &[Population]) -> bool {
    populations.iter().map(Population::operations).sum::<usize>() <= 1 << 16
}

/// The stages, which refer to populations by name.
fn stages_of(notes: &mut Notes, top: &Section) -> Vec<Stage> {
    // Without a wrong one their indices are those of the file.
    let mut names: Vec<&str> = match top.has("population") {
        true => top
            .sections("population")
            .iter()
            .map(|own| own.scalar("name").map_or("", |scalar| &scalar.text))
            .collect(),
        false => vec!["main"],
    };
    // So that their number has 16 bits too.
    names.truncate(u16::MAX.into());
    let before = notes.len();
    let stages = stages(notes, top, &names);
    // If `of` is a mistake, its populations are not known.
    let is_known = !top.is_wrong("stage") && !top.sections("stage").iter().any(Section::has_mistake);
    if notes.len() == before && is_known {
        all_come_up(notes, top, &names, &stages);
    }
    stages
}

/// The tables of values; also those that cannot be read, without columns.
fn tables(notes: &mut Notes, top: &Section, open: Open) -> Vec<Csv> {
    let mut tables = Vec::new();
    for (scalar, section) in top.named("csv") {
        if let Err(why) = name(&scalar.text) {
            notes.add(scalar.at, "csv", why);
        }
        if !section.has("file") {
            notes.add(scalar.at, &section.path, "missing file; use file = \"users.csv\"");
        }
        let table = section.read(notes, "file", |file| {
            let read = match open(file).map_err(|why| format!("{file:?} cannot be read: {why}"))? {
                Source::Text(text) => Csv::parse(&scalar.text, file, &text),
                Source::Head(head) => Csv::of_head(&scalar.text, file, &head),
            };
            read.map_err(|why| format!("{file:?}: {why}"))
        });
        tables.push(table.unwrap_or_else(|| Csv::unread(&scalar.text)));
    }
    tables
}

impl Reader<'_, '_> {
    /// All populations; those with a wrong target are left out.
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
                section.read(self.notes, "rate", some_rate)
            }
            None => top.read(self.notes, "probe", some_rate),
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

    /// A probe without a target of its own: of the population at the file's target, or else of the first that sends requests.
    fn probe_like(&mut self, populations: &[Population], rate: Option<Rate>) -> Option<Probe> {
        let top = self.top;
        let has_requests = |population: &&Population| population.target.scheme.has_requests();
        let at_top = top.scalar("target").map(|scalar| &scalar.text);
        let first = populations.iter().find(|population| Some(&population.target.text) == at_top);
        let first = first.filter(has_requests).or_else(|| populations.iter().find(has_requests));
        let Some(first) = first else {
            // With an invalid target the schemes are not known.
            if self.notes.is_empty() {
                let why = "the probe needs an http:// target; use [probe] with target = \
                        \"http://host:port/\"";
                top.note(self.notes, "probe", why);
            }
            return None;
        };
        let timeout = self.probe_timeout();
        if first.grpc.is_some() {
            return Some(Probe::new(rate?, Population { timeout, ..calling(first.clone()) }));
        }
        let headers = self.fields(top, &first.target);
        let like = probe_population(first.target.clone(), first.tls.clone(), headers);
        Some(Probe::new(rate?, Population { streams: first.streams, timeout, ..like }))
    }

    /// That of the file's top, as of all populations without one of their own.
    fn probe_timeout(&mut self) -> Nanos {
        self.top.read(self.notes, "timeout", timeout).unwrap_or(DEFAULT_TIMEOUT)
    }
}

/// HTTP/2 where the populations speak it there: the one at the same URL, or else the first at the same addresses.
fn streams_at(target: &Target, populations: &[Population]) -> Option<u16> {
    let is_there = |own: &&Population| {
        own.target.scheme.has_plain_requests() && own.target.destinations == target.destinations
    };
    let same = populations.iter().find(|own| is_there(own) && own.target.text == target.text);
    same.or_else(|| populations.iter().find(is_there))?.streams
}

/// One that makes the first call of a population, as the probe is to: a path alone is no call, without its message and descriptors.
fn calling(mut like: Population) -> Population {
    let call = like.requests().next().cloned();
    let activity = call.map(|call| Activity::again(call, Think::default()));
    Population { activity: activity.unwrap_or(Activity::Idle), ..like }
}

/// One that sends the request of its target, as the probe is to.
fn probe_population(target: Target, tls: Tls, headers: Vec<(String, Text)>) -> Population {
    let request = Request { headers, ..Request::get(target.path.clone(), Expectation::default()) };
    Population {
        name: "probe".to_owned(),
        target,
        tls,
        streams: None,
        grpc: None,
        headers: Vec::new(),
        load: Load::Held { connections: 1 },
        calls: None,
        requests: None,
        timeout: DEFAULT_TIMEOUT,
        reconnect: Reconnect::Planned,
        cookies: false,
        variables: Vec::new(),
        activity: Activity::again(request, Think::default()),
        pushes: Pushes::default(),
        keep_alive: None,
    }
}

/// A population that no stage moves would do nothing.
fn all_come_up(notes: &mut Notes, top: &Section, names: &[&str], stages: &[Stage]) {
    for (i, name) in names.iter().enumerate() {
        let moved = stages.iter().any(|stage| stage.to > Share::NONE && stage.of.contains(&(i as u16)));
        // One without a name cannot be in the stages.
        if !moved && !name.is_empty() {
            let at = top.sections("population").get(i).map_or(top.at, |own| own.at);
            let fix = format!("no stage starts it; add {name:?} to the `of` of a stage");
            notes.add(at, &format!("population.{name}"), fix);
        }
    }
}

/// The thresholds, on figures of the whole run and of the populations.
fn thresholds(notes: &mut Notes, top: &Section, populations: &[Population]) -> Vec<Threshold> {
    let (is_whole, mut all) = (notes.is_empty(), Vec::new());
    let own: Vec<Option<&str>> =
        top.sections("population").iter().map(|own| Some(&*own.scalar("name")?.text)).collect();
    // What was left out for a mistake may be what is named: a step, or a population whose name is one.
    let may_be_left_out = |text: &str| {
        let first = text.trim_start().split_once('.').map(|(first, _)| first);
        !is_whole && first.is_some() && (own.contains(&None) || own.contains(&first))
    };
    for scalar in top.scalars("thresholds").unwrap_or_default() {
        match Threshold::parse(&scalar.text, populations) {
            Ok(threshold) => all.push(threshold),
            Err(_) if may_be_left_out(&scalar.text) => {}
            Err(why) if !is_whole && why.wanted == NEVER_HELD => {}
            // It may list all figures; what is the user's in it is escaped.
            Err(why) => notes.add_lines(scalar.at, "thresholds", &why.to_string()),
        }
    }
    all
}
