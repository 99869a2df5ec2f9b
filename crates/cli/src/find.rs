//! `throng find`: the largest load that the target sustains.

use fleet::{Agents, Kubernetes};
use plan::{Flags, Hold, Plan, Stage, flag};
use run::{By, Find};
use units::Count;

use crate::{
    EXIT_INTERRUPTED, Failure,
    agent::{self, Place},
    args::{FindArgs, refused_by_find},
    cluster::Cluster,
    files::Files,
    mistakes::Mistakes,
    plans, print_stderr, search, signals,
};

/// Searches; returns the exit status.
pub(crate) fn find(args: &FindArgs, flags: Flags) -> Result<u8, Failure> {
    let (by, most) = read_args(args, &flags)?;
    let json = flags.get(&flag::JSON).map(str::to_owned);
    let (flags, dwell) = search::of_step(flags, by);
    let (plan, scenario) = plans::with_scenario(&flags)?;
    let dwell = search::step_time(&dwell).map_err(|why| Failure::usage([format!("--duration: {why}")]))?;
    Files::default().json(json.as_deref())?;
    let interrupt = signals::interrupt()?;
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
    let place = agent::place(&flags, scenario.as_ref(), cluster.as_ref())?;
    // The broker ends last: agents learn over it that the search is over.
    let (_broker, mut agents) =
        place.map_or((None, None), |Place { link, job, broker }| (broker, Some(Agents::new(link, job))));
    let of_fleet = if agents.is_some() { "--fleet: " } else { "" };
    let failed = |why: String| Failure::machine(format!("{of_fleet}{why}"));
    let most = most.map_or_else(|| search::most(by, &plan, agents.as_mut()).map_err(failed), Ok)?;
    print_stderr(&format!("{}: up to {} {}, {dwell} each", plan.text, Count(most), by.unit()));
    let mut show = |point: &samples::Point| print_stderr(&view::find_line(point, by.unit()));
    let how = Find { by, most, dwell };
    let found = search::search(how, &plan, agents.as_mut(), &interrupt, &mut show)?;
    let text = view::find_text(&found, by.unit());
    crate::print_result(&text, json.as_deref(), || view::json(&found))?;
    Ok(if interrupt.is_set() { EXIT_INTERRUPTED } else { found.exit_status() })
}

/// The same for as long as it takes: how many steps a search has is not known.
fn endless(plan: Plan) -> Plan {
    let stages = plan.stages.iter().map(|stage| Stage { hold: Hold::Forever, ..stage.clone() }).collect();
    Plan { stages, ..plan }
}

fn read_args(args: &FindArgs, flags: &Flags) -> Result<(By, Option<u64>), Failure> {
    let mut mistakes = Mistakes::default();
    let read = search::read(args.by.as_deref(), args.max.as_deref(), &mut mistakes);
    let refused = flags.refused(|flag, value| refused_by_find(flag, value).map(str::to_owned));
    refused.iter().for_each(|mistake| mistakes.add(mistake));
    mistakes.end(read)
}
