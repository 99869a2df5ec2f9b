//! Parses and checks the load of a population, and the stages of the run: how many connections, and when.

use super::document::{Notes, Section};
use crate::flag;
use crate::nearest::nearest_or_all;
use crate::value::{DEFAULT_HOLD, connections, connections_for, hold, ramp, rate_per_s, requests, within};
use crate::{Hold, Load, LoadKeys, Population, Ramp, Share, Stage};
use std::fmt::Display;
use units::{Nanos, ParseError, Rate};

/// The load of a population, its requests per connection, and its requests in total.
pub(super) fn read(notes: &mut Notes, own: &Section) -> (Load, Option<u64>, Option<u64>) {
    let requests = own.read(notes, "requests", requests);
    let keys = LoadKeys {
        connections: own.read(notes, "connections", connections).or_else(|| connections_for(requests)),
        rate: own.read(notes, "rate", some_rate),
        arrive: own.read(notes, "arrive", |text| rate_per_s(text, "100/s")),
        total: own.read(notes, "total", at_least_one),
    };
    let calls = own.read(notes, "calls", at_least_one).map(u64::from);
    if own.has("arrive") {
        let arrive = notes.name(&flag::ARRIVE);
        let [total, calls] = [&flag::TOTAL, &flag::CALLS].map(|flag| notes.name(flag));
        for (key, why) in [
            ("connections", format!("{total} sets the number of connections")),
            ("rate", format!("{calls} sets the requests per connection")),
            ("requests", format!("{total} and {calls} set the number of requests")),
        ] {
            own.refuse(notes, &[key], format!("with {arrive}, {why}; remove it"));
        }
        let is_usual = own.scalar("reconnect").is_some_and(|how| how.text == "planned");
        if !own.has("step") && !is_usual {
            let why = format!("with {arrive}, no connection is dialled again; remove it");
            own.refuse(notes, &["reconnect"], why);
        }
    } else {
        let arrive = notes.written(&flag::ARRIVE, "\"100/s\"");
        own.refuse(notes, &["total"], format!("requires {arrive}; add it, or remove this"));
    }
    (keys.load(), calls, requests)
}

/// A rate above zero.
pub(super) fn some_rate(text: &str) -> Result<Rate, ParseError> {
    rate_per_s(text, "20k/s")
}

fn at_least_one(text: &str) -> Result<u32, ParseError> {
    within(text, u32::MAX, "a number of at least 1", "10 or 40k")
}

/// The stages in order; by default a single one, from `ramp` and `duration`. `names`: the populations.
pub(super) fn stages(
    notes: &mut Notes,
    top: &Section,
    names: &[&str],
    populations: &[Population],
) -> Vec<Stage> {
    if !top.has("stage") {
        // If all populations end by themselves, no duration ends the stage.
        let all_end = populations.iter().all(Population::ends);
        let usual = if all_end { Hold::Forever } else { DEFAULT_HOLD };
        let ramp = top.read(notes, "ramp", ramp).unwrap_or(Ramp::Adaptive);
        if matches!(ramp, Ramp::Rate(_)) && top.has("arrive") {
            let arrive = notes.name(&flag::ARRIVE);
            let why = format!("{arrive} is the rate of dials; use a time in which it is reached, as 30s");
            top.refuse(notes, &["ramp"], why);
        }
        let hold = top.read(notes, "duration", hold).unwrap_or(usual);
        return vec![Stage { name: "up".to_owned(), of: all(names), to: Share::ALL, ramp, hold }];
    }
    for (key, inside) in [("ramp", "ramp"), ("duration", "for")] {
        top.refuse(notes, &[key], format!("cannot be used with stages; use {inside} in a [[stage]]"));
    }
    let sections = top.sections("stage");
    if top.is_empty_list("stage") {
        top.note(notes, "stage", "empty; remove it, or use [[stage]]");
    }
    // Share of each population at the end of the stages so far.
    let mut shares = vec![Share::NONE; names.len()];
    let mut stages = Vec::with_capacity(sections.len());
    for (i, section) in sections.iter().enumerate() {
        let stage = stage(notes, section, names, &mut shares);
        if stage.hold == Hold::Forever && i + 1 < sections.len() {
            section.note(notes, "for", "later stages would never start; use a time, as 5m");
        }
        stages.push(stage);
    }
    stages
}

/// Reads a stage, and updates `shares` to its end.
fn stage(notes: &mut Notes, section: &Section, names: &[&str], shares: &mut [Share]) -> Stage {
    let of = of(notes, section, names);
    let before = of.iter().map(|population| shares[usize::from(*population)]).max().unwrap_or(Share::NONE);
    let stays = if before == Share::NONE { Share::ALL } else { before };
    let to = section.read(notes, "to", Share::parse).unwrap_or(stays);
    let moves = of.iter().any(|population| shares[usize::from(*population)] != to);
    of.iter().for_each(|population| shares[usize::from(*population)] = to);
    if section.has("ramp") && !moves {
        section.note(notes, "ramp", format!("the load is already at {to}; use to = \"50%\", or remove it"));
    }
    let default_name = match to {
        to if to > before => "up",
        to if to < before => "down",
        _ => "hold",
    };
    let name = section.read(notes, "name", label).unwrap_or_else(|| default_name.to_owned());
    let ramp = section.read(notes, "ramp", ramp).unwrap_or(Ramp::Adaptive);
    let hold = section.read(notes, "for", hold).unwrap_or(Hold::For(Nanos::ZERO));
    Stage { name, of, to, ramp, hold }
}

/// The populations that a stage moves.
fn of(notes: &mut Notes, section: &Section, names: &[&str]) -> Vec<u16> {
    let Some(scalars) = section.scalars("of") else { return all(names) };
    if scalars.is_empty() {
        section.note(notes, "of", "empty; remove it to apply the stage to all populations");
    }
    let mut of = Vec::with_capacity(scalars.len());
    for scalar in scalars {
        let mut wrong = |why: &dyn Display| notes.add(scalar.at, &section.key("of"), why);
        match index(names, &scalar.text) {
            Ok(population) if of.contains(&population) => wrong(&format!("given twice: {:?}", scalar.text)),
            Ok(population) => of.push(population),
            Err(why) => wrong(&why),
        }
    }
    of.sort_unstable();
    of
}

/// All populations, by index in the file.
fn all(names: &[&str]) -> Vec<u16> {
    (0..names.len() as u16).collect()
}

/// Index in the file of the population with this name.
fn index(names: &[&str], text: &str) -> Result<u16, String> {
    let at = names.iter().position(|name| *name == text).map(|at| at as u16);
    at.ok_or_else(|| {
        let fix = nearest_or_all(text, names.iter().copied());
        format!("no such population; use {fix}: {text:?}")
    })
}

/// Octets of the longest stage name.
const LONGEST_LABEL: usize = 64;

/// A name that is only displayed.
fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("empty name; use up".to_owned()),
        text if text.len() > LONGEST_LABEL => {
            Err(format!("a name may have at most {LONGEST_LABEL} octets: {}", text.len()))
        }
        text if text.contains(char::is_control) => Err(format!("a name must be a single line: {text:?}")),
        text => Ok(text.to_owned()),
    }
}
