//! How far the load has come: it ramps, ends, and is drained of what is still under way.

use units::Nanos;

/// The course of a shard's load.
#[derive(Debug)]
pub(super) struct Course {
    stage: Stage,
    /// When the load ends; never, if an order will end it.
    pub(super) ends: Nanos,
    /// When every first dial was decided; never, while some are not.
    pub(super) ramped_at: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Load,
    /// Nothing new begins; some requests await their response.
    Draining,
    /// Nothing awaits a response any more, and the run has been notified.
    Drained,
}

impl Course {
    pub(super) fn new() -> Course {
        Course { stage: Stage::Load, ends: Nanos::NEVER, ramped_at: Nanos::NEVER }
    }

    /// Whether every first dial was decided.
    pub(super) fn has_ramped(&self) -> bool {
        self.ramped_at != Nanos::NEVER
    }

    /// Whether the load has ended.
    pub(super) fn is_draining(&self) -> bool {
        self.stage >= Stage::Draining
    }

    /// The load ends; returns false if it had ended before.
    pub(super) fn drain(&mut self) -> bool {
        let begins = !self.is_draining();
        if begins {
            self.stage = Stage::Draining;
        }
        begins
    }

    /// `waiting` requests await their response; returns true once, when none does after the end of the load.
    pub(super) fn is_now_drained(&mut self, waiting: u64) -> bool {
        let is_now = self.stage == Stage::Draining && waiting == 0;
        if is_now {
            self.stage = Stage::Drained;
        }
        is_now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_load_is_announced_once() {
        let mut course = Course::new();
        assert!(!course.is_draining() && !course.is_now_drained(0));
        assert!(course.drain() && course.is_draining() && !course.drain());
        assert_eq!([2, 0, 0, 1].map(|waiting| course.is_now_drained(waiting)), [false, true, false, false]);
        assert!(course.is_draining() && !course.drain());
    }
}
