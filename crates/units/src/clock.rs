//! The only place in which the clock is read. Everything else takes `now` as an argument, so that the simulator can provide it.

use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};

/// A point in time or a duration, in nanoseconds. Points count from the start of the [`Clock`] that all parts of a run share; in the
/// simulator from zero, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero: the start of the run, or no time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than any event.
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Nanos {
        Nanos(n * 1_000_000)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Nanos {
        Nanos(n * 1_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Nanos {
        Nanos(n * 1_000_000_000)
    }

    /// Whole milliseconds, rounded down.
    pub const fn millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Seconds, with fraction.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add for Nanos {
    type Output = Nanos;
    /// Saturates at [`Nanos::NEVER`].
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

/// A monotonic clock that starts at zero. Copies share the start, so the shards of a process agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    /// Time since the start.
    pub fn now(&self) -> Nanos {
        Nanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// The date as time since 1970, for comparison with timestamps such as those in a server's messages. It may jump, so over longer times the
/// [`Clock`] that started together with it is used instead.
pub fn since_1970() -> Nanos {
    Nanos(date().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64))
}

/// The date, for files that are read after the run. Never used for measurements, because it may jump.
pub fn date() -> SystemTime {
    SystemTime::now()
}
