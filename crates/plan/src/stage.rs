//! The stages of the load, in order.

use units::{Nanos, Rate};

use crate::Share;

/// A stretch of the run: the load goes to a share, and stays there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// How it is called in the output.
    pub name: String,
    /// Which populations it moves, as indices; ascending, at least one.
    pub of: Vec<u16>,
    /// The share of their connections and of their rates at the end of the ramp.
    pub to: Share,
    /// How fast it gets there. Downwards [`Ramp::Adaptive`] is at once.
    pub ramp: Ramp,
    /// How long it stays there; [`Hold::Forever`] only in the last one.
    pub hold: Hold,
}

/// How fast to dial until all connections are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// As fast as the target takes them.
    Adaptive,
    /// The total rate of dials; never zero.
    Rate(Rate),
    /// All dials evenly within this time; zero is all at once.
    Within(Nanos),
}

impl Ramp {
    /// After its deadline an adaptive ramp takes this many times as long at most.
    pub const OVERTIME: u32 = 2;

    /// The time that an adaptive ramp has for this many connections: what is not open by then is dialled at a fixed rate. Long enough
    /// for a target that accepts 1,000 a second, and for dials that take as long as the timeout lets them.
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
    /// The time; never, where it has no end.
    pub fn time(self) -> Nanos {
        match self {
            Hold::For(time) => time,
            Hold::Forever => Nanos::NEVER,
        }
    }
}
