//! The folder and scale of a lab: values of its placeholders, and its server with them.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use host::Root;
use lab::{Folders, Lab, Running, Server, Times, Values};
use rustix::process::{Resource, Rlimit, setrlimit};

use units::Date;

use crate::{Failure, folders, plans, say};

/// Open files that a server needs besides its connections.
const OTHER_FILES: u64 = 500;

/// One lab at one scale.
pub(super) struct Settings {
    pub(super) values: Values,
    /// What is built and written is here.
    pub(super) work: PathBuf,
    /// What this throng's servers log is here.
    pub(super) log: PathBuf,
    /// Ourselves.
    pub(super) throng: PathBuf,
}

impl Settings {
    /// `what` is done: part of the name of the folder of logs.
    pub(super) fn new(lab: &Lab, scale: f64, times: Times, what: &str) -> Result<Settings, Failure> {
        let work = work(lab)?;
        forget_old_logs(&work);
        // Of this trial alone: what earlier ones logged stays for a while.
        let now = Date::from(units::date()).to_string().replace([':', '-'], "");
        let log = work.join(format!("log-{now}-{}-{what}", std::process::id()));
        fs::create_dir_all(&log).map_err(|e| Failure::machine(format!("{}: {e}", log.display())))?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let named = BTreeMap::from([
            ("folder", path(&lab.folder)),
            ("work", path(&work)),
            ("log", path(&log)),
            ("source", path(&lab::source_folder(&work))),
            ("cores", plans::cores().to_string()),
        ]);
        let throng = env::current_exe().map_err(Failure::machine)?;
        Ok(Settings { values: Values { scale, times, named }, work, log, throng })
    }

    /// Starts a server, as this many processes; `variant` overrides its environment.
    pub(super) fn start(
        &self,
        lab: &Lab,
        server: &Server,
        processes: u8,
        variant: &[(String, String)],
    ) -> Result<Running, String> {
        let mut values = self.values.clone();
        if let Some(mib) = self.heap_mib(server, processes)? {
            values.named.insert("heap", mib.to_string());
        }
        let throng = ("THRONG".to_owned(), self.throng.to_string_lossy().into_owned());
        let environment = [&[throng], variant].concat();
        let folders = Folders { work: &self.work, log: &self.log };
        let running = Running::start(lab, server, processes, &values, &environment, folders)?;
        for log in &running.build_logs {
            say(&format!("throng: {} was built: {}", server.name, log.display()));
        }
        say(&format!("throng: {} logs to {}", server.name, self.log.display()));
        Ok(running)
    }

    /// Heap of each process.
    pub(super) fn heap_mib(&self, server: &Server, processes: u8) -> Result<Option<u64>, String> {
        server.heap_mib(self.values.scale / f64::from(processes.max(1)))
    }

    /// What the server says of its version; nothing where it says nothing.
    pub(super) fn version(&self, lab: &Lab, server: &Server) -> String {
        let said = |line: &String| {
            let line = self.values.fill(line).ok()?;
            let output = Command::new("sh")
                .args(["-c", &line])
                .env("THRONG", &self.throng)
                .current_dir(&lab.folder)
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        server.version.as_ref().and_then(said).unwrap_or_default()
    }

    /// With the values for the server's addresses.
    pub(super) fn values_at(&self, host: &str) -> Values {
        let mut values = self.values.clone();
        for (name, scheme) in [("url", "http"), ("ws", "ws"), ("tcp", "tcp")] {
            values.named.insert(name, format!("{scheme}://{host}"));
        }
        values
    }
}

/// Where a lab is built.
pub(super) fn work(lab: &Lab) -> Result<PathBuf, Failure> {
    let none = "no folder to build in; set HOME or XDG_CACHE_HOME";
    Ok(folders::cache().ok_or_else(|| Failure::machine(none))?.join("labs").join(&lab.name))
}

/// Maximum of log folders that are kept.
const LOGS: usize = 20;

/// The oldest of them go. What cannot be removed stays.
fn forget_old_logs(work: &Path) {
    let is_log =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-"));
    let entries = fs::read_dir(work).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> = entries.filter(is_log).collect();
    logs.sort_by_key(|path| fs::metadata(path).and_then(|entry| entry.modified()).ok());
    // Those of a lab that still runs have been named, or will be.
    for old in logs.iter().rev().skip(LOGS).filter(|path| !is_of_a_living_lab(path)) {
        let _ = fs::remove_dir_all(old);
    }
}

/// `log-20261122T133436Z-5060-…`: 5060 is the process that runs the lab.
fn is_of_a_living_lab(log: &Path) -> bool {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let pid = name.split('-').nth(2).and_then(|pid| pid.parse::<u32>().ok());
    pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
}

/// As many as it takes where a process may not open all the files that it would need.
pub(super) fn processes(server: &Server, size: u64) -> u8 {
    match server.connections_each {
        Some(each) if size + OTHER_FILES > raised(size + OTHER_FILES) => {
            size.div_ceil(each.max(1)).clamp(1, 250) as u8
        }
        _ => 1,
    }
}

/// The limit on open files for a server, raised to this if permitted: child processes inherit it.
fn raised(wanted: u64) -> u64 {
    let hard = host::open_files(&Root::real()).map_or(u64::MAX, |files| files.hard);
    let more = Rlimit { current: Some(wanted), maximum: Some(wanted) };
    if hard < wanted && setrlimit(Resource::Nofile, more).is_ok() { wanted } else { hard }
}
