//! Why a lab does not run.

use std::{io, path::Path};

/// Why a lab does not run, by what has to change.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// A lab's files or the user's arguments; a line for each mistake.
    Usage(Vec<String>),
    /// This machine, or a program on it, with what it printed last.
    Machine(String),
    /// The user stopped it before the load began.
    Interrupted,
}

impl Error {
    /// One mistake.
    pub fn usage(why: impl Into<String>) -> Error {
        Error::Usage(vec![why.into()])
    }

    /// An operation on this file, or with this program, failed.
    pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |e| Error::Machine(format!("{}: {e}", path.as_ref().display()))
    }
}
