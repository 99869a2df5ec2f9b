//! Debian packages that the black-box tests take their real servers and clients from.

use crate::command::{command, finish};
use anyhow::{Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A program, and the package that brings it.
const NEEDED: &[(&str, &str)] = &[
    ("nginx", "nginx-light"),
    ("wrk", "wrk"),
    ("curl", "curl"),
    ("jq", "jq"),
    ("ip", "iproute2"),
    ("python3", "python3"),
];

/// Installs what is missing.
///
/// # Errors
/// Something is missing and we are not root, this is no Debian, or the installation fails.
pub(crate) fn install() -> Result<()> {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let missing = missing(&folders);
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    // The owner of our own entry in /proc is the user we are.
    let administrator = std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0);
    if !administrator || !found("apt-get", &folders) {
        bail!("packages missing, install as root: apt-get install {names}");
    }
    println!("installing {names}");
    apt_get(&["update", "-q"])?;
    apt_get(&[&["install", "-q", "-y", "--no-install-recommends"], missing.as_slice()].concat())
}

/// Asks no questions, and starts no server that comes with a package (invoke-rc.d obeys RUNLEVEL).
fn apt_get(words: &[&str]) -> Result<()> {
    let mut apt_get = command("apt-get", words)?;
    apt_get.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    finish(apt_get)
}

fn missing(folders: &str) -> Vec<&'static str> {
    NEEDED.iter().filter(|(program, _)| !found(program, folders)).map(|(_, package)| *package).collect()
}

fn found(program: &str, folders: &str) -> bool {
    folders.split(':').any(|folder| Path::new(folder).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_missing_where_its_program_is_in_no_folder() {
        let folder = std::env::temp_dir().join(format!("xtask-packages-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("jq")).unwrap();
        for program in ["nginx", "ip"] {
            std::fs::write(folder.join(program), "").unwrap();
        }
        let found = missing(&format!("/nowhere:{}", folder.display()));
        std::fs::remove_dir_all(&folder).unwrap();
        // A folder of that name is no program.
        assert_eq!(found, ["wrk", "curl", "jq"]);
        assert_eq!(missing("").len(), NEEDED.len());
    }
}
