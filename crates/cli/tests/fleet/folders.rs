//! Folders that tests have to themselves.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::server::folder;

/// A folder that no other call has, in whichever of the processes that run tests at once; those of processes that have ended are removed.
pub(crate) fn own_folder(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let prefix = format!("interop-{name}-of-");
    let has_ended = |folder: &str| {
        let process = folder.strip_prefix(&prefix).and_then(|rest| rest.split('-').next());
        process.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    for entry in fs::read_dir(env!("CARGO_TARGET_TMPDIR")).unwrap().flatten() {
        if entry.file_name().to_str().is_some_and(has_ended) {
            // Another process may do the same.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    folder(&format!("{name}-of-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed)))
}
