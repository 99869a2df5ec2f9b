//! Files that a run writes. They are opened before it starts: one that cannot be written prevents the run, and a refused
//! run changes and leaves no file.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use rustix::fs::{Access, access};
use samples::{Header, Samples, Sink, Tick};
use units::shell_word;

use crate::Failure;

/// All files of a run.
#[derive(Default)]
pub(crate) struct Files {
    /// By which flag each is written, so that no two write the same.
    flags: BTreeMap<PathBuf, String>,
    /// Those that are written while the run lasts; what was in them goes when it begins.
    streams: Vec<File>,
    /// What was made here, and goes again where the run is refused: files, by their identity, then folders.
    made: Vec<(PathBuf, (u64, u64))>,
    folders: Vec<PathBuf>,
    begun: Arc<AtomicBool>,
}

impl Files {
    /// A file that is written while the run lasts: nothing before the run begins.
    ///
    /// # Errors
    /// It cannot be written, or another flag writes it.
    pub(crate) fn stream(&mut self, flag: &str, name: &str) -> Result<File, Failure> {
        let failed = |e: io::Error| not_written(flag, Path::new(name), &e);
        let (file, is_new) = match OpenOptions::new().write(true).create_new(true).open(name) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                (OpenOptions::new().write(true).open(name).map_err(failed)?, false)
            }
            new => (new.map_err(failed)?, true),
        };
        if is_new {
            self.made(Path::new(name), &file).map_err(failed)?;
        }
        self.claim(flag, name)?;
        self.streams.push(file.try_clone().map_err(failed)?);
        Ok(file)
    }

    /// A file that is written as a whole after the run; until then there is none, or what it was before.
    ///
    /// # Errors
    /// It cannot be written, or another flag writes it.
    pub(crate) fn whole(&mut self, flag: &str, name: &str) -> Result<(), Failure> {
        let failed = |e: io::Error| not_written(flag, Path::new(name), &e);
        can_be_written(Path::new(name)).map_err(failed)?;
        self.claim(flag, name)
    }

    /// Checks that there is a place for `--json`.
    ///
    /// # Errors
    /// As [`Files::whole`].
    pub(crate) fn json(&mut self, json: Option<&str>) -> Result<(), Failure> {
        json.filter(|file| *file != "-").map_or(Ok(()), |file| self.whole("--json", file))
    }

    /// A new folder with these files, all of them empty.
    ///
    /// # Errors
    /// There is something in it, or it cannot be made.
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
            // Another throng may have had the same idea.
            let file = OpenOptions::new().write(true).create_new(true).open(&path);
            let file =
                file.map_err(|e| if e.kind() == ErrorKind::AlreadyExists { is_used() } else { failed(e) })?;
            self.made(&path, &file).map_err(failed)?;
        }
        Ok(())
    }

    /// Keeps back what is written to it until the run has begun.
    pub(crate) fn held_back(&self, file: File) -> HeldBack {
        HeldBack { file, held: Vec::new(), begun: self.begun.clone() }
    }

    fn made(&mut self, path: &Path, file: &File) -> io::Result<()> {
        let about = file.metadata()?;
        self.made.push((path.to_owned(), (about.dev(), about.ino())));
        Ok(())
    }

    /// Two flags for one file would spoil it. What is no file, as /dev/null, takes any number.
    fn claim(&mut self, flag: &str, name: &str) -> Result<(), Failure> {
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

/// What cannot be opened: all of it at once.
#[derive(Default)]
pub(crate) struct Refused(Option<Failure>);

impl Refused {
    /// What was opened; none where that failed, which is noted.
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

    /// What was opened, if nothing was refused.
    ///
    /// # Errors
    /// Something was: the status is that of the first.
    pub(crate) fn end<T>(self, opened: Option<T>) -> Result<T, Failure> {
        match (self.0, opened) {
            (None, Some(opened)) => Ok(opened),
            (failure, _) => Err(failure.expect("only what was refused is missing")),
        }
    }
}

/// A file or a folder that cannot be written, with the fix.
fn not_written(flag: &str, path: &Path, e: &io::Error) -> Failure {
    let missing = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let why = match (e.kind(), missing) {
        (ErrorKind::NotFound, Some(folder)) => {
            let folder = folder.display().to_string();
            format!("there is no folder {folder}; create it with mkdir -p {}", shell_word(&folder))
        }
        (ErrorKind::IsADirectory, _) => "it is a folder; use the name of a file".to_owned(),
        (ErrorKind::NotADirectory, _) => "a part of the path is no folder; use another path".to_owned(),
        (ErrorKind::PermissionDenied, _) => {
            "permission denied; use a folder that you may write to".to_owned()
        }
        (ErrorKind::ReadOnlyFilesystem, _) => "the file system is read-only; use another folder".to_owned(),
        _ => e.to_string(),
    };
    Failure::usage([format!("{flag} {}: cannot be written: {why}", path.display())])
}

/// Tries it, and leaves everything as it was.
fn can_be_written(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() => OpenOptions::new().append(true).open(path).map(|_| ()),
        Ok(about) if about.is_dir() => Err(ErrorKind::IsADirectory.into()),
        // To open a pipe would wait for its reader, and to close it would end it.
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
            // What is no file has nothing to cut off.
            let _ = file.set_len(0);
        }
        // Only now may anything be written: otherwise it would be truncated, or follow a hole.
        self.begun.store(true, Relaxed);
    }

    fn tick(&mut self, _tick: &Tick, _looks: &Samples) {}
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.begun.load(Relaxed) || thread::panicking() {
            return;
        }
        for (path, made) in &self.made {
            let is_ours = |about: fs::Metadata| (about.dev(), about.ino()) == *made;
            if fs::symlink_metadata(path).is_ok_and(is_ours) {
                let _ = fs::remove_file(path);
            }
        }
        for folder in self.folders.iter().rev() {
            // Others may have put something there: then it stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A file to which nothing goes before the run has begun.
pub(crate) struct HeldBack {
    file: File,
    held: Vec<u8>,
    begun: Arc<AtomicBool>,
}

impl Write for HeldBack {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.begun.load(Relaxed) {
            self.file.write_all(&self.held)?;
            self.held.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
