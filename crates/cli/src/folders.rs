//! Where throng keeps what outlives it: the XDG Base Directory Specification, which has relative paths ignored.

use std::{env, path::PathBuf};

/// `$VARIABLE/throng`, by default `BELOW` the home and `throng`; `None`: neither the variable nor HOME names a folder.
fn folder(variable: &str, below: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below)));
    folder.map(|folder| folder.join("throng"))
}

/// What `doctor --fix` changed is noted here.
pub(crate) fn state() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// What can be made again is here.
pub(crate) fn cache() -> Option<PathBuf> {
    folder("XDG_CACHE_HOME", ".cache")
}

/// The run store is here.
pub(crate) fn data() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}
