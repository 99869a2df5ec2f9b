//! Errors of files, in words for users.

use std::io::{self, ErrorKind};

/// An error with its fix, or the system's message if no fix is known.
pub fn file_error(e: &io::Error) -> String {
    let fix = match e.kind() {
        ErrorKind::StorageFull => "no space is left on the disk; free some, or use another disk",
        ErrorKind::QuotaExceeded => "the disk quota is exceeded; free some space, or use another disk",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only; use another folder",
        ErrorKind::PermissionDenied => "permission denied; use a folder that you may write to",
        ErrorKind::IsADirectory => "it is a folder; use the name of a file",
        ErrorKind::NotADirectory => "a part of the path is no folder; use another path",
        ErrorKind::FileTooLarge => "the file is larger than allowed; raise ulimit -f",
        _ => return e.to_string(),
    };
    fix.to_owned()
}
