//! What is the same for all connections of a run, worked out once.

use std::net::SocketAddr;

use plan::{Expect, ExpectedLength, Hold, Load, Plan, Reconnect, Scheme, Think};
use samples::Kind;
use units::Nanos;

use crate::{
    exchange::{Exchange, Wire},
    protocol::Protocol,
};

/// The compiled plan.
#[derive(Clone, Debug)]
pub struct Job {
    pub(crate) protocol: Protocol,
    pub(crate) destinations: Vec<SocketAddr>,
    pub(crate) pause: Pause,
    pub(crate) timeout: Nanos,
    pub(crate) expect: Expect,
    pub(crate) reconnect: Reconnect,
    pub(crate) load: Load,
    /// How long full load lasts; never, where it ends by an order.
    pub(crate) hold: Nanos,
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
    /// When a slot of the open loop takes it for the connection that has been free for longest.
    Slot,
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
            pause: match (plan.load, &plan.message, plan.target.scheme) {
                (Load::Rate(_), ..) => Pause::Slot,
                (_, _, Scheme::Http) => Pause::Think(plan.think),
                (_, Some(message), _) => Pause::Every(message.every),
                (_, None, _) => Pause::Never,
            },
            timeout: plan.timeout,
            expect: plan.expect,
            reconnect: plan.reconnect,
            load: plan.load,
            hold: match plan.hold {
                Hold::For(time) => time,
                Hold::Forever => Nanos::NEVER,
            },
            period: Job::PERIOD,
        }
    }

    /// Requests follow answers at once.
    pub(crate) fn is_closed_loop(&self) -> bool {
        match self.pause {
            Pause::Think(think) => think.max == Nanos::ZERO,
            Pause::Every(every) => every == Nanos::ZERO,
            Pause::Slot | Pause::Never => false,
        }
    }

    /// How often each connection asks before it is closed, where that is planned.
    pub(crate) fn calls(&self) -> Option<u32> {
        if let Load::Visits(calls) = self.load { Some(calls) } else { None }
    }

    /// What is wrong with a whole answer.
    pub(crate) fn wrong(&self, exchange: &Exchange) -> Option<Kind> {
        if !matches!(exchange.wire, Wire::Http(_)) {
            return exchange.differs.then_some(Kind::WrongEcho);
        }
        let right = match self.expect.status {
            Some(status) => exchange.status == status,
            None => (200..300).contains(&exchange.status),
        };
        let right_length = exchange.expected == u64::MAX || exchange.expected == exchange.content;
        match (right, right_length) {
            (false, _) => Some(Kind::WrongStatus),
            (_, false) => Some(Kind::WrongLength),
            _ => None,
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
