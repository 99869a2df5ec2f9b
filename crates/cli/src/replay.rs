//! `throng replay`: a stored run goes through the sinks again.

use std::{
    fs,
    io::{self, stderr},
    time::{Duration, UNIX_EPOCH},
};

use exporters::{Exporters, HlogFile};
use plan::{Influx, Otlp};
use samples::Sink;
use store::{Store, StoredRun};
use view::{Classic, Line};

use crate::{Failure, answer, args::ReplayArgs, outputs::Outputs, run, runs, say};

/// Replays; returns the exit status.
pub(crate) fn replay(args: &ReplayArgs) -> Result<u8, Failure> {
    let Wanted { live, influx, otlp } = words(args)?;
    let (store, stored) = runs::find(&args.run)?;
    let (mut line, mut classic) = (Line::new(stderr()), Classic::new(stderr()));
    let live: Option<&mut dyn Sink> = match live {
        Live::Line => Some(&mut line),
        Live::Classic => Some(&mut classic),
        Live::Off => None,
    };
    let mut exporters = Exporters::patient(stored.record.began_ms);
    let mut outputs = Outputs::default();
    run::files(&mut exporters, args.csv.as_ref(), args.jsonl.as_ref(), &mut outputs)?;
    run::parquet(&mut exporters, args.parquet.as_deref(), &mut outputs)?;
    run::json_file(args.json.as_deref(), &mut outputs)?;
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut outputs, &mut exporters];
    sinks.extend(live);
    let ticks = match &args.hlog {
        None => store.replay(&stored, &mut sinks).map_err(Failure::machine)?,
        Some(file) => logged(file, &store, &stored, &mut sinks)?,
    };
    let troubles = exporters.end().troubles;
    if !troubles.is_empty() {
        return Err(Failure::machine(troubles.join("\n")));
    }
    let influx = influx.as_ref().map(run::influx_server).transpose()?;
    for server in influx.into_iter().chain(otlp.as_ref().map(run::otlp_server)) {
        let sent = server.send(&store, &stored);
        sent.map_err(|why| Failure::machine(format!("{}: {why}", server.name())))?;
    }
    summary(args, &stored)?;
    say(&format!("throng: run {} replayed: {ticks} ticks", stored.id));
    Ok(0)
}

/// What was judged when it ran; nothing, of a run that did not come to its end.
fn summary(args: &ReplayArgs, stored: &StoredRun) -> Result<(), Failure> {
    let json = || stored.summary.as_ref().map(|summary| format!("{summary:#}\n"));
    match (args.json.as_deref(), json()) {
        (None, _) => Ok(()),
        (Some(_), None) => Err(Failure::machine(format!("--json: this run has no summary: {}", stored.id))),
        (Some("-"), Some(json)) => answer(&json),
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

enum Live {
    Line,
    Classic,
    Off,
}

struct Wanted {
    live: Live,
    influx: Option<Influx>,
    otlp: Option<Otlp>,
}

/// Reads the words; all mistakes at once.
fn words(args: &ReplayArgs) -> Result<Wanted, Failure> {
    let mut mistakes = Vec::new();
    let live = match args.live.as_str() {
        "line" => Live::Line,
        "classic" => Live::Classic,
        "off" => Live::Off,
        other => {
            mistakes.push(format!("--live: {other:?} is not supported; use line, classic or off"));
            Live::Off
        }
    };
    let parse = |url: &String| Influx::parse(url, args.influx_token_file.clone(), &run::resolve);
    let influx = args.influx.as_ref().map(parse).transpose().unwrap_or_else(|why| {
        mistakes.push(format!("--influx: {why}"));
        None
    });
    let otlp =
        args.otlp.as_ref().map(|url| Otlp::parse(url, &run::resolve)).transpose().unwrap_or_else(|why| {
            mistakes.push(format!("--otlp: {why}"));
            None
        });
    if mistakes.is_empty() { Ok(Wanted { live, influx, otlp }) } else { Err(Failure::words(mistakes)) }
}
