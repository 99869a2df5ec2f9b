//! `throng compare`: compares stored runs.

use plan::Tolerance;
use samples::Verdict;
use stats::compare::{Comparison, FigureTolerance, Named};
use store::{Store, StoredRun};
use view::Report;

use crate::{
    Failure, args::CompareArgs, files::Refused, message, mistakes::Mistakes, output, print_result, runs,
};

/// Maximum number of runs in a page that overlays them.
const MAX_DRAWN: usize = 16;
/// Exit status: a group is worse than the tolerance allows.
const EXIT_WORSE: u8 = 1;

/// Compares groups of runs; returns the exit status.
pub(crate) fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let (store, groups, tolerances) = read_args(args)?;
    let drawn = args.report.as_ref().map(|_| reports(&store, &groups)).transpose()?;
    let comparison = compared(&store, groups, &tolerances)?;
    let text =
        if args.markdown { view::compare::markdown(&comparison) } else { view::compare::text(&comparison) };
    let mut missing = Refused::default();
    missing.note(print_result(&text, args.json.as_deref(), || view::compare::json(&comparison)));
    if let Some((file, drawn)) = args.report.as_ref().zip(drawn) {
        missing.note(output::write("--report", file, &view::report_html(&drawn, Some(&comparison))));
    }
    let failed: Vec<_> = comparison.judged.iter().filter(|judged| judged.failed).collect();
    for judged in &failed {
        message(&format!("--fail-if {}: {}", judged.text, judged.detail));
    }
    let status = match failed.iter().any(|judged| judged.void) {
        true => Verdict::Invalid.exit_status(),
        false if failed.is_empty() => 0,
        false => EXIT_WORSE,
    };
    output::end(status, missing.end(Some(())))
}

/// Compares groups of runs with the first one, the base.
pub(crate) fn compared(
    store: &Store,
    groups: Groups,
    tolerances: &[FigureTolerance],
) -> Result<Comparison, Failure> {
    let (groups, load) = store.compared(groups).map_err(Failure::machine)?;
    Ok(Comparison::new(groups, load, tolerances, &plan::load_args))
}

/// The reports of all runs, for a page that overlays them.
fn reports(store: &Store, groups: &Groups) -> Result<Vec<Report>, Failure> {
    let runs: Vec<&StoredRun> = groups.iter().flat_map(|(_, runs)| runs).collect();
    if runs.len() > MAX_DRAWN {
        let why = format!("--report: too many runs to overlay, at most {MAX_DRAWN}: {}", runs.len());
        return Err(Failure::usage([why]));
    }
    let report = |run: &&StoredRun| {
        let mut report = Report::of(run);
        store.replay(run, &mut [&mut report]).map(|_| report).map_err(Failure::machine)
    };
    runs.iter().map(report).collect()
}

/// The groups to compare, each with its name.
pub(crate) type Groups = Vec<(String, Vec<StoredRun>)>;

/// Parses the arguments; reports all mistakes at once.
fn read_args(args: &CompareArgs) -> Result<(Store, Groups, Vec<FigureTolerance>), Failure> {
    let store = runs::store()?;
    let (mut groups, mut mistakes) = (Groups::new(), Mistakes::default());
    for name in &args.runs {
        match group(store.as_ref(), name)? {
            found if found.is_empty() => mistakes.add(store::missing(name)),
            found => groups.push((name.clone(), found)),
        }
    }
    let runs = || groups.iter().flat_map(|(_, runs)| runs).map(|run| &run.record.header);
    let populations: Vec<String> = runs().flat_map(|header| header.populations.clone()).collect();
    let steps: Vec<String> = runs().flat_map(|header| header.steps.clone()).collect();
    let is_missing = groups.len() < args.runs.len();
    let mut tolerances = Vec::new();
    for text in &args.fail_if {
        match Tolerance::parse(text, &populations, &steps) {
            Ok(tolerance) => tolerances.push(of_figure(tolerance)),
            // An unknown name may be that of a population in a missing run, which is already reported.
            Err(why) if is_missing && why.text != *text && why.text.contains('.') => {}
            Err(why) => mistakes.add(format!("--fail-if: {why}")),
        }
    }
    mistakes.end(())?;
    Ok((store.expect("what was found is in it"), groups, tolerances))
}

/// The runs of a group: those of a tag, or a single one.
fn group(store: Option<&Store>, name: &str) -> Result<Vec<StoredRun>, Failure> {
    store.map_or(Ok(Vec::new()), |store| store.group(name).map_err(Failure::machine))
}

fn of_figure(tolerance: Tolerance) -> FigureTolerance {
    let Tolerance { text, name, figure, grows, share } = tolerance;
    FigureTolerance { text, named: Named { name, figure }, grows, share }
}
