//! The coordinator's own process stood still: that it heard no agent meanwhile says nothing about them, and what they stored is in the
//! log.

use samples::AgentState;
use units::Nanos;

use super::Coordinator;
use crate::message::{EVERY, LOST_AFTER};

/// It looks at its agents far more often than this.
const STALLS: Nanos = Nanos(2 * EVERY.0);
/// What arrived meanwhile has been taken after this time, unless the log is long.
const CATCHES_UP: Nanos = Nanos(2 * EVERY.0);
/// However long it is, it has been read after this time.
const READS: Nanos = Nanos::from_secs(30);

/// When it looked at its agents last, and whether it stood still before that.
#[derive(Default)]
pub(super) struct Stall {
    polled: Nanos,
    woke: Option<Nanos>,
    /// How long it stood still, where that is yet to be said.
    lasted: Option<Nanos>,
}

impl Stall {
    /// It begins to look now.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.polled = now;
    }

    /// It looks; for how long it stood still, if it did.
    pub(super) fn poll(&mut self, now: Nanos) -> Option<Nanos> {
        let lasted = now.since(std::mem::replace(&mut self.polled, now));
        (lasted >= STALLS).then_some(lasted)
    }

    fn wake(&mut self, now: Nanos, lasted: Nanos) {
        self.woke = Some(now);
        // Shorter ones have no effect that a user sees.
        self.lasted = Some(lasted).filter(|lasted| *lasted >= LOST_AFTER).or(self.lasted);
    }

    /// Whether messages of agents may still wait to be taken, because it stands still or just did.
    pub(super) fn hides(&self, now: Nanos) -> bool {
        now.since(self.polled) >= STALLS || self.has_woken_within(CATCHES_UP, now)
    }

    fn has_woken_within(&self, time: Nanos, now: Nanos) -> bool {
        self.woke.is_some_and(|woke| now.since(woke) < time)
    }

    /// What the user is to know of it.
    pub(super) fn poll_notice(&mut self) -> Option<String> {
        let lasted = self.lasted.take()?;
        Some(format!("the coordinator was stopped for {}", lasted.brief()))
    }
}

impl Coordinator {
    /// It goes on after it stood still for this long, as after a time in which the broker was out of reach.
    pub(super) fn wake(&mut self, now: Nanos, lasted: Nanos) {
        self.stall.wake(now, lasted);
        self.handle_disconnected(now);
        // One that was lost before may have come back meanwhile, too.
        for member in self.members.iter_mut().filter(|member| member.state == AgentState::Lost) {
            member.heard = now.min(member.heard + lasted);
        }
    }

    /// Whether it stood still a moment ago: the log may be longer than what was read of it.
    pub(crate) fn has_just_woken(&self, now: Nanos) -> bool {
        self.stall.has_woken_within(READS, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{coordinator::Terms, message::Offer};

    #[test]
    fn a_coordinator_that_stood_still_says_so_and_does_not_take_its_agents_for_gone() {
        let (offer, terms) = (Offer::default(), Terms::default());
        let mut coordinator = Coordinator::new("r".to_owned(), Vec::new(), offer, terms, Nanos::ZERO);
        let s = Nanos::from_secs;
        coordinator.lead_from(s(1), s(1));
        coordinator.poll(s(2));
        assert!(coordinator.is_over(s(2)) && !coordinator.has_just_woken(s(2)), "it has no agents");
        assert!(!coordinator.is_over(s(14)), "it has not looked");
        coordinator.poll(s(14));
        assert_eq!(coordinator.poll_notice().as_deref(), Some("the coordinator was stopped for 12 s"));
        assert_eq!(coordinator.poll_notice(), None);
        assert!(!coordinator.is_over(s(15)) && coordinator.has_just_woken(s(15)));
        coordinator.poll(s(15));
        coordinator.poll(s(16));
        assert!(coordinator.is_over(s(16)), "it has caught up");
    }
}
