use super::*;
use crate::cpu;
use units::percent;

/// In the seconds in which responses timed out, or were slowest, the target's busiest thread was runnable for 95 % of the time, or it used
/// 95 % of its processors (median).
pub(crate) struct Cpu {
    pub(crate) share: f64,
    pub(crate) is_of_thread: bool,
    /// The connections that use it up, where these are known.
    pub(crate) from: Option<u64>,
}

impl Cause for Cpu {
    const ID: &'static str = "cpu";
    const OF: (Side, Name) = (Side::Target, Name::Cpu);
    // In a closed loop a few connections use up the processor: that is not why others are not accepted, or never served.
    const YIELDS_TO: &'static [&'static str] = &[
        "cpu-quota",
        "heap",
        "open-files",
        "target-stopped",
        "silent",
        "shared-processors",
        "queue-overflowed",
        "queue-unaccepted",
        "queue-standing",
        "queue-slowed-dials",
        "syn-loss",
        "starved",
        "probe-turned-away",
    ];

    fn find(case: &Case) -> Option<Found<Cpu>> {
        let (share, is_of_thread) = cpu::used_up(case)?;
        Some(Found::seen(Cpu { share, is_of_thread, from: cpu::uses_it_up(case) }, case.left()))
    }

    fn sentence(&self) -> String {
        let from = self.from.map_or(String::new(), |n| format!(" from {} on", connections(n)));
        let share = percent(self.share);
        match self.is_of_thread {
            true => format!(
                "the target ran out of CPU{from}: its busiest thread was runnable for {share} of the time"
            ),
            false => format!("the target ran out of CPU{from}: it used {share} of its processors"),
        }
    }

    fn detail(&self, case: &Case) -> String {
        let (pid, share) = (case.pid(), self.share * 100.0);
        match self.is_of_thread {
            true => format!("the busiest thread of process {pid} was runnable for {share:.0} % of the time"),
            false => format!("process {pid} used {share:.0} % of its processors"),
        }
    }

    fn fix(&self, case: &Case) -> String {
        case.or_less("give it more processors or workers", "reduce the load")
    }
}
