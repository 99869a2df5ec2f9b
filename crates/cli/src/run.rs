//! `throng run`.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io::stderr,
    net::{IpAddr, ToSocketAddrs},
};

use host::{Root, remote::Token};
use plan::{Flags, Live, Plan, Surroundings};
use run::Interrupt;
use samples::{Sink, Summary};
use sinks::{Classic, Line};

use crate::{Failure, answer, args::RunArgs, say, signals};

/// Applies the load; returns the exit status.
pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let plan = plan(&args.flags())?;
    if let Some(file) = &args.observe_token_file {
        Token::read(file).map_err(|why| Failure::words([format!("--observe-token-file: {why}")]))?;
    }
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
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let seed = RandomState::new().build_hasher().finish() >> 16;
    plan::from_flags(flags, &Surroundings { cores, seed, resolve: &resolve }).map_err(Failure::words)
}

fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
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
