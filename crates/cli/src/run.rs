//! `throng run`.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io::stderr,
    net::{IpAddr, ToSocketAddrs},
};

use host::Root;
use plan::{Flags, Live, Plan, Surroundings};
use run::Interrupt;
use samples::{Sink, Summary};
use sinks::{Classic, Line};

use crate::{Failure, answer, args::RunArgs, say, scenario, signals};

/// Applies the load; returns the exit status.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let flags = args.flags();
    if let Some(file) = flags.target.as_deref().filter(|target| plan::scenario::is_file(target)) {
        scenario::read(file)?;
        let why = "it has no mistake, but running scenarios is not available in this version";
        return Err(Failure::machine(format!("{file}: {why}")));
    }
    let plan = plan(&flags)?;
    let interrupt = Interrupt::default();
    let ask = interrupt.clone();
    signals::on_signal(move || ask.set()).map_err(Failure::machine)?;
    let summary = apply(&plan, &interrupt)?;
    match args.json.as_deref() {
        Some("-") => {
            say(sinks::text(&summary).trim_end());
            answer(&sinks::json(&summary))?;
        }
        to => {
            // Both are tried: neither is lost for the other's sake.
            let told = answer(&sinks::text(&summary));
            if let Some(file) = to {
                fs::write(file, sinks::json(&summary))
                    .map_err(|e| Failure::machine(format!("--json {file}: {e}")))?;
            }
            told?;
        }
    }
    Ok(summary.verdict.exit_status())
}

/// Reads the words; all mistakes at once.
pub(crate) fn plan(flags: &Flags) -> Result<Plan, Failure> {
    let around = Surroundings { cores: cores(), seed: seed(), resolve: &resolve };
    plan::from_flags(flags, &around).map_err(Failure::words)
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

/// Runs a plan with its live view.
pub(crate) fn apply(plan: &Plan, interrupt: &Interrupt) -> Result<Summary, Failure> {
    let mut line = Line::new(stderr());
    let mut classic = Classic::new(stderr());
    let mut sinks: Vec<&mut dyn Sink> = match plan.live {
        Live::Auto | Live::Line => vec![&mut line],
        Live::Classic => vec![&mut classic],
        Live::Off => vec![],
    };
    let mut tell = |line: &str| say(&format!("throng: {line}"));
    ::run::run(plan, &Root::real(), &mut sinks, interrupt, &mut tell).map_err(Failure::machine)
}
