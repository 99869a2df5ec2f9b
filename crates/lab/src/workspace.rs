//! The folders in which a lab is built and logged, and the values of its placeholders.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use units::Date;

use crate::{
    error::Error,
    file::{Lab, Server},
    source,
    template::{Environment, Values},
};

/// A lab at one scale, with its folders.
pub(crate) struct Workspace<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) values: Values,
    /// The folder for builds, which is kept.
    pub(crate) work: PathBuf,
    /// The folder for the logs of one trial, created when the first log is written.
    pub(crate) log: PathBuf,
    /// The path of the `throng` program.
    pub(crate) throng: PathBuf,
}

impl<'a> Workspace<'a> {
    /// Determines the folders, with the lab's folder in `root`, and adds them to the values. `purpose` becomes part of the log
    /// folder's name.
    pub(crate) fn new(
        root: &Path,
        lab: &'a Lab,
        mut values: Values,
        purpose: &str,
    ) -> Result<Workspace<'a>, Error> {
        let work = root.join(&lab.name);
        remove_old_logs(&work);
        let now = Date::from(units::date()).to_string().replace([':', '-'], "");
        let log = work.join(format!("log-{now}-{}-{purpose}", std::process::id()));
        let path = |path: &Path| path.to_string_lossy().into_owned();
        values.named.extend([
            ("folder", path(&lab.folder)),
            ("work", path(&work)),
            ("log", path(&log)),
            ("source", path(&source::source_folder(&work))),
            ("cores", thread::available_parallelism().map_or(1, usize::from).to_string()),
        ]);
        let throng = throng().map_err(|e| Error::Machine(e.to_string()))?;
        Ok(Workspace { lab, values, work, log, throng })
    }

    /// Creates the log folder.
    pub(crate) fn make_log(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.log).map_err(Error::at(&self.log))
    }

    /// Sets the placeholders for the server's URLs.
    pub(crate) fn set_host(&mut self, host: &str, is_secured: bool) {
        let schemes = if is_secured { ["https", "wss", "tls"] } else { ["http", "ws", "tcp"] };
        let urls = ["url", "ws", "tcp"].into_iter().zip(schemes);
        self.values.named.extend(urls.map(|(name, scheme)| (name, format!("{scheme}://{host}"))));
    }

    /// The version that the server prints; empty if there is none.
    pub(crate) fn version(&self, server: &Server) -> String {
        let printed = |line: &String| {
            let mut shell = self.shell(&["-c", &self.values.fill(line).ok()?], &[], &self.values).ok()?;
            let output = shell.output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        server.version.as_ref().and_then(printed).unwrap_or_default()
    }

    /// A shell in the lab's folder, as the leader of a process group. Later environments override earlier ones.
    pub(crate) fn shell(
        &self,
        args: &[&str],
        environments: &[&Environment],
        values: &Values,
    ) -> Result<Command, Error> {
        let mut command = bound("sh");
        command.args(args).current_dir(&self.lab.folder).env("THRONG", &self.throng);
        for (name, value) in environments.iter().copied().flatten() {
            command.env(name, values.fill(value).map_err(Error::Machine)?);
        }
        command.stdin(Stdio::null()).process_group(0);
        Ok(command)
    }

    /// The `throng` program.
    pub(crate) fn throng(&self) -> Command {
        bound(&self.throng)
    }
}

/// A command whose process gets SIGTERM when this process ends for whatever reason.
fn bound(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command
}

/// Maximum number of log folders to keep.
const LOGS: usize = 20;

/// Removes the oldest log folders. A folder that cannot be removed is ignored.
fn remove_old_logs(work: &Path) {
    let is_log =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
    let entries = fs::read_dir(work).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> = entries.filter(is_log).collect();
    logs.sort_by_key(|path| fs::metadata(path).and_then(|entry| entry.modified()).ok());
    for old in logs.iter().rev().skip(LOGS).filter(|path| !is_in_use(path)) {
        let _ = fs::remove_dir_all(old);
    }
}

/// Whether the process that created a log folder still runs. Its id is the third part of the name: 5060 in
/// `log-20261122T133436Z-5060-…`.
fn is_in_use(log: &Path) -> bool {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.split('-').nth(2).and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// The `throng` that loads the servers: the one that started this program, or the one beside it.
///
/// # Errors
/// This program's own path is not known.
pub fn throng() -> std::io::Result<PathBuf> {
    match env::var_os("THRONG") {
        Some(throng) => Ok(throng.into()),
        None => Ok(env::current_exe()?.with_file_name("throng")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        time::{Duration, UNIX_EPOCH},
    };

    #[test]
    fn old_logs_go_unless_they_are_in_use() {
        let work = env::temp_dir().join(format!("throng-lab-logs-{}", std::process::id()));
        // No process has this id: it is above Linux' maximum.
        let old = |n: usize| work.join(format!("log-20261122T1334{n:02}Z-4194305-hold"));
        let own = work.join(format!("log-20261122T133300Z-{}-hold", std::process::id()));
        let all: Vec<PathBuf> = [own.clone()].into_iter().chain((0..LOGS + 5).map(old)).collect();
        for (age, log) in all.iter().rev().enumerate() {
            fs::create_dir_all(log).unwrap();
            let modified = UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
            File::open(log).and_then(|log| log.set_modified(modified)).unwrap();
        }
        fs::create_dir(work.join("source")).unwrap();
        remove_old_logs(&work);
        let left = |n: &usize| old(*n).exists();
        assert_eq!((0..LOGS + 5).filter(left).collect::<Vec<_>>(), (5..LOGS + 5).collect::<Vec<_>>());
        assert!(own.exists() && work.join("source").exists());
        fs::remove_dir_all(work).unwrap();
    }
}
