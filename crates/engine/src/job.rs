//! What is the same for all connections of a run, worked out once.

use std::net::SocketAddr;

use plan::{Expect, ExpectedLength, Plan, Reconnect, Scheme, Think};
use units::Nanos;

use crate::protocol::Protocol;

/// The compiled plan.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) protocol: Protocol,
    pub(crate) destinations: Vec<SocketAddr>,
    pub(crate) pause: Pause,
    pub(crate) timeout: Nanos,
    pub(crate) expect: Expect,
    pub(crate) reconnect: Reconnect,
    /// Length of a tick.
    pub(crate) period: Nanos,
}

/// When the next request is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pause {
    /// So long after the answer.
    Think(Think),
    /// So long after the one before was; the first after a random part of it.
    Every(Nanos),
    /// Nothing is ever sent.
    Never,
}

impl Job {
    /// Length of a tick. Short, so that the ramp gives enough points for a slope.
    pub const PERIOD: Nanos = Nanos::from_millis(200);

    /// Compiles a plan. A request that never changes is written once and kept for the life of the process.
    pub fn new(plan: &Plan) -> Job {
        Job {
            protocol: Protocol::new(plan),
            destinations: plan.target.destinations.clone(),
            pause: match (&plan.message, plan.target.scheme) {
                (_, Scheme::Http) => Pause::Think(plan.think),
                (Some(message), _) => Pause::Every(message.every),
                (None, _) => Pause::Never,
            },
            timeout: plan.timeout,
            expect: plan.expect,
            reconnect: plan.reconnect,
            period: Job::PERIOD,
        }
    }

    /// Requests follow answers at once.
    pub(crate) fn is_closed_loop(&self) -> bool {
        match self.pause {
            Pause::Think(think) => think.max == Nanos::ZERO,
            Pause::Every(every) => every == Nanos::ZERO,
            Pause::Never => false,
        }
    }

    /// The length that the content of every answer is expected to have, where that is one number; else `u64::MAX`.
    pub(crate) fn fixed_length(&self) -> u64 {
        match self.expect.length {
            Some(ExpectedLength::Fixed(length)) => length,
            _ => u64::MAX,
        }
    }
}
