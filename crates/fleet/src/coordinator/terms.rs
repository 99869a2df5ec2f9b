//! What the coordinator needs to know of its run besides the plan.

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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) seed: u64,
    /// Where the local addresses begin.
    pub(crate) salt: u64,
    pub(crate) has_probe: bool,
    pub(crate) on_lost: OnLost,
}
