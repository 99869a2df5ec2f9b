//! `cargo xtask dist --check`: installs each package into a folder as a user would, and runs its demo.

use super::Dist;
use crate::command::{cargo, command, finish, output, root};
use crate::packages::is_root;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The installation guide; the file names in it are those for x86-64.
const GUIDE: &str = "docs/guide/install.md";
/// Maximum size of the binary, in bytes: a download of a few seconds.
const LARGEST: u64 = 32 << 20;
/// Maximum start-up time: too short for a user to notice.
const STARTUP: Duration = Duration::from_millis(20);
const STARTS: usize = 51;
/// Exit codes with which `throng demo` may end: pass, or 4 if other programs use the machine and the result is uncertain.
const JUDGED: [Option<i32>; 2] = [Some(0), Some(4)];

pub(super) fn check(dist: &Dist) -> Result<()> {
    let mut sums = command("sha256sum", &["--check", "--quiet", &dist.sums()])?;
    sums.current_dir(&dist.folder);
    finish(sums)?;
    let guide = fs::read_to_string(root()?.join(GUIDE))?;
    let unknown = unknown(&guide, &dist.version, &dist.files()?);
    if dist.platform.arch == "x86_64" && !unknown.is_empty() {
        bail!("{GUIDE}: not made: {}", unknown.join(", "));
    }
    size(dist)?;
    is_static(&dist.throng)?;
    let folder = dist.work("installed")?;
    let archive = archive(dist, &folder)?;
    startup(&archive)?;
    demo("archive", Command::new(&archive))?;
    demo("cargo install", Command::new(installed_by_cargo(&folder)?))?;
    demo("uvx", uvx(dist, &folder)?)?;
    demo("npx", npx(dist, &folder)?)?;
    if is_root() {
        demo("deb", Command::new(debian(dist, &folder)?))?;
        demo("image", image(dist, &folder)?)?;
    } else {
        println!("deb, image: skipped, installing them needs root");
    }
    Ok(())
}

/// File names of this version that occur in a text and are not among `files`; `*` in a name is a wildcard.
fn unknown(text: &str, version: &str, files: &[String]) -> Vec<String> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.*".contains(c);
    let words = text.split(|c| !is_of_name(c)).filter(|word| word.starts_with("throng"));
    // A name without an extension is a folder.
    let is_file = |word: &&str| word.split_once(version).is_some_and(|(_, rest)| rest.contains('.'));
    let is_made = |word: &str| {
        let (begin, end) = word.split_once('*').unwrap_or((word, ""));
        files
            .iter()
            .any(|file| file == word || !end.is_empty() && file.starts_with(begin) && file.ends_with(end))
    };
    words.filter(is_file).filter(|word| !is_made(word)).map(str::to_owned).collect()
}

/// Checks the size of the binary against the limit that the documents state.
fn size(dist: &Dist) -> Result<()> {
    let bytes = fs::metadata(&dist.throng)?.len();
    println!("binary: {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    if bytes > LARGEST {
        bail!("the binary has more than {LARGEST} bytes: {bytes}");
    }
    Ok(())
}

/// A static binary has neither an interpreter nor needed libraries.
fn is_static(throng: &Path) -> Result<()> {
    let mut readelf = command("readelf", &["--program-headers", "--dynamic"])?;
    readelf.arg(throng);
    let headers = output(readelf)?;
    if headers.contains("INTERP") || headers.contains("(NEEDED)") {
        bail!("the binary is not static: {headers}");
    }
    Ok(())
}

/// Checks the median start-up time: a single start may have to wait for a processor.
fn startup(throng: &Path) -> Result<()> {
    let mut took = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        output(command(throng, &["--version"])?)?;
        took.push(begin.elapsed());
    }
    took.sort();
    let [fastest, middle] = [took[0], took[STARTS / 2]];
    println!(
        "startup: {:.1} ms in the middle, {:.1} ms at best",
        middle.as_secs_f64() * 1e3,
        fastest.as_secs_f64() * 1e3
    );
    if middle >= STARTUP {
        bail!("a start takes {middle:?}, {STARTUP:?} at most");
    }
    Ok(())
}

/// Runs the demo of one installed package.
fn demo(name: &str, mut throng: Command) -> Result<()> {
    let begin = Instant::now();
    let data = std::env::temp_dir().join(format!("throng-dist-{}", std::process::id()));
    let ended = throng
        .arg("demo")
        .env("XDG_DATA_HOME", &data)
        .output()
        .with_context(|| format!("{name}: {throng:?}"))?;
    let _ = fs::remove_dir_all(data);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    let last = out.lines().last().unwrap_or_default();
    if !JUDGED.contains(&ended.status.code()) || !out.contains(" held of ") {
        bail!("{name}: {}\n{out}{err}", ended.status);
    }
    let io = if err.contains(", uring,") { "io_uring" } else { "epoll" };
    println!("{name}: demo in {:.0} s over {io}: {last}", begin.elapsed().as_secs_f64());
    Ok(())
}

fn archive(dist: &Dist, folder: &Path) -> Result<PathBuf> {
    let folder = folder.join("archive");
    fs::create_dir_all(&folder)?;
    let mut tar = command("tar", &["--extract", "--strip-components=1", "--file"])?;
    tar.arg(dist.file(".tar.gz")?).arg("-C").arg(&folder);
    finish(tar)?;
    Ok(folder.join("throng"))
}

/// Builds and installs from source with `cargo install`.
fn installed_by_cargo(folder: &Path) -> Result<PathBuf> {
    let folder = folder.join("cargo");
    let to = folder.to_str().context("the checkout's path is UTF-8")?;
    cargo(&["install", "--locked", "--quiet", "--path", "crates/cli", "--root", to])?;
    Ok(folder.join("bin/throng"))
}

/// Runs the wheel with `uvx`, without a registry.
fn uvx(dist: &Dist, folder: &Path) -> Result<Command> {
    output(command("uvx", &["--version"])?).context("uv is missing: pip install uv")?;
    let mut uvx = command("uvx", &["--offline", "--no-config", "--from"])?;
    uvx.arg(dist.file(".whl")?).arg("throng").env("UV_CACHE_DIR", folder.join("uv"));
    uvx.env("UV_PYTHON_DOWNLOADS", "never");
    Ok(uvx)
}

/// Runs the npm package with `npx`, without a registry.
fn npx(dist: &Dist, folder: &Path) -> Result<Command> {
    let mut npx = command("npx", &["--offline", "--yes", "--package"])?;
    npx.arg(dist.file(".tgz")?).args(["--", "throng"]).env("npm_config_cache", folder.join("npm"));
    // In a folder with a package of the same name, npx would run that one.
    npx.current_dir(folder);
    Ok(npx)
}

/// Installs the `.deb` below its own root, with an empty dpkg database.
pub(super) fn debian(dist: &Dist, folder: &Path) -> Result<PathBuf> {
    let system = folder.join("debian");
    for part in ["info", "updates", "triggers"] {
        fs::create_dir_all(system.join("var/lib/dpkg").join(part))?;
    }
    fs::write(system.join("var/lib/dpkg/status"), "")?;
    let root = format!("--root={}", system.display());
    let mut dpkg = command("dpkg", &[&root, "--install"])?;
    dpkg.arg(dist.file(".deb")?);
    let said = output(dpkg)?;
    println!("{}", said.lines().last().unwrap_or_default());
    Ok(system.join("usr/bin/throng"))
}

/// Runs the image as a container engine would: only the files of the image, and `/proc`.
fn image(dist: &Dist, folder: &Path) -> Result<Command> {
    let folder = folder.join("image");
    let files = folder.join("files");
    fs::create_dir_all(files.join("proc"))?;
    for (archive, to) in [(dist.file("-image.tar")?, &folder), (folder.join("layer.tar"), &files)] {
        let mut tar = command("tar", &["--extract", "--file"])?;
        tar.arg(archive).arg("-C").arg(to);
        finish(tar)?;
    }
    let config: serde_json::Value = serde_json::from_str(&fs::read_to_string(folder.join("config.json"))?)?;
    let entry = config["config"]["Entrypoint"][0].as_str().context("no entry point")?;
    let user = config["config"]["User"].as_str().context("no user")?;
    let script = "mount -t proc proc \"$1/proc\" && exec chroot --userspec=\"$2\" \"$1\" \"$3\" \"$4\"";
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]);
    unshare.arg(&files).args([user, entry]).current_dir(root()?);
    Ok(unshare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_names_files_that_are_made() {
        let files = ["throng-1.2.0-x86_64-linux.tar.gz", "throng-1.2.0-py3-none-any.whl"].map(str::to_owned);
        let check =
            |text: &str, expected: &[&str]| assert_eq!(unknown(text, "1.2.0", &files), expected, "{text}");
        check("`tar xzf throng-1.2.0-x86_64-linux.tar.gz && throng-1.2.0-x86_64-linux/throng demo`", &[]);
        check("`./throng-1.2.0-*.whl`, throng:1.2.0", &[]);
        check(
            "`./throng-1.2.0-*.deb throng_1.2.0_amd64.deb`",
            &["throng-1.2.0-*.deb", "throng_1.2.0_amd64.deb"],
        );
    }
}
