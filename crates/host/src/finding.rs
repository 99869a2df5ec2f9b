//! Limits that prevent or impair a run, and their fixes.

use crate::Repair;
use std::fmt;

/// How much a finding matters. Refusals sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The run cannot succeed here: it is refused.
    Refuse,
    /// The run may suffer: a warning is printed, and the run continues.
    Warn,
    /// The limit suffices.
    Fine,
    /// The limit could not be read and is not judged.
    Unknown,
}

/// One limit of this machine, compared with what the run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The limit's name: `open files`.
    pub what: &'static str,
    /// The present value: `65,536 allowed`.
    pub value: String,
    /// The needed value: `1,000,032 needed`; empty if it is not an amount.
    pub needed: String,
    /// The fix: a command line, with a trailing comment for what no command can do. Empty if nothing needs fixing.
    pub fix: String,
    /// Whether the run may start.
    pub severity: Severity,
    /// The part of the fix that throng can apply itself: changes of this machine that last until its next boot.
    pub repairs: Vec<Repair>,
}

/// The fix of an insufficient limit.
pub(crate) struct Fix {
    pub(crate) severity: Severity,
    pub(crate) command: String,
    pub(crate) repairs: Vec<Repair>,
}

impl Fix {
    /// A command for the user to run.
    pub(crate) fn manual(severity: Severity, command: impl Into<String>) -> Fix {
        Fix { severity, command: command.into(), repairs: Vec::new() }
    }

    /// A change of a kernel setting.
    pub(crate) fn setting(severity: Severity, name: &'static str, value: impl ToString) -> Fix {
        Fix::repair(severity, Repair::setting(name, value))
    }

    /// A single change.
    pub(crate) fn repair(severity: Severity, repair: Repair) -> Fix {
        Fix::repairs(severity, vec![repair])
    }

    /// Several changes, in this order.
    pub(crate) fn repairs(severity: Severity, repairs: Vec<Repair>) -> Fix {
        let command = repairs.iter().map(Repair::to_string).collect::<Vec<_>>().join(" && ");
        Fix { severity, command, repairs }
    }
}

impl Finding {
    /// A limit that was read; without a fix it is sufficient.
    pub(crate) fn new(what: &'static str, value: String, needed: String, fix: Option<Fix>) -> Finding {
        let fix = fix.unwrap_or_else(|| Fix::manual(Severity::Fine, ""));
        Finding { what, value, needed, fix: fix.command, severity: fix.severity, repairs: fix.repairs }
    }

    /// A limit that cannot be read.
    pub(crate) fn unknown(what: &'static str, why: &str) -> Finding {
        let unread = Fix::manual(Severity::Unknown, "");
        Finding::new(what, why.to_owned(), "not judged".to_owned(), Some(unread))
    }

    /// Whether `run` reports it.
    pub fn is_trouble(&self) -> bool {
        matches!(self.severity, Severity::Refuse | Severity::Warn)
    }
}

/// `open files: 65,536 allowed, 1,000,032 needed: ulimit -n 1048576`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.value)?;
        if !self.needed.is_empty() {
            write!(f, ", {}", self.needed)?;
        }
        if !self.fix.is_empty() {
            // A fix without a command is written as a shell comment.
            write!(f, ": {}", self.fix.strip_prefix("# ").unwrap_or(&self.fix))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line() {
        let fix = Fix::manual(Severity::Warn, "ulimit -n 1048576");
        let mut finding =
            Finding::new("open files", "65,536 allowed".into(), "1,000,032 needed".into(), Some(fix));
        assert_eq!(finding.to_string(), "open files: 65,536 allowed, 1,000,032 needed: ulimit -n 1048576");
        finding.needed.clear();
        assert_eq!(finding.to_string(), "open files: 65,536 allowed: ulimit -n 1048576");
        finding.fix = "# give it more".to_owned();
        assert_eq!(finding.to_string(), "open files: 65,536 allowed: give it more");
        finding.fix.clear();
        assert_eq!(finding.to_string(), "open files: 65,536 allowed");
        assert!(Severity::Refuse < Severity::Warn && Severity::Warn < Severity::Fine);
    }

    #[test]
    fn only_insufficient_limits_are_findings() {
        let with = |fix| Finding::new("open files", String::new(), String::new(), fix);
        assert!(!with(None).is_trouble() && !Finding::unknown("open files", "hidden").is_trouble());
        for severity in [Severity::Refuse, Severity::Warn] {
            assert!(with(Some(Fix::setting(severity, "fs.nr_open", 5))).is_trouble());
        }
    }
}
