//! Programs from Go modules, built by `go install`, each once for a version.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{program::skip, server::source};

/// One build at a time, of all processes that run tests: it uses all processors, and what is started is not being written.
fn one_at_a_time(folder: &Path) -> File {
    fs::create_dir_all(folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    lock
}

/// The program of a Go module, such as `github.com/summerwind/h2spec/cmd/h2spec@v2.6.0`. It is built the first time, which may
/// take minutes, and kept below `target`. None, with a note, where there is no Go, or it cannot get or build the module.
pub(crate) fn install(module: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    let _one_at_a_time = one_at_a_time(&folder);
    let folder = folder.join(module.replace(['/', '@'], "-"));
    let path = folder.join(program(module));
    if path.is_file() {
        return Some(path);
    }
    // It appears where it is looked for when it is whole.
    let temporary = folder.with_extension(format!("{}", std::process::id()));
    fs::create_dir_all(&temporary).unwrap();
    let is_built = run(module, Command::new("go").args(["install", module]).env("GOBIN", &temporary));
    if is_built {
        fs::create_dir_all(&folder).unwrap();
        fs::rename(temporary.join(program(module)), &path).unwrap();
    }
    fs::remove_dir_all(&temporary).unwrap();
    is_built.then_some(path)
}

/// The program of a file of these tests that uses only Go's own library. Go keeps what it has built; the first time takes half a
/// minute of a processor. None, with a note, where there is no Go.
pub(crate) fn build(file: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go");
    let _one_at_a_time = one_at_a_time(&folder);
    let path = folder.join(Path::new(file).file_stem().unwrap());
    if !run("Go", Command::new("go").arg("version")) {
        return None;
    }
    let is_built = run(file, Command::new("go").args(["build", "-o"]).arg(&path).arg(source(file)));
    assert!(is_built, "{file} does not compile");
    Some(path)
}

/// Not optimised, without debug information: what these programs do takes moments, and what compiles them takes a third less of a
/// processor. The same for each, for they share what is built of Go's own library.
const FLAGS: &str = "-trimpath '-ldflags=-s -w' '-gcflags=all=-dwarf=false -N -l'";

/// Whether `go` has built `what`.
fn run(what: &str, go: &mut Command) -> bool {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/local/go/bin";
    // The compiler collects its own garbage less often, too.
    let built = go.env("GOFLAGS", FLAGS).env("GOGC", "400").env("PATH", folders).output();
    let why = match built {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    skip(format_args!("no {what}: {}", why.trim_end()));
    false
}

/// What Go calls the program: the last part of the module's path that is not its major version.
fn program(module: &str) -> &str {
    let path = module.split('@').next().unwrap();
    let mut parts = path.rsplit('/');
    let is_version = |part: &str| part.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
    parts.find(|part| !is_version(part)).unwrap()
}

#[test]
fn programs_have_the_names_that_go_gives_them() {
    for (module, name) in [
        ("github.com/summerwind/h2spec/cmd/h2spec@v2.6.0", "h2spec"),
        ("github.com/fullstorydev/grpcurl/cmd/grpcurl@latest", "grpcurl"),
        ("example.org/tool/v2@v2.3.4", "tool"),
    ] {
        assert_eq!(program(module), name, "{module}");
    }
}
