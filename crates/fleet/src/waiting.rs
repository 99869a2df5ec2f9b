//! A wait for agents, which the user may interrupt.

use run::Interrupt;

/// How a wait reports to the user, and what interrupts it.
pub struct Waiting<'a> {
    /// Set by Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Prints a line for the user.
    pub say: &'a mut dyn FnMut(&str),
}

impl Waiting<'_> {
    /// Continues the wait. `state`: describes the progress.
    ///
    /// # Errors
    /// Ctrl-C; contains the progress.
    pub(crate) fn go_on(&self, state: impl FnOnce() -> String) -> Result<(), String> {
        if self.interrupt.is_set() {
            Err(format!("interrupted before the run began: {}", state()))
        } else {
            Ok(())
        }
    }
}
