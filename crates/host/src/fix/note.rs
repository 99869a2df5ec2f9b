//! Reads and writes the state file, but only where no other user could have replaced it. Otherwise, a user who may run throng with more
//! privileges could make it undo changes that were never made.

use super::FixError;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Maximum length in bytes; a longer file is not a state file.
const MOST: u64 = 1 << 20;

/// The text of the file; `None` if it does not exist.
pub(super) fn read(file: &Path) -> Result<Option<String>, FixError> {
    let untrusted = |why: String| FixError::Untrusted(file.to_owned(), why);
    let failed = |e: io::Error| FixError::Failed(format!("{}: {e}", file.display()));
    match fs::symlink_metadata(file) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        about => about.map_err(failed)?,
    };
    check_folders(file)?;
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file);
    let opened = opened.map_err(|e| match e.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => {
            untrusted("it is a symbolic link".to_owned())
        }
        _ => failed(e),
    })?;
    // Checked on the open file, not on its name.
    check(&opened.metadata().map_err(failed)?).map_err(untrusted)?;
    let mut text = String::new();
    opened.take(MOST).read_to_string(&mut text).map_err(|e| untrusted(e.to_string()))?;
    Ok(Some(text))
}

/// Writes atomically: even after a crash, a reader finds either the old text or the new one.
pub(super) fn write(file: &Path, text: &str) -> Result<(), FixError> {
    let failed = |e: io::Error| FixError::Failed(format!("{}: {e}", file.display()));
    let folder = file.parent().unwrap_or(Path::new("/"));
    check_folders(file)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let fresh = file.with_extension("new");
    // A file left by a crash. A link that someone else created is removed, not followed.
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
    new.write_all(text.as_bytes()).and_then(|()| new.sync_all()).map_err(failed)?;
    fs::rename(&fresh, file).map_err(failed)
}

fn check(about: &Metadata) -> Result<(), String> {
    let (owner, me) = (about.uid(), geteuid().as_raw());
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if owner != me {
        return Err(format!("it is owned by user {owner}, but throng runs as user {me}"));
    }
    let (mode, names) = (about.mode() & 0o7777, about.nlink());
    if names != 1 || mode & 0o022 != 0 {
        return Err(format!("other users can write it: mode {mode:04o}, {names} names"));
    }
    Ok(())
}

/// Checks that in all existing folders above the file, only this user and root may rename entries.
fn check_folders(file: &Path) -> Result<(), FixError> {
    let failed = |e: io::Error| FixError::Failed(format!("{}: {e}", file.display()));
    let nearest = file.ancestors().skip(1).find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let real = nearest.canonicalize().map_err(failed)?;
    // In a user namespace, the system's user is not 0.
    let system = fs::metadata("/").map_err(failed)?.uid();
    let me = geteuid().as_raw();
    for folder in real.ancestors() {
        let about = fs::metadata(folder).map_err(failed)?;
        let (owner, mode) = (about.uid(), about.mode());
        // In a sticky folder, only the owners of its entries may rename them.
        let by_group = me == 0 && about.gid() != 0 && mode & 0o020 != 0;
        let is_open = mode & 0o1000 == 0 && (mode & 0o002 != 0 || by_group);
        if ![me, system].contains(&owner) || is_open {
            let mode = mode & 0o7777;
            let why = format!(
                "user {owner} can replace it ({}, mode {mode:04o}), and throng runs as user {me}; use sudo \
                -H, or set XDG_STATE_HOME to a folder of your own",
                folder.display()
            );
            return Err(FixError::Untrusted(file.to_owned(), why));
        }
    }
    Ok(())
}
