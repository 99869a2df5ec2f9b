//! Flags that change the load of a scenario file: the number of connections, their rates, and durations.

use super::load::some_rate;
use crate::flag;
use crate::flags::FlagReader;
use crate::value::{connections, hold, ramp, requests};
use crate::{Hold, Load, LoadKeys, Plan, Ramp, Stage};
use std::error::Error;

/// Applies the flags to the plan's load; a flag that cannot change it is a mistake.
pub(super) fn overridden(mut plan: Plan, flags: &mut FlagReader) -> Plan {
    let flags_duration = flags.get(&flag::DURATION);
    flags.given(&flag::CONNECTIONS, |text| -> Changed { Ok(spread(&mut plan, connections(text)?)?) });
    flags.given(&flag::RATE, |text| -> Changed {
        let rate = Some(some_rate(text)?);
        Ok(change(&mut plan, "a rate", |keys| keys.rate, |keys| LoadKeys { rate, ..keys })?)
    });
    flags.given(&flag::ARRIVE, |text| -> Changed {
        let arrive = Some(some_rate(text)?);
        Ok(change(&mut plan, "arrivals", |keys| keys.arrive, |keys| LoadKeys { arrive, ..keys })?)
    });
    flags.given(&flag::TOTAL, |text| -> Changed {
        let total = Some(connections(text)?);
        Ok(change(&mut plan, "arrivals", |keys| keys.arrive, |keys| LoadKeys { total, ..keys })?)
    });
    flags.given(&flag::REQUESTS, |text| -> Changed {
        let wanted = requests(text)?;
        match plan.populations.as_mut_slice() {
            [one] if !one.comes_and_goes() => one.requests = Some(wanted),
            [_] => return Err("arrivals have total and calls; use --total".into()),
            all => {
                return Err(format!("the scenario has {} populations; set it in the file", all.len()).into());
            }
        }
        if let ([stage], None) = (plan.stages.as_mut_slice(), flags_duration) {
            stage.hold = Hold::Forever;
        }
        Ok(())
    });
    flags.given(&flag::RAMP, |text| -> Changed {
        let wanted = ramp(text)?;
        the_one(&mut plan.stages, |stage| stage.ramp != Ramp::Adaptive, "ramp", "ramp")?.ramp = wanted;
        Ok(())
    });
    flags.given(&flag::DURATION, |text| -> Changed {
        let wanted = hold(text)?;
        let last = plan.stages.last().map(|stage| stage.name.clone());
        let has = |stage: &Stage| stage.hold != Hold::For(units::Nanos::ZERO);
        let stage = the_one(&mut plan.stages, has, "hold", "for")?;
        if wanted == Hold::Forever && last.as_ref() != Some(&stage.name) {
            return Err(format!("stages follow {:?}; use a time", stage.name).into());
        }
        stage.hold = wanted;
        Ok(())
    });
    plan
}

/// Whether a flag was valid and could change the plan.
type Changed = Result<(), Box<dyn Error>>;

/// Sets the total number of connections; several populations keep their proportions, each with at least one.
fn spread(plan: &mut Plan, wanted: u32) -> Result<(), String> {
    let loads = plan.populations.iter_mut().map(|population| &mut population.load);
    let mut each: Vec<(&mut Load, u32)> =
        loads.filter_map(|load| load.keys().connections.map(|own| (load, own))).collect();
    let whole: u64 = each.iter().map(|(_, own)| u64::from(*own)).sum();
    if each.is_empty() {
        return Err("no population of the scenario holds connections; use --arrive or --total".to_owned());
    }
    if (wanted as usize) < each.len() {
        return Err(format!("{} populations hold connections; use at least {}", each.len(), each.len()));
    }
    // Each population takes its part of what is left, so that the rounded parts add up to the total.
    let (mut left, mut whole) = (u64::from(wanted), whole);
    let mut others = each.len() as u64;
    for (load, own) in &mut each {
        others -= 1;
        let own = u64::from(*own);
        let share = (u128::from(left) * u128::from(own) + u128::from(whole / 2)) / u128::from(whole.max(1));
        let share = (share as u64).clamp(1, left - others);
        **load = LoadKeys { connections: Some(share as u32), ..load.keys() }.load();
        (left, whole) = (left - share, whole - own);
    }
    Ok(())
}

/// Changes the load of the only population with `what`, which is the one whose load has a value for `key`.
fn change<T>(
    plan: &mut Plan,
    what: &str,
    key: impl Fn(LoadKeys) -> Option<T>,
    changed: impl Fn(LoadKeys) -> LoadKeys,
) -> Result<(), String> {
    let loads = plan.populations.iter_mut().map(|population| &mut population.load);
    let mut having: Vec<&mut Load> = loads.filter(|load| key(load.keys()).is_some()).collect();
    match having.as_mut_slice() {
        [load] => **load = changed(load.keys()).load(),
        [] => return Err(format!("no population of the scenario has {what}; set it in the file")),
        all => return Err(format!("{} populations have {what}; set it in the file", all.len())),
    }
    Ok(())
}

/// The only stage that has something; if none has it, the only stage.
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
