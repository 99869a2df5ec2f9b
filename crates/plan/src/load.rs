//! The load models: how many connections a population has, and when something is due on them. The one place in this crate
//! that distinguishes them; in the engine it is the pacer.

use units::Rate;

/// How many connections there are, and when something is due on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// This number is held, at least 1; each sends on its own: a closed loop.
    Held {
        /// At once.
        connections: u32,
    },
    /// This number is held, and their next requests are due at a rate, once all are there: an open loop.
    Rate {
        /// At once, at least 1.
        connections: u32,
        /// Requests in a time over all of them; never zero.
        rate: Rate,
    },
    /// New connections come at a rate, and each is closed when it has done what it came for.
    Arrivals {
        /// Connections in a time; never zero.
        rate: Rate,
        /// In all; none is as long as the stages last.
        total: Option<u32>,
    },
}

/// A load as it is written: the values of its flags, or of its keys in a scenario file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadKeys {
    /// Connections to hold.
    pub connections: Option<u32>,
    /// Requests in a time over all of them; never zero.
    pub rate: Option<Rate>,
    /// Connections in a time; never zero.
    pub arrive: Option<Rate>,
    /// Connections that arrive in all.
    pub total: Option<u32>,
}

/// Connections to hold, where their number is not given.
pub(crate) const DEFAULT_CONNECTIONS: u32 = 50;

impl LoadKeys {
    /// The model that has these keys; `arrive` goes before the others.
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
    /// Its keys with their values.
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

    /// Connections held, or that arrive in all; none where they arrive without end.
    pub fn wanted(self) -> Option<u32> {
        let LoadKeys { connections, total, .. } = self.keys();
        connections.or(total)
    }

    /// The same; as many as can be counted where they arrive without end.
    pub fn connections(self) -> u32 {
        self.wanted().unwrap_or(u32::MAX)
    }

    /// Connections held; none of those that arrive.
    pub fn held(self) -> u32 {
        self.keys().connections.unwrap_or(0)
    }

    /// The rate at which requests are due, or connections arrive; none where nothing goes by a rate.
    pub fn rate(self) -> Option<Rate> {
        let LoadKeys { rate, arrive, .. } = self.keys();
        rate.or(arrive)
    }

    /// The rate at which connections arrive; none where they are held.
    pub fn arrival_rate(self) -> Option<Rate> {
        self.keys().arrive
    }

    /// Whether requests are due at a rate over all connections, so that no connection has its own schedule.
    pub fn is_paced(self) -> bool {
        self.keys().rate.is_some()
    }

    /// Whether each held connection sends on its own.
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
