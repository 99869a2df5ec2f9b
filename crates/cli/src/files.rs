//! The files that a run writes. They are checked or opened before the run, so that a file that cannot be written prevents it. A run
//! that is refused neither changes nor leaves any file.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rustix::fs::{Access, access};
use samples::{Header, Samples, Sink, Tick};
use units::{file_error, shell_word};

use crate::{
    Failure,
    output::{STDOUT, Stream},
};

/// The files of a run.
#[derive(Default)]
pub(crate) struct Files {
    /// The flag that writes each file, to refuse two flags with the same file.
    flags: BTreeMap<PathBuf, String>,
    /// The flag that writes to standard output.
    stdout: Option<String>,
    /// The files that are written during the run. They are truncated when it begins.
    streams: Vec<File>,
    /// Files created here, with their device and inode numbers: removed if the run is refused, or if they are empty at the end.
    made: Vec<(PathBuf, (u64, u64))>,
    /// Existing files that were opened: removed if they are empty at the end of a run.
    opened: Vec<(PathBuf, (u64, u64))>,
    folders: Vec<PathBuf>,
    begun: Arc<AtomicBool>,
}

impl Files {
    /// Opens a file that is written during the run; its previous content is kept until the run begins.
    ///
    /// # Errors
    /// The file cannot be written, or another flag writes to it.
    pub(crate) fn stream(&mut self, flag: &str, name: &str) -> Result<Stream, Failure> {
        if name == STDOUT {
            return self.claim(flag, name).map(|()| Stream::new(None, self.begun.clone()));
        }
        let failed = |e: io::Error| not_written(flag, Path::new(name), &e);
        let (file, is_new) = match OpenOptions::new().write(true).create_new(true).open(name) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(name).map_err(failed)?, false)
            }
            new => (new.map_err(failed)?, true),
        };
        let identity = identity(&file).map_err(failed)?;
        let list = if is_new { &mut self.made } else { &mut self.opened };
        list.push((PathBuf::from(name), identity));
        self.claim(flag, name)?;
        self.streams.push(file.try_clone().map_err(failed)?);
        Ok(Stream::new(Some(file), self.begun.clone()))
    }

    /// Checks a file that is written as a whole after the run; it is not touched before.
    ///
    /// # Errors
    /// The file cannot be written, or another flag writes to it.
    pub(crate) fn whole(&mut self, flag: &str, name: &str) -> Result<(), Failure> {
        let failed = |e: io::Error| not_written(flag, Path::new(name), &e);
        if name != STDOUT {
            can_be_written(Path::new(name)).map_err(failed)?;
        }
        self.claim(flag, name)
    }

    /// Checks the file of `--json`.
    ///
    /// # Errors
    /// As [`Files::whole`].
    pub(crate) fn json(&mut self, json: Option<&str>) -> Result<(), Failure> {
        json.map_or(Ok(()), |file| self.whole("--json", file))
    }

    /// Whether an output goes to standard output; then messages and text go to standard error.
    pub(crate) fn has_stdout(&self) -> bool {
        self.stdout.is_some()
    }

    /// Creates a folder with these files, which are empty at first.
    ///
    /// # Errors
    /// The folder is not empty, or cannot be created.
    pub(crate) fn folder(&mut self, flag: &str, folder: &Path, names: &[&str]) -> Result<(), Failure> {
        let failed = |e: io::Error| not_written(flag, folder, &e);
        let missing: Vec<&Path> = folder.ancestors().take_while(|path| !path.exists()).collect();
        for path in missing.into_iter().rev().filter(|path| !path.as_os_str().is_empty()) {
            fs::create_dir(path).map_err(failed)?;
            self.folders.push(path.to_owned());
        }
        let is_used = || {
            let why = "the folder is not empty; use a new one";
            Failure::usage([format!("{flag}: {why}: {:?}", folder.display().to_string())])
        };
        if fs::read_dir(folder).map_err(failed)?.next().is_some() {
            return Err(is_used());
        }
        for name in names {
            let path = folder.join(name);
            // Another process of throng may be doing the same.
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            let file =
                file.map_err(|e| if e.kind() == ErrorKind::AlreadyExists { is_used() } else { failed(e) })?;
            self.made.push((path, identity(&file).map_err(failed)?));
        }
        Ok(())
    }

    /// Registers the file of a flag, and refuses a second flag for it. Files that are not regular, such as /dev/null, can be used by
    /// several.
    fn claim(&mut self, flag: &str, name: &str) -> Result<(), Failure> {
        if name == STDOUT {
            return match self.stdout.replace(flag.to_owned()) {
                None => Ok(()),
                Some(other) => {
                    let why = format!(
                        "{flag}: {other} writes to standard output; use the name of a file: {name:?}"
                    );
                    Err(Failure::usage([why]))
                }
            };
        }
        let path = Path::new(name);
        if path.exists() && !path.is_file() {
            return Ok(());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let named = || Some(fs::canonicalize(folder).ok()?.join(path.file_name()?));
        let Some(place) = fs::canonicalize(path).ok().or_else(named) else { return Ok(()) };
        match self.flags.insert(place, flag.to_owned()) {
            None => Ok(()),
            Some(other) => {
                let why = format!("{flag}: {other} writes the same file; use another name: {name:?}");
                Err(Failure::usage([why]))
            }
        }
    }
}

/// Collects failures to open or write files, so that all are reported at once.
#[derive(Default)]
pub(crate) struct Refused(Option<Failure>);

impl Refused {
    /// The opened file; if it could not be opened, adds the failure and returns `None`.
    pub(crate) fn note<T>(&mut self, opened: Result<T, Failure>) -> Option<T> {
        let failure = match opened {
            Ok(opened) => return Some(opened),
            Err(failure) => failure,
        };
        match &mut self.0 {
            Some(first) => first.lines.extend(failure.lines),
            None => self.0 = Some(failure),
        }
        None
    }

    /// Runs `write` and adds its failure. Even a panic in it does not prevent other outputs from being written.
    pub(crate) fn attempt(&mut self, write: impl FnOnce() -> Result<(), Failure>) {
        // A panic is reported at the end of the command.
        self.note(units::caught(write).unwrap_or(Ok(())));
    }

    /// Returns `opened` if there were no failures.
    ///
    /// # Errors
    /// All failures, with the exit status of the first.
    pub(crate) fn end<T>(self, opened: Option<T>) -> Result<T, Failure> {
        match (self.0, opened) {
            (None, Some(opened)) => Ok(opened),
            (failure, _) => Err(failure.expect("only what was refused is missing")),
        }
    }
}

/// The error for a file or folder that cannot be written, with its fix.
fn not_written(flag: &str, path: &Path, e: &io::Error) -> Failure {
    let missing = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let why = match (e.kind(), missing) {
        (ErrorKind::NotFound, Some(folder)) => {
            let folder = folder.display().to_string();
            format!("there is no folder {folder}; create it with mkdir -p {}", shell_word(&folder))
        }
        _ => file_error(e),
    };
    Failure::usage([format!("{flag} {}: cannot be written: {why}", path.display())])
}

/// Checks that a file can be written, without changing anything.
fn can_be_written(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() => OpenOptions::new().append(true).open(path).map(|_| ()),
        Ok(about) if about.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // Opening a pipe would wait for its reader, and closing it would end the reader's input.
        Ok(_) => access(path, Access::WRITE_OK).map_err(io::Error::from),
        Err(_) => {
            OpenOptions::new().write(true).create_new(true).open(path)?;
            fs::remove_file(path)
        }
    }
}

impl Sink for Files {
    fn begin(&mut self, _header: &Header) {
        for file in &self.streams {
            // Fails harmlessly for outputs that are not regular files.
            let _ = file.set_len(0);
        }
        // Writes are only allowed from now on: an earlier one would be truncated, or the file would begin with a hole.
        self.begun.store(true, Relaxed);
    }

    fn tick(&mut self, _tick: &Tick, _looks: &Samples) {}
}

impl Drop for Files {
    /// Removes the files created for a run that was refused; otherwise all files that are empty.
    fn drop(&mut self) {
        let is_refused = !self.begun.load(Relaxed);
        let opened = if is_refused { &[][..] } else { &self.opened };
        for (path, own) in self.made.iter().chain(opened) {
            let goes = |about: fs::Metadata| {
                (about.dev(), about.ino()) == *own && about.is_file() && (is_refused || about.len() == 0)
            };
            if fs::symlink_metadata(path).is_ok_and(goes) {
                let _ = fs::remove_file(path);
            }
        }
        for folder in self.folders.iter().rev() {
            // Fails if the folder is not empty.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The identity of a file, independent of its name: device and inode number.
fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|about| (about.dev(), about.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_refused_is_said() {
        let mut refused = Refused::default();
        assert_eq!(refused.note(Ok(3)), Some(3));
        assert_eq!(refused.note::<u8>(Err(Failure::machine("no room"))), None);
        assert_eq!(refused.note::<u8>(Err(Failure::usage(["no folder", "no file"]))), None);
        let failure = refused.end(Some(3)).expect_err("it was refused");
        assert_eq!(failure.lines, ["no room", "no folder", "no file"]);
        assert_eq!(failure.status, Failure::machine("").status);
        assert!(matches!(Refused::default().end(Some(3)), Ok(3)));
    }

    #[test]
    fn standard_output_is_of_one_output() {
        let mut files = Files::default();
        assert!(files.whole("--json", "-").is_ok() && files.has_stdout());
        let expected = "--csv: --json writes to standard output; use the name of a file: \"-\"";
        assert_eq!(
            files.stream("--csv", "-").err().map(|failure| failure.lines),
            Some(vec![expected.to_owned()])
        );
    }

    #[test]
    fn what_cannot_be_written_has_its_fix() {
        let check = |name: &str, expected: &str| {
            let mut files = Files::default();
            let (whole, stream) = (files.whole("--json", name), files.stream("--json", name));
            for failure in [whole.err(), stream.err()] {
                let lines = failure.map(|failure| failure.lines).unwrap_or_default();
                assert_eq!(lines, [format!("--json {name}: cannot be written: {expected}")]);
            }
        };
        let missing = "there is no folder /no/such folder; create it with mkdir -p '/no/such folder'";
        check("/no/such folder/x", missing);
        check("/", "it is a folder; use the name of a file");
        check("/etc/passwd/x", "a part of the path is no folder; use another path");
    }
}
