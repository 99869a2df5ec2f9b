//! Why operations of a fleet fail, and waits that the user may interrupt.

use std::fmt;

use run::Interrupt;
use units::ParseError;

/// Why an operation failed. Prints the problem and its fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The user wrote something that is not valid.
    Invalid(String),
    /// NATS, a cluster or this machine does not do what is needed.
    Unavailable(String),
    /// An agent, a run or an observer does not exist, is not unique, or does not reply.
    Missing(String),
    /// An agent, the coordinator of a run, or an observer refuses; contains its reason.
    Refused(String),
    /// The load or a message exceeds a limit.
    TooLarge(String),
    /// The user interrupted the wait for the beginning of a run; contains the progress.
    Interrupted(String),
}

impl Error {
    pub(crate) fn unavailable(why: impl ToString) -> Error {
        Error::Unavailable(why.to_string())
    }

    pub(crate) fn refused(why: impl ToString) -> Error {
        Error::Refused(why.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Interrupted(progress) => write!(f, "interrupted before the run began: {progress}"),
            Error::Invalid(why)
            | Error::Unavailable(why)
            | Error::Missing(why)
            | Error::Refused(why)
            | Error::TooLarge(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<ParseError> for Error {
    fn from(wrong: ParseError) -> Error {
        Error::Invalid(wrong.to_string())
    }
}

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
    pub(crate) fn go_on(&self, state: impl FnOnce() -> String) -> Result<(), Error> {
        if self.interrupt.is_set() { Err(Error::Interrupted(state())) } else { Ok(()) }
    }
}
