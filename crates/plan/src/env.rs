//! Environment variables in the texts of a plan: named there, and read by the process that reads the plan.

use std::collections::BTreeSet;

use crate::{LONGEST_VALUE, Plan, Variable, rows};

impl Plan {
    /// Gives the environment variables in its texts their values; those that `find` does not know are left as they are.
    ///
    /// # Errors
    /// A value is not allowed where it is used; it is not in the message.
    pub fn set_env(&mut self, find: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        for (text, place) in rows::texts(self) {
            for variable in text.env_mut() {
                let Some(value) = find(&variable.name) else { continue };
                if value.len() > LONGEST_VALUE {
                    let Variable { name, .. } = variable;
                    return Err(format!("{{env {name}}}: at most {LONGEST_VALUE} octets: {}", value.len()));
                }
                variable.value = Some(value.into());
            }
            text.check(place)?;
        }
        Ok(())
    }

    /// The environment variables in its texts, each once, that have no value.
    pub fn missing_env(&mut self) -> Vec<String> {
        let variables = rows::texts(self).flat_map(|(text, _)| text.env_mut());
        let missing: BTreeSet<String> =
            variables.filter(|own| own.value.is_none()).map(|own| own.name.clone()).collect();
        missing.into_iter().collect()
    }
}
