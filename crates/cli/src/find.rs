//! `throng find`: the largest load that the target sustains.

use std::path::Path;

use fleet::{Agents, Kubernetes};
use host::remote::Token;
use plan::{
    Flag, Flags, Hold, Plan, Stage,
    flag::{self, FLAGS},
};
use run::{Next, Shown};
use samples::FindSummary;
use units::{Count, Date};

use crate::{
    EXIT_INTERRUPTED, Failure,
    agent::{self, Place},
    args::{FindArgs, refused_by_find},
    cluster::Cluster,
    files::{Files, Refused},
    mistakes::Mistakes,
    number,
    output::{self, STDOUT},
    plans::{self, Scenario},
    print_stderr,
    search::{self, Asked, How},
    signals,
};

/// Searches; returns the exit status.
pub(crate) fn find(args: &FindArgs, flags: Flags) -> Result<u8, Failure> {
    let Wanted { how, flags, plan, scenario } = read(args, flags)?;
    let ((by, dwell), plan) = (how.without_mistakes(), plans::settled(plan, true));
    let outputs = Outputs::open(&flags)?;
    let (interrupt, began) = (signals::interrupt()?, units::date().into());
    let cluster = match how.most.filter(|_| is_launched(&flags)) {
        None => None,
        Some(most) => Cluster::launch(&endless(by.plan(&plan, most, dwell)), &flags, &interrupt)?,
    };
    let place = agent::place(&flags, scenario.as_ref(), cluster.as_ref(), &interrupt)?;
    // The broker ends last: agents learn over it that the search is over.
    let (_broker, mut agents) = place.map_or((None, None), |Place { link, job, broker }| {
        (broker, Some(Agents::new(link, job, interrupt.clone())))
    });
    let of_fleet = if agents.is_some() { "--fleet: " } else { "" };
    let failed = |why: String| Failure::waiting(format!("{of_fleet}{why}"), &interrupt);
    let most = how.most.map_or_else(|| search::most(by, &plan, agents.as_mut()).map_err(failed), Ok)?;
    let say = |line: &str| {
        if flags.get(&flag::LIVE) != Some("off") {
            print_stderr(line);
        }
    };
    let search = how.up_to(most);
    let (most, max_time) = (Count(most), search.max_time);
    say(&format!("{}: up to {most} {}, {dwell} each, {max_time} at most", plan.text, by.unit()));
    let mut show = |shown: Shown<'_>| {
        say(&match shown {
            Shown::Next(Next { load, passed, failed, left }) => {
                view::find_next(load, (passed, failed), left, by.unit())
            }
            Shown::Step(point) => view::find_line(point, by.unit()),
        });
    };
    let found = search::search(search, &plan, agents.as_mut(), &interrupt, &mut show)?;
    let status = if found.interrupted { EXIT_INTERRUPTED } else { found.exit_status() };
    output::end(status, outputs.write(&found, began))
}

/// Where the result goes, besides the terminal.
struct Outputs<'a> {
    json: Option<&'a str>,
    /// The others: which flag each is of, its file, and how it is made of a search that began then.
    others: Vec<(&'static Flag, &'a str, Made)>,
}

type Made = fn(&FindSummary, Date) -> String;

impl Outputs<'_> {
    /// Checks that all of them can be written.
    fn open(flags: &Flags) -> Result<Outputs<'_>, Failure> {
        let (mut files, mut refused) = (Files::default(), Refused::default());
        let json = flags.get(&flag::JSON);
        refused.note(files.json(json));
        let mut others: Vec<(&Flag, &str, Made)> = Vec::new();
        others.extend(flags.get(&flag::JUNIT).map(|file| (&flag::JUNIT, file, view::find_junit as Made)));
        if let Some(file) = flags.get(&flag::REPORT) {
            others.extend(refused.note(report(file)).map(|made| (&flag::REPORT, file, made)));
        }
        for (flag, file, _) in &others {
            refused.note(files.whole(&flag.place(), file));
        }
        refused.end(Some(Outputs { json, others }))
    }

    /// Writes them, and the text to what is left: each, even if others fail.
    fn write(&self, found: &FindSummary, began: Date) -> Result<(), Failure> {
        let text = view::find_text(found, &found.unit);
        let mut missing = Refused::default();
        for (flag, file, made) in &self.others {
            missing.attempt(|| output::write(&flag.place(), file, &made(found, began)));
        }
        // One of them at most goes to standard output.
        let is_taken = self.others.iter().any(|(_, file, _)| *file == STDOUT);
        if is_taken {
            missing.note(crate::print_text(&text, true));
            let json = || self.json.map_or(Ok(()), |file| output::write("--json", file, &view::json(found)));
            missing.note(json());
        } else {
            missing.note(crate::print_result(&text, self.json, || view::json(found)));
        }
        missing.end(Some(()))
    }
}

/// The form of a report, by the name of its file. What goes to standard output is HTML.
fn report(file: &str) -> Result<Made, Failure> {
    match Path::new(file).extension().and_then(|ending| ending.to_str()) {
        _ if file == STDOUT => Ok(view::search_report_html),
        Some("html") => Ok(view::search_report_html),
        Some("json") => Ok(view::search_report_json),
        _ => Err(Failure::usage([format!(
            "--report: of a search, use a file that ends in .html or .json: {file:?}"
        )])),
    }
}

/// The same for as long as it takes: how many steps a search has is not known.
fn endless(plan: Plan) -> Plan {
    let stages = plan.stages.iter().map(|stage| Stage { hold: Hold::Forever, ..stage.clone() }).collect();
    Plan { stages, ..plan }
}

/// Whether agents are to be launched.
fn is_launched(flags: &Flags) -> bool {
    flags.get(&flag::FLEET).is_some_and(Kubernetes::is_meant)
}

/// A command line, read.
struct Wanted {
    how: How,
    /// Of each step, with what says where it takes place and where the result goes.
    flags: Flags,
    /// Not settled yet.
    plan: Plan,
    scenario: Option<Scenario>,
}

/// What is wrong with the arguments, without a single dial.
pub(crate) fn mistakes(args: &FindArgs, flags: &Flags) -> Vec<String> {
    read(args, flags.clone()).err().map_or_else(Vec::new, |failure| failure.lines)
}

/// Reads the command line; all mistakes at once.
fn read(args: &FindArgs, flags: Flags) -> Result<Wanted, Failure> {
    let mut mistakes = Mistakes::default();
    let refused = flags.refused(|flag, value| refused_by_find(flag, value).map(str::to_owned));
    refused.iter().for_each(|mistake| mistakes.add(mistake));
    // One line for each: what is refused is not read.
    let is_refused = |flag: &&&Flag| flags.all(flag).any(|value| refused_by_find(flag, value).is_some());
    let taken = FLAGS.iter().filter(is_refused).fold(flags.clone(), |taken, flag| taken.without(flag));
    let asked =
        Asked { by: args.by.as_deref(), max: args.max.as_deref(), max_time: args.max_time.as_deref() };
    let (how, flags) = How::read(asked, taken, number::Files, &mut mistakes);
    if args.max.is_none() && is_launched(&flags) {
        mistakes.add("--max: required, because agents are launched for the largest load; use --max 100k");
    }
    let planned = plans::with_scenario(&flags);
    match &planned {
        Ok((plan, _)) => {
            how.check(plan, &mut mistakes);
            let token = plan.observe.as_ref().and_then(|observe| observe.token_file.as_deref());
            mistakes.read("--observe-token-file", token, Token::read);
        }
        Err(those) => those.iter().for_each(|mistake| mistakes.add(mistake)),
    }
    let (plan, scenario) = mistakes.end(()).map(|()| planned.expect("it is no mistake"))?;
    Ok(Wanted { how, flags, plan, scenario })
}
