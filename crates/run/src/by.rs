//! What a search makes larger.

/// What is made larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum By {
    /// Connections held.
    Connections,
    /// Connections that arrive in a second.
    Arrival,
    /// Connections dialled at once.
    Burst,
    /// Requests a second.
    Rate,
}

impl By {
    /// The word of the command line and of the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "arrival",
            By::Burst => "burst",
            By::Rate => "rate",
        }
    }

    /// What a load is counted in.
    pub const fn unit(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "connections/s",
            By::Burst => "connections at once",
            By::Rate => "requests/s",
        }
    }
}
