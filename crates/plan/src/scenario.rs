//! Scenario files: from TOML to a checked [`Plan`], or to all that is wrong with it at once.
//!
//! The keys are named like the flags, with the same meaning and units. `docs/reference/scenario.md` has them
//! all; it comes, as the JSON schema does, from the table of keys that the reader uses.

mod check;
mod document;
mod expectation;
mod keys;
mod load;
mod overrides;
mod population;
mod schema;
mod step;

pub use schema::{reference, schema};

use crate::{Environment, Flags, Mistake, Plan};

/// Is a target a scenario file?
pub fn is_file(target: &str) -> bool {
    target.ends_with(".toml") && !target.contains("://")
}

/// Reads the text of a scenario file. `file` is what mistakes call it, and `open` gives the text of another
/// file that it names, from the folder of the first; its error is a short reason. What `flags` say of the run (its seed,
/// its threads, …) goes before the file; of the load they may change how many connections there are, how fast they come and for how long
/// they are held, and the rest is a mistake.
///
/// # Errors
/// All mistakes, in the order of the file: `load.toml:12:9: population.users.think: "5" is not a time; use 5s`.
pub fn read(
    file: &str,
    text: &str,
    flags: &Flags,
    around: &Environment,
    open: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Plan, Vec<Mistake>> {
    check::scenario(file, text, flags, around, open)
}

#[cfg(test)]
mod tests;
