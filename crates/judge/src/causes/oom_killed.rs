//! Cause: the kernel's OOM killer ended the target's process.

use super::*;

/// The target's process is gone, and the kernel's OOM killer has killed one in its control group, or on its host.
pub(crate) struct OomKilled {
    pub(crate) at: u64,
    pub(crate) killed: u64,
    /// Its control group reached its limit, and not its host.
    pub(crate) is_of_group: bool,
}

impl Cause for OomKilled {
    const ID: &'static str = "oom-killed";
    const OF: (Side, Name) = (Side::Target, Name::Memory);

    fn find(case: &Case) -> Option<Found<OomKilled>> {
        let target = case.evidence.target.filter(|target| target.ended && case.is_short())?;
        // The host's counter covers all its control groups.
        let killed = case.evidence.there.map_or(0, |host| host.oom_kills).max(target.oom_kills);
        let (at, is_of_group) = (case.peak(), target.has_memory_limit && target.oom_kills > 0);
        (killed > 0)
            .then(|| Found::seen(OomKilled { at, killed, is_of_group }, at).began(Began::Seen(Sign::Ended)))
    }

    fn sentence(&self) -> String {
        let whose = if self.is_of_group { "control group" } else { "host" };
        format!("the target was killed at {}: its {whose} was out of memory", connections(self.at))
    }

    fn detail(&self, case: &Case) -> String {
        let whom = match self.killed {
            1 => "a process".to_owned(),
            n => format!("{} processes", Count(n)),
        };
        format!("process {} ended: the kernel's OOM killer killed {whom}", case.pid())
    }

    fn fix(&self, case: &Case) -> String {
        case.or_less(MORE_MEMORY, FEWER)
    }
}
