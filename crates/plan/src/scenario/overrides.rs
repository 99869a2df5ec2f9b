//! What the command line may change of a scenario's load: how many connections, how fast, for how long.

use units::Rate;

use crate::flags::{Mistakes, a_rate, connections, hold, ramp};
use crate::{Flags, Hold, Load, Plan, Ramp, Stage};

/// The plan with what `flags` say of its load; what they cannot change is a mistake.
pub(super) fn overridden(mut plan: Plan, flags: &Flags, lead: &mut Mistakes) -> Plan {
    if let Some(wanted) = value(lead, "--connections", &flags.connections, connections) {
        spread(&mut plan, wanted).unwrap_or_else(|why| lead.add("--connections", why));
    }
    for (flag, text, kind) in
        [("--rate", &flags.rate, Kind::Requests), ("--arrive", &flags.arrive, Kind::Arrivals)]
    {
        if let Some(wanted) = value(lead, flag, text, |text| a_rate(text, "20k/s")) {
            paced(&mut plan, kind, wanted).unwrap_or_else(|why| lead.add(flag, why));
        }
    }
    if let Some(wanted) = value(lead, "--total", &flags.total, connections) {
        ended(&mut plan, wanted).unwrap_or_else(|why| lead.add("--total", why));
    }
    if let Some(wanted) = value(lead, "--ramp", &flags.ramp, ramp) {
        let has = |stage: &Stage| stage.ramp != Ramp::Adaptive;
        match the_one(&mut plan.stages, has, "ramp", "ramp") {
            Ok(stage) => stage.ramp = wanted,
            Err(why) => lead.add("--ramp", why),
        }
    }
    if let Some(wanted) = value(lead, "--duration", &flags.duration, hold) {
        let has = |stage: &Stage| stage.hold != Hold::For(units::Nanos::ZERO);
        let last = plan.stages.last().map(|stage| stage.name.clone());
        match the_one(&mut plan.stages, has, "hold", "for") {
            Ok(stage) if wanted == Hold::Forever && last.as_ref() != Some(&stage.name) => {
                lead.add("--duration", format!("stages follow {:?}; use a time", stage.name));
            }
            Ok(stage) => stage.hold = wanted,
            Err(why) => lead.add("--duration", why),
        }
    }
    plan
}

fn value<T, E: std::fmt::Display>(
    lead: &mut Mistakes,
    flag: &str,
    text: &Option<String>,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Option<T> {
    lead.read(flag, text, None, |text| parse(text).map(Some))
}

/// So many connections in all: those of one population, or of several in proportion, each at least one.
fn spread(plan: &mut Plan, wanted: u32) -> Result<(), String> {
    let mut each: Vec<&mut u32> = plan
        .populations
        .iter_mut()
        .filter_map(|population| match &mut population.load {
            Load::Held { connections } | Load::Rate { connections, .. } => Some(connections),
            Load::Arrivals { .. } => None,
        })
        .collect();
    let whole: u64 = each.iter().map(|n| u64::from(**n)).sum();
    if each.is_empty() {
        return Err("no population of the scenario holds connections; use --arrive or --total".to_owned());
    }
    if (wanted as usize) < each.len() {
        return Err(format!("{} populations hold connections; use at least {}", each.len(), each.len()));
    }
    // What is left of the whole after each population goes to those that follow, so that rounding adds up.
    let (mut left, mut whole) = (u64::from(wanted), whole);
    let mut others = each.len() as u64;
    for connections in &mut each {
        others -= 1;
        let own = u64::from(**connections);
        let share = (u128::from(left) * u128::from(own) + u128::from(whole / 2)) / u128::from(whole.max(1));
        let share = (share as u64).clamp(1, left - others);
        **connections = share as u32;
        (left, whole) = (left - share, whole - own);
    }
    Ok(())
}

/// What a rate is of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Requests,
    Arrivals,
}

/// The rate of the one population that has such a one.
fn paced(plan: &mut Plan, kind: Kind, wanted: Rate) -> Result<(), String> {
    let rates = plan.populations.iter_mut().filter_map(|population| match &mut population.load {
        Load::Rate { rate, .. } if kind == Kind::Requests => Some(rate),
        Load::Arrivals { rate, .. } if kind == Kind::Arrivals => Some(rate),
        _ => None,
    });
    let what = if kind == Kind::Requests { "a rate" } else { "arrivals" };
    *only(rates, what)? = wanted;
    Ok(())
}

/// How many arrive in all.
fn ended(plan: &mut Plan, wanted: u32) -> Result<(), String> {
    let totals = plan.populations.iter_mut().filter_map(|population| match &mut population.load {
        Load::Arrivals { total, .. } => Some(total),
        _ => None,
    });
    *only(totals, "arrivals")? = Some(wanted);
    Ok(())
}

fn only<T>(all: impl Iterator<Item = T>, what: &str) -> Result<T, String> {
    let mut all: Vec<T> = all.collect();
    match all.len() {
        1 => Ok(all.remove(0)),
        0 => Err(format!("no population of the scenario has {what}; set it in the file")),
        n => Err(format!("{n} populations have {what}; set it in the file")),
    }
}

/// The one stage that has something; where none has, the last.
fn the_one<'a>(
    stages: &'a mut [Stage],
    has: impl Fn(&Stage) -> bool,
    what: &str,
    key: &str,
) -> Result<&'a mut Stage, String> {
    let having: Vec<usize> = (0..stages.len()).filter(|at| has(&stages[*at])).collect();
    match (having.as_slice(), stages.len()) {
        ([at], _) => Ok(&mut stages[*at]),
        ([], 1) => Ok(&mut stages[0]),
        ([], _) => Err(format!("no stage of the scenario has {key}; set it in the file")),
        _ => Err(format!("{} stages {what}; set {key} in the file", having.len())),
    }
}
