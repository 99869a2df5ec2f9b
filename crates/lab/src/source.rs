//! The source checkouts from which a server is built. They are in the folder that the variable `LAB_SOURCE` names, or cloned with git
//! if its value is `git`.

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    error::Error,
    file::{Server, Source},
};

/// The environment variable that names the folder of the checkouts.
pub(crate) const VARIABLE: &str = "LAB_SOURCE";

/// Its value that permits cloning of missing checkouts.
const CLONE: &str = "git";

/// The folder of the checkouts: that of `LAB_SOURCE`, or one in the lab's work folder.
pub(crate) fn source_folder(work: &Path) -> PathBuf {
    match env::var_os(VARIABLE).filter(|value| !value.is_empty() && value != CLONE) {
        Some(folder) => fs::canonicalize(&folder).unwrap_or_else(|_| folder.into()),
        None => work.join("source"),
    }
}

/// The checkouts of a server that do not exist yet; `LAB_SOURCE=git` permits cloning them.
pub fn to_clone<'a>(server: &'a Server, work: &Path) -> Vec<&'a Source> {
    let folder = source_folder(work);
    server.sources.iter().filter(|source| !is_there(source, &folder)).collect()
}

fn is_there(source: &Source, folder: &Path) -> bool {
    folder.join(&source.folder).join(&source.has).exists()
}

/// Messages about missing sources of a server, each with its fix; `named` is the value of the variable.
pub(crate) fn missing(server: &Server, named: Option<&OsStr>) -> Vec<String> {
    let origin = |source: &Source| format!("{} ({} at {})", source.folder, source.git, source.at);
    let all = || server.sources.iter().map(origin).collect::<Vec<_>>().join(", ");
    match named.filter(|value| !value.is_empty()) {
        _ if server.sources.is_empty() => Vec::new(),
        None => vec![format!(
            "{VARIABLE} is not set; set it to a folder with checkouts of {}, or to {CLONE} to clone them",
            all()
        )],
        Some(value) if value == CLONE => Vec::new(),
        Some(folder) => {
            let lacks = server.sources.iter().filter(|source| !is_there(source, Path::new(folder)));
            let line = |source: &Source| {
                let at = Path::new(folder).join(&source.folder).join(&source.has);
                format!("{} is missing; check out {}", at.display(), origin(source))
            };
            lacks.map(line).collect()
        }
    }
}

/// Clones the missing checkouts.
///
/// # Errors
/// git failed; the error contains its output.
pub(crate) fn clone_missing(server: &Server, work: &Path) -> Result<(), Error> {
    for source in to_clone(server, work) {
        let to = source_folder(work).join(&source.folder);
        let begun = to.with_extension("begun");
        let _ = fs::remove_dir_all(&begun);
        fs::create_dir_all(&begun).map_err(Error::at(&begun))?;
        git(&begun, &["init", "--quiet"])?;
        // `git clone` does not accept a commit.
        git(&begun, &["fetch", "--quiet", "--depth", "1", &source.git, &source.at])?;
        git(&begun, &["checkout", "--quiet", "FETCH_HEAD"])?;
        fs::rename(&begun, &to).map_err(Error::at(&begun))?;
        if !is_there(source, &source_folder(work)) {
            let what = format!("{} at {} has no {}", source.git, source.at, source.has);
            return Err(Error::Machine(what));
        }
    }
    Ok(())
}

fn git(folder: &Path, args: &[&str]) -> Result<(), Error> {
    let mut command = Command::new("git");
    command.args(args).current_dir(folder).stdin(Stdio::null()).env("GIT_TERMINAL_PROMPT", "0");
    let output = command.output().map_err(Error::at("git"))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    Err(Error::Machine(format!("git {}: {}", args.join(" "), printed.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(git: &str) -> Server {
        let text = format!(
            "name = \"s\"\nstart = \"true\"\n[[sources]]\nfolder = \"kit\"\ngit = \"{git}\"\nat = \"v1\"\nhas = \"src/java\""
        );
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn a_checkout_is_there_or_is_named() {
        let folder = env::temp_dir().join(format!("throng-lab-source-{}", std::process::id()));
        let check = |named: Option<&OsStr>, expected: &[&str]| {
            assert_eq!(missing(&server("https://there/kit"), named), expected);
        };
        let unset = "LAB_SOURCE is not set; set it to a folder with checkouts of kit (https://there/kit at v1), or to git to clone them";
        check(None, &[unset]);
        check(Some(OsStr::new("")), &[unset]);
        check(Some(OsStr::new("git")), &[]);
        let lacks =
            format!("{}/kit/src/java is missing; check out kit (https://there/kit at v1)", folder.display());
        check(Some(folder.as_os_str()), &[&lacks]);
        fs::create_dir_all(folder.join("kit/src/java")).unwrap();
        check(Some(folder.as_os_str()), &[]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_tag_is_cloned() {
        if env::var_os(VARIABLE).is_some() {
            return;
        }
        let folder = env::temp_dir().join(format!("throng-lab-clone-{}", std::process::id()));
        let (origin, work) = (folder.join("origin"), folder.join("work"));
        fs::create_dir_all(origin.join("src/java")).unwrap();
        fs::write(origin.join("src/java/A.java"), "class A {}").unwrap();
        let own = ["-c", "user.name=n", "-c", "user.email=e@x"];
        for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "one"], &["tag", "v1"]] {
            git(&origin, &[&own[..], args].concat()).unwrap();
        }
        let server = server(&origin.to_string_lossy());
        assert_eq!(to_clone(&server, &work).len(), 1);
        clone_missing(&server, &work).unwrap();
        assert_eq!(fs::read_to_string(work.join("source/kit/src/java/A.java")).unwrap(), "class A {}");
        assert!(to_clone(&server, &work).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
