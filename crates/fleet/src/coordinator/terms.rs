//! Settings of a run that the coordinator needs besides the plan.

use units::ParseError;

use crate::split::{Demand, Shares};

/// What happens to the run when an agent is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// The run ends.
    Abort,
    /// The run continues, but does not pass.
    #[default]
    Continue,
    /// Other agents take over its part, once it has certainly ended its load.
    Reassign,
}

impl OnLost {
    /// Parses `abort`, `continue` or `reassign`.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<OnLost, ParseError> {
        match text {
            "abort" => Ok(OnLost::Abort),
            "continue" => Ok(OnLost::Continue),
            "reassign" => Ok(OnLost::Reassign),
            _ => Err(ParseError::new(text, "known", "abort, continue or reassign")),
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) seed: u64,
    /// Where the local addresses begin.
    pub(crate) salt: u64,
    /// What is divided among the agents. `None`: agents are only asked for their capacity.
    pub(crate) demand: Option<Demand>,
    pub(crate) shares: Shares,
    pub(crate) on_lost: OnLost,
    /// The run is a step of a search, which ends when an agent is lost.
    pub(crate) is_step: bool,
}
