//! The output of `doctor`, as text and as JSON. Pure: formats findings without reading anything.

use std::fmt::Write;

use host::{Capacity, Finding, Severity};
use serde_json::json;
use units::Count;

/// Width of the column of values. A longer value shifts what follows instead of breaking the line, so that each finding is one line
/// for grep.
const WIDEST_VALUE: usize = 48;

/// The finding about the target's limit of open files. For a run it is only a warning, since the target may raise its limit.
const TARGETS_FILES: &str = "target's open files";

/// The report.
pub(super) struct Report {
    /// The target as typed; `None` if only this machine is checked.
    pub(super) target: Option<String>,
    /// Number of connections that the findings refer to.
    pub(super) connections: u64,
    /// Whether the user gave that number; otherwise it is the capacity.
    pub(super) is_requested: bool,
    pub(super) capacity: Capacity,
    /// The number of further connections that the target's processes can hold under their present limits; `None` if unknown.
    pub(super) target_room: Option<u64>,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// The worst severity of the findings. If the target cannot hold the connections, that counts as a refusal, although a run could
    /// start.
    pub(super) fn verdict(&self) -> Severity {
        match self.findings.iter().map(|finding| finding.severity).min() {
            Some(_) if self.findings.iter().any(|finding| self.does_not_fit(finding)) => Severity::Refuse,
            worst => worst.unwrap_or(Severity::Fine),
        }
    }

    fn does_not_fit(&self, finding: &Finding) -> bool {
        let is_short = finding.what == TARGETS_FILES && finding.severity == Severity::Warn;
        finding.severity == Severity::Refuse || is_short && self.is_requested
    }

    /// The text: one line per finding with its fix below, and finally whether the connections fit.
    pub(super) fn text(&self) -> String {
        let widest = |width: fn(&Finding) -> usize| self.findings.iter().map(width).max().unwrap_or(0);
        let what = widest(|finding| finding.what.chars().count());
        let value = widest(|finding| finding.value.chars().count()).min(WIDEST_VALUE);
        let mut text = String::new();
        for finding in &self.findings {
            let Finding { what: name, value: found, needed, .. } = finding;
            let line = format!("{:<4}  {name:<what$}  {found:<value$}  {needed}", mark(finding.severity));
            let _ = writeln!(text, "{}", line.trim_end());
            if !finding.fix.is_empty() {
                let _ = writeln!(text, "      {:what$}  {}", "", finding.fix);
            }
        }
        let _ = writeln!(text, "{}", self.closing());
        text
    }

    /// The target's room, if it is the lowest limit.
    fn least_room(&self) -> Option<u64> {
        self.target_room.filter(|room| *room < self.capacity.connections)
    }

    /// The sentence on the capacity and its limit.
    fn most(&self) -> String {
        let Capacity { connections, limited_by } = self.capacity;
        let is_unlimited = connections > u32::MAX.into();
        match self.least_room() {
            None if is_unlimited => "no known limit on the number of connections".to_owned(),
            None if connections == 0 => format!("no connection fits: {limited_by}"),
            None => {
                let connections = Count(connections).of("connection");
                format!("this machine can hold about {connections}, limited by {limited_by}")
            }
            Some(room) => {
                let fit = match room {
                    0 => "no connection fits".to_owned(),
                    1 => "1 connection fits".to_owned(),
                    room => format!("about {} connections fit", Count(room)),
                };
                let fixed = match is_unlimited {
                    true => "no known limit".to_owned(),
                    false => format!("about {}, limited by {limited_by}", Count(connections)),
                };
                format!("as set up, {fit}, limited by the {TARGETS_FILES}; with the fixes above, {fixed}")
            }
        }
    }

    fn closing(&self) -> String {
        let most = self.most();
        let wanted = Count(self.connections).of("connection");
        let (fit, do_not_fit) =
            if self.connections == 1 { ("fits", "does not fit") } else { ("fit", "do not fit") };
        match self.verdict() {
            _ if !self.is_requested => most,
            Severity::Fine | Severity::Unknown => format!("{wanted} {fit}"),
            Severity::Warn => format!("{wanted} {fit}, with warnings"),
            Severity::Refuse if (1..self.connections).contains(&self.capacity.connections) => {
                format!("{wanted} {do_not_fit}: {most}")
            }
            Severity::Refuse => {
                let refusing = self.findings.iter().filter(|finding| self.does_not_fit(finding));
                let names: Vec<&str> = refusing.map(|finding| finding.what).collect();
                format!("{wanted} {do_not_fit}: {}", names.join(", "))
            }
        }
    }

    /// The JSON of schema `throng.doctor/1`, on one line.
    pub(super) fn json(&self) -> String {
        let findings: Vec<serde_json::Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "what": finding.what,
                    "value": finding.value,
                    "needed": finding.needed,
                    "cure": finding.fix,
                    "severity": severity(finding.severity),
                    "fixable": !finding.repairs.is_empty(),
                })
            })
            .collect();
        let most = self.least_room().unwrap_or(self.capacity.connections);
        let fits = Some(most).filter(|most| *most <= u32::MAX.into());
        let whole = json!({
            "schema": "throng.doctor/1",
            "target": self.target,
            "connections": self.connections,
            "fits": fits,
            "verdict": severity(self.verdict()),
            "findings": findings,
        });
        format!("{whole}\n")
    }
}

fn mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Refuse => "no",
        Severity::Warn => "warn",
        Severity::Fine => "ok",
        Severity::Unknown => "?",
    }
}

/// The name of a severity in JSON. `Unknown` is `ok`, since programs need not act on it; the finding's value says that it was not
/// checked.
fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Refuse => "refuse",
        Severity::Warn => "warn",
        Severity::Fine | Severity::Unknown => "ok",
    }
}

#[cfg(test)]
mod tests;
