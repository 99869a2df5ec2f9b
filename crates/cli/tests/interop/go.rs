//! Programs from Go modules, built by `go install`, each once for a version.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// One build at a time: it uses all processors.
static BUILDS: Mutex<()> = Mutex::new(());

/// The program of a Go module, such as `github.com/summerwind/h2spec/cmd/h2spec@v2.6.0`. It is built the first time, which may
/// take minutes, and kept below `target`. None, with a note, where there is no Go, or it cannot get or build the module.
pub(crate) fn install(module: &str) -> Option<PathBuf> {
    let _one_at_a_time = BUILDS.lock().unwrap_or_else(|broken| broken.into_inner());
    let name = module.replace(['/', '@'], "-");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go").join(name);
    let path = folder.join(program(module));
    if path.is_file() {
        return Some(path);
    }
    // It appears where it is looked for when it is whole.
    let temporary = folder.with_extension(format!("{}", std::process::id()));
    fs::create_dir_all(&temporary).unwrap();
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/local/go/bin";
    let mut go = Command::new("go");
    go.args(["install", module]).env("GOBIN", &temporary).env("GOFLAGS", "-trimpath").env("PATH", folders);
    let built = go.output().map_err(|error| error.to_string());
    let built = built.and_then(|output| match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    });
    match &built {
        Ok(()) => {
            fs::create_dir_all(&folder).unwrap();
            fs::rename(temporary.join(program(module)), &path).unwrap();
        }
        Err(why) => eprintln!("skipped: no {module}: {}", why.trim_end()),
    }
    fs::remove_dir_all(&temporary).unwrap();
    built.ok().map(|()| path)
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
