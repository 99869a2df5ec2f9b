//! `throng find`: searches for the largest load that the target sustains.

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

/// Performs the search; returns the exit status.
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
    // The broker is dropped last, because its end is how agents learn that the search is over.
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

/// The outputs besides the terminal.
struct Outputs<'a> {
    json: Option<&'a str>,
    /// The other outputs: flag, file, and the function that makes its content from the result and the time at which the search began.
    others: Vec<(&'static Flag, &'a str, Made)>,
}

type Made = fn(&FindSummary, Date) -> String;

impl Outputs<'_> {
    /// Checks that all outputs can be written.
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

    /// Writes all outputs, even if some fail. The text goes to standard error if an output goes to standard output.
    fn write(&self, found: &FindSummary, began: Date) -> Result<(), Failure> {
        let text = view::find_text(found, &found.unit);
        let mut missing = Refused::default();
        for (flag, file, made) in &self.others {
            missing.attempt(|| output::write(&flag.place(), file, &made(found, began)));
        }
        // At most one output may go to standard output.
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

/// The format of a report, by the extension of its file; HTML for standard output.
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

/// The plan with holds that do not end, because the duration of a search is not known.
fn endless(plan: Plan) -> Plan {
    let stages = plan.stages.iter().map(|stage| Stage { hold: Hold::Forever, ..stage.clone() }).collect();
    Plan { stages, ..plan }
}

/// Whether agents are to be launched for the search.
fn is_launched(flags: &Flags) -> bool {
    flags.get(&flag::FLEET).is_some_and(Kubernetes::is_meant)
}

/// A parsed command line.
struct Wanted {
    how: How,
    /// The flags for each step, and those for the fleet and the outputs.
    flags: Flags,
    /// The plan, whose names have not been settled to an address family yet ([`plans::settled`]).
    plan: Plan,
    scenario: Option<Scenario>,
}

/// The mistakes in the arguments; nothing is dialled.
pub(crate) fn mistakes(args: &FindArgs, flags: &Flags) -> Vec<String> {
    read(args, flags.clone()).err().map_or_else(Vec::new, |failure| failure.lines)
}

/// Parses the command line; reports all mistakes at once.
fn read(args: &FindArgs, flags: Flags) -> Result<Wanted, Failure> {
    let mut mistakes = Mistakes::default();
    let refused = flags.refused(|flag, value| refused_by_find(flag, value).map(str::to_owned));
    refused.iter().for_each(|mistake| mistakes.add(mistake));
    // Each flag gets at most one message: a refused flag is not parsed.
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
