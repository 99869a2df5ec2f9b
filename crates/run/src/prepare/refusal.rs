//! The reasons why a run, or a step of a search, does not start.

use std::fmt;

use host::{Finding, Severity};
use samples::{Cause, Certainty, Limit, Side};

/// Why a run, or a step of a search, does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Limits of this machine, with their fixes.
    Findings(Vec<Finding>),
    /// An operation failed on this machine, or there is no such run; says why.
    Failed(String),
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal::Failed(why)
    }
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

/// The fix for a search. Where the fix is another `throng run` command, only the alternative in its trailing remark applies.
fn without_a_run(fix: &str) -> &str {
    let remark = fix.starts_with("throng run ").then(|| fix.split_once("  # ")).flatten();
    remark.map_or(fix, |(_, remark)| remark.strip_prefix("or ").unwrap_or(remark))
}

/// The limit of a search that this machine refuses to extend beyond `at`; `None` if no finding refuses it.
pub(crate) fn refused_here(findings: &[Finding], at: u64) -> Option<Limit> {
    let finding = findings.iter().find(|finding| finding.severity == Severity::Refuse)?;
    let cause = match finding.what {
        "ports" | "sources" => Cause::Ports,
        "memory" | "address space" | "tcp memory" => Cause::Memory,
        "open files" | "open files ceiling" | "file table" => Cause::OpenFiles,
        "conntrack" => Cause::Conntrack,
        _ => Cause::Unknown,
    };
    let detail = format!("{}: {}, {}", finding.what, finding.value, finding.needed);
    Some(Limit {
        side: Side::Host,
        cause,
        at_connections: at,
        certainty: Certainty::Seen,
        first_seen_s: None,
        sentence: judge::not_enough_here(detail.clone()),
        detail,
        fix: without_a_run(&finding.fix).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_this_machine_is_a_limit() {
        let finding = |what, severity| Finding {
            what,
            value: "676 free 4-tuples".to_owned(),
            needed: "1,000 needed".to_owned(),
            fix: "throng run --sources 10.0.0.0/24".to_owned(),
            severity,
            repairs: Vec::new(),
        };
        let findings = [finding("conntrack", Severity::Warn), finding("ports", Severity::Refuse)];
        let limit = refused_here(&findings, 500).expect("one refuses");
        assert_eq!((limit.side.name(), limit.cause.name(), limit.at_connections), ("host", "ports", 500));
        assert_eq!(limit.detail, "ports: 676 free 4-tuples, 1,000 needed");
        assert!(limit.fix.contains("--sources"));
        assert_eq!(refused_here(&findings[..1], 500), None);
    }

    #[test]
    fn a_machine_that_refuses_is_not_advised_another_run() {
        let check = |fix: &str, expected: &str| {
            let finding = Finding {
                what: "memory",
                value: String::new(),
                needed: String::new(),
                fix: fix.to_owned(),
                severity: Severity::Refuse,
                repairs: Vec::new(),
            };
            let limit = refused_here(&[finding], 500).expect("it refuses");
            assert_eq!(limit.fix, expected);
        };
        check(
            "throng run http://h/ -c 9000  # or raise the group's memory limit",
            "raise the group's memory limit",
        );
        let sources = "--sources with 2 addresses (now 1), or 2 destinations (now 1)";
        check(&format!("throng run http://h/ -c 9000 --sources 127.0.0.0/30  # {sources}"), sources);
        let doctor = format!("throng doctor http://h/ -c 9000 --fix --sources 10.128.0.0/30  # {sources}");
        check(&doctor, &doctor);
        check("sysctl -w fs.file-max=9", "sysctl -w fs.file-max=9");
    }
}
