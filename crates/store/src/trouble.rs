//! Errors of the store, with their fixes.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use rusqlite::{Error, ErrorCode};
use samples::SCHEMA;

/// Why a store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreTrouble {
    /// The file has another schema: it was written by another version of throng, or by another program.
    OtherSchema {
        /// The store.
        file: PathBuf,
        /// The schema version of the file.
        schema: u32,
    },
    /// The file is not a store, or is damaged.
    Damaged {
        /// The store.
        file: PathBuf,
        /// SQLite's message.
        why: String,
    },
    /// An error of the machine: missing permission, a full disk, a writer that holds the lock too long.
    Failed(String),
}

impl StoreTrouble {
    pub(super) fn of(file: &Path, e: Error) -> StoreTrouble {
        let why = e.to_string();
        match e.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreTrouble::Damaged { file: file.into(), why }
            }
            code => StoreTrouble::Failed(format!("{}: {why}{}", file.display(), fix(code))),
        }
    }
}

/// The fix for an error of the machine, as a suffix of its message; empty if none is known.
fn fix(code: Option<ErrorCode>) -> &'static str {
    match code {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            "; check that there is room on its disk, or set XDG_DATA_HOME to a folder on another"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "; check that its folder can be written to, or set XDG_DATA_HOME to another"
        }
        _ => "",
    }
}

impl fmt::Display for StoreTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreTrouble::OtherSchema { file, schema: schema @ ..=SCHEMA } => {
                write!(f, "{}: not a run store of throng; move it away (schema {schema})", file.display())
            }
            StoreTrouble::OtherSchema { file, schema } => write!(
                f,
                "{}: written by a later version of throng; use that version, or set XDG_DATA_HOME to \
                another folder (schema {schema}, this version supports {SCHEMA})",
                file.display()
            ),
            StoreTrouble::Damaged { file, why } => {
                write!(f, "{}: damaged, or not a run store; move it away: {why}", file.display())
            }
            StoreTrouble::Failed(why) => f.write_str(why),
        }
    }
}
