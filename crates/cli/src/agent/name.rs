//! The name of an agent, which stays the same after a restart. It is stored in a file that the agent keeps locked, so that other
//! agents on the machine use other names.

use std::{
    fs::{self, File, OpenOptions},
    io::Read,
    os::unix::fs::FileExt,
    path::Path,
};

use host::Root;
use rustix::fs::{FlockOperation, flock};

/// Maximum number of stored names, and so of agents per user and machine.
const MOST: u32 = 1_000;

/// An agent's name, with the lock on its file.
pub(super) struct Name {
    pub(super) name: String,
    /// The locked file; `None` if the name is not stored.
    pub(super) kept: Option<File>,
}

/// The given name, or the first stored name that no other agent uses now. If no name can be stored, a new one.
pub(super) fn of_this_agent(given: Option<String>) -> Name {
    if let Some(name) = given {
        return Name { name, kept: None };
    }
    let kept = store::folders::state().and_then(|folder| kept_in(&folder.join("agents")));
    kept.unwrap_or_else(|| Name { name: fleet::new_agent_name(&Root::real()), kept: None })
}

fn kept_in(folder: &Path) -> Option<Name> {
    fs::create_dir_all(folder).ok()?;
    (0..MOST).find_map(|nth| {
        let path = folder.join(nth.to_string());
        let mut file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let mut name = text.trim().to_owned();
        // A name may come from the image of another machine; then it is replaced.
        if !fleet::is_agent_name_of(&Root::real(), &name) {
            name = fleet::new_agent_name(&Root::real());
            file.set_len(0).ok()?;
            file.write_all_at(name.as_bytes(), 0).ok()?;
        }
        Some(Name { name, kept: Some(file) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_one_machine_have_names_of_their_own_which_they_keep() {
        let folder = std::env::temp_dir().join(format!("throng-names-{}", std::process::id()));
        let (one, other) = (kept_in(&folder).unwrap(), kept_in(&folder).unwrap());
        assert_ne!(one.name, other.name);
        let names = (one.name.clone(), other.name.clone());
        drop((one, other));
        let (one, other) = (kept_in(&folder).unwrap(), kept_in(&folder).unwrap());
        assert_eq!((one.name.clone(), other.name.clone()), names);
        drop(one);
        assert_eq!(kept_in(&folder).unwrap().name, names.0);
        // As left by the image of another machine.
        fs::write(folder.join("0"), "other-0123abcd-and-more").unwrap();
        let renewed = kept_in(&folder).unwrap().name;
        assert!(fleet::is_agent_name_of(&Root::real(), &renewed) && renewed != names.0, "{renewed}");
        assert_eq!(fs::read_to_string(folder.join("0")).unwrap(), renewed);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_name_that_was_given_is_used() {
        assert_eq!(of_this_agent(Some("web-1".to_owned())).name, "web-1");
    }
}
