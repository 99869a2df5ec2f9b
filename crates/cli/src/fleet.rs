//! `throng fleet`: commands for agents and for runs on them.

pub(crate) mod broker;
mod serve;
mod table;

use fleet::{AgentStatus, LOADS, Operator, Reply, Request, RunRequest};
use plan::{Flags, Share};
use units::{Count, Nanos};

use crate::{
    Failure,
    args::{AtRun, AtServer, CALIBRATION, FleetArgs, FleetVerb},
    message,
    mistakes::Mistakes,
    nats, print_stdout,
};

/// Exit status if some agents could not execute the command.
const EXIT_SOME: u8 = 1;
/// Timeout of a calibration: longer than its two measurements together.
const CALIBRATES_WITHIN: Nanos = Nanos::from_secs(120);

/// Executes the command; returns the exit status.
pub(crate) fn fleet(args: &FleetArgs, flags: &Flags) -> Result<u8, Failure> {
    match &args.verb {
        FleetVerb::Ls { at, json } => {
            let agents = ask(&operator(at, flags)?, &[], &Request::Status)?;
            print_stdout(&if *json { table::json(&agents) } else { table::agents(&agents) })?;
            Ok(0)
        }
        FleetVerb::Doctor { names, at, json } => {
            let agents = ask(&operator(at, flags)?, names, &Request::Doctor)?;
            print_stdout(&if *json { table::json(&agents) } else { table::findings(&agents) })?;
            Ok(if agents.iter().any(table::is_unfit) { EXIT_SOME } else { 0 })
        }
        FleetVerb::Calibrate { names, at, duration } => calibrate(at, flags, names, duration),
        FleetVerb::Drain { names, at, undo, all: _ } => {
            let request = if *undo { Request::Undrain } else { Request::Drain };
            let agents = ask(&operator(at, flags)?, names, &request)?;
            let lines = agents.iter().map(|agent| table::line_of(agent) + "\n");
            print_stdout(&lines.collect::<String>()).map(|()| 0)
        }
        FleetVerb::Set { load, at } => {
            let request = requested(load).map_err(|why| Failure::usage([why]))?;
            command(at, flags, request)
        }
        FleetVerb::Pause { at } => command(at, flags, RunRequest::Pause),
        FleetVerb::Resume { at } => command(at, flags, RunRequest::Resume),
        FleetVerb::Serve(args) => serve::serve(args, flags),
        FleetVerb::Broker(args) => broker::broker(args),
    }
}

fn operator(at: &AtServer, flags: &Flags) -> Result<Operator, Failure> {
    let mut mistakes = Mistakes::default();
    let server = nats::server("--nats", at.nats.as_deref(), flags, &mut mistakes);
    let server = mistakes.end(()).map(|()| server.expect("it is no mistake"))?;
    nats::link("--nats", &server).map(Operator::new)
}

/// Sends a request to agents; an error if there are none.
fn ask(operator: &Operator, names: &[String], request: &Request) -> Result<Vec<AgentStatus>, Failure> {
    let agents = operator.ask(names, request).map_err(Failure::machine)?;
    if agents.is_empty() {
        return Err(Failure::machine("no agents have joined; start some with throng agent --nats URL"));
    }
    Ok(agents)
}

fn calibrate(at: &AtServer, flags: &Flags, agents: &[String], duration: &str) -> Result<u8, Failure> {
    let time = calibration_time(duration).map_err(|why| Failure::usage([format!("--duration: {why}")]))?;
    let operator = operator(at, flags)?;
    ask(&operator, agents, &Request::Status)?;
    message(&format!("calibrating, about {}", (time + time).brief()));
    let (mut lines, mut status) = (Vec::new(), 0);
    let within = CALIBRATES_WITHIN + time + time;
    let done = operator.calibrate(agents, duration, within, &mut |reply| match reply {
        Reply::Calibrated { id, calibration } => {
            lines.push(format!("{id}: {}", table::calibration(calibration)))
        }
        Reply::Refused { id, why } => {
            status = EXIT_SOME;
            lines.push(format!("{id}: not calibrated: {why}"));
        }
        Reply::Status(_) | Reply::Calibrating { .. } => {}
    });
    done.map_err(Failure::machine)?;
    lines.sort();
    print_stdout(&(lines.join("\n") + "\n"))?;
    Ok(status)
}

/// Parses the duration of each of a calibration's two measurements.
fn calibration_time(text: &str) -> Result<Nanos, String> {
    let time = Nanos::parse(text).ok().filter(|time| *time > Nanos::ZERO);
    time.ok_or_else(|| format!("{text:?} is not a time; use {CALIBRATION}"))
}

fn command(AtRun { server, run }: &AtRun, flags: &Flags, request: RunRequest) -> Result<u8, Failure> {
    let operator = operator(server, flags)?;
    let (run, what) = operator.command(run.as_deref(), request).map_err(Failure::machine)?;
    print_stdout(&format!("run {run}: {what}\n"))?;
    Ok(0)
}

/// Parses `connections=200k` or `load=50%`.
fn requested(text: &str) -> Result<RunRequest, String> {
    match text.split_once('=') {
        Some(("connections", n)) => match Count::parse(n) {
            Ok(Count(0)) => Err("connections: at least 1; use connections=200k".to_owned()),
            Ok(Count(n)) => Ok(RunRequest::Connections(n)),
            Err(e) => Err(format!("connections: {e}")),
        },
        Some(("load", share)) => match Share::parse(share) {
            Ok(Share::NONE) => Err(LOADS.to_owned()),
            Ok(share) => Ok(RunRequest::Load(share.millionths())),
            Err(e) => Err(format!("load: {e}")),
        },
        _ => Err(format!("{text:?} is not a load; use connections=200k or load=50%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_a_number_of_connections_or_a_share() {
        for (text, expected) in [
            ("connections=200k", Ok(RunRequest::Connections(200_000))),
            ("load=12.5%", Ok(RunRequest::Load(125_000))),
            ("load=100%", Ok(RunRequest::Load(1_000_000))),
            ("load=0.5", Err("load: ")),
            ("load=0%", Err("load: from 0.0001 % to 100 % of the plan's; use load=50%")),
            ("load=101%", Err("load: ")),
            ("connections=0", Err("connections: at least 1; use connections=200k")),
            ("connections=many", Err("connections: ")),
            ("200k", Err("use connections=200k or load=50%")),
            ("rate=5", Err("use connections=200k or load=50%")),
        ] {
            match (requested(text), expected) {
                (Ok(request), Ok(expected)) => assert_eq!(request, expected, "{text}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }
}
