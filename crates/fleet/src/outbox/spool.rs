//! The file of unstored entries: append-only, and removed when the broker has stored all of them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{decode, encode};
use crate::message::{Author, Entry};

/// Maximum length of an entry, in bytes; a longer one was not written by throng.
const MAX_LENGTH: u32 = 64 << 20;
/// Age after which a file is useless, since its run is over.
const KEPT: Duration = Duration::from_hours(24);
const ENDING: &str = "entries";

/// The file of a run.
pub(super) struct Spool {
    path: PathBuf,
    /// `None` before the first entry.
    file: Option<File>,
    /// Where the next entry begins.
    end: u64,
}

impl Spool {
    /// The file is created with the first entry.
    pub(super) fn new(folder: &Path, run: &str, author: &Author) -> Spool {
        let name = match author {
            Author::Coordinator { term } => format!("{run}.{term}.{ENDING}"),
            Author::Agent(who) => format!("{run}.{}.{ENDING}", who.nonce),
        };
        Spool { path: folder.join(name), file: None, end: 0 }
    }

    /// Appends an entry; returns its position.
    pub(super) fn append(&mut self, entry: &Entry) -> io::Result<u64> {
        let at = self.end;
        self.try_append(entry).map_err(|e| {
            // A partial write will be overwritten.
            self.end = at;
            io::Error::new(e.kind(), format!("{}: {e}", self.path.display()))
        })?;
        Ok(at)
    }

    fn try_append(&mut self, entry: &Entry) -> io::Result<()> {
        let bytes = encode(entry);
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                fs::create_dir_all(self.path.parent().unwrap_or(Path::new("")))?;
                let options =
                    OpenOptions::new().read(true).write(true).create(true).truncate(true).to_owned();
                let file = options.open(&self.path)?;
                // The lock shows other processes that this one still uses the file.
                let _ = file.try_lock();
                none.insert(file)
            }
        };
        file.seek(SeekFrom::Start(self.end))?;
        file.write_all(&[&(bytes.len() as u32).to_le_bytes(), bytes.as_slice()].concat())?;
        self.end += 4 + bytes.len() as u64;
        Ok(())
    }

    /// Reads the entry at this position.
    pub(super) fn read(&mut self, at: u64) -> Option<Entry> {
        let file = self.file.as_mut()?;
        file.seek(SeekFrom::Start(at)).ok()?;
        next(file)
    }

    /// Removes the file, whose entries are all stored.
    pub(super) fn remove(&mut self) {
        if self.file.take().is_some() {
            // If removal fails, the entries are sent again and deduplicated.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of a run that an earlier process left.
pub(super) struct Left {
    pub(super) run: String,
    pub(super) spool: Spool,
    /// Its entries with their positions; at least one.
    pub(super) entries: Vec<(u64, Entry)>,
}

/// Files in a folder that earlier processes left.
pub(super) fn left_in(folder: &Path) -> Vec<Left> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let ours = files.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
    ours.filter_map(|path| {
        let age = file_age(&path);
        let run = path.file_name()?.to_str()?.split_once('.')?.0.to_owned();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        file.try_lock().ok()?;
        let (mut entries, mut end) = (Vec::new(), 0);
        // An entry that was only partly written is ignored.
        while let Some(entry) = next(&mut file) {
            entries.push((end, entry));
            end = file.stream_position().ok()?;
        }
        if entries.is_empty() || age > KEPT {
            let _ = fs::remove_file(&path);
            return None;
        }
        Some(Left { run, spool: Spool { path, file: Some(file), end }, entries })
    })
    .collect()
}

/// Time since the last write.
fn file_age(path: &Path) -> Duration {
    let written = fs::metadata(path).and_then(|about| about.modified());
    written.ok().and_then(|written| written.elapsed().ok()).unwrap_or_default()
}

fn next(file: &mut File) -> Option<Entry> {
    let mut length = [0; 4];
    file.read_exact(&mut length).ok()?;
    let length = u32::from_le_bytes(length);
    if length > MAX_LENGTH {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(length.into()).read_to_end(&mut bytes).ok()?;
    decode(&bytes)
}
