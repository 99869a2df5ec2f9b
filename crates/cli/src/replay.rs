//! `throng replay`: a stored run goes through the sinks again.

use std::{
    fs,
    io::{self, stderr},
    time::{Duration, UNIX_EPOCH},
};

use exporters::{Exporters, HlogFile};
use plan::{Flags, Live, Outputs, flag};
use samples::Sink;
use store::{Store, StoredRun};
use units::Count;
use view::{Classic, Line};

use crate::{
    Failure,
    args::ReplayArgs,
    files::{Files, Refused},
    judged::Judged,
    message, metrics, plans, print_stdout, runs,
};

/// Replays; returns the exit status.
pub(crate) fn replay(args: &ReplayArgs, flags: Flags) -> Result<u8, Failure> {
    let outputs = outputs(flags)?;
    let (store, stored) = runs::find(&args.run)?;
    let (mut line, mut classic) = (Line::new(stderr()), Classic::new(stderr()));
    let live: Option<&mut dyn Sink> = match outputs.live {
        Live::Classic => Some(&mut classic),
        Live::Off => None,
        _ => Some(&mut line),
    };
    let mut exporters = Exporters::patient(stored.record.began_ms);
    let mut files = Files::default();
    let mut refused = Refused::default();
    refused.note(metrics::add_files(&mut exporters, &outputs, None, &mut files));
    refused.note(files.json(outputs.json.as_deref()));
    let judged = refused.note(Judged::open(&outputs, &mut files));
    let judged = refused.end(judged)?;
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut files, &mut exporters];
    sinks.extend(live);
    let ticks = match &outputs.hlog {
        None => store.replay(&stored, &mut sinks).map_err(Failure::machine)?,
        Some(file) => logged(file, &store, &stored, &mut sinks)?,
    };
    let troubles = exporters.end().troubles;
    if !troubles.is_empty() {
        return Err(Failure::machine(troubles.join("\n")));
    }
    for server in metrics::push_servers(&outputs)? {
        let sent = server.send(&store, &stored);
        sent.map_err(|why| Failure::machine(format!("{}: {why}", server.name())))?;
    }
    summary(outputs.json.as_deref(), &stored)?;
    judged.write_stored(&stored)?;
    message(&format!("run {} replayed: {}", stored.id, Count(ticks).of("tick")));
    Ok(0)
}

/// What was judged when it ran; nothing, of a run that did not come to its end. As the run wrote it; what another version wrote is
/// complete, but in another order.
fn summary(json_to: Option<&str>, stored: &StoredRun) -> Result<(), Failure> {
    let json = || {
        let summary = stored.summary.as_ref()?;
        let is_all = serde_json::to_value(summary).is_ok_and(|all| all == stored.figures);
        Some(if is_all { view::json(summary) } else { view::json(&stored.figures) })
    };
    match (json_to, json()) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(Failure::machine(format!("--json: this run has no summary: {}", stored.id))),
        (Some("-"), Some(json)) => print_stdout(&json),
        (Some(file), Some(json)) => {
            fs::write(file, json).map_err(|e| Failure::machine(format!("--json {file}: {e}")))
        }
    }
}

/// With its histogram log, as `throng run` writes it.
fn logged(
    file: &str,
    store: &Store,
    stored: &StoredRun,
    sinks: &mut Vec<&mut dyn Sink>,
) -> Result<u64, Failure> {
    let failed = |e: io::Error| Failure::machine(format!("--hlog {file}: {e}"));
    let mut hlog = HlogFile::new(io::BufWriter::new(fs::File::create(file).map_err(failed)?));
    let mut log = hlog.begin(UNIX_EPOCH + Duration::from_millis(stored.record.began_ms.0)).map_err(failed)?;
    let mut all: Vec<&mut dyn Sink> = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect();
    all.push(&mut log);
    let ticks = store.replay(stored, &mut all).map_err(Failure::machine)?;
    log.result().and_then(|()| hlog.finish()).map_err(failed)?;
    Ok(ticks)
}

/// Reads the flags; all mistakes at once.
fn outputs(flags: Flags) -> Result<Outputs, Failure> {
    let flags = flags.or(&flag::LIVE, "line");
    let mut mistakes = flags.refused(|flag, value| {
        let is_shown = flag.name != flag::LIVE.name || ["line", "classic", "off"].contains(&value);
        (!is_shown).then(|| "not supported by `throng replay`; use line, classic or off".to_owned())
    });
    let flags = if mistakes.is_empty() { flags } else { flags.without(&flag::LIVE) };
    match Outputs::from_flags(&flags, &[], &plans::resolve) {
        Ok(outputs) if mistakes.is_empty() => Ok(outputs),
        read => {
            mistakes.extend(read.err().into_iter().flatten());
            Err(Failure::usage(mistakes))
        }
    }
}
