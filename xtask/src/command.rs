//! Runs external programs, always in the workspace's root.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's root: the parent of this package's folder, which cargo passes in `CARGO_MANIFEST_DIR`.
///
/// # Errors
/// Fails if the program was not started by cargo.
pub(crate) fn root() -> Result<PathBuf> {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").context("not started by cargo: cargo xtask COMMAND")?;
    Ok(Path::new(&package).parent().context("the package lies in no workspace")?.to_owned())
}

/// A command for a program that runs in the workspace's root.
pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(program: S, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(program);
    command.args(words).current_dir(root()?);
    Ok(command)
}

/// Runs a command to completion, with inherited standard input and output.
///
/// # Errors
/// The command cannot be started or does not succeed.
pub(crate) fn finish(mut command: Command) -> Result<()> {
    let shown = shown(&command);
    let status = command.status().with_context(|| format!("cannot start: {shown}"))?;
    if !status.success() {
        bail!("{status}: {shown}");
    }
    Ok(())
}

/// Runs `cargo` with these arguments; `cargo` is looked up on `PATH`, so that `+nightly` works.
pub(crate) fn cargo(words: &[&str]) -> Result<()> {
    finish(command("cargo", words)?)
}

/// Runs a cargo build, shows its diagnostics, and returns its JSON messages.
///
/// # Errors
/// The build cannot be started, does not succeed, or has warnings.
pub(crate) fn messages(mut cargo: Command) -> Result<Vec<serde_json::Value>> {
    cargo.arg("--message-format=json").stdout(Stdio::piped());
    let shown = shown(&cargo);
    let mut child = cargo.spawn().with_context(|| format!("cannot start: {shown}"))?;
    let (mut messages, mut warnings) = (Vec::new(), 0);
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(&line?) else { continue };
        if let Some(text) = message["message"]["rendered"].as_str() {
            eprint!("{text}");
            warnings += usize::from(message["message"]["level"] == "warning");
        }
        messages.push(message);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{status}: {shown}");
    }
    // Warnings are from this workspace: cargo hides those of packages from registries.
    if warnings > 0 {
        bail!("warnings are errors: {shown}");
    }
    Ok(messages)
}

/// Returns what a program prints on its standard output.
///
/// # Errors
/// The program cannot be started, does not succeed, or prints something other than UTF-8.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let shown = shown(&command);
    let output = command.output().with_context(|| format!("cannot start: {shown}"))?;
    if !output.status.success() {
        bail!("{}: {shown}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("not text: {shown}"))
}

/// `cargo metadata` for the packages of this workspace, without dependencies.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    let text = output(command("cargo", &["metadata", "--no-deps", "--format-version", "1"])?)?;
    serde_json::from_str(&text).context("cargo metadata printed no JSON")
}

/// Cargo's target directory.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names no target directory")?.into())
}

/// The `throng` named by `THRONG_BIN`, or the release build in cargo's target directory.
pub(crate) fn throng() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("THRONG_BIN").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    Ok(target()?.join("release/throng"))
}

/// Rejects arguments, for commands that take none.
pub(crate) fn no_words(words: &[String]) -> Result<()> {
    match words.first() {
        None => Ok(()),
        Some(word) => bail!("takes nothing more: {word}"),
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_its_words() {
        let error = finish(command("false", &["a", "b"]).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "exit status: 1: false a b");
        let error = finish(command("no-such-program", &["a"]).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "cannot start: no-such-program a");
    }

    #[test]
    fn output_is_what_a_program_prints_and_it_runs_in_the_root() {
        assert_eq!(output(command("echo", &["a"]).unwrap()).unwrap(), "a\n");
        assert!(output(command("cat", &["Cargo.toml"]).unwrap()).unwrap().contains("[workspace]"));
        let error = output(command("cat", &["no-such-file"]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("cat no-such-file") && error.contains("No such file"), "{error}");
    }
}
