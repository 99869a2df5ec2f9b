//! The file of entries that are on their way: appended to, and removed when the carrier has them all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{decode, encode};
use crate::message::{Author, Entry};

/// More than any entry has; what is longer was not written by us.
const MAX_LENGTH: u32 = 64 << 20;
/// A run is over, and what was left of it of no use, after this time.
const KEPT: Duration = Duration::from_hours(24);
const ENDING: &str = "entries";

/// The file of a run.
pub(super) struct Spool {
    path: PathBuf,
    /// None, before something is kept.
    file: Option<File>,
    /// Where the next entry begins.
    end: u64,
}

impl Spool {
    /// It is made when there is something to keep.
    pub(super) fn new(folder: &Path, run: &str, author: &Author) -> Spool {
        let name = match author {
            Author::Coordinator { term } => format!("{run}.{term}.{ENDING}"),
            Author::Agent(who) => format!("{run}.{}.{ENDING}", who.nonce),
        };
        Spool { path: folder.join(name), file: None, end: 0 }
    }

    /// Keeps an entry; returns where.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<u64, String> {
        let at = self.end;
        self.try_append(entry).map_err(|e| {
            // What was written of it is written over.
            self.end = at;
            format!("{}: {e}", self.path.display())
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
                // While this process lives, no other takes it for one that was left.
                let _ = file.try_lock();
                none.insert(file)
            }
        };
        file.seek(SeekFrom::Start(self.end))?;
        file.write_all(&[&(bytes.len() as u32).to_le_bytes(), bytes.as_slice()].concat())?;
        self.end += 4 + bytes.len() as u64;
        Ok(())
    }

    /// What was kept there.
    pub(super) fn read(&mut self, at: u64) -> Option<Entry> {
        let file = self.file.as_mut()?;
        file.seek(SeekFrom::Start(at)).ok()?;
        next(file)
    }

    /// Nothing of it is needed any more.
    pub(super) fn remove(&mut self) {
        if self.file.take().is_some() {
            // If it stays, it is sent once more, and counts once.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What a process before left of a run.
pub(super) struct Left {
    pub(super) run: String,
    pub(super) spool: Spool,
    /// At least one, each with its place.
    pub(super) entries: Vec<(u64, Entry)>,
}

/// What processes before left in a folder.
pub(super) fn left_in(folder: &Path) -> Vec<Left> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let ours = files.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
    ours.filter_map(|path| {
        let age = file_age(&path);
        let run = path.file_name()?.to_str()?.split_once('.')?.0.to_owned();
        let mut file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        file.try_lock().ok()?;
        let (mut entries, mut end) = (Vec::new(), 0);
        // One that was being written when its process ended is none.
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

/// How long ago it was written to.
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
