//! The stages of the load, in order.

use units::{Nanos, Rate};

use crate::Share;

/// A stage: the load moves to a share, and holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Name in the output.
    pub name: String,
    /// Indices of the populations that it changes; ascending, at least one.
    pub of: Vec<u16>,
    /// Share of their connections and rates at the end of the ramp.
    pub to: Share,
    /// The ramp to the share. Downwards, [`Ramp::Adaptive`] is immediate.
    pub ramp: Ramp,
    /// How long the load is held; [`Hold::Forever`] only in the last stage.
    pub hold: Hold,
}

/// How fast to dial until all connections are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// As fast as the target accepts them.
    Adaptive,
    /// At this total rate of dials; never zero.
    Rate(Rate),
    /// Evenly within this time; zero is all at once.
    Within(Nanos),
}

impl Ramp {
    /// Maximum duration of an adaptive ramp after its deadline, as a multiple of it.
    pub const OVERTIME: u32 = 2;

    /// The deadline of an adaptive ramp for this many connections: the remaining ones are dialled at a fixed rate afterwards. Sufficient
    /// for a target that accepts 1,000 per second, and for dials that take as long as the timeout.
    pub fn deadline(connections: u64, timeout: Nanos) -> Nanos {
        let connections = Nanos(connections.saturating_mul(1_000_000));
        Nanos(timeout.0.saturating_mul(3)).max(connections).max(Nanos::from_secs(30))
    }
}

/// How long to hold the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// This long.
    For(Nanos),
    /// Until SIGINT.
    Forever,
}

impl Hold {
    /// The duration; [`Nanos::NEVER`] if it has no end.
    pub fn time(self) -> Nanos {
        match self {
            Hold::For(time) => time,
            Hold::Forever => Nanos::NEVER,
        }
    }
}
