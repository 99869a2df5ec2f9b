//! Cause: the target's log reports a lack of files, threads or memory.

use super::*;
use record::tolerances::HALF;

/// The target's log says that it could get no file, no thread or no memory. Where not half of its files are open, it is of another limit that it
/// says so (`EMFILE` of inotify).
pub(crate) struct Logged {
    pub(crate) kind: LogKind,
    pub(crate) at: u64,
}

impl Logged {
    /// The cause, what happened, and what the target could not do.
    fn lack(&self) -> (Name, &'static str, &'static str) {
        let threads = "could not start another thread";
        match self.kind {
            LogKind::OpenFiles => (Name::OpenFiles, "ran out of open files", "could not open another file"),
            LogKind::Threads => (Name::Threads, threads, threads),
            LogKind::Memory | LogKind::Heap | LogKind::Ports | LogKind::Connections | LogKind::Error => {
                (Name::Memory, "ran out of memory", "could not allocate memory")
            }
        }
    }
}

impl Cause for Logged {
    const ID: &'static str = "logged";
    const OF: (Side, Name) = (Side::Target, Name::Memory);
    const YIELDS_TO: &'static str = "open-files heap ended oom-killed";

    fn find(case: &Case) -> Option<Found<Logged>> {
        if matches!(case.trouble, Trouble::Ours | Trouble::Path | Trouble::None) {
            return None;
        }
        let kinds = [LogKind::OpenFiles, LogKind::Threads, LogKind::Memory];
        let files = case.evidence.target.and_then(|target| target.open_files);
        let has_files = files.is_some_and(|files| (files.used as f64) < HALF * files.limit as f64);
        let is_said =
            |kind: &LogKind| case.logged(*kind).is_some() && !(has_files && *kind == LogKind::OpenFiles);
        let kind = kinds.into_iter().find(is_said)?;
        let at = case.served();
        case.evidence.target.map(|_| Found::seen(Logged { kind, at }, at).began(Began::Seen(kind.into())))
    }

    fn of(&self) -> (Side, Name) {
        (Side::Target, self.lack().0)
    }

    fn sentence(&self) -> String {
        let (_, what, _) = self.lack();
        format!("the target {what} at {}, according to its log", connections(self.at))
    }

    fn detail(&self, case: &Case) -> String {
        let (.., what) = self.lack();
        format!("process {} {what}", case.pid())
    }

    fn fix(&self, case: &Case) -> String {
        let pid = case.pid();
        match self.kind {
            LogKind::OpenFiles => format!(
                "raise its limit: prlimit --pid {pid} --nofile=1048576, or LimitNOFILE=1048576 in its unit"
            ),
            LogKind::Threads => {
                "raise its limit on threads (ulimit -u, TasksMax= of its unit, pids.max), or serve more \
                connections per thread"
                    .to_owned()
            }
            LogKind::Memory | LogKind::Heap | LogKind::Ports | LogKind::Connections | LogKind::Error => {
                case.or_less(MORE_MEMORY, FEWER)
            }
        }
    }
}
