//! The folders for throng's persistent files, as defined by the XDG Base Directory Specification, which requires that relative paths
//! are ignored.

use std::{
    env, fs,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

/// `$VARIABLE/throng`, or `$HOME/BELOW/throng` if the variable is not set; `None` if neither it nor HOME is an absolute path.
fn folder(variable: &str, below: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below)));
    folder.map(|folder| folder.join("throng"))
}

/// The folder for state: `doctor --fix` records its changes in it.
pub fn state() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// The folder for files that can be generated again.
pub fn cache() -> Option<PathBuf> {
    folder("XDG_CACHE_HOME", ".cache")
}

/// The folder for data, such as the run store.
pub fn data() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

/// The path of the run store: `$XDG_DATA_HOME/throng/runs.db`, by default below `~/.local/share`.
///
/// # Errors
/// No such folder can be determined; the message contains the fix.
pub fn runs() -> Result<PathBuf, String> {
    let folder = data().ok_or("no folder for the run store; set HOME or XDG_DATA_HOME")?;
    Ok(folder.join("runs.db"))
}

/// The folder in which an agent stores what it could not deliver yet: below the data folder, or else in a temporary folder that only
/// its user can access.
///
/// # Errors
/// No such folder can be determined or made safe; the message contains the fix.
pub fn spool() -> Result<PathBuf, String> {
    let folder = data().map_or_else(|| private_in(&env::temp_dir()), Ok)?;
    Ok(folder.join("spool"))
}

/// A folder inside a shared one that belongs to this user alone. The shared folder is writable by all, so another user may have
/// created a folder of this name before; then it is refused.
fn private_in(shared: &Path) -> Result<PathBuf, String> {
    let user = geteuid().as_raw();
    let folder = shared.join(format!("throng-{user}"));
    let refused = |why: String| {
        format!("{}: {why}; set HOME, or XDG_DATA_HOME to a folder of this user", folder.display())
    };
    // Fails if the name exists; the checks below then apply to the existing entry.
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    // Checks the entry itself rather than the target of a symbolic link.
    let found =
        fs::symlink_metadata(&folder).map_err(|why| refused(made.err().unwrap_or(why).to_string()))?;
    let mode = found.mode() & 0o7777;
    match found {
        found if !found.is_dir() => Err(refused("not a folder".to_owned())),
        found if found.uid() != user => Err(refused(format!("owned by another user: {}", found.uid()))),
        _ if mode & 0o077 != 0 => Err(refused(format!("other users can access it: mode {mode:04o}"))),
        _ => Ok(folder),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_folder_of_all_users_has_one_of_this_user_alone() {
        let shared = env::temp_dir().join(format!("throng-shared-{}", std::process::id()));
        fs::create_dir_all(&shared).unwrap();
        let folder = private_in(&shared).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(private_in(&shared), Ok(folder.clone()), "the next agent has the same");
        let refused = |why: &str| {
            let expected = format!("{}: {why}", folder.display());
            let refusal = private_in(&shared).unwrap_err();
            assert!(refusal.starts_with(&expected) && refusal.contains("; set HOME, or "), "{refusal}");
        };
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        refused("other users can access it: mode 0750");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        // Only root can change the owner.
        if chown(&folder, Some(geteuid().as_raw() + 1), None).is_ok() {
            refused("owned by another user: ");
        }
        fs::remove_dir(&folder).unwrap();
        symlink(env::temp_dir(), &folder).unwrap();
        refused("not a folder");
        fs::remove_file(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        refused("not a folder");
        fs::remove_dir_all(&shared).unwrap();
        refused("No such file or directory");
    }
}
