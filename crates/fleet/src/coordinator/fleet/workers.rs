//! A fleet as the [`Workers`] of a run's conductor.

use plan::Role;
use run::{Order, Update, Workers};
use samples::{AgentSummary, AgentTicks};
use units::Nanos;

use super::{EVERY, Fleet, LOOKS, NOTICE, Replay};

impl Workers for Fleet {
    fn role(&self) -> Vec<Role> {
        self.coordinator.roles()
    }

    fn threads(&self) -> Vec<u32> {
        self.coordinator.threads()
    }

    fn notice(&self) -> Nanos {
        NOTICE
    }

    fn period(&self) -> Nanos {
        EVERY
    }

    fn carries_on(&self) -> bool {
        self.coordinator.carries_on()
    }

    fn hands_over(&self) -> bool {
        self.coordinator.hands_over(self.clock())
    }

    fn may_come_back(&self) -> bool {
        self.coordinator.may_come_back(self.clock())
    }

    fn is_connected(&self) -> bool {
        self.is_reached() && self.log.is_current() && !self.coordinator.is_behind()
    }

    fn agents(&self) -> Vec<AgentSummary> {
        self.coordinator.agents()
    }

    fn take_seconds(&mut self, until: u64) -> Option<Box<AgentTicks>> {
        Some(self.coordinator.take_seconds(until))
    }

    fn now(&self) -> Nanos {
        let start = self.coordinator.start().unwrap_or(Nanos::NEVER);
        self.replay.as_ref().map_or_else(|| self.clock().since(start), Replay::now)
    }

    fn order(&mut self, order: Order) {
        self.coordinator.order(order);
        self.carry();
    }

    fn next(&mut self, until: Nanos) -> Update<'_> {
        if self.is_given_up {
            return Update::Ended;
        }
        loop {
            if let Some(change) = self.coordinator.poll_change() {
                return change.read(&mut self.read);
            }
            let clock = self.clock();
            if let Some(replay) = &mut self.replay {
                if !replay.step(until, &mut self.coordinator, clock) {
                    self.coordinator.catch_up(clock, replay);
                    self.replay = None;
                } else if replay.is_quiet_until(until) {
                    return Update::Nothing;
                }
                continue;
            }
            if self.is_over() {
                return Update::Ended;
            }
            let now = self.now();
            if now >= until {
                self.turn(Nanos::ZERO);
                return match self.coordinator.has_changes() {
                    true => continue,
                    false => Update::Nothing,
                };
            }
            self.turn(LOOKS.min(until.since(now)));
        }
    }
}
