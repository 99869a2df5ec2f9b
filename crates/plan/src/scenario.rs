//! Scenario files and command lines: from what is written to a checked [`Plan`](crate::Plan), or to all that is wrong with it at once.
//!
//! The keys are named like the flags, with the same meaning and units. `docs/reference/scenario.md` has them
//! all; it comes, as the JSON schema does, from the table of keys that the reader uses.

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

/// Is a target a scenario file?
pub fn is_file(target: &str) -> bool {
    target.ends_with(".toml") && !target.contains("://")
}

#[cfg(test)]
mod tests;
