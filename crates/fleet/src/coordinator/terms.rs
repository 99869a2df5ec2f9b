//! What the coordinator needs to know of its run besides the plan.

use crate::split::{Demand, Shares};

/// What becomes of the run when an agent is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// It ends.
    Abort,
    /// It goes on, and is not passed.
    #[default]
    Continue,
    /// The others do what the agent did, once that has certainly ended its load.
    Reassign,
}

impl OnLost {
    /// Reads `abort`, `continue` or `reassign`.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<OnLost, String> {
        match text {
            "abort" => Ok(OnLost::Abort),
            "continue" => Ok(OnLost::Continue),
            "reassign" => Ok(OnLost::Reassign),
            _ => Err(format!("{text:?} is not known; use abort, continue or reassign")),
        }
    }
}

/// What else a coordinator is to know of its run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) seed: u64,
    /// Where the local addresses begin.
    pub(crate) salt: u64,
    /// What is divided among the agents; where nothing is, they are only asked what they can take.
    pub(crate) demand: Option<Demand>,
    pub(crate) shares: Shares,
    pub(crate) on_lost: OnLost,
    /// It is a step of a search, which ends with an agent that is lost.
    pub(crate) is_step: bool,
}
