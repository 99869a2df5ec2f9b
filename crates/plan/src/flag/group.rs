//! The headings of the help, and which flags each lists.

use super::Role;

/// A heading of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// How much load, how fast, and for how long.
    Load,
    /// What is sent where, and which responses are right.
    Request,
    /// What is shown and written.
    Output,
    /// What makes a run pass or fail.
    Thresholds,
    /// Metrics for other programs.
    Export,
    /// The machines that apply the load.
    Fleet,
}

impl Group {
    /// Title in the help.
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

    /// Default heading for flags of this role.
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
