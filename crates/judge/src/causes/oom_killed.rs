use super::*;

/// The target's process is gone, and the kernel's OOM killer has killed one in its control group, or on its host.
pub(crate) struct OomKilled {
    pub(crate) at: u64,
    pub(crate) killed: u64,
}

impl Cause for OomKilled {
    const ID: &'static str = "oom-killed";
    const OF: (Side, Name) = (Side::Target, Name::Memory);

    fn find(case: &Case) -> Option<Found<OomKilled>> {
        let target = case.evidence.target.filter(|target| target.ended && case.is_short())?;
        // The host's counter has those of all its control groups.
        let killed = case.evidence.there.map_or(0, |host| host.oom_kills).max(target.oom_kills);
        let at = case.peak();
        (killed > 0).then(|| Found::seen(OomKilled { at, killed }, at).began(Began::Seen(Sign::Ended)))
    }

    fn sentence(&self) -> String {
        format!("the target was killed at {}: its host was out of memory", connections(self.at))
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
