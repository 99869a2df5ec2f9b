//! `throng find`: the largest load that the target sustains.

use fleet::{Agents, Kubernetes};
use host::Root;
use plan::{Flags, Hold, Plan, Scheme, Stage, flag};
use run::{By, Find, Here};
use units::{Count, Nanos};

use crate::{
    EXIT_INTERRUPTED, Failure,
    agent::{self, Place},
    args::{FindArgs, refused_by_find},
    cluster::Cluster,
    files::Files,
    message,
    mistakes::Mistakes,
    plans::{self, Scenario},
    print_stderr, signals,
};

/// Default time at full load of each step (`--duration`).
const DWELL: &str = "5s";
/// A shorter step shows nothing.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// Default time between two requests of a connection that is only held (`--think`).
const THINK: &str = "30s..90s";
/// The default of `--probe`.
const PROBE: &str = "20/s";

/// Searches; returns the exit status.
pub(crate) fn find(args: &FindArgs, flags: Flags) -> Result<u8, Failure> {
    let (by, most) = read_args(args, &flags)?;
    let json = flags.get(&flag::JSON).map(str::to_owned);
    let (plan, dwell, flags, scenario) = plan(flags, by)?;
    Files::default().json(json.as_deref())?;
    let interrupt = signals::interrupt()?;
    let root = Root::real();
    let cluster = match flags.get(&flag::FLEET).filter(|url| Kubernetes::is_meant(url)) {
        None => None,
        Some(_) => {
            let most = most.ok_or_else(|| {
                Failure::usage([
                    "--max: agents are launched for a load; say for which is the largest: --max 100k",
                ])
            })?;
            Cluster::launch(&endless(by.plan(&plan, most, dwell)), &flags, &interrupt)?
        }
    };
    let agents = agent::place(&flags, scenario.as_ref(), cluster.as_ref())?;
    let mut agents = agents.map(|Place { link, job, broker }| (Agents::new(link, job), broker));
    let most = match (most, &mut agents) {
        (Some(most), _) => most,
        (None, Some((agents, _))) => {
            agents.most(by, &plan).map_err(|why| Failure::machine(format!("--fleet: {why}")))?
        }
        (None, None) => run::most(by, &plan, &root).map_err(Failure::machine)?,
    };
    print_stderr(&format!("{}: up to {} {}, {dwell} each", plan.text, Count(most), by.unit()));
    let mut show = |point: &samples::Point| print_stderr(&view::find_line(point, by.unit()));
    let how = Find { by, most, dwell };
    let (found, _broker) = match agents {
        None => (run::find(&mut Here(&root), how, &plan, &root, &interrupt, &mut message, &mut show), None),
        Some((mut agents, broker)) => {
            (run::find(&mut agents, how, &plan, &root, &interrupt, &mut message, &mut show), broker)
        }
    };
    let found = found.map_err(Failure::machine)?;
    let text = view::find_text(&found, by.unit());
    crate::print_result(&text, json.as_deref(), || view::json(&found))?;
    Ok(if interrupt.is_set() { EXIT_INTERRUPTED } else { found.exit_status() })
}

/// The same for as long as it takes: how many steps a search has is not known.
fn endless(plan: Plan) -> Plan {
    let stages = plan.stages.iter().map(|stage| Stage { hold: Hold::Forever, ..stage.clone() }).collect();
    Plan { stages, ..plan }
}

/// What each step does, and for how long; and of which flags and scenario.
fn plan(flags: Flags, by: By) -> Result<(Plan, Nanos, Flags, Option<Scenario>), Failure> {
    let dwell = flags.get(&flag::DURATION).unwrap_or(DWELL).to_owned();
    let flags = match plans::scenario_file(&flags) {
        // The search determines how long a step lasts, whatever the scenario's stages are.
        Some(_) => flags.without(&flag::DURATION),
        None => {
            let scheme = flags.get(&flag::TARGET).and_then(Scheme::of_target);
            let thinks = by != By::Rate && by != By::Arrival && scheme.is_some_and(Scheme::has_requests);
            let flags = flags.or(&flag::DURATION, DWELL).or(&flag::PROBE, PROBE);
            if thinks { flags.or(&flag::THINK, THINK) } else { flags }
        }
    };
    let (plan, scenario) = plans::with_scenario(&flags)?;
    let dwell = step_time(&dwell).map_err(|why| Failure::usage([format!("--duration: {why}")]))?;
    Ok((plan, dwell, flags, scenario))
}

/// How long a step of a search lasts at full load.
fn step_time(text: &str) -> Result<Nanos, String> {
    match Nanos::parse_or_seconds(text) {
        Ok(time) if time >= SHORTEST => Ok(time),
        // Words too: `forever` is a time of other commands.
        _ => Err(format!("a step of a search lasts {SHORTEST} or longer, and ends; use 5s: {text:?}")),
    }
}

fn read_args(args: &FindArgs, flags: &Flags) -> Result<(By, Option<u64>), Failure> {
    let mut mistakes = Mistakes::default();
    let by = mistakes.read("--by", args.by.as_deref(), |text| match text {
        "connections" => Ok(By::Connections),
        "arrival" => Ok(By::Arrival),
        "burst" => Ok(By::Burst),
        "rate" => Ok(By::Rate),
        _ => Err(format!("{text:?} is not supported; use connections, arrival, burst or rate")),
    });
    let most = mistakes.read("--max", args.max.as_deref(), |text| match Count::parse(text) {
        Ok(Count(n @ 1..)) => Ok(n),
        _ => Err(format!("{text:?} is not a number; use 100k")),
    });
    let refused = flags.refused(|flag, value| refused_by_find(flag, value).map(str::to_owned));
    refused.iter().for_each(|mistake| mistakes.add(mistake));
    mistakes.end((by.unwrap_or(By::Connections), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_lasts_a_second_or_longer() {
        let wrong = |text: &str| -> Result<Nanos, String> {
            Err(format!("a step of a search lasts 1s or longer, and ends; use 5s: {text:?}"))
        };
        for (text, expected) in [("3", Ok(3)), ("3s", Ok(3)), ("1m", Ok(60))] {
            assert_eq!(step_time(text), expected.map(Nanos::from_secs), "{text}");
        }
        for text in ["forever", "500ms", "0", "long"] {
            assert_eq!(step_time(text), wrong(text));
        }
    }
}
