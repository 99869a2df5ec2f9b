//! `throng demo`: shows what throng does, with a server of its own.

use host::Root;
use plan::{Flags, Live, flag};
use units::Count;

use crate::{
    Failure,
    apply::{Applied, Typed, apply},
    own_server::OwnServer,
    plans, print_stderr, print_stdout, runs, signals,
};

const CONNECTIONS: u64 = 100_000;
/// The demo uses at most one connection in this many that fit in memory.
const SHARE: u64 = 2;

/// Starts a server as a separate process and runs a load against it.
pub(crate) fn demo() -> Result<u8, Failure> {
    let interrupt = signals::interrupt()?;
    let server = OwnServer::start(&[])?;
    let address = &server.address;
    let flags = |n: u64| {
        Flags::new(format!("http://{address}/?length={{rand 1 4096}}"))
            .with(&flag::CONNECTIONS, n)
            .with(&flag::RAMP, "18s")
            .with(&flag::DURATION, "10s")
            .with(&flag::THINK, "5s..15s")
            .with(&flag::EXPECT, "status=200,length=$1")
    };
    let full = plans::plan(&flags(CONNECTIONS * SHARE))?;
    let n = run::fitting(&full, &Root::real()).map_err(Failure::machine)? / SHARE;
    let n = n.clamp(1, CONNECTIONS);
    print_stderr(&format!(
        "{} keep-alive HTTP connections to a server on this machine, each requesting 1 to 4096 characters, \
        then idle for 5 to 15 s",
        Count(n)
    ));
    let flags = flags(n);
    let (plan, record) = (plans::plan(&flags)?, runs::record(units::date().into(), None, &[]));
    let typed = Typed { plan: &plan, flags: &flags };
    let Applied { summary, .. } = apply(typed, None, Live::Auto, record, &interrupt, &mut [])?;
    print_stdout(&view::text(&summary))?;
    Ok(summary.verdict.exit_status())
}
