//! Parses and checks how a population reacts to messages that the server pushes.

use units::Nanos;

use super::Reader;
use super::document::Section;
use super::step::message;
use crate::text::Place;
use crate::{Heartbeat, Matches, Pushes, Receivers, Rule, Scheme, Sought, Target, Text};

/// Keys of `expect` that concern pushed messages.
const KEYS: [&str; 3] = ["time", "number", "receivers"];
/// Octets of the longest text that messages are compared with.
const LONGEST_COMPARED: usize = 8_192;

impl Reader<'_, '_> {
    /// Reads `on`, and the keys of `expect` that concern pushed messages.
    pub(super) fn pushes(&mut self, own: &Section, target: &Target) -> Pushes {
        let section = if own.section("expect").is_some() { own } else { self.top };
        let expect = section.section("expect");
        if !target.scheme.has_frames() {
            let fix = Scheme::list(Scheme::PLAIN, "or", Scheme::has_frames);
            let why = format!("{} has no pushed messages; use a target with {fix}", target.scheme);
            own.refuse(self.notes, &["on"], &why);
            if let Some(expect) = own.section("expect") {
                expect.refuse(self.notes, &KEYS, &why);
            }
            return Pushes::default();
        }
        let mut pushes = Pushes::default();
        if let Some(expect) = expect {
            pushes.time = expect.read(self.notes, "time", Sought::parse);
            pushes.number = expect.read(self.notes, "number", Sought::parse);
            pushes.receivers = expect.read(self.notes, "receivers", Receivers::parse);
            if expect.has("receivers") && !expect.has("number") {
                expect.note(
                    self.notes,
                    "receivers",
                    "requires number = \"json:/seq\", the same for all of them",
                );
            }
        }
        for on in own.sections("on") {
            self.on(on, &mut pushes);
        }
        if pushes.rules.len() > Pushes::MOST_RULES {
            let why = format!("at most {} of them compare messages", Pushes::MOST_RULES);
            own.note(self.notes, "on", why);
        }
        pushes
    }

    fn on(&mut self, on: &Section, pushes: &mut Pushes) {
        let tables = self.tables;
        let is_heartbeat = on.has("every");
        let reply = on.read(self.notes, "send", |text| match text {
            // An empty heartbeat is a control ping.
            "" if is_heartbeat => Ok(Text::default()),
            text => message(text, |text| Text::parse(text, Place::Content, tables)),
        });
        let conditions = ["is", "starts", "contains", "every"];
        let given: Vec<&str> = conditions.into_iter().filter(|key| on.has(key)).collect();
        match given[..] {
            ["every"] => {
                let every = on.read(self.notes, "every", |text| match Nanos::parse_or_seconds(text) {
                    Ok(Nanos::ZERO) => Err("use a time above zero: \"0\"".to_owned()),
                    read => read.map_err(|e| e.to_string()),
                });
                if !on.has("send") {
                    on.note(self.notes, "every", "requires send = \"ping\"");
                }
                if pushes.heartbeat.is_some() {
                    on.note(self.notes, "every", "another one has it too; remove one of the two");
                }
                pushes.heartbeat = every.zip(reply).map(|(every, text)| Heartbeat { every, text });
            }
            [key] => {
                let read = on.read(self.notes, key, |text| match text.len() {
                    1..=LONGEST_COMPARED => Ok(text.to_owned()),
                    length => Err(format!("use 1 to {LONGEST_COMPARED} octets: {length}")),
                });
                let matches = read.map(|text| match key {
                    "is" => Matches::Is(text),
                    "starts" => Matches::Starts(text),
                    _ => Matches::Contains(text),
                });
                pushes.rules.extend(matches.map(|matches| Rule { matches, reply }));
            }
            _ => self.notes.add(on.at, &on.path, "use one of is, starts, contains and every"),
        }
    }

    /// Refuses these keys in a step's `expect`, which concerns a single message.
    pub(super) fn no_pushes(&mut self, step: &Section) {
        if let Some(expect) = step.section("expect") {
            let why = "applies to all pushed messages; move it to the population's expect";
            expect.refuse(self.notes, &KEYS, why);
        }
    }
}
