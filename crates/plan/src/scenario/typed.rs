//! A command line as the top level of a scenario file, with the numbers of its flags as offsets.

use super::document::{Notes, Scalar, Section, Value};
use super::keys::SCENARIO;
use crate::flag::{FLAGS, Role};
use crate::key::{Key, Kind};
use crate::text::Place;
use crate::{Flags, Text, header};

/// The flags of these roles that are also top-level keys of a file.
pub(super) fn of_flags(notes: &mut Notes, flags: &Flags, roles: &[Role]) -> Section {
    let mut section =
        Section { path: String::new(), at: 0, values: Vec::new(), wrong: Vec::new(), unknown: 0 };
    for flag in FLAGS.iter().filter(|flag| roles.contains(&flag.role)) {
        let Some(key) = flag.key.and_then(|key| SCENARIO.key(key.name)) else { continue };
        let given: Vec<Scalar> =
            flags.places(flag).map(|(at, text)| Scalar { text: text.to_owned(), at }).collect();
        let Some(first) = given.first() else { continue };
        let before = notes.len();
        given.iter().filter(|scalar| is_of_a_file(&scalar.text)).for_each(|scalar| {
            notes.add(scalar.at, key.name, OF_A_FILE);
        });
        if notes.len() > before {
            section.wrong.push(key.name);
            continue;
        }
        let value = match key.kind {
            Kind::Truth => Value::Truth(true, first.at),
            Kind::Texts => Value::Scalars(given),
            Kind::Pairs => Value::Pairs(given.iter().filter_map(|scalar| pair(notes, key, scalar)).collect()),
            _ => Value::Scalar(first.clone()),
        };
        section.values.push((key, value));
    }
    section
}

const OF_A_FILE: &str =
    "{env} and {var} are for scenario files; write \"…$NAME\" for a variable of the environment";

/// Whether a text contains variables that only a file may use.
fn is_of_a_file(text: &str) -> bool {
    Text::parse(text, Place::Content, &[]).is_ok_and(|text| text.is_of_a_file())
}

/// Parses a header field as typed: `Name: value`.
fn pair(notes: &mut Notes, key: &Key, scalar: &Scalar) -> Option<(Scalar, Scalar)> {
    let part = |text: &str| Scalar { text: text.to_owned(), at: scalar.at };
    match header::split(&scalar.text) {
        Ok((name, value)) => Some((part(name), part(value))),
        Err(why) => {
            notes.add(scalar.at, key.name, why);
            None
        }
    }
}
