//! Packages that the tests take from npm, PyPI, Maven Central and Go's module proxy. All of them are fetched before the first test starts:
//! tests run in a network without a route, and fail without them. What the servers of labs need is fetched by [`crate::labs::build`].

use crate::command::{command, finish, root};
use crate::packages::GO;
use anyhow::{Context, Result};
use std::path::Path;

/// A folder whose files name packages, with version and hash.
pub(crate) struct Fetched {
    /// From the workspace's root.
    pub(crate) folder: &'static str,
    /// Files in the folder that determine the packages, such as lock files.
    lists: &'static [&'static str],
    /// Subfolder for the packages. It is complete once it contains [`DONE`].
    into: &'static str,
    /// Fills `into`, which does not exist yet; both paths are relative to the workspace's root.
    fetch: fn(folder: &str, into: &str) -> Result<()>,
}

/// Written last into a folder of packages: the contents of the `lists` that it was filled from.
const DONE: &str = ".fetched";

/// Packages of the report and the live page.
pub(crate) const WEB: Fetched = of_npm("web");

const ALL: &[Fetched] = &[
    of_npm("crates/cli/tests/interop/node"),
    WEB,
    Fetched {
        folder: "crates/cli/tests/interop/python",
        lists: &["requirements.txt"],
        into: "packages",
        fetch: pip,
    },
    Fetched {
        folder: "crates/cli/tests/interop/java/jetty",
        lists: &["pom.xml"],
        into: "packages",
        fetch: maven,
    },
    Fetched {
        folder: "crates/cli/tests/interop/go",
        lists: &["go.mod", "go.sum", "secured/main.go"],
        into: "packages",
        fetch: go,
    },
];

/// Programs to build: our own, and those of modules in `go.mod`.
const GO_PROGRAMS: &[&str] =
    &["./secured", "github.com/fullstorydev/grpcurl/cmd/grpcurl", "github.com/summerwind/h2spec/cmd/h2spec"];

/// Fetches all folders that are not complete.
///
/// # Errors
/// A registry or its client program fails.
pub(crate) fn all() -> Result<()> {
    ALL.iter().try_for_each(Fetched::get)
}

const fn of_npm(folder: &'static str) -> Fetched {
    Fetched { folder, lists: &["package-lock.json"], into: "node_modules", fetch: npm }
}

impl Fetched {
    /// Fetches the packages of this folder unless it is complete.
    ///
    /// # Errors
    /// As [`all`].
    pub(crate) fn get(&self) -> Result<()> {
        let (root, into) = (root()?, format!("{}/{}", self.folder, self.into));
        let fetch = || (self.fetch)(self.folder, &into).with_context(|| format!("cannot fetch {into}"));
        fill(&root.join(self.folder), self.lists, &root.join(&into), fetch)
    }
}

/// Empties and fills `into`, unless it has been filled from the current contents of `lists`.
fn fill(folder: &Path, lists: &[&str], into: &Path, fetch: impl FnOnce() -> Result<()>) -> Result<()> {
    let read = |list: &&str| std::fs::read_to_string(folder.join(list)).with_context(|| (*list).to_owned());
    let (texts, done) = (lists.iter().map(read).collect::<Result<String>>()?, into.join(DONE));
    if std::fs::read_to_string(&done).is_ok_and(|then| then == texts) {
        return Ok(());
    }
    if into.exists() {
        std::fs::remove_dir_all(into)?;
    }
    fetch()?;
    std::fs::write(&done, texts).with_context(|| done.display().to_string())
}

/// Installs without running scripts of packages; esbuild, whose script would install its binary, works without.
fn npm(folder: &str, _into: &str) -> Result<()> {
    finish(command("npm", &["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", folder])?)
}

fn pip(folder: &str, into: &str) -> Result<()> {
    let requirements = format!("{folder}/requirements.txt");
    let how = ["-m", "pip", "install", "-q", "--root-user-action=ignore", "--require-hashes", "--no-deps"];
    let what = ["--target", into, "-r", &requirements];
    finish(command("/usr/bin/python3", &[&how[..], &what].concat())?)
}

/// Copies the jars that `pom.xml` names, and their dependencies.
fn maven(folder: &str, into: &str) -> Result<()> {
    let pom = format!("{folder}/pom.xml");
    let to = format!("-DoutputDirectory={}", root()?.join(into).display());
    finish(command("mvn", &["-q", "-B", "-f", &pom, "dependency:copy-dependencies", &to])?)
}

/// Builds without optimisation and debug information: these programs run for moments, and building them so takes a third less CPU
/// time.
fn go(folder: &str, into: &str) -> Result<()> {
    let into = root()?.join(into);
    std::fs::create_dir_all(&into)?;
    let how = ["build", "-trimpath", "-ldflags=-s -w", "-gcflags=all=-dwarf=false -N -l", "-o"];
    let mut go = command("go", &how)?;
    go.arg(&into).args(GO_PROGRAMS).current_dir(root()?.join(folder));
    let folders = std::env::var("PATH").unwrap_or_default() + ":" + GO;
    // Less frequent garbage collection in the compiler saves CPU time, too.
    finish({
        go.env("PATH", folders).env("CGO_ENABLED", "0").env("GOGC", "400");
        go
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn a_folder_is_filled_anew_when_its_lists_have_changed_or_it_is_not_complete() {
        let folder = std::env::temp_dir().join(format!("xtask-fetched-{}", std::process::id()));
        let into = folder.join("packages");
        std::fs::create_dir_all(&folder).unwrap();
        let list = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        let fill = |name: &str| {
            let mut is_filled = false;
            let filled = fill(&folder, &["a", "b"], &into, || {
                is_filled = true;
                std::fs::create_dir_all(&into)?;
                Ok(std::fs::write(into.join(name), "")?)
            });
            filled.map(|()| is_filled).unwrap()
        };
        let has = |name: &str| into.join(name).exists();
        list("a", "1");
        list("b", "1");
        assert!(fill("old") && !fill("never") && has("old"));
        list("b", "2");
        assert!(fill("new") && has("new") && !has("old"));
        list("b", "1");
        let failed = super::fill(&folder, &["a", "b"], &into, || bail!("no network"));
        assert_eq!(failed.unwrap_err().to_string(), "no network");
        assert!(fill("at last"), "what failed is not complete");
        std::fs::remove_file(into.join(DONE)).unwrap();
        assert!(fill("again") && !fill("never"));
        let missing = super::fill(&folder, &["none"], &into, || Ok(())).unwrap_err();
        assert_eq!(missing.to_string(), "none");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_list_is_committed_and_every_folder_of_packages_is_ignored() {
        for Fetched { folder, lists, into, .. } in ALL {
            let path = root().unwrap().join(folder);
            assert!(lists.iter().all(|list| path.join(list).is_file()), "{folder}: {lists:?}");
            let ignored = command("git", &["check-ignore", "-q", &format!("{folder}/{into}/x")]).unwrap();
            finish(ignored).unwrap();
        }
    }
}
