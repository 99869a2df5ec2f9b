//! Cause: the target uses up its processors, or the one that its threads can use.

use super::*;
use crate::cpu::{self, Of};
use units::percent;

/// In the seconds in which responses timed out, or were slowest, the target's busiest thread was runnable for 95 % of the time, or it used
/// 95 % of its processors (median), or all of its threads together used one, second after second, within 5 %.
pub(crate) struct Cpu {
    pub(crate) share: f64,
    pub(crate) of: Of,
    /// The connections that use it up, where these are known.
    pub(crate) from: Option<u64>,
}

impl Cause for Cpu {
    const ID: &'static str = "cpu";
    const OF: (Side, Name) = (Side::Target, Name::Cpu);
    // In a closed loop, a few connections can use up the processor. That does not explain why others are not accepted, or never served.
    const YIELDS_TO: &'static str = "cpu-quota heap open-files target-stopped silent shared-processors queue-overflowed queue-unaccepted \
        queue-standing queue-slowed-dials syn-loss starved probe-turned-away";

    fn find(case: &Case) -> Option<Found<Cpu>> {
        let (share, of) = cpu::used_up(case)?;
        let found = Found::seen(Cpu { share, of, from: cpu::uses_it_up(case) }, case.left());
        Some(if of == Of::One { found.certain(Certainty::Inferred) } else { found })
    }

    fn sentence(&self) -> String {
        let from = self.from.map_or(String::new(), |n| format!(" from {} on", connections(n)));
        let share = percent(self.share);
        let used = match self.of {
            Of::Thread => format!("its busiest thread was runnable for {share} of the time"),
            Of::All => format!("it used {share} of its processors"),
            Of::One => format!("its threads together used {share} of one processor"),
        };
        format!("the target ran out of CPU{from}: {used}")
    }

    fn detail(&self, case: &Case) -> String {
        let (pid, share) = (case.pid(), self.share * 100.0);
        match self.of {
            Of::Thread => {
                format!("the busiest thread of process {pid} was runnable for {share:.0} % of the time")
            }
            Of::All => format!("process {pid} used {share:.0} % of its processors"),
            Of::One => format!(
                "the threads of process {pid} together used {share:.0} % of one processor, no more and no less"
            ),
        }
    }

    fn fix(&self, case: &Case) -> String {
        let more = match self.of {
            Of::One => "let it use more than one processor (GOMAXPROCS, more worker processes)",
            Of::Thread | Of::All => "give it more processors or workers",
        };
        case.or_less(more, "reduce the load")
    }
}
