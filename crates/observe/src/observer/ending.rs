//! Detects that the target's processes are exiting. Closed or refused connections may be visible before the process is gone: the kernel
//! closes the sockets of an exiting process one after the other, threads exit at different times, and on a busy machine each of these
//! steps waits for a processor.

use std::{thread, time::Duration};

use host::Watch;
use samples::Phase;
use units::Nanos;

use super::Observer;

/// Maximum number of checks, and the pause between two: half a second in all.
const LOOKS: u32 = 26;
const PAUSE: Duration = Duration::from_millis(20);

/// Signs that the target's processes are exiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Glance {
    /// Processes that are neither gone, nor zombies, nor exiting.
    processes: u64,
    /// OOM kills on this machine.
    oom_kills: u64,
    /// Whether there is a listener at the target's address.
    listens: bool,
}

impl Glance {
    /// Whether something has ended since `before`.
    fn is_ending(self, before: Glance) -> bool {
        self.processes < before.processes
            || self.oom_kills > before.oom_kills
            || before.listens && !self.listens
    }
}

/// Whether all processes seen `before` have ended. Checks again while something is ending, up to [`LOOKS`] times.
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
    /// Whether processes of the target were found here and all have ended. Waits up to half a second if they are exiting.
    pub(super) fn has_target_ended(&mut self) -> bool {
        let Some(before) = self.last_glance() else { return false };
        is_gone(before, || self.glance(), || thread::sleep(PAUSE))
    }

    /// If the target has ended, takes a last sample: many connections have ended, and the previous sample predates it.
    pub fn see_end(&mut self, now: Nanos) {
        let is_known =
            self.known.seen.target.as_ref().is_none_or(|target| target.latest().process.processes == 0);
        if !is_known && self.has_target_ended() {
            // Other changes after the end of full load are not caused by the target.
            self.sample_now(now, Phase::Pause);
        }
    }

    /// The state at the last sample; `None` if no process was found.
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

    /// Performs the given looks in turn, repeating the last one; `expected` includes how many are taken.
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
        // One of several workers was killed; the others stay.
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
        // If listeners cannot be listed, none was seen before.
        let (unseen, mut taken) = (Glance { listens: false, ..ALIVE }, 0);
        let look = || {
            taken += 1;
            unseen
        };
        assert!(!is_gone(unseen, look, || panic!("nothing is ending")) && taken == 1);
    }
}
