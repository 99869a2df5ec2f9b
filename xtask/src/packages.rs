//! Debian packages with the third-party servers and clients that the tests use.

use crate::command::{command, output};
use anyhow::{Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A program, or the path of a file, and the package that contains it.
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
    // The JDK with its compiler: a test's server is started from source.
    ("javac", "openjdk-17-jdk-headless"),
    ("mvn", "maven"),
    ("chromium-headless-shell", "chromium-headless-shell"),
    ("prometheus", "prometheus"),
    ("go", "golang-go"),
    ("systemd-analyze", "systemd"),
    ("ansible-playbook", "ansible-core"),
    ("influxd", "influxdb"),
    // Debian's interpreter: another one on `PATH` would not find Debian's Python packages.
    ("/usr/bin/python3", "python3"),
    ("/usr/lib/python3/dist-packages/websockets/server.py", "python3-websockets"),
    ("/usr/lib/python3/dist-packages/uvicorn/main.py", "python3-uvicorn"),
    ("/usr/lib/python3/dist-packages/pip/__main__.py", "python3-pip"),
    ("/usr/lib/python3/dist-packages/grpc/__init__.py", "python3-grpcio"),
];

/// Go's default installation directory, searched even if it is not on `PATH`.
pub(crate) const GO: &str = "/usr/local/go/bin";

/// Packages that are missing.
///
/// # Errors
/// Packages are missing and cannot be installed: not root, or no `apt-get`.
pub(crate) fn missing() -> Result<Vec<&'static str>> {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin:" + GO;
    let missing = missing_in(&folders);
    let may_install = is_root() && found("apt-get", &folders);
    if !missing.is_empty() && !may_install {
        bail!("packages missing, install as root: apt-get install {}", missing.join(" "));
    }
    Ok(missing)
}

/// Installs these packages.
///
/// # Errors
/// The installation fails; the error contains its output.
pub(crate) fn install(missing: &[&str]) -> Result<()> {
    if !missing.is_empty() {
        println!("installing {}", missing.join(" "));
        apt_get(&["update", "-q"])?;
        apt_get(&[&["install", "-q", "-y", "--no-install-recommends"], missing].concat())?;
    }
    Ok(())
}

/// Whether this process runs as root: the owner of `/proc/self` is its user.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

/// Runs apt-get without prompts. It waits for another apt-get, because a new machine updates itself, and starts no server that
/// comes with a package, since invoke-rc.d honours `RUNLEVEL`.
fn apt_get(words: &[&str]) -> Result<()> {
    let mut apt_get = command("apt-get", &[&["-o", "DPkg::Lock::Timeout=600"], words].concat())?;
    apt_get.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    output(apt_get).map(drop)
}

fn missing_in(folders: &str) -> Vec<&'static str> {
    NEEDED.iter().filter(|(program, _)| !found(program, folders)).map(|(_, package)| *package).collect()
}

/// Whether a folder contains the program. Joining an absolute path to a folder returns the path itself.
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
        // A folder of that name is not a program.
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
}
