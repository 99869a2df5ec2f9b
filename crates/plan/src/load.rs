//! Load models: the number of connections of a population, and when something is due on them. In this crate they are distinguished only
//! here; in the engine, by the pacer.

use units::Rate;

/// A load model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// A fixed number of connections, at least 1, each with its own schedule: a closed loop.
    Held {
        /// Number of connections.
        connections: u32,
    },
    /// A fixed number of connections, with requests due at a rate once all are open: an open loop.
    Rate {
        /// Number of connections, at least 1.
        connections: u32,
        /// Rate of requests over all connections; never zero.
        rate: Rate,
    },
    /// New connections arrive at a rate, and each is closed when it has completed its steps.
    Arrivals {
        /// Rate of connections; never zero.
        rate: Rate,
        /// Total of connections; `None`: until the stages end.
        total: Option<u32>,
    },
}

/// The load as written: values of flags, or of keys in a scenario file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadKeys {
    /// Connections to hold.
    pub connections: Option<u32>,
    /// Rate of requests over all connections; never zero.
    pub rate: Option<Rate>,
    /// Rate of arriving connections; never zero.
    pub arrive: Option<Rate>,
    /// Total of arriving connections.
    pub total: Option<u32>,
}

/// Default number of connections to hold.
pub(crate) const DEFAULT_CONNECTIONS: u32 = 50;

impl LoadKeys {
    /// The load model for these keys; `arrive` takes precedence.
    pub fn load(self) -> Load {
        let connections = self.connections.unwrap_or(DEFAULT_CONNECTIONS);
        match (self.arrive, self.rate) {
            (Some(rate), _) => Load::Arrivals { rate, total: self.total },
            (None, Some(rate)) => Load::Rate { connections, rate },
            (None, None) => Load::Held { connections },
        }
    }
}

impl Load {
    /// The keys of this load model, with their values.
    pub fn keys(self) -> LoadKeys {
        let none = LoadKeys::default();
        match self {
            Load::Held { connections } => LoadKeys { connections: Some(connections), ..none },
            Load::Rate { connections, rate } => {
                LoadKeys { connections: Some(connections), rate: Some(rate), ..none }
            }
            Load::Arrivals { rate, total } => LoadKeys { arrive: Some(rate), total, ..none },
        }
    }

    /// Connections held, or the total of arrivals; `None` for arrivals without a total.
    pub fn wanted(self) -> Option<u32> {
        let LoadKeys { connections, total, .. } = self.keys();
        connections.or(total)
    }

    /// As `wanted`; the maximum number for arrivals without a total.
    pub fn connections(self) -> u32 {
        self.wanted().unwrap_or(u32::MAX)
    }

    /// Connections held; 0 for arrivals.
    pub fn held(self) -> u32 {
        self.keys().connections.unwrap_or(0)
    }

    /// The rate of requests or arrivals; `None` for a closed loop.
    pub fn rate(self) -> Option<Rate> {
        let LoadKeys { rate, arrive, .. } = self.keys();
        rate.or(arrive)
    }

    /// The rate of arrivals; `None` if connections are held.
    pub fn arrival_rate(self) -> Option<Rate> {
        self.keys().arrive
    }

    /// Whether requests are due at a rate over all connections, so that no connection has its own schedule.
    pub fn is_paced(self) -> bool {
        self.keys().rate.is_some()
    }

    /// Whether each held connection has its own schedule.
    pub fn is_closed_loop(self) -> bool {
        matches!(self, Load::Held { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_follows_from_its_keys() {
        let rate = Rate::per_s(5);
        for load in [
            Load::Held { connections: 3 },
            Load::Rate { connections: 3, rate },
            Load::Arrivals { rate, total: None },
            Load::Arrivals { rate, total: Some(7) },
        ] {
            assert_eq!(load.keys().load(), load);
        }
        assert_eq!(LoadKeys::default().load(), Load::Held { connections: 50 });
        assert_eq!(Load::Arrivals { rate, total: None }.connections(), u32::MAX);
    }
}
