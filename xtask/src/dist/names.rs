//! Tests of the package name: documents install packages by the name under which they are published, and each package installs the
//! command `throng`.

use super::{Dist, NAME, PLATFORMS, check, registries};
use crate::command::{command, metadata, output, root};
use crate::packages::is_root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Commands that install a package by name.
const INSTALLERS: &[&str] = &[
    "uvx",
    "npx",
    "pipx install",
    "pipx run",
    "pip install",
    "npm install -g",
    "cargo install",
    "apt install",
    "apt-get install",
];

/// Packages that a text installs whose names begin with `throng` but which are not ours.
fn strangers(text: &str) -> Vec<String> {
    let is_end = |c: char| c.is_whitespace() || "`,;)|".contains(c);
    let named = |installer: &&str| -> Vec<String> {
        let wanted = format!("{installer} ");
        let after = text.match_indices(&wanted).map(|(at, _)| &text[at + wanted.len()..]);
        after.filter_map(|after| after.split(is_end).next()).map(str::to_owned).collect()
    };
    let is_ours = |word: &String| word == NAME || word.starts_with(&format!("{NAME}@"));
    let all = INSTALLERS.iter().flat_map(named);
    all.filter(|word| word.starts_with("throng") && !is_ours(word)).collect()
}

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            documents(&entry, found);
        } else if entry.extension().is_some_and(|ending| ending == "md") {
            found.push(entry);
        }
    }
}

#[test]
fn documents_install_no_stranger() {
    let check = |text: &str, expected: &[&str]| assert_eq!(strangers(text), expected, "{text}");
    check("`uvx throng demo`, `npx throng`", &["throng", "throng"]);
    check("`uvx throng-cli demo`, cargo install throng-cli, npm install -g throng-cli@1.2", &[]);
    check("pipx install ./throng_cli-1.2-*.whl; cargo install oha; uvx --from ./x throng", &[]);
    let root = root().unwrap();
    let mut all = vec![root.join("README.md")];
    documents(&root.join("docs"), &mut all);
    let mut says_it = 0;
    for document in all {
        let text = fs::read_to_string(&document).unwrap();
        check(&text, &[]);
        says_it += usize::from(["uvx", "npx"].iter().all(|own| text.contains(&format!("{own} {NAME}"))));
    }
    assert!(says_it >= 2, "README and the guide have it");
}

#[test]
fn the_crate_has_the_name_and_the_command() {
    let metadata = metadata().unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let own = packages.iter().find(|package| package["name"] == NAME).expect("the crate");
    assert!(own["manifest_path"].as_str().unwrap().ends_with("/crates/cli/Cargo.toml"));
    let targets = own["targets"].as_array().unwrap();
    assert!(targets.iter().any(|target| target["kind"][0] == "bin" && target["name"] == "throng"));
}

/// Builds the wheel, the npm package and the `.deb` of a stand-in for the binary, and installs each by its name.
#[test]
fn each_package_installs_the_command() {
    let folder = std::env::temp_dir().join(format!("throng-names-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let throng = folder.join("stand-in");
    fs::write(&throng, "#!/bin/sh\necho stand-in \"$@\"\n").unwrap();
    fs::set_permissions(&throng, fs::Permissions::from_mode(0o755)).unwrap();
    let platform = PLATFORMS.iter().find(|own| own.arch == std::env::consts::ARCH).expect("a platform");
    let dist = Dist { platform, version: "1.2.3".to_owned(), folder: folder.join("dist"), throng };
    fs::create_dir_all(&dist.folder).unwrap();
    registries::wheel(&dist).unwrap();
    registries::npm(&dist).unwrap();
    dist.debian().unwrap();
    let runs = |program: &Path| {
        let printed = output(command(program, &["demo"]).unwrap()).unwrap();
        assert_eq!(printed.trim(), "stand-in demo", "{program:?}");
    };

    let python = folder.join("python");
    let mut pip = command("python3", &["-m", "pip", "install", "--quiet", "--no-index", NAME]).unwrap();
    pip.arg("--find-links").arg(&dist.folder).arg("--target").arg(&python);
    output(pip).unwrap();
    // `uvx NAME` and `pipx run NAME` run the command NAME of the package NAME, so the wheel has one.
    ["throng", NAME].iter().for_each(|name| runs(&python.join("bin").join(name)));

    let node = folder.join("node");
    fs::create_dir_all(&node).unwrap();
    let mut npm =
        command("npm", &["install", "--offline", "--silent", "--no-audit", "--no-fund", "--prefix"]).unwrap();
    npm.arg(&node).arg(dist.file(".tgz").unwrap()).env("npm_config_cache", folder.join("cache"));
    output(npm).unwrap();
    assert!(node.join("node_modules").join(NAME).exists());
    runs(&node.join("node_modules/.bin/throng"));
    let mut npx = command("npx", &["--offline", "--yes", NAME, "demo"]).unwrap();
    npx.current_dir(&node).env("npm_config_cache", folder.join("cache"));
    assert_eq!(output(npx).unwrap().trim(), "stand-in demo");

    let mut field = command("dpkg-deb", &["--field"]).unwrap();
    field.arg(dist.file(".deb").unwrap()).arg("Package");
    assert_eq!(output(field).unwrap().trim(), NAME);
    if is_root() {
        runs(&check::debian(&dist, &folder).unwrap());
    }
    fs::remove_dir_all(folder).unwrap();
}
