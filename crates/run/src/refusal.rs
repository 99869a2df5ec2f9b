//! Why a run does not start.

use std::fmt;

use host::{Finding, Severity};

/// Why a run does not start.
#[derive(Debug)]
pub enum Refusal {
    /// Limits of this machine, with their fixes.
    Findings(Vec<Finding>),
    /// An operation of this machine failed.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Failed(what) => f.write_str(what),
            Refusal::Findings(findings) => {
                let refusals = findings.iter().filter(|finding| finding.severity == Severity::Refuse);
                let lines: Vec<String> = refusals.map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}
