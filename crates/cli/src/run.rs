//! `throng run`.

use std::{
    env, fs,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use exporters::{Exporters, Form, HlogFile, PushServer, Remains, background::BackgroundFile};
use host::{Root, remote::Token};
use plan::{Flags, Format, Influx, Live, Otlp, Plan, Surroundings, Tool};
use run::Interrupt;
use samples::{RunRecord, Sink, Summary};
use store::{Keeper, Kept};
use units::Date;
use view::{Classic, Dashboard, Line, Messages, Opens, Report, Terminal, format::Whole};

use crate::{
    Failure, args::RunArgs, bundle::Bundle, outputs::Outputs, report::ReportFile, runs, say, scenario,
    signals, tell,
};

/// Applies the load; returns the exit status.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let flags = args.flags();
    let (plan, scenario) = match flags.target.as_deref().filter(|target| plan::scenario::is_file(target)) {
        Some(file) => scenario::read(file, &flags).map(|(plan, text)| (plan, Some(text)))?,
        None => (plan(&flags)?, None),
    };
    if plan.live == Live::Tui {
        Terminal::can_be_shown().map_err(|why| Failure::words([format!("--live tui: {why}; use line")]))?;
    }
    if let Some(file) = &args.observe_token_file {
        Token::read(file).map_err(|why| Failure::words([format!("--observe-token-file: {why}")]))?;
    }
    let interrupt = Interrupt::default();
    let ask = interrupt.clone();
    signals::on_signal(move || ask.set()).map_err(Failure::machine)?;
    let mut whole = Whole::default();
    let mut outputs = Outputs::default();
    let bundle = args.out.as_deref().map(|folder| Bundle::open(folder, &mut outputs)).transpose()?;
    let report_files = report_files(args, bundle.as_ref(), &mut outputs)?;
    json_file(args.json.as_deref(), &mut outputs)?;
    let log = args.hlog.clone().or_else(|| bundle.as_ref().map(Bundle::hlog));
    let log = log.map(|file| log_file(file, args.hlog.is_some(), &mut outputs)).transpose()?;
    let record = runs::record(units::date().into(), scenario, &plan.tags);
    let mut report = (!report_files.is_empty()).then(|| Report::new(record.clone()));
    let mut exporters = exporters(args, bundle.as_ref(), &plan, record.began_ms, &mut outputs)?;
    let mut dashboard = dashboard(args, &plan, &record)?;
    // The files first: what was in them goes before others write.
    let mut sinks: Vec<&mut dyn Sink> = vec![&mut outputs, &mut whole, &mut exporters];
    sinks.extend(dashboard.as_mut().map(|dashboard| dashboard as &mut dyn Sink));
    sinks.extend(report.as_mut().map(|report| report as &mut dyn Sink));
    let (Applied { summary, kept }, logged) = match log {
        None => (apply(&plan, record, &interrupt, &mut sinks)?, Ok(())),
        Some(log) => logged(log, &plan, record, &interrupt, &mut sinks)?,
    };
    dashboard.into_iter().for_each(Dashboard::end);
    let reported = report.map_or(Ok(()), |mut report| {
        report.name(kept.as_ref().map_or_else(String::new, |kept| kept.id.clone()));
        report_files.into_iter().try_for_each(|file| file.write(&report))
    });
    let bundled = bundle.map_or(Ok(()), |bundle| fill(&bundle, args.hlog.as_deref(), &summary));
    let Remains { troubles, behind } = exporters.end();
    for behind in behind {
        say(&format!("throng: {}", runs::make_up(behind, kept.as_ref())));
    }
    let text = text(plan.format, &summary, whole);
    tell(&text, args.json.as_deref(), || view::json(&summary))?;
    if plan.format.tool != Tool::Throng {
        // No other tool's form has a place for what the figures are worth.
        say(view::verdict(&summary).trim_end());
    }
    logged?;
    reported?;
    bundled?;
    if troubles.is_empty() {
        Ok(summary.verdict.exit_status())
    } else {
        Err(Failure::machine(troubles.join("\n")))
    }
}

/// Where the reports go: what was there stays until they are written.
fn report_files(
    args: &RunArgs,
    bundle: Option<&Bundle>,
    outputs: &mut Outputs,
) -> Result<Vec<ReportFile>, Failure> {
    let own = args.report.as_deref().map(|file| ReportFile::open(file, outputs)).transpose()?;
    let of_bundle = bundle.map(Bundle::reports).unwrap_or_default();
    let of_bundle = of_bundle.iter().map(|file| ReportFile::named(file)).collect::<Result<Vec<_>, _>>()?;
    Ok(own.into_iter().chain(of_bundle).collect())
}

/// Checks that there is a place for `--json`.
pub(crate) fn json_file(json: Option<&str>, outputs: &mut Outputs) -> Result<(), Failure> {
    json.filter(|file| *file != "-").map_or(Ok(()), |file| outputs.whole("--json", file))
}

/// The histogram log: its name, and where it is written in the background.
type Log = (String, BackgroundFile);

/// `is_own`: not that of a bundle, which is there already.
fn log_file(name: String, is_own: bool, outputs: &mut Outputs) -> Result<Log, Failure> {
    let flag = if is_own { "--hlog" } else { "--out" };
    let file = outputs.stream(flag, &name)?;
    // By lines, so that it can be followed, and is whole up to a second that ends throng early.
    let file = BackgroundFile::new(outputs.held_back(file));
    Ok((name, file.map_err(Failure::machine)?))
}

/// What only the end of a run gives. `log`: the histogram log, where it was to go elsewhere.
fn fill(bundle: &Bundle, log: Option<&str>, summary: &Summary) -> Result<(), Failure> {
    let write = |file: String, written: io::Result<()>| {
        written.map_err(|e| Failure::machine(format!("--out: {file}: {e}")))
    };
    write(bundle.summary(), fs::write(bundle.summary(), view::json(summary)))?;
    let copied = log.map_or(Ok(()), |log| fs::copy(log, bundle.hlog()).map(|_| ()));
    write(bundle.hlog(), copied)
}

/// To where the metrics go: a file that cannot be opened, or a port in use, stops the run before it starts.
fn exporters(
    args: &RunArgs,
    bundle: Option<&Bundle>,
    plan: &Plan,
    began: Date,
    outputs: &mut Outputs,
) -> Result<Exporters, Failure> {
    let mut exporters = Exporters::new(began);
    files(&mut exporters, args.csv.as_ref(), args.jsonl.as_ref(), outputs)?;
    files(&mut exporters, bundle.map(Bundle::csv).as_ref(), None, outputs)?;
    parquet(&mut exporters, args.parquet.as_deref(), outputs)?;
    let influx = plan.influx.as_ref().map(influx_server).transpose()?;
    for server in influx.into_iter().chain(plan.otlp.as_ref().map(otlp_server)) {
        exporters.push(server, Arc::new(|line: &str| say(&format!("throng: {line}"))));
    }
    if let Some(at) = plan.prometheus {
        let bound = exporters.prometheus(at);
        let at = bound.map_err(|e| Failure::machine(format!("--prometheus {at}: {e}")))?;
        if plan.live != Live::Off {
            say(&format!("throng: metrics at http://{at}/metrics"));
        }
    }
    Ok(exporters)
}

/// The live page: a port in use stops the run before it starts.
fn dashboard(args: &RunArgs, plan: &Plan, record: &RunRecord) -> Result<Option<Dashboard>, Failure> {
    let Some(at) = plan.dashboard else { return Ok(None) };
    let token = args.dashboard_token_file.as_deref().map(Token::read).transpose();
    let token = token.map_err(|why| Failure::words([format!("--dashboard-token-file: {why}")]))?;
    // It goes through an address.
    let is_plain =
        |token: &Token| token.secret().bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    if token.as_ref().is_some_and(|token| !is_plain(token)) {
        let why = "a token may have letters, digits, -, ., _ and ~ only; create one with openssl rand -hex \
        32";
        return Err(Failure::words([format!("--dashboard-token-file: {why}")]));
    }
    let opens = token.map(|token| Arc::new(move |offered: &[u8]| token.is(offered)) as Opens);
    let has_token = opens.is_some();
    let started = Dashboard::start(at, record.clone(), opens);
    let (dashboard, at) = started.map_err(|e| Failure::machine(format!("--dashboard {at}: {e}")))?;
    let shown = if has_token { "#token=…" } else { "" };
    say(&format!("throng: dashboard at http://{at}/{shown}"));
    Ok(Some(dashboard))
}

/// The summary in the form that was asked for.
fn text(format: Format, summary: &Summary, whole: Whole) -> String {
    let form = match format.tool {
        Tool::Throng => return view::text(summary),
        Tool::Wrk => view::format::wrk,
        Tool::Fortio => view::format::fortio,
        Tool::Ab => view::format::ab,
        Tool::Httperf => view::format::httperf,
    };
    let (summary, whole) = whole.of(summary, format.of);
    form(&summary, &whole)
}

/// Runs a plan and writes `--hlog` meanwhile: a file that fills up does not cost the summary.
fn logged(
    (file, out): Log,
    plan: &Plan,
    record: RunRecord,
    interrupt: &Interrupt,
    sinks: &mut [&mut dyn Sink],
) -> Result<(Applied, Result<(), Failure>), Failure> {
    let failed = |e: io::Error| Failure::machine(format!("--hlog {file}: {e}"));
    let mut hlog = HlogFile::new(out);
    let mut log = hlog.begin(UNIX_EPOCH + Duration::from_millis(record.began_ms.0)).map_err(failed)?;
    let mut sinks: Vec<&mut dyn Sink> = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink).collect();
    sinks.push(&mut log);
    let applied = apply(plan, record, interrupt, &mut sinks)?;
    let written = log.result().and_then(|()| hlog.finish());
    Ok((applied, written.map_err(failed)))
}

/// A file of metrics in Parquet.
#[cfg(feature = "parquet")]
pub(crate) fn parquet(
    exporters: &mut Exporters,
    file: Option<&str>,
    outputs: &mut Outputs,
) -> Result<(), Failure> {
    if let Some(file) = file {
        exporters.parquet(format!("--parquet {file}"), outputs.stream("--parquet", file)?);
    }
    Ok(())
}

/// The same where throng was built without it.
#[cfg(not(feature = "parquet"))]
pub(crate) fn parquet(_: &mut Exporters, file: Option<&str>, _: &mut Outputs) -> Result<(), Failure> {
    let cure = "not in this build; use --csv, or build with --features parquet";
    file.map_or(Ok(()), |file| Err(Failure::words([format!("--parquet: {cure}: {file:?}")])))
}

/// Files of metrics.
pub(crate) fn files(
    exporters: &mut Exporters,
    csv: Option<&String>,
    jsonl: Option<&String>,
    outputs: &mut Outputs,
) -> Result<(), Failure> {
    if let Some(file) = csv {
        exporters.csv(format!("--csv {file}"), outputs.stream("--csv", file)?);
    }
    if let Some(file) = jsonl {
        exporters.jsonl(format!("--jsonl {file}"), outputs.stream("--jsonl", file)?);
    }
    Ok(())
}

/// Where InfluxDB is, with the token that it wants.
pub(crate) fn influx_server(influx: &Influx) -> Result<PushServer, Failure> {
    let token = match &influx.token_file {
        None => env::var("INFLUX_TOKEN").ok().filter(|token| token.bytes().all(|b| b.is_ascii_graphic())),
        Some(file) => {
            let read = Token::read(file);
            let token = read.map_err(|why| Failure::words([format!("--influx-token-file: {why}")]))?;
            Some(token.secret().to_owned())
        }
    };
    let Influx { at, host, path, .. } = influx.clone();
    Ok(PushServer { form: Form::Influx, at, host, path, token: token.filter(|token| !token.is_empty()) })
}

/// Where the collector is.
pub(crate) fn otlp_server(otlp: &Otlp) -> PushServer {
    let Otlp { at, host, path } = otlp.clone();
    PushServer { form: Form::Otlp, at, host, path, token: None }
}

/// Reads the words; all mistakes at once. Of a name with addresses of both families, that one which is served.
pub(crate) fn plan(flags: &Flags) -> Result<Plan, Failure> {
    read(flags).map(|plan| settled(plan, true))
}

/// The same without a single dial.
pub(crate) fn plan_unseen(flags: &Flags) -> Result<Plan, Failure> {
    read(flags).map(|plan| settled(plan, false))
}

fn read(flags: &Flags) -> Result<Plan, Failure> {
    let around = Surroundings { cores: cores(), seed: seed(), resolve: &resolve };
    plan::from_flags(flags, &around).map_err(Failure::words)
}

/// With the family that is served of each name that has both; `dials`: whether to dial for that.
pub(crate) fn settled(mut plan: Plan, dials: bool) -> Plan {
    let mut tell = |line: &str| say(&format!("throng: {line}"));
    ::run::settle(&mut plan, &Root::real(), dials, &mut tell);
    plan
}

/// Processors that this process may use.
pub(crate) fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, usize::from) as u32
}

/// A random number, short enough to be typed.
pub(crate) fn seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}

/// Looks up a name.
pub(crate) fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let addresses = (name, 0).to_socket_addrs().map_err(|e| e.to_string())?;
    Ok(addresses.map(|address| address.ip()).collect())
}

/// A run that is over.
pub(crate) struct Applied {
    pub(crate) summary: Summary,
    /// How it was kept, if it was.
    pub(crate) kept: Option<Kept>,
}

/// Runs a plan with its live view, and keeps it in the store; `sinks` see it too.
pub(crate) fn apply(
    plan: &Plan,
    record: RunRecord,
    interrupt: &Interrupt,
    sinks: &mut [&mut dyn Sink],
) -> Result<Applied, Failure> {
    let mut line = Line::new(Messages::default());
    let mut classic = Classic::new(Messages::default());
    let mut terminal = Terminal::new();
    let live: Option<&mut dyn Sink> = match plan.live {
        Live::Tui => Some(&mut terminal),
        Live::Auto if Terminal::has_room() => Some(&mut terminal),
        Live::Auto | Live::Line => Some(&mut line),
        Live::Classic => Some(&mut classic),
        Live::Off => None,
    };
    let mut keeper = runs::keeper(&record);
    let kept = keeper.as_mut().map(|keeper| keeper as &mut dyn Sink);
    let others = sinks.iter_mut().map(|sink| &mut **sink as &mut dyn Sink);
    let mut sinks: Vec<&mut dyn Sink> = live.into_iter().chain(kept).chain(others).collect();
    let mut tell = |line: &str| say(&format!("throng: {line}"));
    let (root, calibrations) = (Root::real(), runs::calibrations());
    let summary = ::run::run(plan, &root, &mut sinks, interrupt, &calibrations, &mut tell);
    let kept = keeper.and_then(Keeper::end);
    if let Some(kept) = kept.as_ref().filter(|_| plan.live != Live::Off) {
        say(&runs::kept(kept));
    }
    Ok(Applied { summary: summary.map_err(Failure::machine)?, kept })
}
