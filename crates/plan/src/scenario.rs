//! Scenario files and command lines: from text to a checked [`Plan`](crate::Plan), or to all mistakes at once.
//!
//! Keys have the names, meaning and units of the flags. One table of keys drives the reader, the JSON schema, and the list of keys in
//! `docs/reference/scenario.md`.

mod capture;
mod check;
mod document;
mod expectation;
mod grpc;
mod keys;
mod load;
mod number;
mod outgoing;
mod overrides;
mod population;
mod pushes;
mod schema;
mod secrets;
mod step;
mod typed;

pub use check::{from_flags, read};
pub use number::Number;
pub use schema::{reference, schema};
pub use secrets::without_secrets;

/// Whether a target is a scenario file.
pub fn is_file(target: &str) -> bool {
    target.ends_with(".toml") && !target.contains("://")
}

#[cfg(test)]
mod tests;
