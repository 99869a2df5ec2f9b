//! Where the machine's files are found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The directory below which `proc` and `sys` lie. Every reader of this crate takes one, so that a test
/// can describe a machine with a few small files.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Root {
    /// This machine: `/`.
    pub fn real() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A machine described by the files below `path`.
    pub fn at(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    /// Whether the kernel itself answers: some shortcuts hold for its file systems only.
    pub(crate) fn is_real(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// `below` is relative: `proc/meminfo`.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.0.join(below)
    }

    /// The whole text of a file; an error names the file.
    pub(crate) fn read(&self, below: impl AsRef<Path>) -> io::Result<String> {
        let path = self.path(below);
        fs::read_to_string(&path).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
    }

    /// The first number of a file; `None` where there is no such file, or no number in it.
    pub(crate) fn number<N: std::str::FromStr>(&self, below: impl AsRef<Path>) -> Option<N> {
        self.read(below).ok()?.split_whitespace().next()?.parse().ok()
    }
}

/// The kernel wrote something that this crate does not understand: says which file, and what is missing.
pub(crate) fn unexpected(file: &str, missing: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/{file}: not found in it: {missing}"))
}
