//! Cause: the target reached its limit on open files.

use super::*;

/// The target's open files reached its limit, but for a few that some servers keep free.
pub(crate) struct OpenFiles {
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl Cause for OpenFiles {
    const ID: &'static str = "open-files";
    const OF: (Side, Name) = (Side::Target, Name::OpenFiles);
    const YIELDS_TO: &'static str = "ended oom-killed";

    fn find(case: &Case) -> Option<Found<OpenFiles>> {
        let files = case.evidence.target?.open_files?;
        // A step of a search does not wait for connections that only the kernel has accepted, so they do not make it short.
        let is_short = case.is_short() || case.evidence.unaccepted > 0 && files.used >= files.limit;
        // The kernel also counts a file that is about to be opened.
        let (used, limit) = (files.used.min(files.limit), files.limit);
        let found = Found::seen(OpenFiles { used, limit }, case.left().min(used));
        (is_short && files.is_out_of_files()).then(|| found.began(Began::Seen(Sign::OpenFiles)))
    }

    fn sentence(&self) -> String {
        let (used, limit) = (Count(self.used), Count(self.limit));
        format!("the target ran out of open files: {used} of {limit} used")
    }

    fn detail(&self, case: &Case) -> String {
        format!("process {} has {} of {} files open", case.pid(), Count(self.used), Count(self.limit))
    }

    fn fix(&self, case: &Case) -> String {
        let (pid, most) = (case.pid(), self.limit.saturating_mul(2).max(1 << 20));
        format!("raise its limit: prlimit --pid {pid} --nofile={most}, or LimitNOFILE={most} in its unit")
    }
}
