//! `throng find`: the largest load that the target bears.

use std::fs;

use host::Root;
use run::{By, Find, Interrupt};
use units::{Count, Nanos};

use crate::{Failure, answer, args::FindArgs, run as verb, say, signals};

/// Time at full load of each step, unless `--duration` says otherwise.
const DWELL: &str = "5s";
/// Between two requests of a connection that is only held, unless `--think` says otherwise.
const THINK: &str = "30s..90s";
/// The probe lane, unless `--probe` says otherwise.
const PROBE: &str = "20/s";

/// Searches; returns the exit status.
pub(crate) fn find(args: &FindArgs) -> Result<u8, Failure> {
    let (by, most) = words(args)?;
    let mut flags = args.run.flags();
    flags.duration.get_or_insert_with(|| DWELL.to_owned());
    flags.probe.get_or_insert_with(|| PROBE.to_owned());
    if by != By::Rate && by != By::Arrival && args.run.is_http() {
        flags.think.get_or_insert_with(|| THINK.to_owned());
    }
    let plan = verb::plan(&flags)?;
    let plan::Hold::For(dwell) = plan.stages[0].hold else {
        return Err(Failure::words(["--duration: a step has an end, write 5s: \"forever\""]));
    };
    let interrupt = Interrupt::default();
    let ask = interrupt.clone();
    signals::on_signal(move || ask.set()).map_err(Failure::machine)?;
    let root = Root::real();
    let most = match (most, by) {
        (Some(most), _) => most,
        (None, By::Connections | By::Burst) => {
            let mut all = plan.clone();
            all.populations[0].load = plan::Load::Held { connections: u32::MAX };
            run::fitting(&all, &root).map_err(Failure::machine)?
        }
        (None, By::Arrival | By::Rate) => MOST_PER_S,
    };
    say(&format!("{}: up to {} {}, {dwell} each", plan.text, Count(most), by.unit()));
    let mut tell = |line: &str| say(&format!("throng: {line}"));
    let mut show = |point: &samples::Point| say(&sinks::find_line(point, by.unit()));
    let how = Find { by, most, dwell: dwell.max(Nanos::from_secs(1)) };
    let found = run::find(how, &plan, &root, &interrupt, &mut tell, &mut show).map_err(Failure::machine)?;
    match args.run.json.as_deref() {
        Some("-") => {
            say(sinks::find_text(&found, by.unit()).trim_end());
            answer(&sinks::find_json(&found))?;
        }
        to => {
            answer(&sinks::find_text(&found, by.unit()))?;
            if let Some(file) = to {
                let written = fs::write(file, sinks::find_json(&found));
                written.map_err(|e| Failure::machine(format!("--json {file}: {e}")))?;
            }
        }
    }
    Ok(if interrupt.is_set() { EXIT_INTERRUPTED } else { found.exit_status() })
}

/// More of them in a second than any machine takes.
const MOST_PER_S: u64 = 1_000_000;
/// Ended by a signal.
const EXIT_INTERRUPTED: u8 = 130;

fn words(args: &FindArgs) -> Result<(By, Option<u64>), Failure> {
    let mut mistakes = Vec::new();
    let by = match args.by.as_deref() {
        None | Some("connections") => By::Connections,
        Some("arrival") => By::Arrival,
        Some("burst") => By::Burst,
        Some("rate") => By::Rate,
        Some(other) => {
            mistakes.push(format!(
                "--by: {other:?} is nothing to search by: write connections, arrival, burst or rate"
            ));
            By::Connections
        }
    };
    let most = args.max.as_deref().map(|text| match Count::parse(text) {
        Ok(Count(n @ 1..)) => n,
        _ => {
            mistakes.push(format!("--max: {text:?} is not a number to search up to: write 100k"));
            0
        }
    });
    if mistakes.is_empty() { Ok((by, most)) } else { Err(Failure::words(mistakes)) }
}
