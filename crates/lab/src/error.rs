//! Errors of a lab.

use std::{io, path::Path};

/// Why a lab cannot be run; the variants differ in what has to change.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// A mistake in a lab's files or in the arguments, one message per mistake.
    Usage(Vec<String>),
    /// A failure of this machine or of a program on it, with the program's last output.
    Machine(String),
    /// Interrupted by the user before the load began.
    Interrupted,
}

impl Error {
    /// A single usage error.
    pub fn usage(why: impl Into<String>) -> Error {
        Error::Usage(vec![why.into()])
    }

    /// A function that converts an I/O error at this path, or of this program, to an error.
    pub(crate) fn at(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Error {
        move |e| Error::Machine(format!("{}: {e}", path.as_ref().display()))
    }
}
