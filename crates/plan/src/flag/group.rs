//! The headings of the help.

use super::Role;

/// A heading of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// How much, how fast, and for how long.
    Load,
    /// What is sent to whom, and what a right response is.
    Request,
    /// What is shown and written.
    Output,
    /// What passes and what fails.
    Thresholds,
    /// Metrics for other programs.
    Export,
    /// The machines that apply the load.
    Fleet,
}

impl Group {
    /// As help has it.
    pub fn title(self) -> &'static str {
        match self {
            Group::Load => "Load",
            Group::Request => "Request",
            Group::Output => "Output",
            Group::Thresholds => "Thresholds",
            Group::Export => "Export",
            Group::Fleet => "Fleet",
        }
    }

    /// Of a flag of this role, unless it says otherwise.
    pub(super) const fn of(role: Role) -> Group {
        match role {
            Role::Load | Role::Machine => Group::Load,
            Role::Work => Group::Request,
            Role::Place => Group::Fleet,
            Role::Judgement => Group::Thresholds,
            Role::Export => Group::Export,
            Role::View => Group::Output,
        }
    }
}
