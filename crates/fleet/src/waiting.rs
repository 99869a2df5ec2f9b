//! A wait for agents, which the user may end.

use run::Interrupt;

/// What is said while agents are waited for, and what ends the waiting.
pub struct Waiting<'a> {
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// A line for the person.
    pub say: &'a mut dyn FnMut(&str),
}

impl Waiting<'_> {
    /// `state`: how far it is.
    ///
    /// # Errors
    /// Ctrl-C, with how far it was.
    pub(crate) fn go_on(&self, state: impl FnOnce() -> String) -> Result<(), String> {
        if self.interrupt.is_set() {
            Err(format!("interrupted before the run began: {}", state()))
        } else {
            Ok(())
        }
    }
}
