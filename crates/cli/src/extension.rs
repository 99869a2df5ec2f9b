//! `throng NAME` of a program `throng-NAME`, as git and cargo have it: beside this one, or on PATH.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Failure;

/// Programs of this repository, which are built apart.
const OWN: [&str; 1] = ["lab"];

/// Becomes the program of this command, if it is none of throng's own (`is_known`) and there is one.
///
/// # Errors
/// It cannot be started, or is one of [`OWN`] that is not built.
pub(crate) fn execute(args: &[OsString], is_known: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let Some(name) = args.first().and_then(|name| name.to_str()) else { return Ok(()) };
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !name.contains(['/', '.', ':']);
    if !is_name || is_known(name) {
        return Ok(());
    }
    let own = env::current_exe().map_err(Failure::machine)?;
    let program = format!("throng-{name}");
    let mut command = match found(&own, &program) {
        Some(path) => Command::new(path),
        None if !OWN.contains(&name) => return Ok(()),
        // In the source folder, which is where it is of use, it need not be built first.
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
    // It starts this one again, whatever it is called.
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
