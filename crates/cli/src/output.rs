//! Writes the outputs of commands: each file is written completely or not at all. The name `-` stands for standard output.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Read, Seek, Write, stdout},
    path::Path,
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use units::file_error;

use crate::{EXIT_MACHINE, Failure, print_stdout};

/// The name that stands for standard output.
pub(crate) const STDOUT: &str = "-";

/// Writes a text to a file, or to standard output. If that fails, the file keeps its previous content.
///
/// # Errors
/// The text cannot be written; the message contains the fix.
pub(crate) fn write(flag: &str, name: &str, text: &str) -> Result<(), Failure> {
    match name {
        STDOUT => print_stdout(text),
        _ => replace(Path::new(name), &|out| out.write_all(text.as_bytes()))
            .map_err(|e| unwritten(flag, name, &e)),
    }
}

/// As [`write`], with the content of another file.
///
/// # Errors
/// As [`write`].
pub(crate) fn copy(flag: &str, name: &str, from: &str) -> Result<(), Failure> {
    let copied = |out: &mut File| io::copy(&mut File::open(from)?, out).map(|_| ());
    replace(Path::new(name), &copied).map_err(|e| unwritten(flag, name, &e))
}

/// Appends a text to a file, completely or not at all.
///
/// # Errors
/// As [`write`].
pub(crate) fn append(flag: &str, name: &str, text: &str) -> Result<(), Failure> {
    let append = || {
        let is_new = !Path::new(name).exists();
        let mut file = OpenOptions::new().append(true).create(true).open(name)?;
        let before = file.metadata()?.len();
        file.write_all(text.as_bytes()).inspect_err(|_| {
            let _ = if is_new { fs::remove_file(name) } else { file.set_len(before) };
        })
    };
    if name == STDOUT { print_stdout(text) } else { append().map_err(|e| unwritten(flag, name, &e)) }
}

/// The error for an output that could not be written, with its fix.
pub(crate) fn unwritten(flag: &str, name: &str, e: &io::Error) -> Failure {
    Failure::machine(format!("{flag} {name}: not written: {}", file_error(e)))
}

/// Combines a command's exit status with the result of writing its outputs. A missing output turns success into a failure, and does
/// not hide another status.
///
/// # Errors
/// An output is missing.
pub(crate) fn end(status: u8, written: Result<(), Failure>) -> Result<u8, Failure> {
    match written {
        Ok(()) => Ok(status),
        Err(failure) if status == 0 => Err(Failure { status: EXIT_MACHINE, ..failure }),
        Err(failure) => Err(Failure { status, ..failure }),
    }
}

type Fill<'a> = &'a dyn Fn(&mut File) -> io::Result<()>;

/// Writes a new file that replaces the one at this path.
fn replace(path: &Path, fill: Fill) -> io::Result<()> {
    // The target of a symbolic link is replaced, not the link. Files below /dev and /proc are open descriptors, which cannot be
    // replaced.
    let is_open =
        ["/dev/std", "/dev/fd/", "/proc/"].iter().any(|own| path.to_string_lossy().starts_with(own));
    let path = &*fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let is_there = match fs::symlink_metadata(path) {
        Ok(about) if is_open || !about.is_file() => {
            return fill(&mut OpenOptions::new().write(true).create(true).truncate(true).open(path)?);
        }
        about => about.is_ok(),
    };
    match by_another(path, fill) {
        // The folder is not writable, or the file is a mount point: overwrites the file instead.
        Err(e) if is_there && matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ResourceBusy) => {
            in_place(path, fill)
        }
        done => done,
    }
}

fn by_another(path: &Path, fill: Fill) -> io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
    let other = path.with_file_name(format!(".{name}.{}.tmp", process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).open(&other)?;
    let filled = fill(&mut file).and_then(|()| {
        if let Ok(about) = fs::metadata(path) {
            file.set_permissions(about.permissions())?;
        }
        fs::rename(&other, path)
    });
    filled.inspect_err(|_| {
        let _ = fs::remove_file(&other);
    })
}

/// Overwrites a file; if that fails, writes its previous content back.
fn in_place(path: &Path, fill: Fill) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let mut before = Vec::new();
    file.read_to_end(&mut before)?;
    file.rewind()?;
    let ends = |file: &mut File| file.stream_position().and_then(|end| file.set_len(end));
    let filled = fill(&mut file).and_then(|()| ends(&mut file));
    filled.inspect_err(|_| {
        let _ = file.rewind().and_then(|()| file.write_all(&before)).and_then(|()| ends(&mut file));
    })
}

/// A file or standard output that is written during the run. Nothing is written before the run has begun. If the disk is full, the
/// output ends with the last complete piece.
pub(crate) struct Stream {
    /// `None` for standard output.
    file: Option<File>,
    held: Vec<u8>,
    begun: Arc<AtomicBool>,
    /// Length of the usable content: everything up to the last complete piece.
    whole: u64,
    /// Whether the pieces before an incomplete one are usable.
    is_lines: bool,
}

impl Stream {
    pub(crate) fn new(file: Option<File>, begun: Arc<AtomicBool>) -> Stream {
        Stream { file, held: Vec::new(), begun, whole: 0, is_lines: true }
    }

    /// As `self`, for a format that is only usable as a whole.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_one_piece(self) -> Stream {
        Stream { is_lines: false, ..self }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if !self.begun.load(Relaxed) {
            return Ok(bytes.len());
        }
        let Some(file) = &mut self.file else {
            let mut out = stdout();
            out.write_all(&self.held).and_then(|()| out.flush())?;
            self.held.clear();
            return Ok(bytes.len());
        };
        file.write_all(&self.held).inspect_err(|_| {
            // Fails harmlessly for outputs that are not regular files.
            let _ = file.set_len(self.whole);
        })?;
        if self.is_lines {
            self.whole += self.held.len() as u64;
        }
        self.held.clear();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("throng-output-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = folder("whole");
        let (file, link) = (folder.join("a.json"), folder.join("link"));
        replace(&file, &|out| out.write_all(b"first")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        let full = |out: &mut File| out.write_all(b"sec").and(Err(ErrorKind::StorageFull.into()));
        for write in [by_another, in_place] {
            assert_eq!(write(&file, &full).unwrap_err().kind(), ErrorKind::StorageFull);
            assert_eq!(fs::read(&file).unwrap(), b"first");
        }
        assert!(replace(&folder.join("new"), &full).is_err());
        replace(&link, &|out| out.write_all(b"2nd")).unwrap();
        in_place(&file, &|out| out.write_all(b"3.")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "a link stays one");
        assert_eq!(fs::read(&link).unwrap(), b"3.");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_missing_output_does_not_hide_the_result() {
        let check = |status, expected| {
            let missing = Err(Failure::machine("--json a: not written"));
            assert_eq!(end(status, missing).unwrap_err().status, expected);
            assert!(matches!(end(status, Ok(())), Ok(own) if own == status));
        };
        check(0, 3);
        check(1, 1);
        check(4, 4);
    }
}
