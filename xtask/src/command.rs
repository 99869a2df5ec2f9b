//! Programs that commands start, always in the workspace's root.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The workspace's root: cargo says where this package lies, and that is one level below.
///
/// # Errors
/// Not started by cargo.
pub(crate) fn root() -> Result<PathBuf> {
    let package =
        std::env::var_os("CARGO_MANIFEST_DIR").context("not started by cargo: cargo xtask COMMAND")?;
    Ok(Path::new(&package).parent().context("the package lies in no workspace")?.to_owned())
}

/// A program in the workspace's root.
pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(program: S, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(program);
    command.args(words).current_dir(root()?);
    Ok(command)
}

/// Runs to the end with our own input and output.
///
/// # Errors
/// It cannot be started, or does not succeed.
pub(crate) fn finish(mut command: Command) -> Result<()> {
    let shown = shown(&command);
    let status = command.status().with_context(|| format!("cannot start: {shown}"))?;
    if !status.success() {
        bail!("{status}: {shown}");
    }
    Ok(())
}

/// Runs `cargo` with these words; `cargo` as found on the path, so that `+nightly` works.
pub(crate) fn cargo(words: &[&str]) -> Result<()> {
    finish(command("cargo", words)?)
}

/// Builds with `cargo`: its messages, JSON objects. Diagnostics are shown.
///
/// # Errors
/// It cannot be started, does not succeed, or warns.
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
    // Of this workspace: cargo shows none of what comes from a registry.
    if warnings > 0 {
        bail!("warnings are errors: {shown}");
    }
    Ok(messages)
}

/// What a program prints on its standard output.
///
/// # Errors
/// It cannot be started, does not succeed, or prints something else than text.
pub(crate) fn output(mut command: Command) -> Result<String> {
    let shown = shown(&command);
    let output = command.output().with_context(|| format!("cannot start: {shown}"))?;
    if !output.status.success() {
        bail!("{}: {shown}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("not text: {shown}"))
}

/// What `cargo metadata` says of the packages of this workspace.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    let text = output(command("cargo", &["metadata", "--no-deps", "--format-version", "1"])?)?;
    serde_json::from_str(&text).context("cargo metadata printed no JSON")
}

/// Where cargo builds.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata names no target directory")?.into())
}

/// The `throng` that `THRONG_BIN` names, or the release build, wherever cargo was told to put it.
pub(crate) fn throng() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("THRONG_BIN").filter(|path| !path.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    Ok(target()?.join("release/throng"))
}

/// A command without arguments.
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
