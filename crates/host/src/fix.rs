//! Applies fixes to this machine, and undoes them.
//!
//! Before each change a state file records the change and the previous value, so that it can be undone even after a crash
//! between the two. Nothing else in this crate changes the machine.

mod note;
mod state;

use crate::rights::{has_capability, is_root};
use crate::root::{setting_file, unexpected};
use crate::{Repair, Root};
use state::{State, Step};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Runs ip(8) with these arguments; an error has its output.
pub type RunIp<'a> = &'a mut dyn FnMut(&[String]) -> io::Result<()>;

/// Why fixes were not applied or undone.
#[derive(Debug)]
pub enum FixError {
    /// These require privileges that the process does not have; nothing was changed.
    Forbidden(Vec<Repair>),
    /// The state file belongs to another network namespace, named here; nothing was changed.
    OtherNamespace(PathBuf, String),
    /// The state file belongs to an earlier boot, and its changes ended with it; nothing was changed.
    OtherBoot(PathBuf),
    /// The state file, or a folder above it, is not trusted; nothing was changed.
    Untrusted(PathBuf, String),
    /// Failed, possibly after some changes. Those that were reported are in the state file and can be undone.
    Failed(String),
}

impl fmt::Display for FixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FixError::Forbidden(repairs) => {
                f.write_str("nothing was changed; these require root:")?;
                repairs.iter().try_for_each(|repair| write!(f, "\n  {repair}"))
            }
            FixError::OtherNamespace(file, name) => write!(
                f,
                "nothing was changed: {} records changes in another network namespace, {name}; undo them \
                there, or remove the file",
                file.display()
            ),
            FixError::OtherBoot(file) => write!(
                f,
                "nothing was changed: {} is from an earlier boot, and its changes ended with that; remove \
                the file",
                file.display()
            ),
            FixError::Untrusted(file, why) => {
                write!(f, "nothing was changed: {} is not trusted: {why}", file.display())
            }
            FixError::Failed(why) => f.write_str(why),
        }
    }
}

/// Applies the changes, recording each in `file` first, and calls `done` for each. Skips settings that already have the value. Returns
/// the changes that not even root may make here, for example in a container.
///
/// # Errors
/// See [`FixError`]. A state file of an earlier boot is not an error: none of its changes is left to undo.
pub fn fix(
    root: &Root,
    file: &Path,
    repairs: &[Repair],
    ip: RunIp,
    done: &mut dyn FnMut(&Repair),
) -> Result<Vec<Repair>, FixError> {
    // Before the state file is read: without permissions, its content does not matter.
    let (allowed, forbidden): (Vec<Repair>, Vec<Repair>) =
        repairs.iter().cloned().partition(|repair| may(root, repair));
    if !forbidden.is_empty() && !is_root(root) {
        return Err(FixError::Forbidden(forbidden));
    }
    let here = State::here(root).map_err(failed)?;
    let mut state = match State::read(file)? {
        Some(state) if state.boot == here.boot && state.namespace != here.namespace => {
            return Err(FixError::OtherNamespace(file.to_owned(), state.namespace));
        }
        Some(state) if state.boot == here.boot => state,
        _ => here,
    };
    for repair in &allowed {
        let former = match repair {
            Repair::Setting { name, value } => match root.setting(name).map_err(failed)? {
                same if same == *value => continue,
                former => former,
            },
            _ => String::new(),
        };
        state.steps.push(Step { repair: repair.clone(), former });
        state.write(file)?;
        apply(root, repair, ip).map_err(|e| FixError::Failed(format!("{repair}: {e}")))?;
        done(repair);
    }
    Ok(forbidden)
}

/// The result of undoing a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// A setting has its former value again.
    Restored(Repair),
    /// An address or a route is gone.
    Removed(Repair),
    /// A setting has neither throng's value nor the previous one: left unchanged.
    Left(Repair, String),
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undone::Restored(repair) => write!(f, "{repair}"),
            Undone::Removed(repair) => write!(f, "ip {}", repair.ip("del").unwrap_or_default().join(" ")),
            Undone::Left(repair, now) => {
                write!(f, "not undone, changed by something else since: {repair} is {now} now")
            }
        }
    }
}

/// Undoes the changes that [`fix`] recorded in `file`, last one first, calls `done` for each, and removes the file. Skips changes that
/// were recorded but never made, or are already undone, so that it can be repeated after any failure.
///
/// # Errors
/// See [`FixError`].
pub fn undo(root: &Root, file: &Path, ip: RunIp, done: &mut dyn FnMut(&Undone)) -> Result<(), FixError> {
    let here = State::here(root).map_err(failed)?;
    let Some(mut state) = State::read(file)? else { return Ok(()) };
    if state.boot != here.boot {
        return Err(FixError::OtherBoot(file.to_owned()));
    }
    if state.namespace != here.namespace {
        return Err(FixError::OtherNamespace(file.to_owned(), state.namespace));
    }
    let forbidden: Vec<Repair> =
        state.steps.iter().filter(|step| !may(root, &step.repair)).map(Step::reversed).collect();
    if !forbidden.is_empty() {
        return Err(FixError::Forbidden(forbidden));
    }
    while let Some(step) = state.steps.last() {
        let undone =
            take_back(root, step, ip).map_err(|e| FixError::Failed(format!("{}: {e}", step.repair)))?;
        undone.iter().for_each(&mut *done);
        state.steps.pop();
        state.write(file)?;
    }
    std::fs::remove_file(file).map_err(failed)
}

fn failed(error: io::Error) -> FixError {
    FixError::Failed(error.to_string())
}

/// Whether this process may make the change. Opening a setting for writing changes nothing.
fn may(root: &Root, repair: &Repair) -> bool {
    const CAP_NET_ADMIN: u32 = 12;
    match repair {
        Repair::Setting { name, .. } => {
            OpenOptions::new().write(true).open(root.path(setting_file(name))).is_ok()
        }
        _ => has_capability(root, CAP_NET_ADMIN),
    }
}

fn set(root: &Root, name: &str, value: &str) -> io::Result<()> {
    let file = setting_file(name);
    OpenOptions::new().write(true).truncate(true).open(root.path(&file))?.write_all(value.as_bytes())?;
    match root.setting(name)? {
        taken if taken == value => Ok(()),
        taken => Err(unexpected(&file, &format!("{value}, but the kernel set {taken}"))),
    }
}

fn apply(root: &Root, repair: &Repair, ip: RunIp) -> io::Result<()> {
    match repair {
        Repair::Setting { name, value } => set(root, name, value),
        _ => ip(&repair.ip("add").expect("all but settings are made by ip")),
    }
}

fn take_back(root: &Root, step: &Step, ip: RunIp) -> io::Result<Option<Undone>> {
    match &step.repair {
        Repair::Setting { name, value } => match root.setting(name)? {
            now if now == step.former => Ok(None),
            now if now == *value => {
                set(root, name, &step.former)?;
                Ok(Some(Undone::Restored(step.reversed())))
            }
            now => Ok(Some(Undone::Left(step.repair.clone(), now))),
        },
        repair if is_there(root, repair) => {
            ip(&repair.ip("del").expect("all but settings are made by ip"))?;
            Ok(Some(Undone::Removed(repair.clone())))
        }
        _ => Ok(None),
    }
}

fn is_there(root: &Root, repair: &Repair) -> bool {
    match repair {
        Repair::Setting { .. } => true,
        Repair::Address { address, .. } => crate::addresses::local_addresses(root).contains(address),
        Repair::Route(network) => crate::addresses::is_routed_here(root, network),
    }
}

#[cfg(test)]
mod tests;
