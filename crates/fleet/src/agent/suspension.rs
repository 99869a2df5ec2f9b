//! Suspensions of the agent's machine (suspend to RAM, a paused VM). The monotonic clock stops meanwhile, and with it the lease, while
//! time goes on for everyone else.

use units::Nanos;

use super::{Agent, Machine, Stage};
use crate::message::LEASE;

/// Minimum duration: a shorter suspension has no effect, and the two clocks are not read at exactly the same time.
const SHORTEST: Nanos = Nanos::from_secs(1);

/// By how much the clock that includes suspensions was ahead of the monotonic clock.
#[derive(Default)]
pub(super) struct Suspension(Option<i64>);

impl Suspension {
    /// Updates the difference (nanoseconds). Returns the duration of a suspension since the previous call, if there was one.
    pub(super) fn poll(&mut self, ahead: i64) -> Option<Nanos> {
        let before = self.0.replace(ahead)?;
        let lasted = Nanos(u64::try_from(ahead.saturating_sub(before)).unwrap_or(0));
        (lasted >= SHORTEST).then_some(lasted)
    }
}

impl<M: Machine> Agent<M> {
    /// Handles a suspension of this duration: a shorter lease has run out.
    pub(super) fn wake(&mut self, lasted: Nanos) {
        let Some(work) = self.work.as_mut().filter(|_| lasted >= LEASE) else { return };
        work.lease = Nanos::ZERO;
        if let Stage::Running(..) = work.stage {
            work.why.get_or_insert_with(|| suspended("its", lasted));
        }
    }
}

/// The notice for the user; `whose`: `this` or `its`.
pub(super) fn suspended(whose: &str, lasted: Nanos) -> String {
    format!("{whose} machine was suspended for {}", lasted.brief())
}

#[cfg(test)]
mod tests {
    use run::{Order, Update};

    use super::*;
    use crate::{
        error::Error,
        message::{Assign, Body, Can, Down, Here, Offer, PROTOCOL, Ready},
    };

    /// A machine that takes any part, and does nothing.
    struct Idle;

    impl Machine for Idle {
        fn accept(&mut self, _: &Offer) -> Result<Can, Error> {
            Ok(Can::default())
        }

        fn rows(&mut self, _: &Assign) -> Result<u64, Error> {
            Ok(0)
        }

        fn set_up(&mut self, _: Vec<String>) -> Result<(Ready, Vec<u32>), Error> {
            Ok((Ready::default(), Vec::new()))
        }

        fn begin(&mut self, _: &[Order]) {}

        fn order(&mut self, _: Order) {}

        fn next(&mut self) -> Update<'_> {
            Update::Nothing
        }

        fn end(&mut self) {}
    }

    #[test]
    fn a_lease_runs_out_while_a_machine_is_suspended() {
        let mut agent = Agent::new(Here::free("a"), Idle);
        let body = Body::Offer(Box::new(Offer { protocol: PROTOCOL, ..Offer::default() }));
        agent.handle(Nanos::ZERO, Down { run: "r1".to_owned(), term: 0, sent: Nanos::ZERO, body });
        let mut is_free_after = |lasted| {
            agent.wake(lasted);
            agent.poll(SHORTEST);
            agent.is_free()
        };
        assert!(!is_free_after(Nanos::from_secs(9)) && is_free_after(LEASE));
    }

    #[test]
    fn a_clock_that_gets_ahead_shows_a_suspension() {
        const S: i64 = 1_000_000_000;
        // In a time namespace it may be behind.
        for from in [0, 8 * S, -3_600 * S] {
            let mut suspension = Suspension::default();
            let steps = [0, 0, S / 2, S / 2 + 42 * S, S / 2 + 42 * S, 0, 2 * S];
            let seen =
                steps.map(|ahead| suspension.poll(from + ahead).map(|lasted| lasted.0 / 1_000_000_000));
            assert_eq!(seen, [None, None, None, Some(42), None, None, Some(2)]);
        }
        assert_eq!(suspended("its", Nanos::from_secs(42)), "its machine was suspended for 42 s");
    }
}
