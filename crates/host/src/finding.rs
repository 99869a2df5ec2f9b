//! What stands in the way of a run, and what to do about it.

use std::fmt;

/// How much a finding matters. Refusals sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The run cannot succeed here: say so and do not start.
    Refuse,
    /// The run may suffer: say so and go on.
    Warn,
}

/// One limit of this machine, against what the run asks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The limit's name: `open files`.
    pub what: &'static str,
    /// What there is: `65,536 allowed`.
    pub value: String,
    /// What the run wants: `1,000,032 needed`; empty where that is no amount.
    pub needed: String,
    /// What to do: a command, or another way to ask.
    pub cure: String,
    /// Whether the run may start all the same.
    pub severity: Severity,
}

/// `open files: 65,536 allowed, 1,000,032 needed: ulimit -n 1048576`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.value)?;
        if !self.needed.is_empty() {
            write!(f, ", {}", self.needed)?;
        }
        write!(f, ": {}", self.cure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line() {
        let mut finding = Finding {
            what: "open files",
            value: "65,536 allowed".into(),
            needed: "1,000,032 needed".into(),
            cure: "ulimit -n 1048576".into(),
            severity: Severity::Warn,
        };
        assert_eq!(finding.to_string(), "open files: 65,536 allowed, 1,000,032 needed: ulimit -n 1048576");
        finding.needed.clear();
        assert_eq!(finding.to_string(), "open files: 65,536 allowed: ulimit -n 1048576");
        assert!(Severity::Refuse < Severity::Warn);
    }
}
