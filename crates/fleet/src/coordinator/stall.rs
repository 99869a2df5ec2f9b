//! Suspensions of the coordinator's own process. The silence of agents during one says nothing about them: what they stored meanwhile is
//! in the log, and must be read before any agent is declared lost.

use samples::AgentState;
use units::Nanos;

use super::Coordinator;
use crate::message::{EVERY, LOST_AFTER};

/// Time between two polls from which on the process counts as suspended. Polls are far more frequent.
const STALLS: Nanos = Nanos(2 * EVERY.0);
/// Time to take what arrived meanwhile, unless the log is long.
const CATCHES_UP: Nanos = Nanos(2 * EVERY.0);
/// Maximum time to read a log of any length.
const READS: Nanos = Nanos::from_secs(30);

/// The last poll, and the last suspension.
#[derive(Default)]
pub(super) struct Stall {
    polled: Nanos,
    woke: Option<Nanos>,
    /// Duration of a suspension that has not been reported to the user yet.
    lasted: Option<Nanos>,
}

impl Stall {
    /// Starts polling.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.polled = now;
    }

    /// Notes a poll. Returns the duration of the suspension before it, if there was one.
    pub(super) fn poll(&mut self, now: Nanos) -> Option<Nanos> {
        let lasted = now.since(std::mem::replace(&mut self.polled, now));
        (lasted >= STALLS).then_some(lasted)
    }

    fn wake(&mut self, now: Nanos, lasted: Nanos) {
        self.woke = Some(now);
        // A shorter suspension has no effect visible to the user.
        self.lasted = Some(lasted).filter(|lasted| *lasted >= LOST_AFTER).or(self.lasted);
    }

    /// Whether messages of agents may still be unread, because the process is or was just suspended.
    pub(super) fn hides(&self, now: Nanos) -> bool {
        now.since(self.polled) >= STALLS || self.has_woken_within(CATCHES_UP, now)
    }

    fn has_woken_within(&self, time: Nanos, now: Nanos) -> bool {
        self.woke.is_some_and(|woke| now.since(woke) < time)
    }

    /// The notice for the user, once per suspension.
    pub(super) fn poll_notice(&mut self) -> Option<String> {
        let lasted = self.lasted.take()?;
        Some(format!("the coordinator was stopped for {}", lasted.brief()))
    }
}

impl Coordinator {
    /// Resumes after a suspension of this length, as after a disconnection from the broker.
    pub(super) fn wake(&mut self, now: Nanos, lasted: Nanos) {
        self.stall.wake(now, lasted);
        self.handle_disconnected(now);
        // An agent that was lost before may have come back meanwhile.
        for member in self.members.iter_mut().filter(|member| member.state == AgentState::Lost) {
            member.heard = now.min(member.heard + lasted);
        }
    }

    /// Whether the process was suspended recently: parts of the log may not have been read yet.
    pub(crate) fn has_just_woken(&self, now: Nanos) -> bool {
        self.stall.has_woken_within(READS, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        coordinator::Terms,
        message::{Assign, Began, Incarnation, Offer, Ready},
    };

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

    /// Whether the coordinator of one agent, silent for this long, waits for nothing more.
    fn is_over_after(silent: Nanos, terms: Terms) -> bool {
        let who = Incarnation { id: "a".to_owned(), nonce: 1 };
        let members = vec![(who, Ready::default(), Assign::default(), None)];
        let began = Began { seed: 1, after: Nanos::ZERO, members };
        let mut coordinator = Coordinator::taking_up("r1".to_owned(), 1, began, terms);
        let mut now = Nanos::ZERO;
        coordinator.lead_from(now, now);
        while now < silent {
            now = now + EVERY;
            coordinator.poll(now);
        }
        coordinator.is_over(now)
    }

    #[test]
    fn a_step_of_a_search_does_not_wait_until_a_lost_agent_may_come_back() {
        for (silent, is_step, expected) in
            [(3, false, false), (5, false, false), (11, false, true), (3, true, false), (5, true, true)]
        {
            let terms = Terms { is_step, ..Terms::default() };
            assert_eq!(is_over_after(Nanos::from_secs(silent), terms), expected, "{silent} s, {is_step}");
        }
    }
}
