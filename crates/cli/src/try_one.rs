//! `throng try`: one user's steps, as sent and received.

use std::io::{IsTerminal, stdout};

use host::Root;
use plan::{Activity, Flags, MOST_ROUNDS, Plan, Target, flag};
use samples::transcript::{Entry, Transcript};
use units::{Count, Date};
use view::{Har, Responses, coloured};

use crate::{EXIT_INTERRUPTED, Failure, args::TryArgs, files::Files, output, plans, print_stdout, signals};

/// Exit status: a response was not right.
const EXIT_WRONG: u8 = 1;

/// Prints lines, in colours on a terminal.
fn print(lines: &str) -> Result<(), Failure> {
    if stdout().is_terminal() { print_stdout(&coloured(lines)) } else { print_stdout(lines) }
}

/// Takes the steps of each population; returns the exit status.
pub(crate) fn try_one(args: &TryArgs, flags: &Flags) -> Result<u8, Failure> {
    let rounds = rounds(args.rounds.as_deref()).map_err(|why| Failure::usage([why]))?;
    let plan = plans::plan(flags)?;
    let chosen = chosen(&plan, args.population.as_deref()).map_err(|why| Failure::usage([why]))?;
    let users = users(&plan, &chosen, rounds).map_err(|why| Failure::usage([why]))?;
    let other = args.diff.as_deref().map(|url| other_target(url, flags, &users)).transpose()?;
    let mut files = Files::default();
    args.har.as_deref().map_or(Ok(()), |file| files.whole("--har", file))?;
    let mut har = Har::new(Date::from(units::date()));
    let interrupt = signals::interrupt()?;
    let take_steps = |plan: &Plan, take: &mut dyn FnMut(&Entry)| {
        ::run::one_user(plan, &Root::real(), (rounds, args.show_secrets), &interrupt, take)
            .map_err(Failure::machine)
    };
    let mut is_right = true;
    for own in &users {
        let user = &own.populations[0];
        // A user who only stays connected takes no step.
        let names = if user.activity == Activity::Idle { Vec::new() } else { user.step_names() };
        let steps: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let (mut transcript, mut responses) =
            (Transcript::new(steps.clone(), args.full), Responses::default());
        let mut printed = Ok(());
        if users.len() > 1 {
            print_stdout(&format!("population {}\n", user.name))?;
        }
        take_steps(own, &mut |entry| {
            responses.add(entry);
            har.add(entry, user.target.secure);
            let text = transcript.text(entry);
            if printed.is_ok() {
                printed = print(&text);
            }
        })?;
        printed?;
        print(&transcript.end(interrupt.is_set()))?;
        is_right &= transcript.is_right();
        if let Some(other) = other.as_ref().filter(|_| !interrupt.is_set()) {
            let mut theirs = Responses::default();
            take_steps(&towards(own, other), &mut |entry| theirs.add(entry))?;
            let (text, differing) = responses.differences(&theirs, &steps, &other.origin());
            print(&text)?;
            is_right &= differing == 0;
        }
        if interrupt.is_set() {
            break;
        }
    }
    args.har.as_deref().map_or(Ok(()), |file| output::write("--har", file, &har.json()))?;
    Ok(match is_right {
        _ if interrupt.is_set() => EXIT_INTERRUPTED,
        true => 0,
        false => EXIT_WRONG,
    })
}

/// The plan of one user of each chosen population.
fn users(plan: &Plan, chosen: &[u16], rounds: u16) -> Result<Vec<Plan>, String> {
    let users = chosen.iter().map(|nth| plan.of_one_user(*nth, rounds)).collect::<Option<_>>();
    users.ok_or_else(|| format!("--rounds: the steps of {rounds} rounds are too many; use fewer"))
}

/// The target of `--diff`.
fn other_target(url: &str, flags: &Flags, users: &[Plan]) -> Result<Target, Failure> {
    let tls = [&flag::INSECURE, &flag::CACERT].into_iter().filter_map(|own| Some((own, flags.get(own)?)));
    let flags = tls.fold(Flags::new(url), |flags, (own, value)| flags.with(own, value));
    let plan = plans::plan(&flags).map_err(|failure| Failure {
        lines: failure.lines.iter().map(|line| line.replacen("target:", "--diff:", 1)).collect(),
        ..failure
    })?;
    let other = plan.populations[0].target.clone();
    let schemes = users.iter().map(|user| user.populations[0].target.scheme);
    match schemes.into_iter().find(|scheme| *scheme != other.scheme) {
        None => Ok(other),
        Some(scheme) => {
            let why =
                format!("--diff: the steps are those of a target with {scheme}; use another one: {url:?}");
            Err(Failure::usage([why]))
        }
    }
}

/// The same plan towards another target; paths stay.
fn towards(plan: &Plan, other: &Target) -> Plan {
    let mut plan = plan.clone();
    let user = &mut plan.populations[0];
    let path = user.target.path.clone();
    user.target.clone_from(other);
    user.target.path = path;
    plan
}

fn rounds(text: Option<&str>) -> Result<u16, String> {
    let Some(text) = text else { return Ok(1) };
    let rounds = Count::parse(text).map_err(|why| format!("--rounds: {why}"))?;
    let rounds = u16::try_from(rounds.0).ok().filter(|rounds| (1..=MOST_ROUNDS).contains(rounds));
    rounds.ok_or_else(|| format!("--rounds: use 1 to {MOST_ROUNDS}; for more use throng run: {text:?}"))
}

/// The populations to try, by index.
fn chosen(plan: &Plan, name: Option<&str>) -> Result<Vec<u16>, String> {
    let names = (0..).zip(plan.populations.iter().map(|population| &population.name[..]));
    let Some(name) = name else { return Ok(names.map(|(nth, _)| nth).collect()) };
    match names.clone().find(|(_, own)| *own == name) {
        Some((nth, _)) => Ok(vec![nth]),
        None => {
            let all: Vec<&str> = names.map(|(_, own)| own).collect();
            Err(format!("--population: there is no {name:?}; use {}", all.join(", ")))
        }
    }
}
