//! A long run of a lab: prints the status now and then, and finally the drift.

use std::sync::atomic::Ordering::Relaxed;

use lab::{Drift, Lab, Second, Stretch, drifts, stretches};
use units::{Bytes, Clock, Count, Nanos};

use super::trials::{self, How, Trial};
use crate::{EXIT_INTERRUPTED, Failure, answer, args::LabSoakArgs, say, signals};

/// How often the status is printed.
const CHECKPOINTS: u64 = 20;
/// For the trend; the shortest is of three seconds.
const MOMENTS: usize = 60;

/// Soaks; returns the exit status.
pub(super) fn soak(lab: &Lab, args: &LabSoakArgs) -> Result<u8, Failure> {
    let time = trials::time(&args.time)?;
    let experiment = lab.soak.as_ref().ok_or_else(|| {
        Failure::words([format!("{} has no [soak] in its lab.toml: {}", lab.name, lab.folder.display())])
    })?;
    let results = trials::results(args.results.as_deref())?;
    let chosen = trials::chosen(lab, [experiment], &args.variant)?.swap_remove(0);
    let missing = trials::missing(&chosen, args.at.as_deref());
    if !missing.is_empty() {
        return Err(Failure::machine(missing.join("\n")));
    }
    let stop = signals::order_to_stop(false).map_err(Failure::machine)?;
    let at = args.at.as_deref().map(trials::place).transpose()?;
    let how = How { scale: args.scale, time: Some(time), at, stop: &stop, quiet: true };
    let trial = Trial::start(lab, &chosen, &how)?;
    let (clock, each) = (Clock::start(), time.0 / CHECKPOINTS);
    let (mut next, mut told) = (each, 0);
    let (mut outcome, seconds) = trial.end(&mut |clients| {
        if clock.now().0 >= next {
            next += each;
            // With the last printed one, from which increments are computed.
            let seconds = clients.seconds(told.max(1) - 1);
            let (before, since) = seconds.split_at(usize::from(told > 0).min(seconds.len()));
            if !since.is_empty() {
                say(&checkpoint(&Stretch::of(before.last(), since)));
            }
            told += since.len();
        }
    })?;
    let held: Vec<Second> = seconds.into_iter().filter(Second::is_at_full_load).collect();
    outcome.drift = drifts(&stretches(&held, MOMENTS.min(held.len() / 3)));
    let drifting: Vec<&Drift> = outcome.drift.iter().filter(|drift| drift.drifts).collect();
    let mut text = trials::told(lab, experiment, &outcome);
    text += &lab::wide(lab::DRIFT_HEAD, &outcome.drift.iter().map(Drift::row).collect::<Vec<_>>());
    text += &match (outcome.drift.is_empty(), drifting.is_empty()) {
        (true, _) if held.is_empty() => "  full load was never reached, so drift was not tested\n".to_owned(),
        (true, _) => "  too short to test for drift; use --for 1m or longer\n".to_owned(),
        (false, true) => format!("  no drift over {time}\n"),
        (false, false) => drifting.iter().map(|drift| format!("  {}\n", drift.told())).collect(),
    };
    text.extend(outcome.pauses.iter().map(|pause| format!("  {}\n", pause.told())));
    answer(&text)?;
    if stop.load(Relaxed) {
        return Ok(EXIT_INTERRUPTED);
    }
    trials::keep(&outcome, &results)?;
    Ok(u8::from(!outcome.expected || !drifting.is_empty()))
}

/// The status over some time, on a line.
fn checkpoint(stretch: &Stretch) -> String {
    let bytes = |n: Option<f64>| n.map_or("–".to_owned(), |n| Bytes(n as u64).brief().to_string());
    let time = |us: Option<f64>| us.map_or("–".to_owned(), lab::micros);
    let mut line = format!(
        "throng: {}  {} open  {} lost  {:.0} responses/s  p50 {}  p99 {}  longest {}  server {}  throng {}",
        Nanos::from_secs(stretch.at_s as u64).brief(),
        Count(stretch.open as u64),
        Count(stretch.dropped as u64),
        stretch.answers_per_s,
        time(stretch.p50_us),
        time(stretch.p99_us),
        time(stretch.max_us),
        bytes(stretch.target_bytes),
        bytes(stretch.own_bytes),
    );
    line.extend(stretch.gc_pause_ms.map(|ms| format!("  paused {ms:.0} ms")));
    line
}
