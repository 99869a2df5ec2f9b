//! Packages that the tests take their real servers and clients from: Debian's, npm's, Python's and Maven's.

use crate::command::{command, finish, output, root};
use anyhow::{Context, Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A program, or the path of a file, and the package that brings it.
const NEEDED: &[(&str, &str)] = &[
    ("nginx", "nginx-light"),
    ("wrk", "wrk"),
    ("ab", "apache2-utils"),
    ("httperf", "httperf"),
    ("curl", "curl"),
    ("jq", "jq"),
    ("ip", "iproute2"),
    ("haproxy", "haproxy"),
    ("caddy", "caddy"),
    ("h2load", "nghttp2-client"),
    ("openssl", "openssl"),
    ("nft", "nftables"),
    ("conntrack", "conntrack"),
    ("nats-server", "nats-server"),
    ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server"),
    ("/usr/share/doc/ruby-actioncable/copyright", "ruby-actioncable"),
    ("/usr/bin/puma", "puma"),
    ("node", "nodejs"),
    ("npm", "npm"),
    // With its compiler: the test's server is a source file.
    ("javac", "openjdk-17-jdk-headless"),
    ("mvn", "maven"),
    ("chromium-headless-shell", "chromium-headless-shell"),
    ("prometheus", "prometheus"),
    ("influxd", "influxdb"),
    // Debian's own interpreter: another on the path would not look where these packages lie.
    ("/usr/bin/python3", "python3"),
    ("/usr/lib/python3/dist-packages/websockets/server.py", "python3-websockets"),
    ("/usr/lib/python3/dist-packages/uvicorn/main.py", "python3-uvicorn"),
    ("/usr/lib/python3/dist-packages/pip/__main__.py", "python3-pip"),
    ("/usr/lib/python3/dist-packages/grpc/__init__.py", "python3-grpcio"),
];

/// Where the packages of npm are named, with the versions that they are locked to.
const NODE: &str = "crates/cli/tests/interop/node";
/// The same for the page.
pub(crate) const WEB: &str = "web";
/// The same for Python, with a hash of each.
const PYTHON: &str = "crates/cli/tests/interop/python";
/// The same for Java.
const JETTY: &str = "crates/cli/tests/interop/java/jetty";

/// Debian's packages that are missing.
///
/// # Errors
/// Some are, and cannot be installed: we are not root, or this is no Debian.
pub(crate) fn missing() -> Result<Vec<&'static str>> {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let missing = missing_in(&folders);
    let may_install = is_root() && found("apt-get", &folders);
    if !missing.is_empty() && !may_install {
        bail!("packages missing, install as root: apt-get install {}", missing.join(" "));
    }
    Ok(missing)
}

/// Installs these packages of Debian, then those of npm, Python and Maven that are not there yet.
///
/// # Errors
/// An installation fails: with what it printed.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    if !missing.is_empty() {
        println!("installing {}", missing.join(" "));
        apt_get(&["update", "-q"])?;
        apt_get(&[&["install", "-q", "-y", "--no-install-recommends"], missing].concat())?;
    }
    npm(NODE)?;
    npm(WEB)?;
    pip(PYTHON)?;
    maven(JETTY)
}

/// Installs the packages of Python that `requirements.txt` in a folder of ours names, into `packages` beside it.
fn pip(folder: &str) -> Result<()> {
    in_packages(&root()?.join(folder), "requirements.txt", |packages| {
        let how =
            ["-m", "pip", "install", "-q", "--root-user-action=ignore", "--require-hashes", "--no-deps"];
        let requirements = format!("{folder}/requirements.txt");
        let what = ["--target", packages, "-r", &requirements];
        finish(command("/usr/bin/python3", &[&how[..], &what].concat())?)
    })
}

/// Copies the jars that `pom.xml` in a folder of ours names, and what they use, into `packages` beside it.
fn maven(folder: &str) -> Result<()> {
    in_packages(&root()?.join(folder), "pom.xml", |packages| {
        let (pom, to) = (format!("{folder}/pom.xml"), format!("-DoutputDirectory={packages}"));
        finish(command("mvn", &["-q", "-B", "-f", &pom, "dependency:copy-dependencies", &to])?)
    })
}

/// Fills the folder `packages` beside `list` anew, unless that was done since the list was written.
fn in_packages(folder: &Path, list: &str, install: impl FnOnce(&str) -> Result<()>) -> Result<()> {
    let packages = folder.join("packages");
    let done = packages.join("done");
    if !is_older(&done, &folder.join(list)) {
        return Ok(());
    }
    if packages.exists() {
        std::fs::remove_dir_all(&packages)?;
    }
    install(packages.to_str().context("the checkout's path is UTF-8")?)?;
    Ok(std::fs::write(done, "")?)
}

/// Installs what a folder of ours wants from npm, where that is not there yet.
///
/// # Errors
/// npm does not do it.
pub(crate) fn npm(folder: &str) -> Result<()> {
    let path = root()?.join(folder);
    if is_older(&path.join("node_modules/.package-lock.json"), &path.join("package-lock.json")) {
        // No script of a package runs: esbuild's own finds its program without.
        let words = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder];
        finish(command("npm", &words)?)?;
    }
    Ok(())
}

/// Whether the one was written before the other, or never.
fn is_older(one: &Path, other: &Path) -> bool {
    let written = |path: &Path| std::fs::metadata(path).and_then(|entry| entry.modified()).ok();
    written(one).is_none_or(|time| written(other).is_some_and(|other| time < other))
}

/// The owner of our own entry in /proc is the user we are.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

/// Asks no questions, and starts no server that comes with a package (invoke-rc.d obeys RUNLEVEL).
fn apt_get(words: &[&str]) -> Result<()> {
    let mut apt_get = command("apt-get", words)?;
    apt_get.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    output(apt_get).map(drop)
}

fn missing_in(folders: &str) -> Vec<&'static str> {
    NEEDED.iter().filter(|(program, _)| !found(program, folders)).map(|(_, package)| *package).collect()
}

/// Joined to any folder, an absolute path is itself.
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
        let found = missing_in(&format!("/nowhere:{}", folder.display()));
        std::fs::remove_dir_all(&folder).unwrap();
        // A folder of that name is no program.
        assert_eq!(found[..6], ["wrk", "apache2-utils", "httperf", "curl", "jq", "haproxy"]);
        let programs = NEEDED.iter().filter(|(program, _)| !program.starts_with('/'));
        assert!(missing_in("").len() >= programs.count());
    }

    #[test]
    fn a_file_is_found_by_its_path_in_no_folder() {
        let path = std::env::current_exe().unwrap();
        assert!(found(path.to_str().unwrap(), "/nowhere"));
        assert!(!found("/nowhere/at/all", "/nowhere:/bin"));
    }

    #[test]
    fn packages_are_filled_anew_when_their_list_has_changed() {
        let folder = std::env::temp_dir().join(format!("xtask-lists-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Not now: what is written then may be given a time a little before.
        let (now, minute) = (std::time::SystemTime::now(), std::time::Duration::from_secs(60));
        let list = |time: std::time::SystemTime| {
            std::fs::File::create(folder.join("list")).unwrap().set_modified(time).unwrap();
        };
        let fill = |name: &str| {
            let mut is_filled = false;
            let filled = in_packages(&folder, "list", |packages| {
                is_filled = true;
                std::fs::create_dir_all(packages)?;
                Ok(std::fs::write(Path::new(packages).join(name), "")?)
            });
            filled.map(|()| is_filled).unwrap()
        };
        let there = |name: &str| folder.join("packages").join(name).exists();
        list(now - minute);
        assert!(fill("old") && !fill("never"));
        list(now + minute);
        assert!(fill("new") && there("new") && !there("old"));
        assert!(in_packages(&folder, "list", |_| bail!("no network")).is_err());
        assert!(fill("at last"), "what failed is not done");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_was_written_before_its_lock_is_installed_again() {
        let folder = std::env::temp_dir().join(format!("xtask-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (old, new) = (folder.join("old"), folder.join("new"));
        for (path, seconds) in [(&old, 1), (&new, 2)] {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::create(path).unwrap().set_modified(time).unwrap();
        }
        let older = [(&old, &new), (&new, &old), (&new, &new), (&folder.join("none"), &old)];
        let older = older.map(|(one, other)| is_older(one, other));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(older, [true, false, false, true]);
    }
}
