//! Where throng keeps what outlives it: the XDG Base Directory Specification, which has relative paths ignored.

use std::{
    env, fs,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

/// `$VARIABLE/throng`, by default `BELOW` the home and `throng`; `None`: neither the variable nor HOME names a folder.
fn folder(variable: &str, below: &str) -> Option<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below)));
    folder.map(|folder| folder.join("throng"))
}

/// What `doctor --fix` changed is noted here.
pub fn state() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// What can be made again is here.
pub fn cache() -> Option<PathBuf> {
    folder("XDG_CACHE_HOME", ".cache")
}

/// The run store is here.
pub fn data() -> Option<PathBuf> {
    folder("XDG_DATA_HOME", ".local/share")
}

/// The run store: `$XDG_DATA_HOME/throng/runs.db`, by default below `~/.local/share`.
///
/// # Errors
/// There is no such folder, with the fix.
pub fn runs() -> Result<PathBuf, String> {
    let folder = data().ok_or("no folder for the run store; set HOME or XDG_DATA_HOME")?;
    Ok(folder.join("runs.db"))
}

/// Where an agent keeps what it could not deliver yet: below the data, or in a temporary folder that is its user's alone.
///
/// # Errors
/// There is no such folder, with the fix.
pub fn spool() -> Result<PathBuf, String> {
    let folder = data().map_or_else(|| private_in(&env::temp_dir()), Ok)?;
    Ok(folder.join("spool"))
}

/// A folder of this user in one that all users may write to. Another user may have made one of that name before.
fn private_in(shared: &Path) -> Result<PathBuf, String> {
    let user = geteuid().as_raw();
    let folder = shared.join(format!("throng-{user}"));
    let refused = |why: String| {
        format!("{}: {why}; set HOME, or XDG_DATA_HOME to a folder of this user", folder.display())
    };
    // With the same name again it fails, and what is there is checked.
    let made = fs::DirBuilder::new().mode(0o700).create(&folder);
    // Of the name itself, not of what it links to.
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
        // Root alone can make it another's.
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
