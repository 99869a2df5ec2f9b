//! Extensions as in git and cargo: `throng NAME` executes `throng-NAME` from the folder of this program or from PATH.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Failure;

/// Extensions that belong to throng's repository but are built separately.
const OWN: [&str; 1] = ["lab"];

/// Replaces this process by the extension that the first argument names, if throng has no such command and there is such an extension.
///
/// # Errors
/// The extension cannot be started, or is one of [`OWN`] that has not been built.
pub(crate) fn execute(args: &[OsString], throng: &clap::Command) -> Result<(), Failure> {
    let Some(name) = args.first().and_then(|name| name.to_str()) else { return Ok(()) };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !name.contains(['/', '.', ':']);
    if !is_name || name == "help" || throng.find_subcommand(name).is_some() {
        return Ok(());
    }
    let own = env::current_exe().map_err(Failure::machine)?;
    let program = format!("throng-{name}");
    let mut command = match found(&own, &program) {
        Some(path) => Command::new(path),
        None if !OWN.contains(&name) => return Ok(()),
        // In throng's source folder, `cargo run` builds it if necessary.
        None if Path::new("crates").join(name).join("Cargo.toml").is_file() => {
            let mut cargo = Command::new("cargo");
            cargo.args(["run", "--release", "--quiet", "--package", &program, "--"]);
            cargo
        }
        None => {
            let fix = format!("cargo build --release -p {program}, in throng's source folder");
            return Err(Failure::usage([format!(
                "{program} is not beside {}, nor on PATH; {fix}",
                own.display()
            )]));
        }
    };
    // The extension starts the `throng` that the variable names.
    let error = command.args(&args[1..]).env("THRONG", &own).exec();
    Err(Failure::machine(format!("{}: {error}", command.get_program().to_string_lossy())))
}

fn found(own: &Path, program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = own.parent().map(Path::to_owned);
    beside
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(program))
        .find(|it| it.is_file())
}
