//! A search, for `throng find` and for searches by HTTP: what is made larger, how far, and what each step does.

use fleet::Agents;
use host::Root;
use plan::{Flags, Plan, Scheme, flag};
use run::{By, Find, Here, Interrupt};
use samples::{FindSummary, Point};
use units::{Count, Nanos};

use crate::{Failure, message, mistakes::Mistakes, plans};

/// Default time at full load of each step (`--duration`).
const DWELL: &str = "5s";
/// A shorter step shows nothing.
const SHORTEST: Nanos = Nanos::from_secs(1);
/// Default time between two requests of a connection that is only held (`--think`).
const THINK: &str = "30s..90s";
/// The default of `--probe`.
const PROBE: &str = "20/s";

/// Reads `--by`, and `--max`: the largest load to try, if that is given.
pub(crate) fn read(by: Option<&str>, max: Option<&str>, mistakes: &mut Mistakes) -> (By, Option<u64>) {
    let by = mistakes.read("--by", by, |text| match text {
        "connections" => Ok(By::Connections),
        "arrival" => Ok(By::Arrival),
        "burst" => Ok(By::Burst),
        "rate" => Ok(By::Rate),
        _ => Err(format!("{text:?} is not supported; use connections, arrival, burst or rate")),
    });
    let most = mistakes.read("--max", max, |text| match Count::parse(text) {
        Ok(Count(n @ 1..)) => Ok(n),
        _ => Err(format!("{text:?} is not a number; use 100k")),
    });
    (by.unwrap_or(By::Connections), most)
}

/// The flags of a plan for each step, and how long a step lasts at full load, as typed.
pub(crate) fn of_step(flags: Flags, by: By) -> (Flags, String) {
    let dwell = flags.get(&flag::DURATION).unwrap_or(DWELL).to_owned();
    let flags = match plans::scenario_file(&flags) {
        // The search determines how long a step lasts, whatever the scenario's stages are.
        Some(_) => flags.without(&flag::DURATION),
        None => {
            let scheme = flags.get(&flag::TARGET).and_then(Scheme::of_target);
            let thinks = by != By::Rate && by != By::Arrival && scheme.is_some_and(Scheme::has_requests);
            let is_mute = scheme.is_some_and(Scheme::has_bytes) && flags.get(&flag::MESSAGE).is_none();
            let flags = flags.or(&flag::DURATION, DWELL);
            let flags = if is_mute { flags } else { flags.or(&flag::PROBE, PROBE) };
            if thinks { flags.or(&flag::THINK, THINK) } else { flags }
        }
    };
    (flags, dwell)
}

/// How long a step of a search lasts at full load.
pub(crate) fn step_time(text: &str) -> Result<Nanos, String> {
    match Nanos::parse_or_seconds(text) {
        Ok(time) if time >= SHORTEST => Ok(time),
        // Words too: `forever` is a time of other commands.
        _ => Err(format!("a step of a search lasts {SHORTEST} or longer, and ends; use 5s: {text:?}")),
    }
}

/// How far a search goes that was not given a largest load: as far as this machine, or the agents, can.
///
/// # Errors
/// There is no way to the target, or there are no agents.
pub(crate) fn most(by: By, plan: &Plan, agents: Option<&mut Agents>) -> Result<u64, String> {
    match agents {
        None => run::most(by, plan, &Root::real()).map_err(|why| why.to_string()),
        Some(agents) => agents.most(by, plan),
    }
}

/// Searches on this machine, or on agents; calls `show` with each completed step.
pub(crate) fn search(
    how: Find,
    plan: &Plan,
    agents: Option<&mut Agents>,
    interrupt: &Interrupt,
    show: &mut dyn FnMut(&Point),
) -> Result<FindSummary, Failure> {
    let root = Root::real();
    let found = match agents {
        None => run::find(&mut Here(&root), how, plan, &root, interrupt, &mut message, show),
        Some(agents) => run::find(agents, how, plan, &root, interrupt, &mut message, show),
    };
    found.map_err(Failure::machine)
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
