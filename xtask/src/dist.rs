//! `cargo xtask dist [--check]`: builds one static binary in `target/dist` and packages it in six ways, with checksums and an SBOM.
//! `--check` installs each package as a user would and runs its demo; it takes minutes, so it is not part of `test`.

mod check;
mod image;
#[cfg(test)]
mod names;
mod registries;
mod sbom;

use crate::command::{cargo, command, finish, metadata, output, root, target};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A CPU architecture, as each packaging system names it.
struct Platform {
    /// As in `uname -m`.
    arch: &'static str,
    rust: &'static str,
    debian: &'static str,
    /// The platform tags of the Python wheel. The binary is static, so any libc version will do.
    wheel: &'static str,
    npm: &'static str,
    oci: &'static str,
}

const PLATFORMS: &[Platform] = &[
    Platform {
        arch: "x86_64",
        rust: "x86_64-unknown-linux-musl",
        debian: "amd64",
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        npm: "x64",
        oci: "amd64",
    },
    Platform {
        arch: "aarch64",
        rust: "aarch64-unknown-linux-musl",
        debian: "arm64",
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        npm: "arm64",
        oci: "arm64",
    },
];

/// Name of the packages in registries and of the crate: on PyPI and npm, `throng` is another program. The command is `throng`.
const NAME: &str = "throng-cli";
/// The one-sentence description in all packages.
const ABOUT: &str = "Connection-load tester: how many connections can a server hold, and what limits it?";

/// A distribution: the packages made of one binary.
struct Dist {
    platform: &'static Platform,
    version: String,
    /// The folder that gets the packages.
    folder: PathBuf,
    /// The stripped binary.
    throng: PathBuf,
}

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => make().map(|_| ()),
        ["--check"] => check::check(&make()?),
        _ => bail!("takes --check or nothing: {}", words.join(" ")),
    }
}

fn make() -> Result<Dist> {
    let dist = Dist::build()?;
    dist.archive()?;
    dist.debian()?;
    image::write(&dist)?;
    registries::wheel(&dist)?;
    registries::npm(&dist)?;
    sbom::write(&dist)?;
    dist.checksums()?;
    for file in dist.files()? {
        println!("{:>10}  {}", fs::metadata(dist.folder.join(&file))?.len(), file);
    }
    Ok(dist)
}

impl Dist {
    /// Builds the static binary.
    fn build() -> Result<Dist> {
        let arch = std::env::consts::ARCH;
        let platform = PLATFORMS
            .iter()
            .find(|own| own.arch == arch)
            .with_context(|| format!("not for this processor: {arch}"))?;
        output(command("musl-gcc", &["-v"])?)
            .context("a C compiler for musl is missing: apt-get install musl-tools")?;
        let installed = output(command("rustc", &["--print", "target-libdir", "--target", platform.rust])?)?;
        if !Path::new(installed.trim()).exists() {
            bail!("Rust's library for musl is missing: rustup target add {}", platform.rust);
        }
        cargo(&["build", "--profile", "dist", "--locked", "--bin", "throng", "--target", platform.rust])?;
        let folder = target()?.join("dist");
        let _ = fs::remove_dir_all(&folder);
        let work = folder.join("work");
        fs::create_dir_all(&work)?;
        let throng = work.join("throng");
        let mut strip = command("strip", &["-o"])?;
        strip.arg(&throng).arg(target()?.join(platform.rust).join("dist/throng"));
        finish(strip)?;
        Ok(Dist { platform, version: version()?, folder, throng })
    }

    /// Creates a folder for intermediate files.
    fn work(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join("work").join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The `.tar.gz`: the binary with licences and documents.
    fn archive(&self) -> Result<()> {
        let name = format!("throng-{}-{}-linux", self.version, self.platform.arch);
        let folder = self.work(&name)?;
        self.install(&folder.join("throng"))?;
        for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            fs::copy(root()?.join(file), folder.join(file)).with_context(|| file.to_owned())?;
        }
        let mut tar = tar(&self.folder.join(format!("{name}.tar.gz")), &["--gzip"])?;
        tar.arg("-C").arg(self.folder.join("work")).arg(&name);
        finish(tar)
    }

    /// The Debian package, without dependencies.
    fn debian(&self) -> Result<()> {
        let (version, arch) = (&self.version, self.platform.debian);
        let folder = self.work("debian")?;
        let [control, doc] = ["DEBIAN", &format!("usr/share/doc/{NAME}")].map(|name| folder.join(name));
        fs::create_dir_all(&control)?;
        fs::create_dir_all(&doc)?;
        self.install(&folder.join("usr/bin/throng"))?;
        fs::copy(root()?.join("LICENSE-MIT"), doc.join("copyright"))?;
        let size = fs::metadata(&self.throng)?.len() / 1024;
        let text = format!(
            "Package: {NAME}\nVersion: {version}\nArchitecture: {arch}\nMaintainer: throng <throng@localhost>\n\
            Installed-Size: {size}\nSection: net\nPriority: optional\nDescription: {ABOUT}\n"
        );
        fs::write(control.join("control"), text)?;
        let mut build = command("dpkg-deb", &["--root-owner-group", "--build"])?;
        build.arg(&folder).arg(self.folder.join(format!("{NAME}_{version}_{arch}.deb")));
        finish(build)
    }

    /// Copies the binary to this path.
    fn install(&self, to: &Path) -> Result<()> {
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        fs::copy(&self.throng, to).with_context(|| to.display().to_string())?;
        Ok(())
    }

    /// The names of the finished packages, sorted.
    fn files(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The package whose file name has this ending.
    fn file(&self, ending: &str) -> Result<PathBuf> {
        let names = self.files()?;
        let name =
            names.iter().find(|name| name.ends_with(ending)).with_context(|| format!("no {ending}"))?;
        Ok(self.folder.join(name))
    }

    fn checksums(&self) -> Result<()> {
        let mut sum = command("sha256sum", &[])?;
        sum.args(self.files()?).current_dir(&self.folder);
        Ok(fs::write(self.folder.join(self.sums()), output(sum)?)?)
    }

    /// The name of the checksum file.
    fn sums(&self) -> String {
        format!("throng-{}-{}.sha256", self.version, self.platform.arch)
    }
}

/// A reproducible tar archive: its bytes depend only on the names and contents of the files.
fn tar(to: &Path, how: &[&str]) -> Result<std::process::Command> {
    let mut tar = command(
        "tar",
        &["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"],
    )?;
    tar.args(how).arg("--file").arg(to);
    Ok(tar)
}

/// The version of the program.
fn version() -> Result<String> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let cli = packages.iter().find(|package| package["name"] == NAME).context("no package of that name")?;
    Ok(cli["version"].as_str().context("no version")?.to_owned())
}

/// The SHA-256 of a file, in hexadecimal.
fn sha256(file: &Path) -> Result<String> {
    let mut sum = command("sha256sum", &[])?;
    sum.arg(file);
    let line = output(sum)?;
    Ok(line.split(' ').next().context("no checksum")?.to_owned())
}
