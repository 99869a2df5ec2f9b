//! Whether the target's processes are ending: that connections end, or are refused, may be seen before that a process is gone.
//!
//! The kernel closes the sockets of a process that is exiting one after the other, a thread may still have some while others
//! have none, and on a busy machine each of these steps waits for a processor.

use std::{thread, time::Duration};

use host::Watch;
use samples::Phase;
use units::Nanos;

use super::Observer;

/// Looks that are taken at most, and the time between two: half a second in all.
const LOOKS: u32 = 26;
const PAUSE: Duration = Duration::from_millis(20);

/// What shows whether the target's processes are ending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Glance {
    /// Those that are neither gone, nor zombies, nor exiting.
    processes: u64,
    /// By the OOM killer, of all processes of this machine.
    oom_kills: u64,
    /// Something listens at the target's address.
    listens: bool,
}

impl Glance {
    /// Whether something ends that was there before.
    fn is_ending(self, before: Glance) -> bool {
        self.processes < before.processes
            || self.oom_kills > before.oom_kills
            || before.listens && !self.listens
    }
}

/// Whether nothing is left of what was seen `before`: looks again as long as something is ending, but not forever.
fn is_gone(before: Glance, mut look: impl FnMut() -> Glance, mut pause: impl FnMut()) -> bool {
    for nth in 1..=LOOKS {
        let now = look();
        if now.processes == 0 {
            return true;
        }
        if !now.is_ending(before) {
            return false;
        }
        if nth < LOOKS {
            pause();
        }
    }
    false
}

impl Observer {
    /// Whether a process of the target was found here, and none is left; where it is ending, after half a second at most.
    pub(crate) fn has_target_ended(&mut self) -> bool {
        let Some(before) = self.last_glance() else { return false };
        is_gone(before, || self.glance(), || thread::sleep(PAUSE))
    }

    /// Connections have ended in great number: the target's end is evidence, though the last sample came before it.
    pub(crate) fn see_end(&mut self, now: Nanos) {
        let is_known =
            self.known.seen.target.as_ref().is_none_or(|target| target.latest().process.processes == 0);
        if !is_known && self.has_target_ended() {
            // What else has happened since full load ended is not the target's doing.
            self.sample_now(now, Phase::Pause);
        }
    }

    /// At the last sample; none where no process was found.
    fn last_glance(&mut self) -> Option<Glance> {
        self.watch.as_mut()?.usage_sample()?;
        let latest = self.known.latest();
        let target = latest.target?;
        Some(Glance {
            processes: target.process.processes,
            oom_kills: latest.host.map_or(0, |host| host.oom_kills),
            listens: target.accept_queue.is_some(),
        })
    }

    fn glance(&mut self) -> Glance {
        let left = self.watch.as_mut().and_then(Watch::usage_sample);
        Glance {
            processes: left.map_or(0, |left| left.processes),
            oom_kills: host::oom_kills(&self.root),
            listens: !self.queues().is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: Glance = Glance { processes: 2, oom_kills: 7, listens: true };
    const GONE: Glance = Glance { processes: 0, ..ALIVE };

    /// The looks are these, and from then on the last of them; how many are expected to be taken.
    fn check(looks: &[Glance], expected: (bool, usize)) {
        let (mut taken, mut pauses) = (0, 0);
        let look = || {
            taken += 1;
            looks[(taken - 1).min(looks.len() - 1)]
        };
        let gone = is_gone(ALIVE, look, || pauses += 1);
        assert_eq!((gone, taken), expected, "{looks:?}");
        assert_eq!(pauses, taken - 1, "no pause after the last look: {looks:?}");
    }

    #[test]
    fn what_is_ending_is_waited_for() {
        let killed = Glance { oom_kills: 8, ..ALIVE };
        let silent = Glance { listens: false, ..ALIVE };
        let half = Glance { processes: 1, ..ALIVE };
        check(&[GONE], (true, 1));
        check(&[killed, killed, GONE], (true, 3));
        check(&[silent, half, GONE], (true, 3));
        // One worker of several was killed, and the others stay.
        check(&[half], (false, LOOKS as usize));
        check(&[killed], (false, LOOKS as usize));
    }

    #[test]
    fn what_is_alive_is_not_waited_for() {
        check(&[ALIVE, GONE], (false, 1));
        let more = Glance { processes: 3, ..ALIVE };
        check(&[more], (false, 1));
        // A worker that was replaced by another one.
        check(&[Glance { processes: 1, ..ALIVE }, ALIVE], (false, 2));
        // Where listeners cannot be listed, none was seen before.
        let (unseen, mut taken) = (Glance { listens: false, ..ALIVE }, 0);
        let look = || {
            taken += 1;
            unseen
        };
        assert!(!is_gone(unseen, look, || panic!("nothing is ending")) && taken == 1);
    }
}
