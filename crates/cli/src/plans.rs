//! Makes a plan from flags on this machine: reads scenario files and the files that they name, and resolves names.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, ToSocketAddrs},
    path::Path,
};

use host::Root;
use plan::{Environment, Flags, Mistake, Outputs, Plan, Population, Source, flag};

use crate::{
    Failure,
    contents::{self, Place},
    message,
};

/// The plan of a command line.
pub(crate) struct Job {
    pub(crate) plan: Plan,
    pub(crate) outputs: Outputs,
    /// The scenario file, if there is one.
    pub(crate) scenario: Option<Scenario>,
}

/// The text of a scenario file.
pub(crate) struct Scenario {
    pub(crate) text: String,
}

/// The plan and outputs of a command line; reports all mistakes at once.
pub(crate) fn job(flags: &Flags) -> Result<Job, Failure> {
    let (plan, scenario, outputs) = read_job(flags).map_err(Failure::usage)?;
    untyped(&plan, scenario.is_some()).iter().for_each(|line| message(line));
    Ok(Job { plan: settled(plan, true), outputs, scenario })
}

/// A line about content without a Content-Type, which many services refuse or ignore; `None` if there is none.
fn untyped(plan: &Plan, is_file: bool) -> Option<String> {
    let mut populations = plan.populations.clone();
    let kind = populations.iter_mut().flat_map(Population::requests).find_map(|request| request.untyped())?;
    let fix = match is_file {
        true => format!("headers = {{ Content-Type = {kind:?} }}"),
        false => format!("-H 'Content-Type: {kind}'"),
    };
    Some(format!("note: the content has no Content-Type, which many services need; add {fix}"))
}

/// The mistakes in the flags of a run; nothing is dialled.
pub(crate) fn mistakes(flags: &Flags) -> Vec<String> {
    read_job(flags).err().into_iter().flatten().map(|mistake| mistake.to_string()).collect()
}

fn read_job(flags: &Flags) -> Result<(Plan, Option<Scenario>, Outputs), Vec<Mistake>> {
    let read = read(flags);
    let populations = read.as_ref().map_or(&[][..], |(plan, _)| &plan.populations);
    let outputs = Outputs::from_flags(flags, populations, &resolve);
    let refused = flags.refused_without_fleet();
    match (read, outputs) {
        (Ok((plan, scenario)), Ok(outputs)) if refused.is_empty() => Ok((plan, scenario, outputs)),
        (read, outputs) => {
            let mistakes = [read.err(), outputs.err(), Some(refused)];
            Err(mistakes.into_iter().flatten().flatten().collect())
        }
    }
}

/// A plan without outputs; reports all mistakes at once.
pub(crate) fn plan(flags: &Flags) -> Result<Plan, Failure> {
    let (plan, scenario) = with_scenario(flags).map_err(Failure::usage)?;
    untyped(&plan, scenario.is_some()).iter().for_each(|line| message(line));
    Ok(settled(plan, true))
}

/// A plan without outputs before it is [settled], with its scenario file; reports all mistakes at once.
pub(crate) fn with_scenario(flags: &Flags) -> Result<(Plan, Option<Scenario>), Vec<Mistake>> {
    let refused = flags.refused_without_fleet();
    match read(flags) {
        Ok(read) if refused.is_empty() => Ok(read),
        other => Err(other.err().into_iter().flatten().chain(refused).collect()),
    }
}

/// A plan without outputs, settled without dialling; reports all mistakes at once.
pub(crate) fn plan_unseen(flags: &Flags) -> Result<Plan, Failure> {
    read(flags).map(|(plan, _)| settled(plan, false)).map_err(Failure::usage)
}

/// The plan of a command line that comes from another machine, with the text of its scenario file; `open` reads the files that came
/// with it. Since the other machine may request anything, no file of this machine is read and nothing is dialled. Certificates and
/// keys are not read yet.
pub(crate) fn elsewhere(
    flags: &Flags,
    scenario: Option<&str>,
    open: impl Fn(&str) -> Result<Source, String>,
) -> Result<Plan, Failure> {
    let file = scenario_file(flags).unwrap_or_default();
    let plan = match scenario {
        None => plan::from_flags(flags, &environment()),
        Some(text) => plan::scenario::read(file, text, flags, &environment(), &open),
    };
    plan.map_err(Failure::usage)
}

/// The scenario file that the flags name, if any.
pub(crate) fn scenario_file(flags: &Flags) -> Option<&str> {
    flags.get(&flag::TARGET).filter(|target| plan::scenario::is_file(target))
}

/// The plan, with its scenario file.
fn read(flags: &Flags) -> Result<(Plan, Option<Scenario>), Vec<Mistake>> {
    let Some(file) = scenario_file(flags) else {
        let mut plan = plan::from_flags(flags, &environment_of(flags))?;
        let mistakes = read_files(&mut plan, flags, Path::new(""), &|flag, _| flag.to_owned());
        return if mistakes.is_empty() { Ok((plan, None)) } else { Err(mistakes) };
    };
    let text = scenario_text(file).map_err(|text| vec![Mistake { place: flag::TARGET.place(), text }])?;
    let plan = read_text(file, &text, flags)?;
    Ok((plan, Some(Scenario { text })))
}

/// The text of a scenario file.
///
/// # Errors
/// The file cannot be read; the message contains the reason.
pub(crate) fn scenario_text(file: &str) -> Result<String, String> {
    text(Path::new(file)).map_err(|why| format!("the scenario {file:?} cannot be read: {why}"))
}

/// The plan of a scenario file with this text.
pub(crate) fn read_text(file: &str, text: &str, flags: &Flags) -> Result<Plan, Vec<Mistake>> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let open = |name: &str| self::text(&folder.join(name)).map(Source::Text);
    let read = plan::scenario::read(file, text, flags, &environment_of(flags), &open);
    let mut plan = read.map_err(|mistakes| [mistakes, contents::missing_env(file, text)].concat())?;
    let place = |flag: &str, named: &str| contents::place_of_file(file, text, flag, named);
    let of_env = contents::set_env(&mut plan, file, text);
    let mistakes = [of_env, read_files(&mut plan, flags, folder, &place)].concat();
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}

/// Reads the files that a plan names, relative to `folder`; returns the mistakes.
fn read_files(plan: &mut Plan, flags: &Flags, folder: &Path, place: Place) -> Vec<Mistake> {
    let mut mistakes = certificates(plan, |name| pem_text(&folder.join(name)), place);
    mistakes.extend(contents::read(plan, folder, place));
    if mistakes.is_empty() && flags.get(&flag::FLEET).is_some() {
        mistakes.extend(contents::for_agents(plan));
    }
    mistakes
}

/// Adds the certificates and keys that the plan names, read by `open`.
pub(crate) fn with_certificates(
    mut plan: Plan,
    open: impl Fn(&str) -> Result<String, String>,
) -> Result<Plan, Vec<Mistake>> {
    let mistakes = certificates(&mut plan, open, &|flag, _| flag.to_owned());
    if mistakes.is_empty() { Ok(plan) } else { Err(mistakes) }
}

fn certificates(
    plan: &mut Plan,
    open: impl Fn(&str) -> Result<String, String>,
    place: Place,
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for population in plan.all_populations_mut() {
        for (flag, pem) in population.tls.files() {
            match open(&pem.file) {
                Ok(text) => pem.text = text,
                Err(why) => {
                    let text = format!("{:?} cannot be read: {why}", pem.file);
                    mistakes.push(Mistake { place: place(flag, &pem.file), text });
                }
            }
        }
        if mistakes.is_empty()
            && let Some(Err((flag, why))) = engine::secured(population).map(|tls| tls.check())
        {
            let file = population.tls.files().find(|(own, _)| *own == flag).map(|(_, pem)| pem.file.clone());
            mistakes.push(match file {
                Some(file) => Mistake { place: place(flag, &file), text: in_file(&file, &why) },
                None => Mistake { place: flag.to_owned(), text: why },
            });
        }
    }
    // The probe has copies of a population's certificates, and with them the same mistakes.
    mistakes.dedup();
    mistakes
}

/// A message about the contents of a file; `why` may begin with "it", as in `it has no certificate`.
pub(crate) fn in_file(file: &str, why: &str) -> String {
    match why.strip_prefix("it ") {
        Some(why) => format!("{file:?} {why}"),
        None => format!("{file:?}: {why}"),
    }
}

/// Reads a file with certificates or a key. Invalid UTF-8 is replaced, since the parser of the contents reports what is wrong.
pub(crate) fn pem_text(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn text(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|e| e.to_string())?;
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        format!("line {}: not UTF-8", 1 + before.iter().filter(|byte| **byte == b'\n').count())
    })
}

fn environment() -> Environment<'static> {
    Environment { cores: cores(), seed: seed(), resolve: &resolve }
}

/// The environment for a coordinator's plan. Agents resolve names themselves, and may know names that this machine does not, such as
/// those of a cluster.
fn environment_of(flags: &Flags) -> Environment<'static> {
    match flags.get(&flag::FLEET) {
        Some(_) => Environment { resolve: &resolve_or_leave, ..environment() },
        None => environment(),
    }
}

/// Resolves a name. If that fails, returns an address to which nothing can be sent, and agents resolve the name.
fn resolve_or_leave(name: &str) -> Result<Vec<IpAddr>, String> {
    resolve(name).or_else(|why| {
        message(&format!("{name:?} is resolved by the agents only; here: {why}"));
        Ok(vec![Ipv4Addr::BROADCAST.into()])
    })
}

/// Chooses the address family for names that have both. If `dials`, by dialling them.
pub(crate) fn settled(mut plan: Plan, dials: bool) -> Plan {
    run::settle(&mut plan, &Root::real(), dials, &mut message);
    plan
}

/// Number of processors that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, usize::from) as u32
}

/// A random seed, short enough to be typed.
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

    fn missing(_: &str) -> Result<Source, String> {
        Err("it was not sent".to_owned())
    }

    #[test]
    fn a_plan_from_elsewhere_reads_no_file_of_this_machine() {
        let file = std::env::temp_dir().join(format!("throng-elsewhere-{}.toml", std::process::id()));
        fs::write(&file, "target = \"http://127.0.0.1:80/\"").unwrap();
        let flags = Flags::new(file.display());
        let (here, elsewhere) = (read(&flags).is_ok(), elsewhere(&flags, None, missing).is_ok());
        fs::remove_file(&file).unwrap();
        assert_eq!((here, elsewhere), (true, false));
    }

    #[test]
    fn certificates_of_elsewhere_are_no_files_of_this_machine() {
        let flags = Flags::new("https://127.0.0.1/").with(&flag::CACERT, "/etc/hostname");
        let mut plan = elsewhere(&flags, None, missing).map_err(|failure| failure.lines).unwrap();
        let texts = plan.all_populations_mut().flat_map(|population| population.tls.files());
        assert_eq!(texts.map(|(_, pem)| pem.text.clone()).collect::<Vec<_>>(), [""]);
        let why = with_certificates(plan, |name| Err(format!("{name} was not sent"))).unwrap_err();
        assert!(why.len() == 1 && why[0].text.contains("/etc/hostname was not sent"), "{why:?}");
    }

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let flags = Flags::new("https://127.0.0.1/").with(&flag::CACERT, "/etc/passwd");
        let why: Vec<String> = read(&flags).err().unwrap().iter().map(Mistake::to_string).collect();
        let begin = "--cacert: \"/etc/passwd\" has no certificate in PEM form";
        assert!(why.len() == 1 && why[0].starts_with(begin), "{why:?}");
        assert_eq!(in_file("a.key", "its key is encrypted"), "\"a.key\": its key is encrypted");
    }

    #[test]
    fn a_name_that_only_agents_know_is_no_mistake_of_a_fleet() {
        let flags = Flags::new("http://no..name:81/");
        assert!(read(&flags).is_err());
        let (plan, _) = read(&flags.with(&flag::FLEET, "k8s")).unwrap();
        assert!(plan.populations[0].target.is_named());
        assert_eq!((plan.populations[0].target.host.as_str(), plan.ports()), ("no..name", vec![81]));
    }

    #[test]
    fn a_table_from_elsewhere_is_the_one_that_was_sent() {
        let text = "target = \"http://127.0.0.1:80/{csv users.id}\"\nconnections = 1\n[csv.users]\nfile = \"/etc/hostname\"";
        let read = |open: &dyn Fn(&str) -> Result<Source, String>| {
            elsewhere(&Flags::new("load.toml"), Some(text), open)
        };
        let sent = |name: &str| match name {
            "/etc/hostname" => Ok(Source::Text("id\n1\n".to_owned())),
            _ => missing(name),
        };
        assert!(read(&sent).is_ok(), "{:?}", read(&sent).err().map(|failure| failure.lines));
        let why = read(&missing).err().unwrap().lines.join("; ");
        assert!(why.contains("it was not sent"), "{why}");
    }
}
