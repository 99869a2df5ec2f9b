//! Signals that end a run early.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering::Relaxed},
};

use samples::Tell;
use units::{Clock, Nanos};

/// Set by signals. The first one ends the load and waits for outstanding responses; the second one ends the run at once. Both still write
/// the summary.
///
/// A part of a whole, such as a search step, may have a deadline, which has the effect of two signals.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>, Option<(Clock, Nanos)>);

#[derive(Default)]
struct State {
    signals: AtomicU8,
    /// A run is active, and will notice a second signal.
    is_watched: AtomicBool,
    tell: Option<Tell>,
}

/// While this exists, a run is active.
pub(crate) struct Watching<'a>(&'a State);

impl Interrupt {
    /// An interrupt that can report to the user what a run is waiting for, one line each.
    pub fn telling(tell: Tell) -> Interrupt {
        Interrupt(Arc::new(State { tell: Some(tell), ..State::default() }), None)
    }

    /// The same interrupt with a deadline, `time` from now.
    #[must_use]
    pub(crate) fn after(&self, time: Nanos) -> Interrupt {
        Interrupt(self.0.clone(), Some((Clock::start(), time)))
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.1.is_some_and(|(clock, time)| clock.now() >= time)
    }

    /// Time until the deadline; [`Nanos::NEVER`] without one.
    pub(crate) fn left(&self) -> Nanos {
        self.1.map_or(Nanos::NEVER, |(clock, time)| time.since(clock.now()))
    }

    /// Handles a signal. Returns whether it has an effect: the first always has, the second if a run is active.
    pub fn set(&self) -> bool {
        match self.0.signals.load(Relaxed) {
            0 => self.0.signals.store(1, Relaxed),
            1 if self.0.is_watched.load(Relaxed) => self.0.signals.store(2, Relaxed),
            _ => return false,
        }
        true
    }

    /// Whether a signal came or the deadline has passed.
    pub fn is_set(&self) -> bool {
        self.0.signals.load(Relaxed) > 0 || self.is_late()
    }

    /// Whether a second signal came or the deadline has passed.
    pub(crate) fn is_urgent(&self) -> bool {
        self.0.signals.load(Relaxed) > 1 || self.is_late()
    }

    pub(crate) fn watch(&self) -> Watching<'_> {
        self.0.is_watched.store(true, Relaxed);
        Watching(&self.0)
    }

    pub(crate) fn tell(&self, line: &str) {
        self.0.tell.iter().for_each(|tell| tell(line));
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.is_watched.store(false, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_is_for_a_run_that_is_under_way() {
        let interrupt = Interrupt::default();
        assert!(interrupt.set() && interrupt.is_set());
        assert!(!interrupt.set() && !interrupt.is_urgent(), "nothing would notice it");
        let watching = interrupt.watch();
        assert!(interrupt.clone().set() && interrupt.is_urgent());
        assert!(!interrupt.set(), "a third ends the process");
        drop(watching);
        assert!(!interrupt.set() && interrupt.is_set());
    }
}
