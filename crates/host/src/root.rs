//! Where the machine's files are found.

use std::fs::File;
use std::io::{self, Read};
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

    /// Whether this is the kernel's own file system: some shortcuts hold only there.
    pub(crate) fn is_real(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// `below` is relative: `proc/meminfo`.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.0.join(below)
    }

    /// The whole text of a file; an error names the file.
    pub(crate) fn read(&self, below: impl AsRef<Path>) -> io::Result<String> {
        // The kernel's files have a size of zero: without capacity to begin with, they would be read in small steps.
        const ROOM: usize = 8 << 10;
        let path = self.path(below);
        let mut text = String::with_capacity(ROOM);
        let read = File::open(&path).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        Ok(text)
    }

    /// The first number of a file; `None` where there is no such file, or no number in it.
    pub(crate) fn number<N: std::str::FromStr>(&self, below: impl AsRef<Path>) -> Option<N> {
        self.read(below).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// The value of a kernel setting, with one blank between its numbers.
    pub(crate) fn setting(&self, name: &str) -> io::Result<String> {
        Ok(self.read(setting_file(name))?.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// What follows `name` where a line of a file begins with it; `None` where none does, or it is no `T`.
    pub(crate) fn field<T: std::str::FromStr>(&self, below: impl AsRef<Path>, name: &str) -> Option<T> {
        let text = self.read(below).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    }
}

/// Where a kernel setting is, by its name with dots.
pub(crate) fn setting_file(name: &str) -> String {
    format!("proc/sys/{}", name.replace('.', "/"))
}

/// The kernel wrote something that this crate does not understand: names the file, and what is missing.
pub(crate) fn unexpected(file: &str, missing: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/{file}: not found in it: {missing}"))
}
