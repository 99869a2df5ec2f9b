//! Scenario files and command lines: from text to a checked [`Plan`](crate::Plan), or to all mistakes at once.
//!
//! Keys have the names, meaning and units of the flags. One table of keys drives the reader, the JSON schema, and the list of keys in
//! `docs/reference/scenario.md`.

mod capture;
mod check;
mod document;
mod expectation;
mod graphql;
mod grpc;
mod keys;
mod load;
mod number;
mod outgoing;
mod overrides;
mod population;
mod pushes;
mod repeat;
mod schema;
mod secrets;
mod step;
mod tables;
mod typed;

pub(crate) use check::have_places;

use crate::{Csv, Environment, Grpc, Target, Text, Think};
use document::{Notes, Section};

pub use check::{from_flags, read};
pub use number::Number;
pub use schema::{reference, schema};
pub use secrets::without_secrets;

/// Whether a target is a scenario file.
pub fn is_file(target: &str) -> bool {
    target.ends_with(".toml") && !target.contains("://")
}

/// Context for reading any part of a file.
struct Reader<'r, 't> {
    notes: &'r mut Notes<'t>,
    around: &'r Environment<'r>,
    tables: &'r [Csv],
    /// The top level, with the defaults of all populations.
    top: &'r Section,
    /// Address family of the sources, if they determine it: true for IPv4.
    v4: Option<bool>,
}

impl Reader<'_, '_> {
    /// The value of a population's key, or else of the top-level one.
    fn inherited<T, E: std::fmt::Display>(
        &mut self,
        own: &Section,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let section = if own.has(key) { own } else { self.top };
        section.read(self.notes, key, parse)
    }
}

/// Context that the steps of a population share.
struct StepContext<'g> {
    /// The population's section.
    own: &'g Section,
    target: &'g Target,
    /// Settings of gRPC calls; `None` without gRPC.
    grpc: &'g Option<Grpc>,
    /// Default header fields of each request.
    headers: &'g [(String, Text)],
    /// Default think time.
    think: Think,
    /// Whether a rate schedules requests; then there is no think time.
    rated: bool,
    /// Variables that its steps capture.
    variables: Vec<String>,
    /// Whether it sends requests before it opens its WebSocket.
    logs_in: bool,
    /// Whether its connections send PINGs in addition to their steps.
    pings_beside: bool,
}

/// Octets of the longest name.
const LONGEST_NAME: usize = 64;

/// Checks the name of a population or step.
fn name(text: &str) -> Result<String, String> {
    let letters = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    match letters && begins && text.len() <= LONGEST_NAME {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("{text:?} is not a name; use letters, digits, - and _, a letter first, at most 64"))
        }
    }
}

#[cfg(test)]
mod tests;
