//! From flags to a plan on this machine: reads scenario files, and resolves names.

use std::{
    fs,
    net::{IpAddr, ToSocketAddrs},
    path::Path,
};

use host::Root;
use plan::{Environment, Flags, Mistake, Outputs, Plan, flag};

use crate::{Failure, message};

/// The plan of a command line.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) outputs: Outputs,
    /// The text of its scenario file, where it names one.
    pub(crate) scenario: Option<String>,
}

/// A plan and its outputs; all mistakes at once.
pub(crate) fn job(flags: &Flags) -> Result<Job, Failure> {
    let read = read(flags);
    let populations = read.as_ref().map_or(&[][..], |(plan, _)| &plan.populations);
    let outputs = Outputs::from_flags(flags, populations, &resolve);
    match (read, outputs) {
        (Ok((plan, scenario)), Ok(outputs)) => Ok(Job { plan: settled(plan, true), outputs, scenario }),
        (read, outputs) => Err(Failure::usage([read.err(), outputs.err()].into_iter().flatten().flatten())),
    }
}

/// A plan without outputs; all mistakes at once.
pub(crate) fn plan(flags: &Flags) -> Result<Plan, Failure> {
    read(flags).map(|(plan, _)| settled(plan, true)).map_err(Failure::usage)
}

/// The same without a single dial, and without a scenario file.
pub(crate) fn plan_unseen(flags: &Flags) -> Result<Plan, Failure> {
    plan::from_flags(flags, &environment()).map(|plan| settled(plan, false)).map_err(Failure::usage)
}

/// The plan of another machine's command line, with the text of its scenario file. Reads no file of this machine and dials
/// nothing: whoever sent it may ask for anything.
pub(crate) fn elsewhere(flags: &Flags, scenario: Option<&str>) -> Result<Plan, Failure> {
    let Some(text) = scenario else { return plan::from_flags(flags, &environment()).map_err(Failure::usage) };
    let none = |name: &str| Err(format!("{name:?} is on the coordinator's machine"));
    let file = scenario_file(flags).unwrap_or_default();
    plan::scenario::read(file, text, flags, &environment(), &none).map_err(Failure::usage)
}

/// The scenario file that the flags name.
pub(crate) fn scenario_file(flags: &Flags) -> Option<&str> {
    flags.get(&flag::TARGET).filter(|target| plan::scenario::is_file(target))
}

/// The plan, and the text of its scenario file.
fn read(flags: &Flags) -> Result<(Plan, Option<String>), Vec<Mistake>> {
    let Some(file) = scenario_file(flags) else {
        return plan::from_flags(flags, &environment()).map(|plan| (plan, None));
    };
    let text = text(Path::new(file)).map_err(|why| {
        let text = format!("the scenario {file:?} cannot be read: {why}");
        vec![Mistake { place: flag::TARGET.place(), text }]
    })?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let open = |name: &str| self::text(&folder.join(name));
    let plan = plan::scenario::read(file, &text, flags, &environment(), &open)?;
    Ok((plan, Some(text)))
}

fn text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| e.to_string())
}

fn environment() -> Environment<'static> {
    Environment { cores: cores(), seed: seed(), resolve: &resolve }
}

/// With the family that is served of each name that has both; `dials`: whether to dial for that.
fn settled(mut plan: Plan, dials: bool) -> Plan {
    run::settle(&mut plan, &Root::real(), dials, &mut message);
    plan
}

/// Processors that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, usize::from) as u32
}

/// A random number, short enough to be typed.
fn seed() -> u64 {
    units::system_random() >> 16
}

/// Resolves a name.
pub(crate) fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let addresses = (name, 0).to_socket_addrs().map_err(|e| e.to_string())?;
    Ok(addresses.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_from_elsewhere_reads_no_file_of_this_machine() {
        let file = std::env::temp_dir().join(format!("throng-elsewhere-{}.toml", std::process::id()));
        fs::write(&file, "target = \"http://127.0.0.1:80/\"").unwrap();
        let flags = Flags::new(file.display());
        let (here, elsewhere) = (read(&flags).is_ok(), elsewhere(&flags, None).is_ok());
        fs::remove_file(&file).unwrap();
        assert_eq!((here, elsewhere), (true, false));
    }
}
