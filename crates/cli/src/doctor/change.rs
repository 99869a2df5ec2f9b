//! `doctor --fix` and `--undo`: apply changes to the system, and revert them.

use std::{
    env, io,
    path::PathBuf,
    process::{Command, Stdio},
};

use host::{FixError, Repair, Root};

use crate::{Failure, message, print_stderr};

/// Applies the changes, and reports each.
pub(super) fn fix(root: &Root, repairs: &[Repair]) -> Result<(), Failure> {
    if repairs.iter().any(|repair| !matches!(repair, Repair::Setting { .. })) {
        ip(&["-V".to_owned()]).map_err(Failure::machine)?;
    }
    let mut is_changed = false;
    let mut done = |repair: &Repair| {
        is_changed = true;
        print_stderr(&format!("done: {repair}"));
    };
    let left = host::fix(root, &state_file()?, repairs, &mut ip, &mut done);
    let left = left.map_err(|why| match why {
        FixError::Failed(why) if is_changed => {
            Failure::machine(format!("{why}\nto undo the changes made before: throng doctor --undo"))
        }
        why => failure(why),
    })?;
    for repair in left {
        print_stderr(&format!("not applied, requires root outside this container: {repair}"));
    }
    Ok(())
}

/// Reverts the changes, and reports each.
pub(super) fn undo(root: &Root) -> Result<(), Failure> {
    let file = state_file()?;
    if file.symlink_metadata().is_err() {
        message("nothing to undo");
        return Ok(());
    }
    let mut done = |undone: &host::Undone| print_stderr(&format!("undone: {undone}"));
    host::undo(root, &file, &mut ip, &mut done).map_err(failure)
}

fn failure(why: FixError) -> Failure {
    if let FixError::Untrusted(..) = why { Failure::usage([why]) } else { Failure::machine(why) }
}

/// The file in which changes are recorded: `$XDG_STATE_HOME/throng/doctor.state`, by default below `~/.local/state`.
fn state_file() -> Result<PathBuf, Failure> {
    let state = store::folders::state()
        .ok_or_else(|| Failure::machine("no folder to record the changes in; set HOME or XDG_STATE_HOME"))?;
    Ok(state.join("doctor.state"))
}

/// Runs ip(8), also from the folders that only an administrator has on PATH.
fn ip(args: &[String]) -> io::Result<()> {
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new("ip");
    command.args(args).env("PATH", format!("{path}:/usr/sbin:/sbin")).stdin(Stdio::null());
    let output = command.output().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            let fix = "apt-get install iproute2";
            io::Error::other(format!("adding addresses requires ip, which is not installed: {fix}"))
        }
        _ => io::Error::new(e.kind(), format!("ip: {e}")),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(stderr.lines().collect::<Vec<_>>().join("; ")))
}
