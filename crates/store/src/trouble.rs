//! What may be wrong with a store, and what to do about it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use rusqlite::{Error, ErrorCode};
use samples::SCHEMA;

/// Why a store cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreTrouble {
    /// Another throng made it, and what is in it means something else; or it is another program's.
    OtherSchema {
        /// The store.
        file: PathBuf,
        /// The version that it has.
        schema: u32,
    },
    /// It is no store, or not any more.
    Damaged {
        /// The store.
        file: PathBuf,
        /// What was found.
        why: String,
    },
    /// The machine does not do it: permissions, a full disk, another writer that does not end.
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

/// What to do about an error of the machine, after its name.
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
