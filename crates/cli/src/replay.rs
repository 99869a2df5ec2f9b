//! `throng replay`: feeds a stored run to the live view and the exporters again.

use std::{
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
    message, metrics,
    output::{self, Stream},
    plans, runs,
};

/// Replays a stored run; returns the exit status.
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
    let log = outputs.hlog.as_deref().and_then(|file| refused.note(files.stream("--hlog", file)));
    let judged = refused.end(judged)?;
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut files, &mut exporters];
    sinks.extend(live);
    let mut missing = Refused::default();
    let ticks = match log {
        None => store.replay(&stored, &mut sinks).map_err(Failure::machine)?,
        Some(out) => {
            let (ticks, written) = logged(out, &store, &stored, &mut sinks)?;
            let file = outputs.hlog.as_deref().unwrap_or_default();
            missing.note(written.map_err(|e| output::unwritten("--hlog", file, &e)));
            ticks
        }
    };
    missing.note(summary(outputs.json.as_deref(), &stored));
    missing.note(judged.write_stored(&stored));
    for trouble in exporters.end().troubles {
        missing.note::<()>(Err(Failure::machine(trouble)));
    }
    for server in metrics::push_servers(&outputs)? {
        let sent = server.send(&store, &stored);
        missing.note(sent.map_err(|why| Failure::machine(format!("{}: {why}", server.name()))));
    }
    missing.end(Some(()))?;
    message(&format!("run {} replayed: {}", stored.id, Count(ticks).of("tick")));
    Ok(0)
}

/// Prints the stored summary, if the run has finished. The JSON is as the run wrote it; that of another version contains all fields,
/// but in another order.
fn summary(json_to: Option<&str>, stored: &StoredRun) -> Result<(), Failure> {
    let json = || {
        let summary = stored.summary.as_ref()?;
        let is_all = serde_json::to_value(summary).is_ok_and(|all| all == stored.figures);
        Some(if is_all { view::json(summary) } else { view::json(&stored.figures) })
    };
    match (json_to, json()) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(Failure::machine(format!("--json: this run has no summary: {}", stored.id))),
        (Some(file), Some(json)) => output::write("--json", file, &json),
    }
}

/// Replays the run and also writes its histogram log, as `throng run` does; returns the number of ticks and the result of the log.
fn logged(
    out: Stream,
    store: &Store,
    stored: &StoredRun,
    sinks: &mut [&mut dyn Sink],
) -> Result<(u64, io::Result<()>), Failure> {
    let mut hlog = HlogFile::new(io::BufWriter::new(out));
    let mut log =
        hlog.begin(UNIX_EPOCH + Duration::from_millis(stored.record.began_ms.0)).map_err(Failure::machine)?;
    let mut all: Vec<&mut dyn Sink> = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect();
    all.push(&mut log);
    let ticks = store.replay(stored, &mut all).map_err(Failure::machine)?;
    Ok((ticks, log.result().and_then(|()| hlog.finish())))
}

/// Parses the flags; reports all mistakes at once.
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
