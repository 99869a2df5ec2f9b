//! Environment variables in the texts of a plan: `{env NAME}` names them there, and the process that reads the plan looks them up.

use std::collections::BTreeSet;

use crate::{LONGEST_VALUE, Plan, Variable, rows};

impl Plan {
    /// Sets the values of environment variables in the plan's texts; a variable that `find` does not know is left unset.
    ///
    /// # Errors
    /// A value is not allowed where it is used. The message does not contain it.
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

    /// The environment variables in its texts that have no value, each once.
    pub fn missing_env(&mut self) -> Vec<String> {
        let variables = rows::texts(self).flat_map(|(text, _)| text.env_mut());
        let missing: BTreeSet<String> =
            variables.filter(|own| own.value.is_none()).map(|own| own.name.clone()).collect();
        missing.into_iter().collect()
    }
}
