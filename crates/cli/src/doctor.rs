//! `throng doctor`: checks whether this machine can generate a load.

mod change;
mod report;

use host::{Need, Repair, Root, Severity};
use plan::{Flags, Plan, Sources, flag};

use crate::{EXIT_MACHINE, Failure, args::DoctorArgs, message, plans, print_stdout};
use report::Report;

/// Checks the machine, applies fixes with `--fix`, and reports; returns the exit status.
pub(crate) fn doctor(args: &DoctorArgs, line: Flags) -> Result<u8, Failure> {
    let root = Root::real();
    if args.undo {
        return change::undo(&root).map(|()| 0);
    }
    let flags = flags(line);
    let plan = plans::plan_unseen(&flags)?;
    let has_number =
        [flag::CONNECTIONS, flag::TOTAL, flag::ARRIVE].iter().any(|own| flags.get(own).is_some());
    let is_requested = has_number || plans::scenario_file(&flags).is_some();
    let examine = |again| examine(&root, &plan, args.target.is_some(), is_requested, again);
    let mut report = examine(None)?;
    if args.fix {
        let troubles = report.findings.iter().filter(|finding| finding.is_trouble());
        let repairs: Vec<Repair> = troubles.flat_map(|finding| finding.repairs.clone()).collect();
        if repairs.is_empty() {
            message("nothing to fix");
        } else {
            change::fix(&root, &repairs)?;
            report = examine(Some(report.connections))?;
        }
    }
    print_stdout(&if args.json { report.json() } else { report.text() })?;
    Ok(if report.verdict() == Severity::Refuse { EXIT_MACHINE } else { 0 })
}

/// The flags for the plan. Without a target, a loopback address of the sources' family is assumed. The observer is removed, because
/// `doctor` does not make any connection.
fn flags(line: Flags) -> Flags {
    let flags = line.without(&flag::OBSERVE).without(&flag::OBSERVE_TOKEN_FILE);
    let sources = flags.get(&flag::SOURCES).and_then(|text| Sources::parse(text).ok());
    let scheme = if flags.get(&flag::ARRIVE).is_some() { "http" } else { "tcp" };
    let host = match sources.and_then(|sources| sources.is_v4()) {
        Some(false) => "[::1]",
        _ => "127.0.0.1",
    };
    flags.or(&flag::TARGET, format!("{scheme}://{host}:9"))
}

/// Rounds down to two digits, since available memory varies between two readings.
fn about(connections: u64) -> u64 {
    let unit = 10u64.pow(connections.checked_ilog10().unwrap_or(0).saturating_sub(1));
    connections / unit * unit
}

/// Checks the machine. `is_requested`: the user gave the number of connections. `again`: checks for this number, because the capacity
/// may have changed since it was computed.
fn examine(
    root: &Root,
    plan: &Plan,
    has_target: bool,
    is_requested: bool,
    again: Option<u64>,
) -> Result<Report, Failure> {
    let mut need = ::run::need(plan, root).map_err(Failure::machine)?;
    if !has_target {
        need = Need { target: None, listeners: Vec::new(), ..need };
    }
    let capacity = host::capacity(root, &need);
    if !is_requested {
        let most = again.unwrap_or(about(capacity.connections).clamp(1, u32::MAX.into()));
        need = need.with_connections(most);
    }
    let findings = host::examine(root, &need);
    let target_room = host::target_room(root, &need);
    let Need { target, connections, .. } = need;
    Ok(Report { target, connections, is_requested, capacity, target_room, findings })
}
