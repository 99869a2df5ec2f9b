//! `throng calibrate`: measures what this machine can do with client and server on it.

use std::process::{Command, Stdio};

use fleet::Error;
use host::Root;
use plan::{Flags, Hold, flag};
use run::Interrupt;
use samples::{Calibration, Measurement, Summary, Verdict, bytes_per_pair};
use store::Store;
use units::{Count, Date, Nanos};

use crate::{
    EXIT_MACHINE, Failure, args::CalibrateArgs, files::Files, message, own_server::OwnServer, plans,
    print_result, signals,
};

/// Connections to open for each second of `--duration`: more than most machines can open in a second.
const OPENED_PER_S: u64 = 40_000;
/// At most one connection in this many that fit in memory is opened.
const SHARE: u64 = 2;
/// Number of connections in the closed-loop measurement.
const CLOSED_LOOP: u64 = 100;

/// Measures, prints and stores the result; returns the exit status.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<u8, Failure> {
    let duration = read_args(args)?;
    // Before the measurement, which would be wasted without a store.
    let file = store::folders::runs().map_err(Failure::machine)?;
    let store = Store::open(&file).map_err(Failure::machine)?;
    Files::default().json(args.json.as_deref())?;
    let interrupt = signals::interrupt()?;

    let (opened, fitting) = opening(&args.io, duration, &interrupt)?;
    let closed_loop_run = closed_loop(args, &interrupt)?;
    let host = host::facts(&Root::real());
    let calibration = Calibration {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        at_ms: Date::from(units::date()),
        io: opened.io.to_string(),
        open_per_s: Measurement::of_opening(&opened, host.cores),
        requests_per_s: Measurement::of_requests(&closed_loop_run, host.cores),
        latency_p99_us: closed_loop_run.latency_us.p99,
        connections: fitting,
        bytes_per_connection: bytes_per_pair(&opened.cost),
        host,
    };
    store.add_calibration(&calibration).map_err(Failure::machine)?;
    let text = view::calibration_text(&calibration);
    print_result(&text, args.json.as_deref(), || view::calibration_json(&calibration))?;
    Ok(0)
}

/// Measures in a child process, which ends with this one; blocks meanwhile. `duration` is as typed.
pub(crate) fn elsewhere(duration: &str) -> Result<Calibration, Error> {
    // Checked because it comes from a request and becomes an argument of a command.
    Nanos::parse_or_seconds(duration).map_err(|e| Error::Invalid(format!("--duration: {e}")))?;
    let failed = |e: std::io::Error| Error::Unavailable(e.to_string());
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command.args(["calibrate", "--json", "-", "--duration", duration]).stdin(Stdio::null());
    let output = command.output().map_err(failed)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let why = text.lines().last().unwrap_or("it failed").trim_start_matches("throng: ");
        return Err(Error::Unavailable(why.to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| Error::Unavailable(e.to_string()))
}

/// Parses the duration; reports all mistakes at once, before a server is started.
fn read_args(args: &CalibrateArgs) -> Result<Nanos, Failure> {
    let plan = plans::plan(&flags("tcp://127.0.0.1:1", &args.io).with(&flag::DURATION, &args.duration))?;
    match plan.stages[0].hold {
        Hold::For(time) if time > Nanos::ZERO => Ok(time),
        _ => Err(Failure::usage([format!("--duration: {:?} is not a time; use 8s", args.duration)])),
    }
}

/// Opens TCP connections as fast as possible; also computes from their memory how many would fit.
fn opening(io: &str, duration: Nanos, interrupt: &Interrupt) -> Result<(Summary, Measurement), Failure> {
    let server = OwnServer::start(&["--io", server_io(io)])?;
    let flags = |n: u64| {
        let target = format!("tcp://{}", server.address);
        flags(&target, io).with(&flag::CONNECTIONS, n).with(&flag::DURATION, "1s")
    };
    let root = Root::real();
    let wanted = ((duration.secs_f64() * OPENED_PER_S as f64) as u64).max(1);
    let full = plans::plan(&flags(wanted * SHARE))?;
    let n = (run::fitting(&full, &root).map_err(Failure::machine)? / SHARE).clamp(1, wanted);
    // Read before the connections are opened, since the kernel gives memory back late.
    let available = host::memory(&root).map(|memory| memory.available);
    let need = run::need(&full, &root).map_err(Failure::machine)?;
    let beside = host::capacity_beside_memory(&root, &need);
    message(&format!("opening {} to a server on this machine", Count(n).of("connection")));
    let summary = apply(&flags(n), interrupt)?;
    let by_memory = bytes_per_pair(&summary.cost).zip(available.ok());
    let by_memory = by_memory.map(|(bytes, available)| (available as f64 / bytes) as u64);
    let (fit, limited_by) = match by_memory {
        Some(fit) if fit <= beside.connections => (fit, "memory"),
        Some(_) => (beside.connections, beside.limited_by),
        // If too few connections were seen, the estimate of `doctor` is used.
        None => {
            let capacity = host::capacity(&root, &need);
            (capacity.connections, capacity.limited_by)
        }
    };
    let (value, limited_by) = (fit as f64, limited_by.to_owned());
    Ok((summary, Measurement { value, limited_by, ..Measurement::default() }))
}

/// Sends requests in a closed loop: each as soon as the response to the previous one on its connection has arrived.
fn closed_loop(args: &CalibrateArgs, interrupt: &Interrupt) -> Result<Summary, Failure> {
    // A second server, because the first one is still closing its connections.
    let server = OwnServer::start(&["--io", server_io(&args.io)])?;
    message(&format!("requests over {CLOSED_LOOP} connections for {}", args.duration));
    let flags = flags(&format!("http://{}/", server.address), &args.io);
    let flags = flags.with(&flag::CONNECTIONS, CLOSED_LOOP).with(&flag::DURATION, &args.duration);
    apply(&flags, interrupt)
}

/// The server's I/O backend: `tun` is only for clients.
fn server_io(io: &str) -> &str {
    if io == "tun" { "auto" } else { io }
}

fn flags(target: &str, io: &str) -> Flags {
    Flags::new(target).with(&flag::IO, io)
}

/// Runs a load without showing or storing it.
///
/// # Errors
/// The run did not pass, so its figures cannot be used for a calibration.
fn apply(flags: &Flags, interrupt: &Interrupt) -> Result<Summary, Failure> {
    let plan = plans::plan(flags)?;
    let run = run::run(&plan, &Root::real(), &mut [], interrupt, &[], &mut message);
    let summary = run.map_err(Failure::machine)?;
    let status = match summary.verdict {
        Verdict::Pass => return Ok(summary),
        Verdict::Fail => EXIT_MACHINE,
        Verdict::Invalid | Verdict::Interrupted => summary.verdict.exit_status(),
    };
    let why = view::verdict(&summary).lines().map(str::trim).collect::<Vec<_>>().join("; ");
    Err(Failure { status, lines: vec![format!("calibration failed, nothing stored: {why}")] })
}
