//! The root directory of the machine's files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The directory that contains `proc` and `sys`. Every reader of this crate takes one, so that a test can describe a machine with a few
/// small files.
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

    /// Whether this is the kernel's own file system; some shortcuts work only there.
    pub(crate) fn is_real(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// A path below the root; `below` is relative: `proc/meminfo`.
    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.0.join(below)
    }

    /// Reads a whole file; an error names the file.
    pub(crate) fn read(&self, below: impl AsRef<Path>) -> io::Result<String> {
        // Files in /proc have size 0; without an initial capacity they would be read in small steps.
        const ROOM: usize = 8 << 10;
        let path = self.path(below);
        let mut text = String::with_capacity(ROOM);
        let read = File::open(&path).and_then(|mut file| file.read_to_string(&mut text));
        read.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        Ok(text)
    }

    /// The first number in a file; `None` if there is no such file or number.
    pub(crate) fn number<N: std::str::FromStr>(&self, below: impl AsRef<Path>) -> Option<N> {
        self.read(below).ok()?.split_whitespace().next()?.parse().ok()
    }

    /// The value of a kernel setting, with single blanks between its numbers.
    pub(crate) fn setting(&self, name: &str) -> io::Result<String> {
        Ok(self.read(setting_file(name))?.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The rest of the line that begins with `name`; `None` if there is none, or it is not a `T`.
    pub(crate) fn field<T: std::str::FromStr>(&self, below: impl AsRef<Path>, name: &str) -> Option<T> {
        let text = self.read(below).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    }
}

/// The file of a kernel setting, by its name with dots.
pub(crate) fn setting_file(name: &str) -> String {
    format!("proc/sys/{}", name.replace('.', "/"))
}

/// The error for a kernel file with unexpected content; names the file, and what is missing.
pub(crate) fn unexpected(file: &str, missing: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/{file}: not found in it: {missing}"))
}
