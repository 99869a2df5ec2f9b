//! Parses and checks what steps capture, and binds the variables in texts to it.

use super::document::{Scalar, Section};
use super::{Reader, name};
use crate::capture::{LONGEST_PLACE, LONGEST_VALUE, MOST_VARIABLES, pointer};
use crate::header::is_token;
use crate::nearest::nearest_or_all;
use crate::text::UNKNOWN;
use crate::{Activity, Bound, Capture, From, Population, Text};

impl Reader<'_, '_> {
    /// The names of all variables that a population's steps capture.
    pub(super) fn variables(&mut self, own: &Section) -> Vec<String> {
        let mut variables: Vec<String> = Vec::new();
        for step in own.sections("step") {
            for (name, _) in step.named("capture") {
                if !variables.contains(&name.text) {
                    variables.push(name.text.clone());
                }
            }
        }
        if variables.len() > MOST_VARIABLES {
            let why =
                format!("a population may capture at most {MOST_VARIABLES} variables: {}", variables.len());
            own.note(self.notes, "step", why);
        }
        variables
    }

    /// What a step captures; `has_head`: from an HTTP response, which has header fields.
    pub(super) fn captures(
        &mut self,
        section: &Section,
        variables: &[String],
        has_head: bool,
    ) -> Vec<Capture> {
        let mut captures = Vec::new();
        for (named, table) in section.named("capture") {
            if let Err(why) = name(&named.text) {
                self.notes.add(named.at, &section.key("capture"), why);
            }
            let Some(from) = self.capture_from(named, table) else { continue };
            if from.is_of_head() && !has_head {
                let why = "a message has no header; use json = \"/token\" or regex = \"…\"";
                self.notes.add(named.at, &table.path, why);
            }
            let nth =
                variables.iter().position(|variable| *variable == named.text).unwrap_or_default() as u16;
            let default = table.read(self.notes, "default", default);
            captures.push(Capture { name: named.text.clone(), nth, from, is_link: false, default });
        }
        captures
    }

    fn capture_from(&mut self, named: &Scalar, table: &Section) -> Option<From> {
        let given: Vec<&str> =
            ["json", "header", "cookie", "regex"].into_iter().filter(|key| table.has(key)).collect();
        if given.len() != 1 {
            let why = "exactly one place; use json = \"/token\", header, cookie or regex";
            self.notes.add(named.at, &table.path, why);
            return None;
        }
        let json = table.read(self.notes, "json", pointer).map(From::Json);
        let header = table.read(self.notes, "header", token).map(From::Header);
        let cookie = table.read(self.notes, "cookie", token).map(From::Cookie);
        json.or(header).or(cookie).or_else(|| table.read(self.notes, "regex", regex).map(From::Regex))
    }

    /// Resolves the variables in a population's texts; reports those that no step captures, or only a later one.
    pub(super) fn bind(&mut self, own: &Section, population: &mut Population) {
        let variables = population.variables.clone();
        let mut unbound: Vec<String> = Vec::new();
        let mut links: Vec<String> = Vec::new();
        for (text, _) in population.texts() {
            links.extend(text.link().map(str::to_owned));
            for (name, nth) in text.vars_mut() {
                *nth = variables.iter().position(|own| own == name).map_or(UNKNOWN, |at| at as u16);
                if *nth == UNKNOWN {
                    unbound.push(name.to_owned());
                }
            }
        }
        for capture in population.requests().flat_map(|request| &mut request.expect.captures) {
            capture.is_link = links.contains(&capture.name);
        }
        for name in unbound {
            let fix = match nearest_or_all(&name, variables.iter().map(String::as_str)) {
                near if !variables.is_empty() => format!("use {near}"),
                _ => format!("add capture = {{ {name} = {{ json = \"/{name}\" }} }} to a step"),
            };
            let why = format!("no step of the population captures it; {fix}: {name:?}");
            self.notes.add(self.place_of(own, &name), &own.path, why);
        }
        self.early(own, population);
    }

    /// Reports variables that are used before the first step that captures them.
    fn early(&mut self, own: &Section, population: &mut Population) {
        let Activity::Steps { steps, .. } = &mut population.activity else { return };
        let mut known: Vec<String> = Vec::new();
        let mut early: Vec<(String, String)> = Vec::new();
        for step in steps {
            let name = step.name.clone();
            let mut read = |text: &mut Text, known: &[String]| {
                let unknown = text
                    .vars_mut()
                    .filter(|(own, nth)| **nth != UNKNOWN && !known.iter().any(|known| known == own));
                early.extend(unknown.map(|(own, _)| (name.clone(), own.to_owned())));
            };
            // What ends a repetition is read after the step.
            let until = step.repeat.take_if(|repeat| matches!(repeat.bound, Bound::Until(_)));
            step.texts().into_iter().for_each(|(text, _)| read(text, &known));
            known.extend(step.act.captures().iter().map(|capture| capture.name.clone()));
            step.repeat = step.repeat.take().or(until);
            step.texts().into_iter().for_each(|(text, _)| read(text, &known));
        }
        for (step, name) in early {
            let why = format!("used before a step captures it; capture it in an earlier step: {name:?}");
            self.notes.add(self.place_of(own, &name), &format!("{}.step.{step}", own.path), why);
        }
    }

    /// The offset of a variable's use, at or after a section's start.
    fn place_of(&self, own: &Section, name: &str) -> usize {
        self.notes.find(own.at, &format!("{{var {name}}}")).unwrap_or(own.at)
    }
}

/// A value of a variable: as if it had been captured, or empty.
fn default(text: &str) -> Result<String, String> {
    match text.len() {
        _ if text.contains(char::is_control) => Err(format!("a value has no control characters: {text:?}")),
        0..=LONGEST_VALUE => Ok(text.to_owned()),
        length => Err(format!("a value has at most {LONGEST_VALUE} octets: {length}")),
    }
}

fn token(text: &str) -> Result<String, String> {
    match is_token(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not a name; use X-Token")),
    }
}

/// Checks an expression that `engine` compiles later, with the same limits.
fn regex(text: &str) -> Result<String, String> {
    match crate::capture::compile(text) {
        Ok(_) if text.len() <= LONGEST_PLACE => Ok(text.to_owned()),
        Ok(_) => Err(format!("an expression may have at most {LONGEST_PLACE} octets: {}", text.len())),
        Err(why) => Err(format!("not a regular expression: {why}")),
    }
}
