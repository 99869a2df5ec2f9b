//! `throng find`: the largest load that the target bears.

use host::Root;
use plan::{Flags, Plan};
use run::{By, Find, Interrupt};
use units::{Count, Nanos};

use crate::{
    EXIT_INTERRUPTED, Failure, args::FindArgs, outputs::Outputs, run as verb, say, scenario, signals,
};

/// Time at full load of each step, unless `--duration` says otherwise.
const DWELL: &str = "5s";
/// Between two requests of a connection that is only held, unless `--think` says otherwise.
const THINK: &str = "30s..90s";
/// The probe lane, unless `--probe` says otherwise.
const PROBE: &str = "20/s";

/// Searches; returns the exit status.
pub(crate) fn find(args: &FindArgs) -> Result<u8, Failure> {
    let (by, most) = words(args)?;
    let (plan, dwell) = plan(args, by)?;
    verb::json_file(args.run.json.as_deref(), &mut Outputs::default())?;
    let interrupt = Interrupt::default();
    let ask = interrupt.clone();
    signals::on_signal(move || ask.set()).map_err(Failure::machine)?;
    let root = Root::real();
    let most = match most {
        Some(most) => most,
        None => run::most(by, &plan, &root).map_err(Failure::machine)?,
    };
    say(&format!("{}: up to {} {}, {dwell} each", plan.text, Count(most), by.unit()));
    let mut tell = |line: &str| say(&format!("throng: {line}"));
    let mut show = |point: &samples::Point| say(&view::find_line(point, by.unit()));
    let how = Find { by, most, dwell: dwell.max(Nanos::from_secs(1)) };
    let found = run::find(how, &plan, &root, &interrupt, &mut tell, &mut show).map_err(Failure::machine)?;
    let text = view::find_text(&found, by.unit());
    crate::tell(&text, args.run.json.as_deref(), || view::find_json(&found))?;
    Ok(if interrupt.is_set() { EXIT_INTERRUPTED } else { found.exit_status() })
}

/// What each step does, and for how long.
fn plan(args: &FindArgs, by: By) -> Result<(Plan, Nanos), Failure> {
    let mut flags = args.run.flags();
    let dwell = flags.duration.get_or_insert_with(|| DWELL.to_owned()).clone();
    let plan = match flags.target.clone().filter(|target| plan::scenario::is_file(target)) {
        // A step lasts as long as the search says, whatever the scenario's stages do.
        Some(file) => scenario::read(&file, &Flags { duration: None, ..flags })?.0,
        None => {
            flags.probe.get_or_insert_with(|| PROBE.to_owned());
            if by != By::Rate && by != By::Arrival && args.run.has_requests() {
                flags.think.get_or_insert_with(|| THINK.to_owned());
            }
            verb::plan(&flags)?
        }
    };
    match Nanos::parse(&dwell) {
        Ok(dwell) => Ok((plan, dwell)),
        Err(_) => Err(Failure::words([format!("--duration: a search step cannot last {dwell:?}; use 5s")])),
    }
}

fn words(args: &FindArgs) -> Result<(By, Option<u64>), Failure> {
    let mut mistakes = Vec::new();
    let by = match args.by.as_deref() {
        None | Some("connections") => By::Connections,
        Some("arrival") => By::Arrival,
        Some("burst") => By::Burst,
        Some("rate") => By::Rate,
        Some(other) => {
            mistakes
                .push(format!("--by: {other:?} is not supported; use connections, arrival, burst or rate"));
            By::Connections
        }
    };
    let most = args.max.as_deref().map(|text| match Count::parse(text) {
        Ok(Count(n @ 1..)) => n,
        _ => {
            mistakes.push(format!("--max: {text:?} is not a number; use 100k"));
            0
        }
    });
    let metrics = [
        ("--csv", &args.run.csv),
        ("--jsonl", &args.run.jsonl),
        ("--parquet", &args.run.parquet),
        ("--prometheus", &args.run.prometheus),
        ("--influx", &args.run.influx),
        ("--otlp", &args.run.otlp),
        ("--hlog", &args.run.hlog),
    ];
    for (flag, asked) in metrics {
        if let Some(asked) = asked {
            mistakes.push(format!(
                "{flag}: not supported by `throng find`; use it with `throng run` at the \
            load found: {asked:?}"
            ));
        }
    }
    let shown =
        [("--dashboard", &args.run.dashboard), ("--out", &args.run.out), ("--report", &args.run.report)];
    for (flag, asked) in shown {
        if let Some(asked) = asked {
            mistakes.push(format!(
                "{flag}: not supported by `throng find`; use it with `throng run` at the \
            load found: {asked:?}"
            ));
        }
    }
    if args.run.target_gc {
        mistakes.push(
            "--target-gc: not supported by `throng find`, whose steps would fail on the pauses; use it \
            with `throng run` at the load found"
                .to_owned(),
        );
    }
    if let Some(asked) = &args.run.format {
        mistakes.push(format!(
            "--format: not supported by `throng find`; remove it or use --json FILE: {asked:?}"
        ));
    }
    if let Some(asked) = args.run.live.as_deref().filter(|live| !["auto", "line", "off"].contains(live)) {
        mistakes.push(format!(
            "--live: not supported by `throng find`, which prints a line per step; \
        remove it: {asked:?}"
        ));
    }
    if let Some(tag) = args.run.tags.first() {
        mistakes.push(format!(
            "--tag: a search is not stored; use it with `throng run` at the load found: \
        {tag:?}"
        ));
    }
    if mistakes.is_empty() { Ok((by, most)) } else { Err(Failure::words(mistakes)) }
}
